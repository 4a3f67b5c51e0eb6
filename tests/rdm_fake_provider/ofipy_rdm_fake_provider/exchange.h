/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports, one for each endpoint, and lines between them. One mutex, the exchange's, guards what both ends of a line
 * touch. It is the innermost lock: nobody is called with it held.
 */
#ifndef RDMFAKE_EXCHANGE_H
#define RDMFAKE_EXCHANGE_H

#include "ofipy/provider.h"
#include "rdm/channel.h"

#define RDMFAKE_SERVICE_SIZE 56

struct rdmfake_address {
    uint32_t magic;
    uint32_t process;
    char service[RDMFAKE_SERVICE_SIZE]; /* zero-terminated, the rest zero */
};

struct rdmfake_line;

/* What comes in at a port, in the order in which it was put. */
enum rdmfake_event_kind {
    RDMFAKE_ASK, /* and what the other side says: a hello */
    RDMFAKE_ACCEPT,
    RDMFAKE_REFUSE,
    RDMFAKE_CONFIRM,
    RDMFAKE_PACKET,
    RDMFAKE_SENT, /* these come from the port itself */
    RDMFAKE_MOVED,
    RDMFAKE_PROBED,
    RDMFAKE_CLOSED,
    RDMFAKE_END /* the other side closed the line, or it broke */
};

struct rdmfake_event {
    struct ofp_list node;
    enum rdmfake_event_kind kind;
    struct rdmfake_line *line; /* referenced */
    int side;                  /* of the line: whose it is */
    int error;
    bool flag;              /* REFUSE: later; PROBED: nobody is there; PACKET: `completed` */
    void *cookie;           /* SENT, MOVED */
    struct ofpi_path *path; /* of these, PROBED and CLOSED */
    uint32_t length;
    uint8_t bytes[];
};

struct rdmfake_port {
    struct ofp_list node;           /* in the table while it can be asked */
    struct rdmfake_address address; /* constant */
    uint64_t number;
    const void *owner; /* constant: of the memory there; memory.h */
    int doorbell;      /* constant; an eventfd in the domain's reactor, valid while open */
    uint32_t references;
    uint32_t posted; /* receive buffers, without those that are spoken for by packets on their way */
    bool open, listening, armed, rung;
    struct ofp_list inbox; /* struct rdmfake_event */
};

struct rdmfake_line {
    uint32_t references;
    bool broken;
    bool closed[2];
    struct ofp_list spares;       /* struct rdmfake_event: memory of what is said whether there is memory or not */
    struct rdmfake_port *ends[2]; /* constant, referenced */
    struct ofpi_path *paths[2];   /* each end's own: its domain's lock guards it. 0 is who asked */
};

/* The `step`th thing that a channel is asked from now on, and that a line can lose, breaks its line. 0: none does. */
void rdmfake_lose_at(uint64_t step);
uint64_t rdmfake_steps(void); /* so many there were since */

/*
 * As a device that waits for an acknowledgement: from now on packets stay with their senders, until `hold` is false. Those whose line
 * has ended meanwhile are lost.
 */
void rdmfake_hold_packets(bool hold);
uint64_t rdmfake_port_held(const struct rdmfake_port *port);           /* how many of this port's there are */
uint64_t rdmfake_line_held(const struct rdmfake_line *line, int side); /* and `completed` ones of a side's */

int rdmfake_port_open(const struct rdmfake_address *address, bool any, int doorbell, const void *owner,
                      struct rdmfake_port **port);
void rdmfake_port_hush(struct rdmfake_port *port); /* nobody finds it any more */
void rdmfake_port_close(struct rdmfake_port *port);
void rdmfake_port_posted(struct rdmfake_port *port);
struct rdmfake_event *rdmfake_port_take(struct rdmfake_port *port); /* NULL: none */
bool rdmfake_port_arm(struct rdmfake_port *port);
void rdmfake_port_disarm(struct rdmfake_port *port);
void rdmfake_port_silence(struct rdmfake_port *port);
void rdmfake_forget(void); /* in a forked child */

/* Ask whoever is at the address. NULL: nobody, or no memory. */
struct rdmfake_line *rdmfake_line_ask(struct rdmfake_port *port, const struct rdmfake_address *address,
                                      const uint8_t *hello, size_t length, int *error);
struct rdmfake_line *rdmfake_line_hold(struct rdmfake_line *line);
void rdmfake_line_release(struct rdmfake_line *line);
bool rdmfake_line_has_end(struct rdmfake_line *line, int side); /* whether that one's port still listens */
/* Say something to one side. A packet needs a buffer that is posted there. -ENOMEM; -ENOBUFS: none was. */
int rdmfake_line_put(struct rdmfake_line *line, int side, enum rdmfake_event_kind kind, bool flag, const void *bytes,
                     uint32_t length);
/* The same without bytes, for what a line says once: REFUSE, CONFIRM, PROBED. It needs no memory. */
void rdmfake_line_notify(struct rdmfake_line *line, int side, enum rdmfake_event_kind kind, int error);
/*
 * The end of something that a port began itself: the event is made before it begins, so that the end needs no memory.
 * NULL: none is left. The caller frees it, or puts it.
 */
struct rdmfake_event *rdmfake_event_reserve(enum rdmfake_event_kind kind, void *cookie);
void rdmfake_line_put_reserved(struct rdmfake_line *line, int side, struct rdmfake_event *event, int error);
/* Whether something that the other side does not hear of is where the line is to be lost. */
bool rdmfake_line_lose_here(struct rdmfake_line *line);
/* One side has finished with it: a CLOSED event follows the others that it still gets. */
void rdmfake_line_close(struct rdmfake_line *line, int side);
void rdmfake_event_free(struct rdmfake_event *event);

#endif
