/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider's objects. The domain's lock guards everything but the ports (device/device.h), which all domains of
 * the process share; the core holds it around every call of the provider.
 *
 *     domain ── port            the device, as librdmacm opened it
 *            ├─ event_context   the device, opened again for events of the device and its port
 *            ├─ events          channel of connection events, for all ids of the domain
 *            ├─ completions     channel of completion events, for all armed completion queues
 *            ├─ slots           registered memory for payloads that are copied
 *            └─ cache           registrations of other memory, by owner
 *     endpoint ── id            at the connection manager
 *              └─ pair          queue pair and completion queue, until the connection is lost
 */
#ifndef VERBS_OBJECTS_H
#define VERBS_OBJECTS_H

#include <pthread.h>

#include "address/address.h"
#include "library/library.h"
#include "memory/cache.h"
#include "ofipy/list.h"
#include "ofipy/services.h"
#include "proof/keyring.h"
#include "proof/proof.h"
#include "queue/send_queue.h"

#define VERBS_NAME "verbs"
/* Private data in libfabric's format: a length byte, and at most this many bytes. */
#define VERBS_PRIVATE_MAX 55
/* The same in an answer, which has more space than a connection request: of rdma_accept 195 bytes, of rdma_reject 147. */
#define VERBS_ANSWER_MAX 195
/* The size of the device's atomics, bytes. */
#define VERBS_ATOMIC_SIZE 8

#define VERBS_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define VERBS_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

#define VERBS_SECOND UINT64_C(1000000000)
/*
 * The peer has disconnected while operations are in flight. If the peer's device rejected an operation, its answer was
 * sent before the disconnect, but arrives by the queue pair and may be read later. So the connection waits this long
 * (ns) for it. A peer that has ended sends none.
 */
#define VERBS_ANSWER_NS (VERBS_SECOND / 2)

extern const struct ofp_core *verbs_core; /* set once, when the provider is loaded */

/* Limits of a device, queried or probed. */
struct verbs_limits {
    uint64_t message_size;
    uint32_t inline_size;
    uint32_t segments; /* of a send; a receive has one more */
    uint32_t depth;    /* work requests of one queue */
    uint8_t responder_resources, initiator_depth;
};

/* A port of a device. Created at first use and never freed: librdmacm closes a device without ids. */
struct verbs_port {
    struct verbs_port *next;
    struct rdma_cm_id *anchor; /* this id keeps the device open */
    struct ibv_context *context;
    struct ibv_device_attr device;
    struct ibv_port_attr attr; /* as last queried */
    struct verbs_limits limits;
    int numa_node; /* -1: unknown, or there is only one */
    uint8_t number;
};

/* A piece of registered memory. */
struct verbs_slot {
    struct verbs_slot *next;
    char *memory;
    uint32_t key;
};

struct verbs_slots {
    uint64_t size; /* bytes of each, which is the largest payload that is copied for one operation; constant */
    struct verbs_slot *free;
    struct verbs_slab *slabs;
    struct verbs_slot *overflow; /* receives bytes beyond the posted memory; never read */
};

/* Ids and queue pairs that a thread closes, since that may block. */
struct verbs_reaper {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    struct verbs_closing_id *closing; /* guarded by `lock`, as all but `running` */
    uint32_t ending;                  /* queue pairs that are being closed */
    bool running, stop;
};

/* Resolves address handles in a thread of its own, which starts with the first peer. */
struct verbs_finder {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    struct ofp_watch watch;                 /* of a descriptor that is readable when `found` has entries */
    struct verbs_search *requested, *found; /* guarded by `lock`, as `stop` */
    bool running, stop;
};

struct verbs_settings {
    uint64_t connect_ns, alive_ns; /* alive_ns 0: no keep-alive */
    uint32_t transmit_depth, receive_depth;
    uint64_t receive_memory; /* bytes registered for receives of one endpoint at a time */
    uint8_t retries;         /* for unacknowledged packets */
    int traffic_class, service_level, path_mtu, ack_timeout, rnr_timer, pkey; /* -1: the connection manager's value */
};

/* A copy of an event of the connection manager, which was acknowledged. */
struct verbs_event {
    enum rdma_cm_event_type type;
    int status;
    struct rdma_cm_id *id; /* the new id of a request */
    uint8_t responder_resources, initiator_depth;
    uint32_t pair_number; /* of the other side's queue pair, in a request and in its answer */
    uint8_t data_length;
    uint8_t data[VERBS_ANSWER_MAX];
};

/* The length of a user's private data. */
static inline size_t verbs_event_get_private_length(const struct verbs_event *event)
{
    return event->data_length < VERBS_PRIVATE_MAX ? event->data_length : VERBS_PRIVATE_MAX;
}

