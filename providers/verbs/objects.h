/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider's objects and their bounds. Everything is guarded by the domain's lock, which the core holds around every call into
 * the provider, but for ports (device/device.h), which all domains of the process share.
 *
 *     domain ── port            the device, as librdmacm opened it
 *            ├─ listening       the device once more, for events of it and its port
 *            ├─ events          one channel: connection events of all ids of the domain
 *            ├─ completions     one channel: completion queues that were asked to tell
 *            ├─ slots           registered memory for what is copied
 *            └─ cache           registrations of what is not, by owner
 *     endpoint ── id            at the connection manager
 *              └─ pair          queue pair and completion queue; gone once the connection is lost
 */
#ifndef VERBS_OBJECTS_H
#define VERBS_OBJECTS_H

#include <pthread.h>

#include "address/address.h"
#include "library/library.h"
#include "memory/cache.h"
#include "ofipy/list.h"
#include "ofipy/services.h"
#include "queue/send_queue.h"

#define VERBS_NAME "verbs"
/* Private data of libfabric's endpoints: a byte that says how much it is, and room for so much more. */
#define VERBS_PRIVATE_MAX 55
/* What a device adds to or compares, in one step. */
#define VERBS_ATOMIC_SIZE 8

#define VERBS_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define VERBS_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#define VERBS_SECOND UINT64_C(1000000000)
/*
 * The other side's connection manager says that it has left, and the device may still owe the answer to an operation. Where that
 * answer is a refusal, it is why the other side left: its device sent it first. But it comes by another queue pair than the
 * manager's message, and who reads it may be late. So long the answer is waited for, ns; a peer that has ended gives none.
 */
#define VERBS_ANSWER_NS (VERBS_SECOND / 2)

extern const struct ofp_core *verbs_core; /* set once, when the provider is loaded */

/* What a device grants: asked, never assumed. */
struct verbs_limits {
    uint64_t message_size;
    uint32_t inline_size;
    uint32_t segments; /* of one send; a receive is posted with one more */
    uint32_t depth;    /* work requests of one queue */
    uint8_t responder_resources, initiator_depth;
};

/* One port of one device. Made when first seen, and never freed: librdmacm closes a device that no id is at. */
struct verbs_port {
    struct verbs_port *next;
    struct rdma_cm_id *anchor; /* keeps the device open */
    struct ibv_context *context;
    struct ibv_device_attr device;
    struct ibv_port_attr attr; /* as of the last look */
    struct verbs_limits limits;
    int numa_node; /* -1: unknown, or there is but one */
    uint8_t number;
};

/* A piece of registered memory. */
struct verbs_slot {
    struct verbs_slot *next;
    char *memory;
    uint32_t key;
};

struct verbs_slots {
    uint64_t size; /* of each, bytes: what is copied rather than registered for one operation; constant */
    struct verbs_slot *free;
    struct verbs_slab *slabs;
    struct verbs_slot *overflow; /* where what does not fit a receive goes; nobody reads it */
};

/* Ids and queue pairs that wait to be destroyed, which may block, by a thread of its own. */
struct verbs_reaper {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    struct verbs_closing_id *closing; /* guarded by `lock`, as the rest but `running` */
    uint32_t ending;                  /* queue pairs that somebody is about to destroy */
    bool running, stop;
};

/* Looks for ways to peers of datagram endpoints, by a thread of its own that starts with the first. */
struct verbs_finder {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    struct ofp_watch watch;                 /* of a descriptor that tells of `found` */
    struct verbs_search *requested, *found; /* guarded by `lock`, as `stop` */
    bool running, stop;
};

struct verbs_settings {
    uint64_t connect_ns, alive_ns; /* the second one 0: never */
    uint32_t transmit_depth, receive_depth;
    uint64_t receive_memory; /* bytes that are registered for receives of one endpoint at a time */
    uint8_t retries;         /* of what is not acknowledged */
    int traffic_class, service_level, path_mtu, ack_timeout, rnr_timer, pkey; /* -1: as the connection manager says */
};

/* What belongs to an event of the connection manager, after it was given back. */
struct verbs_event {
    enum rdma_cm_event_type type;
    int status;
    struct rdma_cm_id *id; /* the new one, at a request */
    uint8_t responder_resources, initiator_depth;
    uint8_t data_length;
    uint8_t data[VERBS_PRIVATE_MAX];
};

/* Who has an id hears of its events; `context` of the id. */
struct verbs_listener {
    void (*event)(struct verbs_listener *listener, const struct verbs_event *event);
};

