/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects that the core and a provider share: those that the core creates, each with a private part of the provider's,
 * and those that core and provider pass to each other. The rules of ofipy/provider.h apply to all of them.
 */
#ifndef OFIPY_OBJECTS_H
#define OFIPY_OBJECTS_H

#include <sys/uio.h>

#include "ofipy/list.h"
#include "ofipy/protocols.h"
#include "ofipy/types.h"

struct ofp_services;
struct ofp_provider;
struct ofp_endpoint_ops;
struct ofp_passive_ops;

/*
 * The provider's view of the core's objects. The core allocates each object together with the provider's private part
 * (`private`, zeroed, of the size that the table declares), and frees both after the provider's close entry has
 * returned.
 */
struct ofp_domain {
    const struct ofp_provider *provider;
    struct ofp_info *info; /* the one the domain was opened with; `open` may narrow it */
    void *private;
    uint32_t device; /* index of this domain's entry in region->device[] */
    /*
     * The domain whose lock, reactor, timers and regions this one uses: itself, or the domain of an endpoint over
     * several providers that contains this one as one of its devices.
     */
    struct ofp_domain *engine;
    /*
     * Set by `open`, bytes; 0: the core creates no such regions. Memory that is longer than this, and whose owner
     * notifies the core before the memory is freed, is passed as a region with `owned`. The provider may cache the
     * registration of such a region until `region_disowned`.
     */
    uint64_t keeps_above;
    /*
     * Counted by the provider, in the domain `engine`: memory registrations made for operations, registrations that
     * were used again, and registrations that were dropped in favour of others.
     */
    uint64_t registrations, registrations_reused, registrations_dropped;
    /*
     * Counted as well: receive buffers for packets that the endpoints have now, and lost ones that the provider has
     * got back from its device.
     */
    uint32_t packet_buffers, packet_buffers_reclaimed;
    /*
     * Set by `open`, ns; 0: 30 s. A peer with `connects_only` that was lost without a goodbye counts as gone if it has
     * not come back in this time.
     */
    uint64_t absence_limit;
};

#define OFP_KEY_SIZE 32

struct ofp_endpoint {
    const struct ofp_endpoint_ops *ops;
    /* The core's services for this endpoint; call them by the functions of ofipy/services.h. */
    const struct ofp_services *services;
    struct ofp_domain *domain;
    void *private;
    uint32_t id;        /* unique in the domain, never reused while the domain is open; not 0 */
    bool remote_events; /* call remote_event for every access of a peer, not only for those with remote CQ data */
    struct ofp_info *info;
    uint64_t request; /* type MSG: the connection request from which the endpoint was opened, until `accept`; 0: none */
    /* Offloads_matching: release a multi-receive buffer when less space than this is left; bytes. */
    uint64_t min_multi_recv;
    uint64_t unexpected_limit; /* without offloads_matching: bound on unexpected messages, bytes */
    /* offloads_matching: length with which a receive of unknown size is posted, bytes; 0: `open` may set it */
    uint64_t bounce_size;
    uint8_t identity[OFP_IDENTITY_SIZE]; /* random, constant; sent to peers if the wire format has a field for it */
    /*
     * Listen on the network only if a node, an interface or a key is configured. `open` sets `connects_only` if none
     * is.
     */
    bool listens_if_asked;
    bool connects_only; /* peers cannot connect to it; it connects to them, and receives on those connections */
    /*
     * OFP_KEY_SIZE bytes. If no other key is set, both ends of a connection within this host prove that they know this
     * one. NULL: no proof is required.
     */
    const uint8_t *local_key;
    /*
     * OFP_TRAFFIC_CLASS | 0 to 255: of the packets that the endpoint sends (IPv4's TOS, IPv6's traffic class); 0: the
     * system's, also for every transport without `marks_packets`.
     */
    uint32_t traffic_class;
};

/* A listener of endpoints of type MSG. */
struct ofp_passive {
    const struct ofp_passive_ops *ops;
    struct ofp_domain *domain;
    void *private;
    uint32_t id; /* from the same sequence as the ids of endpoints */
    struct ofp_info *info;
};

/* States of a peer; peer_state.c holds the table of allowed changes. */
enum ofp_peer_state { OFP_PEER_UNUSED, OFP_PEER_CONNECTING, OFP_PEER_UP, OFP_PEER_LOST };

/* A further address of a peer, in the format of the provider's `resolve` and `name_also`. */
struct ofp_other_address {
    const void *address;
    size_t length;
};

/*
 * A remote endpoint, as seen by one local endpoint. The core creates it at first use. An endpoint of type MSG has at
 * most one peer in its life, which `ofp_connect` or `ofp_accept` creates; that peer has no index, and its state changes
 * from UNUSED to LOST once.
 */
