/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How two endpoints come to one connection: which state follows on an event, and what is to be done. Pure: no I/O, no memory,
 * no clock. A transport says what has happened, does what it is told, and then is in the state it was told. Nothing of the core
 * is needed here: each provider links a copy. docs/explanation/meet.md
 */
#ifndef OFPI_MEET_H
#define OFPI_MEET_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What is between an endpoint and one of its peers. 0 is the beginning, as zeroed memory has it, and the end: who lets go of a
 * peer decides nothing.
 */
enum ofpi_meet_state {
    OFPI_MEET_IDLE,       /* nothing */
    OFPI_MEET_CONNECTING, /* our request is under way */
    OFPI_MEET_BACKOFF,    /* it was put off, or lacked something: another one follows */
    OFPI_MEET_ACCEPTED,   /* theirs is accepted, and counts once that is confirmed */
    OFPI_MEET_UP,
    OFPI_MEET_DOUBTED, /* up, but the peer may not have this connection any more */
    OFPI_MEET_DRAINING /* over: what came by it is still read */
};

enum ofpi_meet_event {
    OFPI_MEET_CONNECT,  /* operations wait for a connection */
    OFPI_MEET_REQUEST,  /* the peer requests one */
    OFPI_MEET_ACCEPT,   /* it accepts ours, */
    OFPI_MEET_LATER,    /* puts it off, */
    OFPI_MEET_REJECT,   /* or rejects it; nobody is there */
    OFPI_MEET_CONFIRM,  /* our acceptance reached it, as far as the transport wants to know */
    OFPI_MEET_SHORTAGE, /* what was decided last lacked descriptors, memory, room: ofpi_meet_is_shortage */
    OFPI_MEET_TIMER,    /* the time of the back-off, or the deadline */
    OFPI_MEET_BROKEN,   /* the connection ended without a word */
    OFPI_MEET_CLOSED,   /* the peer's end of it, or the peer, is known to be gone */
    OFPI_MEET_DRAINED   /* what came by it is read */
};

/* Bits: what else is known when it happens. */
enum ofpi_meet_fact {
    OFPI_MEET_OURS_WINS = 1, /* REQUEST: of two that cross ours stays; ofpi_meet_crossing */
    OFPI_MEET_RENEWED = 2,   /* REQUEST: by another incarnation than the one that we are connected to */
    OFPI_MEET_OPENED = 4,    /* REQUEST: the connection was opened here, so this one may have crossed it */
    OFPI_MEET_UNREAD = 8,    /* what came by the connection is not all read, and will be */
    OFPI_MEET_LATE = 16,     /* the deadline has passed; ofpi_backoff_lateness */
    OFPI_MEET_WANTED = 32    /* operations wait here for a connection */
};

/* Bits: what is to be done, in this order. */
enum ofpi_meet_act {
    OFPI_MEET_DO_CLOSE = 1,     /* close the connection that we requested, or accepted and cannot use */
    OFPI_MEET_DO_LOSE = 2,      /* the core hears that the peer is lost, and the connection that was up is closed */
    OFPI_MEET_DO_DRAIN = 8,     /* read what is left of it, then tell of DRAINED */
    OFPI_MEET_DO_PROBE = 16,    /* find out whether the peer is there, then tell of CLOSED */
    OFPI_MEET_DO_PUT_OFF = 32,  /* answer their request "later", and close what it came by */
    OFPI_MEET_DO_ACCEPT = 64,   /* accept it, then tell of CONFIRM, or of SHORTAGE when it cannot be done */
    OFPI_MEET_DO_CONNECT = 128, /* open a connection and request */
    OFPI_MEET_DO_WAIT = 256,    /* until the time of the back-off, then tell of TIMER */
    OFPI_MEET_DO_USE = 512      /* the core hears that the peer is up */
};

/* One row: in `state`, on `event`, when `facts` hold (and maybe others): do `acts`, be in `next`. */
struct ofpi_meet_row {
    uint8_t state, event, facts;
    uint16_t acts;
    uint8_t next;
};
/* The first row that fits counts. What fits none cannot happen. */
extern const struct ofpi_meet_row ofpi_meet_table[];
extern const uint32_t ofpi_meet_rows;

struct ofpi_meet_decision {
    uint8_t next; /* enum ofpi_meet_state */
    uint16_t acts;
    uint32_t row; /* ofpi_meet_rows: none, and nothing changes */
};
struct ofpi_meet_decision ofpi_meet_decide(enum ofpi_meet_state state, enum ofpi_meet_event event, unsigned facts);

/* Decide, and be in the state that follows: what is to be done. */
static inline unsigned ofpi_meet_event(uint8_t *state, enum ofpi_meet_event event, unsigned facts)
{
    struct ofpi_meet_decision decision = ofpi_meet_decide((enum ofpi_meet_state) * state, event, facts);

    *state = decision.next;
    return decision.acts;
}

/* ------------------------------------------------------------------------------------------------- crossing requests */

/* Whose connection stays when two endpoints request one of each other: part of a transport's protocol. */
enum ofpi_meet_winner { OFPI_MEET_LARGER_WINS, OFPI_MEET_SMALLER_WINS };

/* The fact that follows; `order`: as memcmp of the peer's address and ours, which differ. */
static inline unsigned ofpi_meet_crossing(enum ofpi_meet_winner winner, int order)
{
    return (winner == OFPI_MEET_LARGER_WINS) == (order < 0) ? OFPI_MEET_OURS_WINS : 0;
}

/* ---------------------------------------------------------------------------------------------------------- back-off */

/* Times in ns; a clock's reading is an argument. */
struct ofpi_backoff {
    uint64_t deadline, pause, longest;
};

static inline struct ofpi_backoff ofpi_backoff_begin(uint64_t deadline, uint64_t first, uint64_t longest)
{
    return (struct ofpi_backoff){deadline, first, longest};
}

/* When to try again: each time after twice the pause, and at the deadline at the latest. */
static inline uint64_t ofpi_backoff_next(struct ofpi_backoff *backoff, uint64_t now)
{
    uint64_t again = now + backoff->pause;

    backoff->pause = backoff->pause < backoff->longest / 2 ? backoff->pause * 2 : backoff->longest;
    return again < backoff->deadline ? again : backoff->deadline;
}

/* The fact that follows. */
static inline unsigned ofpi_backoff_lateness(const struct ofpi_backoff *backoff, uint64_t now)
{
    return now >= backoff->deadline ? OFPI_MEET_LATE : 0;
}

/* Whether a (positive) errno tells of something that may be there again in a moment. */
bool ofpi_meet_is_shortage(int error);

#endif