/* Receives events of an id; its `context`. */
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
    struct ibv_context *event_context; /* for events of port and device; NULL: none, or the device was removed */
    struct rdma_cm_id *removal_id;     /* receives the removal of the device */
    struct verbs_listener removal_listener;
    union tcp_address address; /* of the info, with port 0 */
    struct verbs_slots slots;
    struct verbs_cache cache;
    struct verbs_reaper reaper;
    struct verbs_finder finder;
    struct verbs_settings settings;
    struct ofpi_key_files keys; /* of which peers of RDM endpoints must prove one; unused without `has_key` */
    bool has_key;               /* constant, though the keys may change */
    int registration_error;     /* provider_error of the last memory that could not be registered */
    bool watches_queues;
    bool removed; /* the device was removed: only closing works */
};

/*
 * A connection request that the core knows, until an endpoint is opened from it or it is rejected. Its id belongs to
 * one of both.
 */
struct verbs_request {
    struct verbs_listener listener;
    struct verbs_domain *domain;
    struct rdma_cm_id *id;
    uint8_t responder_resources, initiator_depth;
    bool withdrawn; /* the peer has disconnected */
};

/* An operation in flight, beside its pending object. */
struct verbs_send {
    struct verbs_send *next;     /* in the list of free ones */
    struct ofp_pending *pending; /* NULL: completed for the core; only the slot is returned */
    struct verbs_slot *slot;
    bool scatters;   /* the slot's bytes are copied to the memory of the operation at its end */
    uint32_t others; /* earlier work requests of the same operation */
    /* How much is posted of an operation with several work requests. */
    uint32_t segment, remote;
    uint64_t offset, remote_offset, posted;
    uint32_t registered_count;
    /* The members above are cleared for each operation. */
    struct verbs_registration *registered[VERBS_SEGMENTS];
    uint32_t keys[VERBS_SEGMENTS];
};

struct verbs_receive {
    struct ofp_list node; /* in pair->receives, in the order of the device */
    struct ofp_pending *pending;
    struct verbs_slot *slot; /* NULL: received without a copy */
    uint64_t cost;           /* bytes registered, or to be registered, for it */
    bool known;              /* its keys are known */
    bool posted;
    uint32_t registered_count;
    /* The members above are cleared for each receive. */
    struct verbs_registration *registered[VERBS_SEGMENTS];
    uint32_t keys[VERBS_SEGMENTS];
};

/* The end of a queue pair, as its owner is notified of it. Any thread may write it. */
struct verbs_qp_end {
    _Atomic bool destroyed;
    _Atomic bool *some; /* set behind `destroyed`: some queue pair of the owner is destroyed */
};

/* The context of a queue pair, which receives its asynchronous events. Any thread may write `fatal`. */
struct verbs_qp_context {
    struct rdma_cm_id *id;
    _Atomic int fatal;        /* 0: none; else the number of the event */
    struct verbs_qp_end *end; /* NULL: its owner needs no notice */
};

struct verbs_pair {
    struct ibv_qp *qp; /* NULL: closed */
    struct ibv_cq *cq;
    uint32_t receive_depth, inline_size;
    struct verbs_send_queue queue;
    struct verbs_send **sends;    /* of the queue: the operations that end with a work request, or NULL */
    uint64_t wanted;              /* number behind the last work request whose end is awaited */
    uint64_t goodbye;             /* number behind the goodbye; 0: it is not posted */
    struct verbs_send *long_send; /* an operation with pieces still to post; no other is posted before its end */
    struct verbs_send *free_sends;
    struct verbs_chain chain;
    struct ofp_list receives;       /* posted ones first */
    struct ofp_list *free_receives; /* linked by their nodes */
    uint32_t posted_receives;
    uint64_t receive_memory; /* bytes registered for them */
    bool armed;              /* the completion queue is armed; this is its context */
    bool unconfirmed;        /* a write or an atomic has completed early, and none that waits was posted behind it */
    bool flushed;            /* the device returns work requests as flushed */
    struct verbs_qp_context qp_context;
};

struct verbs_endpoint {
    struct verbs_listener listener;
    struct ofp_endpoint *base;
    struct verbs_domain *domain;
    struct rdma_cm_id *id;
    struct verbs_pair pair;
    union tcp_address address;
    struct ofp_peer *peer;        /* from connect or accept until it is lost */
    struct ofp_peer *ending_peer; /* the connection ends when no operation to it is in flight */
    bool left_by_peer;            /* `ending_peer` has disconnected: operations are awaited until `deadline` */
    struct ofp_timer deadline;
    uint8_t request_data[1 + VERBS_PRIVATE_MAX];
    uint8_t request_data_length;
    uint8_t responder_resources, initiator_depth;
    bool unanswered; /* opened from a request that is not answered */
    bool withdrawn;  /* the requesting peer has disconnected */
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
