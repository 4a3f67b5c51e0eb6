/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connection setup between two endpoints: which state follows an event, and which acts are due. It has no I/O, no
 * memory and no clock. A transport reports an event, executes the acts, and is in the state that was decided. The
 * file needs nothing of the core, so each provider links a copy. docs/explanation/meet.md
 */
#ifndef OFPI_MEET_H
#define OFPI_MEET_H

#include <stdbool.h>
#include <stdint.h>

/*
 * State of the connection between an endpoint and one peer. IDLE is 0, as in zeroed memory, and is also the end: to
 * release a peer needs no decision.
 */
enum ofpi_meet_state {
    OFPI_MEET_IDLE,       /* no connection */
    OFPI_MEET_CONNECTING, /* our request is in flight */
    OFPI_MEET_ACCEPTED,   /* the peer's request is accepted; it counts once that is confirmed */
    OFPI_MEET_UP,
    OFPI_MEET_DOUBTED, /* up, but the peer may have lost this connection */
    OFPI_MEET_DRAINING /* over: data that arrived before is still read */
};

enum ofpi_meet_event {
    OFPI_MEET_CONNECT,  /* operations wait for a connection */
    OFPI_MEET_REQUEST,  /* the peer requests a connection */
    OFPI_MEET_ACCEPT,   /* the peer accepts our request */
    OFPI_MEET_FAIL,     /* our request has failed, for now or for good: it is rejected, put off, or was never sent */
    OFPI_MEET_CONFIRM,  /* our acceptance reached the peer, as far as the transport needs to know */
    OFPI_MEET_SHORTAGE, /* the peer's request could not be accepted */
    OFPI_MEET_BROKEN,   /* the connection ended without a goodbye */
    OFPI_MEET_CLOSED,   /* the peer's end of the connection, or the peer, is known to be gone */
    OFPI_MEET_DRAINED   /* all data of the connection is read */
};

/* Bits: facts that are known at the event. */
enum ofpi_meet_fact {
    OFPI_MEET_OURS_WINS = 1, /* REQUEST: our request wins over the crossing one; ofpi_meet_winner_compute */
    OFPI_MEET_RENEWED = 2,   /* REQUEST: from another incarnation than the one that we are connected to */
    OFPI_MEET_OPENED = 4,    /* REQUEST: this side requested the connection, so the request may have crossed it */
    OFPI_MEET_UNREAD = 8,    /* data of the connection is unread, and will be read */
    OFPI_MEET_WANTED = 16,   /* operations wait for a connection */
    OFPI_MEET_GIVEN_UP = 32  /* REQUEST: the peer gave up the connection that we accepted; nothing of it is unread */
};

/* Bits: acts, in the order of execution. */
enum ofpi_meet_act {
    OFPI_MEET_DO_CLOSE = 1,     /* close the connection that we requested, or accepted and cannot use */
    OFPI_MEET_DO_LOSE = 2,      /* report to the core that the peer is lost, or to be tried again; close what was up */
    OFPI_MEET_DO_DRAIN = 8,     /* read the remaining data, then report DRAINED */
    OFPI_MEET_DO_PROBE = 16,    /* find out whether the peer is there, then report CLOSED */
    OFPI_MEET_DO_PUT_OFF = 32,  /* answer the peer's request with "later", and close its connection */
    OFPI_MEET_DO_ACCEPT = 64,   /* accept the request, then report CONFIRM, or SHORTAGE on failure */
    OFPI_MEET_DO_CONNECT = 128, /* open a connection and request */
    OFPI_MEET_DO_USE = 256      /* report to the core that the peer is up */
};

/* One row: in `state`, on `event`, if all `facts` apply (others may too): execute `acts`, enter `next`. */
struct ofpi_meet_row {
    uint8_t state, event, facts;
    uint16_t acts;
    uint8_t next;
};
/* The first row that fits decides. A combination without a row cannot happen. */
extern const struct ofpi_meet_row ofpi_meet_table[];
extern const uint32_t ofpi_meet_rows;

struct ofpi_meet_decision {
    uint8_t next; /* enum ofpi_meet_state */
    uint16_t acts;
    uint32_t row; /* ofpi_meet_rows: no row fits, and nothing changes */
};
struct ofpi_meet_decision ofpi_meet_decision_find(enum ofpi_meet_state state, enum ofpi_meet_event event,
                                                  unsigned facts);

/* ------------------------------------------------------------------------------------------------- crossing requests */

/* Which request wins when two cross: part of the protocol of a transport. */
enum ofpi_meet_winner { OFPI_MEET_LARGER_WINS, OFPI_MEET_SMALLER_WINS };

/* The fact for crossing requests. `order`: memcmp of the peer's address and ours, which differ. */
static inline unsigned ofpi_meet_winner_compute(enum ofpi_meet_winner winner, int order)
{
    return (winner == OFPI_MEET_LARGER_WINS) == (order < 0) ? OFPI_MEET_OURS_WINS : 0;
}

/* Whether a positive errno reports a shortage that may end in a moment. */
bool ofpi_meet_is_shortage(int error);

#endif