struct ofp_peer {
    struct ofp_endpoint *endpoint;
    uint32_t index; /* in the address vector; OFP_PEER_UNKNOWN for a sender without an entry */
    uint8_t state;  /* enum ofp_peer_state; only the core writes it */
    /* Set by the provider when it calls peer_up; 0: none. Another value at the same address means a restart. */
    uint64_t incarnation;
    const void *address; /* in the format of the provider's `resolve` and `name` */
    size_t address_length;
    const void *private_data; /* type MSG: private data that `connect` sends to the listener; valid during that call */
    size_t private_data_length;
    void *private; /* zeroed again when the state changes from LOST to CONNECTING, unless `peers_persist` */
    /* Further addresses of the same endpoint; `connect` may try them in any order. */
    const struct ofp_other_address *others;
    uint32_t other_count;
    /*
     * The peer's endpoint has `connects_only`: `connect` must fail, and the absence of a listener at its address does
     * not mean that its process has ended. Its process counts as ended if it is lost for longer than
     * domain->absence_limit.
     */
    bool connects_only;
    /*
     * Properties of the connection. The provider sets them before it calls peer_up. The core clears them when a new
     * attempt to connect begins, and reports them only while the state is UP (ofp_peer_security).
     */
    bool proven;     /* the peer has given the proof that info->peer_proof names */
    uint16_t cipher; /* IANA's number of the TLS cipher suite that encrypts the connection; 0: not encrypted */
};

/* The most providers that endpoints of one application's domain may use together. */
#define OFP_DEVICE_LIMIT 4

/* One provider's view of a memory region. */
struct ofp_region_device {
    uint64_t key;         /* region key; 0 without remote access */
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
    bool allocated;     /* allocated by a provider's `memory_allocate` */
    bool remote_events; /* as of endpoints, for accesses to this region */
    uint8_t known,
        published; /* bits by device: where the region is registered, and through which of them peers may access it */
    /* The user chose the key: `region_open` must not change it, and the core executes peers' accesses. */
    bool key_fixed;
    /*
     * The core created this region itself, for memory whose owner notifies the core before the memory is freed or
     * moved. Peers cannot access it. The provider learns of the region from an operation that uses it, not by
     * `region_open`.
     */
    bool owned;
};

static inline struct ofp_region_device *ofp_region_device(const struct ofp_domain *domain, struct ofp_region *region)
{
    return &region->device[domain->device];
}

/*
 * A peer's access to local memory, checked and in progress: from the endpoint's `remote_access` until
 * core->remote_release. The provider owns the object and must not move it meanwhile. If the region is closed before the
 * access ends, `memory` becomes NULL: discard the data that still arrive.
 */
struct ofp_remote_access {
    struct ofp_list node; /* core: in the region's list */
    struct ofp_region *region;
    char *memory; /* first byte of the access */
    uint64_t length;
    uint64_t spare[2]; /* core */
};

/*
 * An operation as `post` receives it: checked, with regions resolved. Everything it points to is valid during the call
 * only; use transfer_retain to get a copy that remains valid.
 */
struct ofp_transfer {
    const struct ofp_operation *op;
    const struct iovec *iov; /* the local memory; a struct ofp_layout if iov_count is OFP_LAYOUT */
    /* The region of each iov entry; NULL entries for OFP_REGION_PROCESS. One NULL entry for a layout. */
    struct ofp_region *const *regions;
    uint32_t iov_count;
    uint32_t remote_count; /* RMA and atomics: entries of `remote`, 0 otherwise */
    uint64_t length;       /* sum over iov, bytes; for RMA and atomics the sum over `remote` as well */
    const struct ofp_remote_segment *remote;
    /* Atomics only: `length` bytes each, NULL where the operation has none. Not set for other operations. */
    void *result;
    const void *compare;
    struct ofp_region *result_region, *compare_region; /* NULL for OFP_REGION_PROCESS */
    const struct ofp_layout *packed;                   /* core: of the memory that `iov` is the packed form of */
    uint64_t spare[3];
};

/*
 * An accepted operation that did not finish within `post`. The core owns it; the provider may use it until it calls
 * transfer_complete. When the peer is lost, the core itself completes all pending operations of that peer.
 */
struct ofp_pending {
    struct ofp_list node; /* core: in the peer's list */
    uint64_t id;          /* identifies it on the wire, see pending_find. Never 0 */
    struct ofp_endpoint *endpoint;
    struct ofp_peer *peer;
    uint64_t provider_data[4];    /* the provider's, zeroed at first */
    struct ofp_transfer transfer; /* with memory of its own: `op` points to `operation`, `iov` to a copy */
    struct ofp_operation operation;
    uint32_t protocol; /* enum ofp_protocol of a send; EAGER at first */
};

/*
 * A message whose protocol is queried: posted without flags, in one piece of memory. Between two powers of two each
 * choice applies to one range of lengths.
 */
