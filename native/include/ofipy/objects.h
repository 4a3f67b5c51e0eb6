/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects that the core and a provider share: those that the core creates, with the provider's private part in each,
 * and those that are passed between them. The rules of ofipy/provider.h apply to all of them.
 */
#ifndef OFIPY_OBJECTS_H
#define OFIPY_OBJECTS_H

#include <sys/uio.h>

#include "ofipy/list.h"
#include "ofipy/types.h"

struct ofp_services;
struct ofp_provider;
struct ofp_endpoint_ops;
struct ofp_passive_ops;

/*
 * Objects as a provider sees them. The core allocates each together with the provider's private part (`private`, zeroed,
 * of the size that the table declares) and frees both after the provider's close entry returned.
 */
struct ofp_domain {
    const struct ofp_provider *provider;
    struct ofp_info *info; /* the one the domain was opened with; `open` may narrow it */
    void *private;
    uint32_t device; /* which entry of region->device[] is this domain's */
    /* Whose lock, reactor, timers and regions it uses: its own, or those of the domain that has it as one device of several. */
    struct ofp_domain *engine;
    /*
     * Set by `open`: memory longer than this, in bytes, that has an owner comes as a region with `owned`, whose registration may be
     * kept until `region_disowned`; 0: no memory does.
     */
    uint64_t keeps_above;
    /* Counted by the provider, in its engine: registrations made for operations, those that were used again, and those given up for others. */
    uint64_t registrations, registrations_reused, registrations_dropped;
};

#define OFP_KEY_SIZE 32

struct ofp_endpoint {
    const struct ofp_endpoint_ops *ops;
    const struct ofp_services
        *services; /* the core's services for this endpoint; call them by the functions of ofipy/services.h */
    struct ofp_domain *domain;
    void *private;
    uint32_t id;        /* unique in the domain, never reused while the domain is open; not 0 */
    bool remote_events; /* somebody here wants remote_event of every access of a peer, not only with data */
    struct ofp_info *info;
    uint64_t request;        /* type MSG: the connection request that it was opened from, until `accept`; 0: none */
    uint64_t min_multi_recv; /* offloads_matching: bytes; a multi-receive buffer with less room than this is released */
    uint64_t unexpected_limit; /* core-matched: bytes that its receive context keeps of unexpected messages */
    /* offloads_matching: bytes that a receive of unknown size is posted with; 0: `open` may say */
    uint64_t bounce_size;
    uint8_t identity[OFP_IDENTITY_SIZE]; /* random, constant; stated to peers where the wire has room for it */
    /* Listen to the network only if node, interface or key ask for it; `open` sets `connects_only` when none does. */
    bool listens_if_asked;
    bool connects_only; /* nobody connects to it: it reaches out, and is answered on the connections that it made */
    /* OFP_KEY_SIZE bytes that both ends of a connection within this host prove where no other key is set; NULL: no such rule. */
    const uint8_t *local_key;
};

/* A listener of endpoints of type MSG. */
struct ofp_passive {
    const struct ofp_passive_ops *ops;
    struct ofp_domain *domain;
    void *private;
    uint32_t id; /* numbered together with the endpoints */
    struct ofp_info *info;
};

/* States of a peer; peer_state.c holds the table of allowed changes. */
enum ofp_peer_state { OFP_PEER_UNUSED, OFP_PEER_CONNECTING, OFP_PEER_UP, OFP_PEER_LOST };

/* One more address of a peer, as the provider's `resolve` or `name_also` gave it. */
struct ofp_other_address {
    const void *address;
    size_t length;
};

/*
 * One remote endpoint as one local endpoint knows it; made when first used. An endpoint of type MSG has at most one in its
 * life, made by `ofp_connect` or `ofp_accept`; it has no index, and goes from UNUSED to LOST once.
 */
