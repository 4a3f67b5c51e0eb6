/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Meeting: exchanges over Unix sockets, version 1. One packet each way carries everything, so that no packet is ever read
 * in parts. listen.c lets callers in, meet.c moves packets, hello.c knows what they mean.
 */
#ifndef SHM_MEET_H
#define SHM_MEET_H

#include "shm.h"

#define SHM_PACKET_MAGIC 0x31544d53u /* "SMT1" in memory */

enum shm_packet_type {
    SHM_HELLO = 1,   /* with segment and eventfd */
    SHM_WELCOME = 2, /* the answer, with the same */
    SHM_ACK = 3,     /* the initiator has mapped what WELCOME brought */
    SHM_REFUSED = 4, /* `status`: errno; any number from a hostile peer */
    SHM_LATER = 5,   /* the caller tries again later */
    SHM_ARENA_QUESTION = 6,
    SHM_ARENA_ANSWER = 7, /* with the arena */
    SHM_FAREWELL = 8      /* the sender's endpoint is closed; where a GOODBYE found no room in the ring */
};

/* Bits of shm_packet.flags. */
#define SHM_KEEP 1 /* keep the connection open: its hang-up reports the death of the other side */

/* The first 80 bytes, to the end of the address, are the same in every version: a side that refuses reads no more. */
struct shm_packet {
    uint32_t magic;
    uint16_t version;
    uint16_t oldest; /* the oldest version the sender understands */
    uint16_t type;
    uint16_t flags;
    int32_t status;
    struct shm_address address; /* the sender's */
    uint64_t incarnation;
    uint64_t token;         /* of the sender's domain; arena question: of the questioned domain */
    uint64_t start_time;    /* of the sender's process */
    uint64_t probe_address; /* address of `incarnation`: a peer that can read it there may attach */
    uint32_t number;        /* the owner number of the receiver's slots in the sender's ring */
    uint32_t arena;
    uint32_t stamp; /* start of the stamp series of those slots */
    uint32_t reserved;
};
_Static_assert(offsetof(struct shm_packet, version) == 4, "layout");
_Static_assert(offsetof(struct shm_packet, oldest) == 6, "layout");
_Static_assert(offsetof(struct shm_packet, type) == 8, "layout");
_Static_assert(offsetof(struct shm_packet, flags) == 10, "layout");
_Static_assert(offsetof(struct shm_packet, status) == 12, "layout");
_Static_assert(offsetof(struct shm_packet, address) == 16, "layout");
_Static_assert(offsetof(struct shm_packet, incarnation) == 80, "layout");
_Static_assert(offsetof(struct shm_packet, token) == 88, "layout");
_Static_assert(offsetof(struct shm_packet, start_time) == 96, "layout");
_Static_assert(offsetof(struct shm_packet, probe_address) == 104, "layout");
_Static_assert(offsetof(struct shm_packet, number) == 112, "layout");
_Static_assert(offsetof(struct shm_packet, arena) == 116, "layout");
_Static_assert(offsetof(struct shm_packet, stamp) == 120, "layout");
_Static_assert(sizeof(struct shm_packet) == 128, "layout");
#define SHM_PACKET_COMMON 12

enum shm_meeting_role {
    SHM_CALLER,    /* we call a peer */
    SHM_REQUESTER, /* we request an arena */
    SHM_CALLED     /* a peer calls us */
};

/*
 * One exchange. Owned by the endpoint's list. Invariant: a caller and a requester have a link; a called meeting has one
 * only after it has answered HELLO, and its link is then ACCEPTED.
 */
struct shm_meeting {
    struct ofp_list node;
    struct shm_endpoint *endpoint;
    struct shm_link *link;  /* the link of the peer; CALLED: NULL until HELLO was answered */
    struct ofp_watch watch; /* fd -1: no connection now */
    struct ofp_timer timer; /* the deadline; REQUESTER: the next attempt */
    uint64_t deadline;
    uint64_t pause; /* REQUESTER: before the next attempt, ns */
    enum shm_meeting_role role;
    bool deferred; /* CALLER: another attempt may succeed */
    uint32_t arena;
    bool keep; /* CALLER: the peer can only be watched by the connection */
};

/* A received packet. Descriptors that a handler takes over are set to -1; the others are closed after it. */
struct shm_received {
    struct shm_packet packet;
    int fds[2];
    int fd_count;
    bool whole;       /* as long as a packet of our version */
    bool has_address; /* at least as long as what is the same in every version */
};

/* Start the meeting of a caller that has connected to the listener. Owns `fd` afterwards. */
void shm_caller_accept(struct shm_endpoint *endpoint, int fd);
void shm_meeting_free(struct shm_meeting *meeting);
/*
 * The attempt failed for this reason (positive; EAGAIN: the peer asks to wait, or does not answer), and another one may
 * succeed. A caller's is the core's, so this meeting and its link are freed. A requester tries again until its deadline.
 */
void shm_meeting_retry(struct shm_meeting *meeting, int reason);
/* 0 or a negative error; -EAGAIN: another attempt may succeed. */
int shm_packet_send(struct shm_meeting *meeting, const struct shm_packet *packet, const int *fds, int fd_count);
struct shm_packet shm_packet_of(const struct shm_endpoint *endpoint, enum shm_packet_type type);

/* Call the peer of a new link. 0, or a negative errno; -EAGAIN: another attempt may succeed. */
int shm_meeting_start(struct shm_link *link);
/* Request an arena of a link's peer. */
int shm_arena_request(struct shm_link *link, uint32_t number);
/* Send a close notice to a link's peer whose ring is full. */
void shm_close_notice_send(struct shm_link *link);
/* Close every meeting of this link (NULL: all). */
void shm_meetings_close(struct shm_endpoint *endpoint, const struct shm_link *link);

#endif
