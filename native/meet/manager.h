/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The manager of connection setup. It owns the state of the connection between an endpoint and one peer, decides by the
 * table of meet.h, and executes the acts by a table of operations that each transport supplies. The transport reports
 * what happens by the functions below. Sockets, packets, proofs and deadlines stay with the transport, and pauses with the core.
 * docs/explanation/meet.md
 *
 * The domain's lock is held in all calls. A function below may call several operations, and an operation may report a
 * further event only where that is said. So a caller must not use a connection of the peer after a report.
 */
#ifndef OFPI_MANAGER_H
#define OFPI_MANAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "meet/meet.h"
#include "ofipy/objects.h"

/* State of the connection to one peer, within the transport's own object. Zeroed memory is IDLE. */
struct ofpi_meeting {
    uint8_t state; /* enum ofpi_meet_state. The manager changes it, and the transport when it drops a peer. */
};

/* Why a connection ended, or was not established. */
struct ofpi_meeting_end {
    int error;         /* positive */
    bool process_gone; /* the process of the peer has ended too */
    bool unsure;       /* the connection broke without a goodbye: `probe` finds out whether the peer is there */
    bool absent;       /* nothing listens at the address */
    bool deferred;     /* another attempt may succeed: the peer said "later", or a resource is short */
    const char *text;  /* description with a remedy; or NULL. Valid during the call */
};

/* Why our request could not be sent: `error` is positive. EAGAIN: the peer took none now. `text`: "" for none. */
struct ofpi_meeting_end ofpi_meeting_end_build(int error, const char *text);

/* The result of `dial` if no answer, and of `accept` if no confirmation by the peer is awaited. */
#define OFPI_MEETING_CONFIRMED 1

/* The acts. Errors are negative errnos; after one, nothing of the attempt is left. */
struct ofpi_meeting_ops {
    /* The state of a peer's connection. NULL: the transport has no object for it, which is IDLE. */
    struct ofpi_meeting *(*find)(const struct ofp_peer *peer);
    /*
     * Open a connection and request. 0, or OFPI_MEETING_CONFIRMED. -ECONNREFUSED: nothing listens there. It reports
     * nothing.
     */
    int (*dial)(struct ofp_peer *peer, char *text, size_t text_size);
    /*
     * Accept a request, and report the peer as connecting to the core if it is not. 0, or OFPI_MEETING_CONFIRMED. It
     * reports nothing, and has answered the request even if it fails.
     */
    int (*accept)(struct ofp_peer *peer, void *request);
    /* Answer a request with "later". */
    void (*refuse)(struct ofp_peer *peer, void *request);
    /* Close the connections that were requested or accepted, and never used. */
    void (*close)(struct ofp_peer *peer);
    /* Report the loss to the core, and close the connection. The transport's object may be freed. */
    void (*lose)(struct ofp_peer *peer, const struct ofpi_meeting_end *end);
    /* Read what has arrived; ofpi_meeting_drained follows. */
    void (*drain)(struct ofp_peer *peer, const struct ofpi_meeting_end *end);
    /* Find out whether the peer is there; ofpi_meeting_ended follows, without `unsure`. False: nobody can be asked. */
    bool (*probe)(struct ofp_peer *peer, const struct ofpi_meeting_end *end);
    /* The connection is agreed upon: report the peer as up to the core. */
    void (*use)(struct ofp_peer *peer);
};

/* For `lose`: report to the core. It drops the peer, so the transport's `peer_down` closes the connection. */
void ofpi_meeting_report_loss(struct ofp_peer *peer, const struct ofpi_meeting_end *end);

/* The core wants a connection: `dial`. 0, or a negative errno, with a text: the core reports it. */
int ofpi_meeting_start(const struct ofpi_meeting_ops *ops, struct ofp_peer *peer, char *text, size_t text_size);
/* The peer requests a connection. `request` is for `accept` or `refuse`. `facts`: bits of enum ofpi_meet_fact. */
void ofpi_meeting_requested(const struct ofpi_meeting_ops *ops, struct ofp_peer *peer, void *request, unsigned facts);
/* Our request is answered, or nobody answers in time. `end`: why it failed; NULL: it is accepted. */
void ofpi_meeting_answered(const struct ofpi_meeting_ops *ops, struct ofp_peer *peer,
                           const struct ofpi_meeting_end *end);
/* The peer knows that its request is accepted. */
void ofpi_meeting_confirmed(const struct ofpi_meeting_ops *ops, struct ofp_peer *peer);
/* A connection has ended. Our request in flight is rejected by that. `unread`: data of it will still be read. */
void ofpi_meeting_ended(const struct ofpi_meeting_ops *ops, struct ofp_peer *peer, bool unread,
                        const struct ofpi_meeting_end *end);
/* All data of an ended connection is read. */
void ofpi_meeting_drained(const struct ofpi_meeting_ops *ops, struct ofp_peer *peer,
                          const struct ofpi_meeting_end *end);

#endif