struct ofp_peer {
    struct ofp_endpoint *endpoint;
    uint32_t index;       /* in the address vector; OFP_PEER_UNKNOWN for a sender without an entry */
    uint8_t state;        /* enum ofp_peer_state; only the core writes it */
    uint64_t incarnation; /* set by the provider on peer_up; 0: none. Another value at the same address is a restart */
    const void *address;  /* as the provider's `resolve` or `name` gave it */
    size_t address_length;
    const void *private_data; /* type MSG: what `connect` is to say to the listener; valid during that call */
    size_t private_data_length;
    void *private;                          /* zeroed again on the way from LOST to CONNECTING */
    const struct ofp_other_address *others; /* where it is reached as well; `connect` may try them in any order */
    uint32_t other_count;
    bool
        connects_only; /* as of its endpoint: `connect` refuses, and no answer at its address is no proof of anything */
};

/* The most providers that endpoints of one application's domain may use together. */
#define OFP_DEVICE_LIMIT 4

/* One provider's view of a memory region. */
struct ofp_region_device {
    uint64_t key;         /* remote key; 0 where no remote access was asked */
    uint64_t remote_base; /* added to a peer's offset; 0 for transports that address a region from 0 */
    uint64_t provider_data[2];
};

/* A memory region. `base` to `base + length` is the user's memory or a provider's own. */
struct ofp_region {
    struct ofp_region_device device[OFP_DEVICE_LIMIT]; /* by domain->device */
    uint32_t id;
    uint32_t access; /* OFP_ACCESS_… */
    char *base;
    uint64_t length;
    bool allocated;           /* made by a provider's `memory_allocate` */
    bool remote_events;       /* as of endpoints, for accesses to this region */
    uint8_t known, published; /* of several devices those (bits) that know it, and those by which peers may reach it */
    bool key_fixed;           /* its user chose the key: `region_open` leaves it as it is, and peers ask the core */
    /*
     * Nobody asked for it: memory whose owner tells the core before it goes, or moves. No peer reaches it, and the provider hears of
     * it when an operation is in it, not by `region_open`.
     */
    bool owned;
};

static inline struct ofp_region_device *ofp_region_device(const struct ofp_domain *domain, struct ofp_region *region)
{
    return &region->device[domain->device];
}

/*
 * A peer's access to local memory, checked and under way: from core's `remote_access` until core->remote_release. The provider
 * owns the object and must not move it meanwhile. When the region is closed before the end, `memory` becomes NULL: what
 * still arrives is dropped.
 */
struct ofp_remote_access {
    struct ofp_list node; /* core: in the region's list */
    struct ofp_region *region;
    char *memory; /* first byte of the access */
    uint64_t length;
    uint64_t spare[2]; /* core */
};

/*
 * A send-like operation on its way into `post`: checked and resolved. Everything it points to is valid during the call
 * only; what must outlive it goes through transfer_retain.
 */
struct ofp_transfer {
    const struct ofp_operation *op;
    const struct iovec *iov;           /* the local memory */
    struct ofp_region *const *regions; /* the region of each iov entry; NULL entries for OFP_REGION_PROCESS */
    uint32_t iov_count;
    uint32_t remote_count; /* RMA and atomics: entries of `remote`, 0 otherwise */
    uint64_t length;       /* sum over iov, bytes; for RMA and atomics the sum over `remote` as well */
    const struct ofp_remote_segment *remote;
    /* Atomics only: `length` bytes each, NULL where the operation has none. Not set for other operations. */
    void *result;
    const void *compare;
    struct ofp_region *result_region, *compare_region; /* NULL for OFP_REGION_PROCESS */
    uint64_t spare[4];
};

/*
 * An accepted operation that did not finish within `post`. Owned by the core, lent to the provider until it calls
 * transfer_complete; on loss of the peer the core completes all of that peer's itself.
 */
struct ofp_pending {
    struct ofp_list node; /* core: in the peer's list */
    uint64_t id;          /* names it on the wire; find it again with pending_find. Never 0 */
    struct ofp_endpoint *endpoint;
    struct ofp_peer *peer;
    uint64_t provider_data[4];    /* the provider's, zeroed at first */
    struct ofp_transfer transfer; /* with memory of its own: `op` points to `operation`, `iov` to a kept copy */
    struct ofp_operation operation;
};