struct ofp_protocol_query {
    uint64_t length;
    bool received; /* an announced message of the peer's: how this side would move its payload */
    bool shared;   /* with `received`: the peer's memory is of memory_allocate, and mapped here */
};
struct ofp_protocol_choice {
    enum ofp_protocol protocol;
    enum ofp_protocol_reason reason;
    uint64_t cost; /* ns that the message is expected to take; 0: not measured */
};

/* Bits of a message's `extras`: which spare words are valid, and whether `protocol` is. */
#define OFP_EXTRA_WAY 1
#define OFP_EXTRA_PROTOCOL 2
/* Index of the spare word that says over which lane an announced message arrived. */
#define OFP_SPARE_WAY 0

/* A message that arrived or was announced. */
struct ofp_message {
    struct ofp_peer *peer; /* NULL if the transport has no peers, and for type DGRAM */
    uint32_t source;       /* = peer->index */
    uint8_t channel;       /* enum ofp_channel */
    uint8_t has_data;      /* `data` is valid */
    uint8_t extras;        /* OFP_EXTRA_…: which of the spare words and of the next member are valid */
    uint8_t protocol;      /* enum ofp_protocol; without OFP_EXTRA_PROTOCOL: EAGER, and shorter than 4 GiB */
    uint64_t tag;
    uint64_t data;
    uint64_t length;           /* of the payload, bytes */
    uint64_t provider_data[6]; /* announced messages: data for `receive_start`, stored by the provider */
    uint64_t spare[2];
};

static inline void ofp_message_set_protocol(struct ofp_message *message, enum ofp_protocol protocol)
{
    message->protocol = (uint8_t)protocol;
    message->extras |= OFP_EXTRA_PROTOCOL;
}

/* The bound against which message_begin counts an unexpected message. */
enum ofp_room {
    OFP_ROOM_UNEXPECTED, /* the bound on unexpected payload */
    OFP_ROOM_PROMISED,   /* none: the sender was granted this space before */
    /*
     * The bound on announcements, for a message of at most OFP_SHORT_MESSAGE bytes that message_arrived has refused and
     * that cannot be returned to its sender. A longer message is counted against OFP_ROOM_UNEXPECTED.
     */
    OFP_ROOM_ANNOUNCED,
};
#define OFP_SHORT_MESSAGE 128

/* Copy method of an announced message's payload, in order of preference while their speeds are unknown. */
enum ofp_moved {
    OFP_MOVED_MAPPED,    /* the receiver copies out of the sender's memory, which it has mapped */
    OFP_MOVED_PIPELINED, /* the sender copies pieces into shared memory, and the receiver copies them out */
    OFP_MOVED_ATTACHED,  /* the receiver copies out of the sender's address space, process_vm_readv(2) */
    OFP_MOVED_WAYS
};

/*
 * A receive in flight: it has matched a message, and the provider fills it. The core owns it; the provider may use it
 * from the core's call of `receive_start`, or the return of message_begin, until it calls receive_complete.
 */
struct ofp_receive {
    struct ofp_list node;          /* core: in the list of receives in flight */
    uint64_t id;                   /* identifies it on the wire, see receive_find. Never 0 */
    struct ofp_endpoint *endpoint; /* where the message arrived */
    struct ofp_message message;    /* the matched message */
    const struct iovec *iov;       /* the user's memory; a struct ofp_layout if iov_count is OFP_LAYOUT */
    /* The region of each iov entry; NULL entries for OFP_REGION_PROCESS. NULL: the memory is the core's. */
    struct ofp_region *const *regions;
    uint32_t iov_count;
    /* Bytes to move: the smaller of message.length and the size of the memory; 0: only drop the message. */
    uint64_t length;
    uint64_t provider_data[4]; /* the provider's, zeroed at first */
};

/* The outcome of a receive that the transport matched. */
struct ofp_offloaded {
    uint64_t flags;         /* further OFP_COMPLETED_… flags, besides those of the operation: MULTI_RECV, CLAIM */
    uint64_t buffer_offset; /* multi-receive: where in the buffer the message starts */
    int error;              /* 0 or positive */
    int provider_error;
    bool more; /* multi-receive: the buffer stays posted, and the pending object stays valid */
    uint64_t spare[2];
};

/* A descriptor that the domain's reactor watches. Owned by the provider, which must not free it before watch_remove. */
struct ofp_watch {
    int fd;
    uint32_t events; /* EPOLLIN, EPOLLOUT … */
    void (*ready)(struct ofp_watch *watch, uint32_t events);
    uint64_t spare[2]; /* core */
};

/* A timer of the domain. Owned by the provider. A zeroed timer is not running. */
struct ofp_timer {
    uint64_t deadline; /* nanoseconds, CLOCK_MONOTONIC */
    uint64_t position; /* core: place in the heap, 0 when not running */
    void (*expired)(struct ofp_timer *timer, uint64_t now);
    uint64_t spare[2]; /* core */
};

#endif
