/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layout of an endpoint's segment, version 3. One memfd, sealed against a change of size, mapped by its owner and by every
 * peer; little-endian.
 *
 *     0            header: constants | tail hint | status | visiting  one cache line each
 *     4096         ring: slots of 128 bytes, a power of two of them   written by peers, freed by the owner
 *     ring end     bounce states: one cache line each                 written by peers (they free the owner's buffers)
 *     next page    bounce buffers                                     written by the owner, read by peers, who
 *                                                                     write there what the owner asked them for
 *
 *     slot, line 0   0 state | 8 kind, flags, stamp, length | 16 tag | 24 data | 32 payload 0 … 31, or the fields of the kind
 *           line 1   64 payload 32 … 95
 */
#ifndef SHM_LAYOUT_H
#define SHM_LAYOUT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHM_SEGMENT_MAGIC 0x314d4853504f464full /* "OFOPSHM1" in memory */
/* The versions of segment, region table and meeting together that this side speaks. A test of versions sets others. */
#ifndef SHM_VERSION
#define SHM_VERSION 3
#define SHM_OLDEST_VERSION 3
#endif

#define SHM_CACHE_LINE 64
#define SHM_RING_OFFSET 4096
#define SHM_SLOT_SIZE 128
#define SHM_INLINE_SIZE 96
#define SHM_INLINE_FIRST 32 /* of these, in the slot's first line */
#define SHM_IDENTITY_SIZE 16

/* Limits of what a foreign segment may say about itself. */
#define SHM_SLOT_SHIFT_MIN 4
#define SHM_SLOT_SHIFT_MAX 16
#define SHM_BOUNCE_SIZE_MIN 4096
#define SHM_BOUNCE_SIZE_MAX (1u << 20)
#define SHM_BOUNCE_COUNT_MAX 4096

/* Bits of shm_header.status. */
#define SHM_SLEEPING UINT64_C(1) /* the owner sleeps: the sender that clears the bit writes to its eventfd */
#define SHM_ANNOUNCE UINT64_C(2) /* the owner's unexpected payload is above the bound: announce messages */
#define SHM_CLOSING UINT64_C(4)  /* the owner's memory belongs to the user again; do not trust what is read now */
#define SHM_CLOSED UINT64_C(8)   /* the owner reads and writes no ring any more */
#define SHM_EVENTS UINT64_C(16)  /* notify the owner of every access to its memory; set before a peer has the segment */
#define SHM_RENEWED UINT64_C(32) /* with CLOSING: the owner continues with another segment; connect again */
#define SHM_STATUS_BITS UINT64_C(63)

/* Features of an owner beyond its version: bits of shm_header.knows. */
#define SHM_KNOWS_INTERNAL UINT64_C(1) /* SHM_INTERNAL in a slot */
#define SHM_KNOWS_LOOKS UINT64_C(2)    /* the owner updates shm_header.looks */
#define SHM_KNOWS_ATOMICS UINT64_C(4)  /* peers may execute atomics with the instructions that the owner uses */
#define SHM_KNOWS_PUSHES UINT64_C(8)   /* announcements with the iov_count SHM_SENDER_MOVES */

struct shm_header {
    /* Constants, written before the segment is handed out. */
    uint64_t magic;
    uint16_t version;
    uint16_t oldest;
    uint32_t slot_shift;
    uint32_t bounce_size;
    uint32_t bounce_count;
    uint64_t incarnation;
    uint64_t size;
    uint64_t knows;                      /* SHM_KNOWS_…; 0 from owners before there were any */
    uint8_t identity[SHM_IDENTITY_SIZE]; /* of the endpoint; zeros: not stated */
    /* Hint: the next free slot; never ahead of it. Written by senders. */
    _Atomic uint64_t tail;
    uint8_t tail_pad[56];
    /* Bits SHM_SLEEPING and following: written by the owner; senders clear SHM_SLEEPING. */
    _Atomic uint64_t status;
    uint8_t status_pad[56];
    /* The serial of the peer's region that the owner visits now; 0: none. Read by that peer. */
    _Atomic uint64_t visiting;
    uint8_t visiting_pad[56];
    /* Counts the owner's polls of its ring: while it changes, the owner is awake and makes progress. */
    _Atomic uint32_t looks;
    uint8_t looks_pad[60];
};
_Static_assert(offsetof(struct shm_header, magic) == 0, "layout");
_Static_assert(offsetof(struct shm_header, version) == 8, "layout");
_Static_assert(offsetof(struct shm_header, oldest) == 10, "layout");
_Static_assert(offsetof(struct shm_header, slot_shift) == 12, "layout");
_Static_assert(offsetof(struct shm_header, bounce_size) == 16, "layout");
_Static_assert(offsetof(struct shm_header, bounce_count) == 20, "layout");
_Static_assert(offsetof(struct shm_header, incarnation) == 24, "layout");
_Static_assert(offsetof(struct shm_header, size) == 32, "layout");
_Static_assert(offsetof(struct shm_header, knows) == 40, "layout");
_Static_assert(offsetof(struct shm_header, identity) == 48, "layout");
_Static_assert(offsetof(struct shm_header, tail) == 64, "layout: a line of its own");
_Static_assert(offsetof(struct shm_header, status) == 128, "layout: a line of its own");
_Static_assert(offsetof(struct shm_header, visiting) == 192, "layout: a line of its own");
_Static_assert(offsetof(struct shm_header, looks) == 256, "layout: a line of its own");
_Static_assert(sizeof(struct shm_header) == 320, "layout");

/* Kinds of slots. */
enum shm_kind {
    SHM_INLINE = 1,    /* a message, payload in the slot */
    SHM_BOUNCE = 2,    /* a message, payload in a bounce buffer of the sender */
    SHM_ANNOUNCED = 3, /* a message whose payload the receiver fetches, or asks for with CLEAR */
    SHM_DONE = 4,      /* the receiver has the announced payload, or failed: the sender's operation ends */
    SHM_CLEAR = 5,     /* request: send the announced payload as fragments */
    SHM_FRAGMENT = 6,  /* a piece of announced payload, in a bounce buffer */
    SHM_ABORT = 7,     /* the sender will send no more fragments */
    SHM_GOODBYE = 8,   /* the last slot of this sender */
    SHM_NOTHING = 9,   /* an empty slot: claimed, then not needed */
    SHM_REMOTE = 10,   /* RMA or an atomic, or a part of one: a struct shm_request in a bounce buffer of the sender */
    SHM_ANSWER = 11,   /* the answer to REMOTE; returns the buffer, with data that was read in it */
    SHM_NOTICE = 12,   /* the sender has accessed memory of the owner directly */
    SHM_PROBE = 13,    /* request for an ECHO, which proves that no earlier slot is missing */
    SHM_ECHO = 14      /* the answer, with the id of the PROBE */
};

/* Bits of shm_slot.flags. */
#define SHM_TAGGED 1    /* the tagged channel */
#define SHM_HAS_DATA 2  /* `data` is remote CQ data */
#define SHM_ENDED 4     /* goodbye: the endpoint is closed, not only this connection */
#define SHM_FETCH 4     /* announced: the sender waits for delivery, whether or not a receive has matched */
#define SHM_LAST 8      /* remote: the last part of its operation */
#define SHM_INTERNAL 16 /* the internal channel, regardless of SHM_TAGGED; only to owners with SHM_KNOWS_INTERNAL */

/* As iov_count of an announcement: the payload is no list of pieces, so only the sender moves it, by fragments. */
#define SHM_SENDER_MOVES 255

/* Fields of the kinds, at the payload's place. */
struct shm_bounce_fields {
    uint32_t index;
    uint32_t generation;
    uint64_t receive; /* fragment: the receiver's id of the transfer */
    uint64_t offset;  /* fragment: bytes from the message's start */
};
struct shm_announced_fields {
    uint64_t length;
    uint64_t id;        /* the sender's pending operation */
    uint64_t address;   /* of the payload, or of a struct iovec [iov_count] where iov_count > 1 */
    uint32_t iov_count; /* or SHM_SENDER_MOVES */
    uint32_t arena;     /* 0: not in an arena */
    uint64_t arena_offset;
};
struct shm_control_fields {
    uint64_t id;      /* done, clear: the sender's operation; abort: the receiver's transfer; notice: the region's id;
                       * probe, echo: the question's */
    uint64_t receive; /* clear: the receiver's id of the transfer; answer: index << 32 | generation of the buffer */
    uint64_t length;  /* clear: bytes wanted; notice: bytes reached */
    int32_t error;    /* done, abort, answer */
    int32_t provider_error; /* answer */
    uint64_t data;          /* notice: remote CQ data */
    uint64_t completed;     /* notice: OFP_COMPLETED_… */
};

/*
 * A part of an RMA or atomic operation, at the start of a bounce buffer, followed by its remote pieces. From the next
 * cache line on: `length` bytes to write, or to combine with; for comparing atomics then as many bytes to compare with.
 * Read data replaces them. Each part names all memory of the operation, so that the peer checks all of it before it
 * accesses any.
 */
struct shm_remote_piece {
    uint64_t offset, length, key;
};
struct shm_request {
    uint64_t offset; /* of this part in the operation, bytes */
    uint32_t length; /* of this part */
    uint32_t piece_count;
    uint8_t op; /* enum ofp_operation_code */
    uint8_t atomic_op;
    uint8_t datatype;
    uint8_t reserved[13];
};
_Static_assert(offsetof(struct shm_request, length) == 8, "layout");
_Static_assert(offsetof(struct shm_request, piece_count) == 12, "layout");
_Static_assert(offsetof(struct shm_request, op) == 16, "layout");
_Static_assert(sizeof(struct shm_request) == 32, "layout: the pieces follow");
static inline struct shm_remote_piece *shm_pieces_of(struct shm_request *request)
{
    return (struct shm_remote_piece *)(void *)(request + 1);
}

/* Everything of a slot but its state. The receiver copies it before it checks any of it. */
struct shm_content {
    uint8_t kind;
    uint8_t flags;
    uint16_t stamp;  /* the next stamp of this sender; shm_stamp_advance */
    uint32_t length; /* bytes in the slot or in the bounce buffer */
    uint64_t tag;
    uint64_t data;
    union {
        uint8_t payload[SHM_INLINE_SIZE];
        struct shm_bounce_fields bounce;
        struct shm_announced_fields announced;
        struct shm_control_fields control;
    };
};

struct shm_slot {
    _Atomic uint64_t state; /* lap << 32 | owner << 8 | phase; ring.h */
    struct shm_content content;
};
_Static_assert(offsetof(struct shm_slot, state) == 0, "layout");
_Static_assert(offsetof(struct shm_slot, content.kind) == 8, "layout");
_Static_assert(offsetof(struct shm_slot, content.flags) == 9, "layout");
_Static_assert(offsetof(struct shm_slot, content.stamp) == 10, "layout");
_Static_assert(offsetof(struct shm_slot, content.length) == 12, "layout");
_Static_assert(offsetof(struct shm_slot, content.tag) == 16, "layout");
_Static_assert(offsetof(struct shm_slot, content.data) == 24, "layout");
_Static_assert(offsetof(struct shm_slot, content.payload) == 32, "layout");
_Static_assert(offsetof(struct shm_slot, content.bounce.receive) == 40, "layout");
_Static_assert(offsetof(struct shm_slot, content.bounce.offset) == 48, "layout");
_Static_assert(offsetof(struct shm_slot, content.announced.id) == 40, "layout");
_Static_assert(offsetof(struct shm_slot, content.announced.address) == 48, "layout");
_Static_assert(offsetof(struct shm_slot, content.announced.iov_count) == 56, "layout");
_Static_assert(offsetof(struct shm_slot, content.announced.arena) == 60, "layout");
_Static_assert(offsetof(struct shm_slot, content.announced.arena_offset) == 64, "layout");
_Static_assert(offsetof(struct shm_slot, content.control.receive) == 40, "layout");
_Static_assert(offsetof(struct shm_slot, content.control.length) == 48, "layout");
_Static_assert(offsetof(struct shm_slot, content.control.error) == 56, "layout");
_Static_assert(offsetof(struct shm_slot, content.control.data) == 64, "layout");
_Static_assert(offsetof(struct shm_slot, content.control.completed) == 72, "layout");
_Static_assert(sizeof(struct shm_slot) == SHM_SLOT_SIZE, "layout: two cache lines");

/*
 * The buffer is free when `freed` is the generation of its last use. Only the owner knows that generation for certain.
 */
struct shm_bounce_state {
    _Atomic uint32_t freed;
    uint8_t pad[SHM_CACHE_LINE - 4];
};
_Static_assert(sizeof(struct shm_bounce_state) == SHM_CACHE_LINE, "layout");

/*
 * Every slot carries the next stamp of a series that its sender and the ring's owner agreed on when they connected. By
 * the stamps the owner detects a slot that its sender never published, a missing slot, and a slot out of order. The
 * series is no secret from a process of the same user, and need not be: the kernel trusts that user too.
 */
static inline uint32_t shm_stamp_advance(uint32_t series)
{
    return series * UINT32_C(747796405) + UINT32_C(2891336453);
}
static inline uint16_t shm_stamp_of(uint32_t series) { return (uint16_t)(series >> 16); }

#endif