/* Bits of a message's `extras`: what its spare words say. */
#define OFP_EXTRA_WAY 1
/* Of an announced message: which of an endpoint's several ways it came by. */
#define OFP_SPARE_WAY 0

/* A message that arrived or was announced. */
struct ofp_message {
    struct ofp_peer *peer; /* NULL where the transport has no peers, and on endpoints of type DGRAM */
    uint32_t source;       /* = peer->index */
    uint8_t channel;       /* enum ofp_channel */
    uint8_t has_data;      /* `data` is valid */
    uint8_t extras;        /* OFP_EXTRA_…: which of the spare words mean something */
    uint64_t tag;
    uint64_t data;
    uint64_t length;           /* of the payload, bytes */
    uint64_t provider_data[6]; /* announced messages: what `receive_start` needs to move the payload */
    uint64_t spare[2];
};

/* The bound against which message_begin counts an unexpected message. */
enum ofp_room {
    OFP_ROOM_UNEXPECTED, /* the bound on unexpected payload */
    OFP_ROOM_PROMISED,   /* none: the sender was granted the room before */
    /*
     * The bound on announcements, for a message of at most OFP_SHORT_MESSAGE bytes that message_arrived has refused and
     * that cannot be returned to its sender. A longer message is limited by the first bound.
     */
    OFP_ROOM_ANNOUNCED,
};
#define OFP_SHORT_MESSAGE 128

/* Copy method of an announced message's payload, in order of preference while their speeds are unknown. */
enum ofp_moved {
    OFP_MOVED_MAPPED,    /* copied out of memory of its sender that is mapped */
    OFP_MOVED_PIPELINED, /* in pieces, copied by its sender into shared memory and by the receiver out of it */
    OFP_MOVED_ATTACHED,  /* copied out of its sender's address space, process_vm_readv(2) */
    OFP_MOVED_WAYS
};

/*
 * A receive that matched an announced message: from core's call of `receive_start` until the provider's call of
 * receive_complete it is lent to the provider.
 */
struct ofp_receive {
    struct ofp_list node;          /* core: among the receives under way */
    uint64_t id;                   /* find it again with receive_find. Never 0 */
    struct ofp_endpoint *endpoint; /* where the message arrived */
    struct ofp_message message;    /* the matched message */
    const struct iovec *iov;       /* the user's memory */
    /* The region of each iov entry; NULL entries for OFP_REGION_PROCESS. NULL: memory in which the core keeps the message. */
    struct ofp_region *const *regions;
    uint32_t iov_count;
    uint64_t length;           /* bytes to move: min(message.length, room); 0 when the message is only dropped */
    uint64_t provider_data[4]; /* the provider's, zeroed at first */
};

/* How a receive ended that the transport matched. */
struct ofp_offloaded {
    uint64_t flags;         /* OFP_COMPLETED_… beyond what follows from the operation: MULTI_RECV, CLAIM */
    uint64_t buffer_offset; /* multi-receive: where in the buffer the message starts */
    int error;              /* 0 or positive */
    int provider_error;
    bool more; /* multi-receive: the buffer stays posted, and so does the pending object */
    uint64_t spare[2];
};

/* A descriptor that the domain's reactor watches. Owned by the provider; must outlive its stay in the reactor. */
struct ofp_watch {
    int fd;
    uint32_t events; /* EPOLLIN, EPOLLOUT … */
    void (*ready)(struct ofp_watch *watch, uint32_t events);
    uint64_t spare[2]; /* core */
};

/* A timer of the domain. Owned by the provider; zeroed: not running. */
struct ofp_timer {
    uint64_t deadline; /* nanoseconds, CLOCK_MONOTONIC */
    uint64_t position; /* core: place in the heap, 0 when not running */
    void (*expired)(struct ofp_timer *timer, uint64_t now);
    uint64_t spare[2]; /* core */
};

#endif