struct verbs_domain {
    struct ofp_domain *base;
    struct verbs_port *port;
    struct ibv_pd *pd;
    struct rdma_event_channel *events;
    struct ibv_comp_channel *completions;
    struct ofp_watch event_watch, completion_watch, queue_watch, device_watch;
    struct ibv_context *event_context; /* its own, for events of port and device; NULL: none, or the device is gone */
    struct rdma_cm_id *removal_id;     /* hears of the removal of the device */
    struct verbs_listener removal_listener;
    union tcp_address address; /* of the info; the port is 0 */
    struct verbs_slots slots;
    struct verbs_cache cache;
    struct verbs_reaper reaper;
    struct verbs_finder finder;
    struct verbs_settings settings;
    int registration_error; /* provider_error of the last memory that could not be registered for an operation */
    bool watches_queues;
    bool removed; /* the device is gone: nothing works any more but closing */
};

/* A connection request that the core knows, until an endpoint is opened from it or it is rejected. */
struct verbs_request {
    struct verbs_listener listener;
    struct verbs_domain *domain;
    struct rdma_cm_id *id;
    uint8_t responder_resources, initiator_depth;
    bool withdrawn; /* who asked has left */
};

/* What an operation that is under way at the device needs beside its pending object. */
struct verbs_send {
    struct verbs_send *next;     /* among the free ones */
    struct ofp_pending *pending; /* NULL: it is finished for the core; only the slot comes back */
    struct verbs_slot *slot;
    bool scatters;   /* what was read, or fetched, into the slot goes into the operation's memory */
    uint32_t others; /* work requests of the same operation before the one that it ends with */
    /* How far it is posted, where one work request cannot carry it. */
    uint32_t segment, remote;
    uint64_t offset, remote_offset, posted;
    uint32_t registered_count;
    /* What is above is cleared for each. */
    struct verbs_registration *registered[VERBS_SEGMENTS];
    uint32_t keys[VERBS_SEGMENTS];
};

struct verbs_receive {
    struct ofp_list node; /* in pair->receives, in the order of the device */
    struct ofp_pending *pending;
    struct verbs_slot *slot; /* NULL: straight into the memory of the receive */
    uint64_t cost;           /* bytes that are, or have to be, registered for it */
    bool known;              /* it has its keys */
    bool posted;
    uint32_t registered_count;
    /* What is above is cleared for each. */
    struct verbs_registration *registered[VERBS_SEGMENTS];
    uint32_t keys[VERBS_SEGMENTS];
};

/* What asynchronous events say of a queue pair, whose context it is; from any thread that looks at the device. */
struct verbs_qp_context {
    struct rdma_cm_id *id;
    _Atomic int fatal; /* 0: nothing */
};

struct verbs_pair {
    struct ibv_qp *qp; /* NULL: there is none any more */
    struct ibv_cq *cq;
    uint32_t receive_depth, inline_size;
    struct verbs_send_queue queue;
    struct verbs_send **sends;    /* of the queue: the operations that end with a work request, or NULL */
    uint64_t wanted;              /* number behind the last one whose end somebody waits for */
    uint64_t goodbye;             /* number behind the last work request of all; 0: there will be more */
    struct verbs_send *long_send; /* of many pieces, some not posted yet; nothing passes it */
    struct verbs_send *free_sends;
    struct verbs_chain chain;
    struct ofp_list receives;       /* posted ones first */
    struct ofp_list *free_receives; /* a chain of their nodes */
    uint32_t posted_receives;
    uint64_t receive_memory; /* registered for them */
    bool armed;              /* the completion queue's context: it will tell */
    bool flushed;            /* the device gives work requests back undone */
    struct verbs_qp_context qp_context;
};

struct verbs_endpoint {
    struct verbs_listener listener;
    struct ofp_endpoint *base;
    struct verbs_domain *domain;
    struct rdma_cm_id *id;
    struct verbs_pair pair;
    union tcp_address address;
    struct ofp_peer *peer;        /* once there is one, until it is lost */
    struct ofp_peer *ending_peer; /* its connection ends as soon as nothing is under way to it */
    bool left_by_peer;            /* `quitting` is the other side: what is under way is waited for until `deadline` */
    struct ofp_timer deadline;
    uint8_t request_data[1 + VERBS_PRIVATE_MAX];
    uint8_t request_data_length;
    uint8_t responder_resources, initiator_depth;
    bool unanswered; /* opened from a request */
    bool withdrawn;  /* whoever asked has left */
    bool established;
};

static inline bool verbs_port_has_atomics(const struct verbs_port *port)
{
    return port->device.atomic_cap != IBV_ATOMIC_NONE;
}
static inline struct verbs_domain *verbs_domain_of(const struct ofp_domain *domain) { return domain->private; }
static inline struct verbs_endpoint *verbs_endpoint_of(const struct ofp_endpoint *endpoint)
{
    return endpoint->private;
}

#endif
