/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bridge's own types: an installed libfabric as a provider.
 *
 * Objects of libfabric belong to the bridge's object in whose struct they stand, and are closed with it. Everything is
 * guarded by the core's domain lock; the exceptions say so. Regions are the one that libfabric has to know of: they are
 * registered and closed without that lock, since pinning may take long, so it is asked for FI_THREAD_SAFE.
 */
#ifndef OFI_BRIDGE_H
#define OFI_BRIDGE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "abi.h"
#include "ofipy/services.h"

#define BRIDGE_NAME "ofi"

/* The loaded library: constant once loaded, for the life of the process. */
struct bridge_library {
    uint32_t version; /* its own */
    uint32_t api;     /* what we ask it for: its own or LF_NEWEST */
    lf_getinfo_fn *getinfo;
    lf_dupinfo_fn *dupinfo;
    lf_freeinfo_fn *freeinfo;
    lf_fabric_fn *fabric;
    lf_strerror_fn *strerror;
    lf_tostr_r_fn *tostr_r; /* NULL before 1.14 */
};

/* Injects up to this size are taken everywhere, by a copy where libfabric's own bound is lower. */
#define BRIDGE_INJECT_SIZE 4096

/* What libfabric has of a domain; an endpoint that rests holds it beyond the domain's end. */
struct bridge_opened {
    const struct bridge_library *library;
    struct lf_info *info; /* the library's description of what was opened */
    struct lf_fabric *fabric;
    struct lf_domain *domain;
    _Atomic uint32_t users;
};

struct bridge_events;

struct bridge_domain {
    struct bridge_opened *opened; /* held; the next four are its */
    const struct bridge_library *library;
    struct lf_info *info;
    struct lf_fabric *fabric;
    struct lf_domain *domain;
    bool peeks;                   /* tells of unexpected tagged messages */
    bool misreads_atomics;        /* a fetching read brings nothing; remote.c */
    bool confuses_sources;        /* receives for one source and for any must not be posted together; domain.c */
    uint64_t levels;              /* completion levels that there are, LF_…_COMPLETE */
    bool completes_early;         /* what is complete is lost if its endpoint closes; domain.c */
    bool untagged;                /* and so are its completion queues */
    bool events_wake_all;         /* the descriptor of `events` tells of arrivals too; domain.c */
    bool data_consumes_receives;  /* that of a write takes a posted one */
    struct bridge_events *events; /* of connections, owned; NULL: its endpoints have none */
    _Atomic uint64_t next_key;    /* of registrations that no peer is told of */
    pthread_mutex_t lock;         /* guards the rest: regions come and go without the core's lock */
    struct ofp_list regions;      /* bound to `regions_home`; memory.c */
    struct bridge_endpoint *regions_home; /* LF_MR_ENDPOINT: the endpoint that regions belong to, NULL: none is open */
};

/* A registration of the user's, behind provider_data[0] of its region. */
struct bridge_region {
    struct ofp_list node; /* in the domain's `regions`, when bound to an endpoint */
    struct lf_mr *mr;     /* NULL once the endpoint is closed that it was bound to */
};

/* What a posted receive takes messages of. Endangered: for one source, and not to be posted beside others for any. */
enum bridge_sources { BRIDGE_NO_RECEIVE, BRIDGE_FOR_ANY, BRIDGE_FOR_ONE, BRIDGE_ENDANGERED, BRIDGE_SOURCES };

/*
 * Stands for one operation at libfabric, which gets its address as context and returns it with the completion. In the pool
 * or at libfabric; freed when the endpoint closes, after libfabric's own endpoint.
 */
struct bridge_block {
    struct lf_context2 context; /* first */
    struct ofp_peer *peer;      /* NULL: a receive from any source */
    struct ofp_pending
        *pending; /* with a peer found again by `id`: the core ends what belongs to an address it removes */
    uint64_t id;
    struct bridge_block *next;                    /* in the pool */
    char *copy;                                   /* in place of the user's memory, owned; NULL: none */
    bool scattered;                               /* what comes into `copy` goes on to the user's memory */
    char spare;                                   /* what a receive without memory is posted with */
    bool is_send;                                 /* counts in `sends` of the endpoint */
    bool is_completed;                            /* and in `completed` of the peer */
    bool tagged;                                  /* a receive: */
    uint8_t sources;                              /* enum bridge_sources */
    uint32_t registered;                          /* entries of `regions` */
    struct lf_mr *regions[OFP_SEGMENT_LIMIT + 2]; /* temporary registrations, closed with the operation */
};

struct bridge_slab;
struct bridge_neighbour;
struct bridge_receive_buffers;

/* What libfabric reported of one operation. */
struct bridge_event {
    struct lf_cq_entry entry; /* `length`: of the message, also where not all of it fitted */
    uint64_t source;          /* LF_ADDR_NOTAVAIL: not told */
    int error, provider_error;
};

/* Which peer stands behind libfabric's number for an address; open addressing, a NULL peer is a free slot. */
struct bridge_source {
    uint64_t address;
    struct ofp_peer *peer;
};

struct bridge_endpoint {
    struct lf_ep *ep; /* NULL once closed */
    struct lf_cq *cq;
    struct lf_av *av;
    struct bridge_neighbour *neighbour;     /* owned; NULL: its transport needs none */
    struct bridge_receive_buffers *buffers; /* for datagrams, owned; NULL: libfabric matches messages */
    struct ofp_watch watch;                 /* the queue's descriptor, -1: none */
    bool connects;                          /* is a struct bridge_msg */
    bool flushed;                           /* connects: operations came back undone, so the connection is over */
    bool accepts_names;                     /* of senders, sender.c */
    uint64_t name;                          /* in remote CQ data, 0: none; sender.c */
    size_t inject_size;                     /* libfabric's own bounds */
    size_t segment_limit;
    uint64_t sends;                       /* operations at libfabric that are no receives */
    uint32_t receives[2][BRIDGE_SOURCES]; /* at libfabric; first index: tagged */
    struct bridge_block *free_blocks;
    struct bridge_slab *slabs;
    struct bridge_event *deferred; /* events that came while nobody could be told; progress begins with them */
    uint32_t deferred_count, deferred_capacity;
    struct bridge_source *sources; /* `source_capacity` slots, a power of two, or none */
    uint32_t source_count, source_capacity;
};

struct bridge_peer {
    uint64_t address;   /* libfabric's number for it */
    bool known;         /* `address` is that; not after the core has lost it, until it connects again */
    uint64_t sends;     /* operations to it at libfabric */
    uint64_t completed; /* of them, those that their owners take for done */
    bool reached;       /* something went through: short messages need no completion of their own */
    bool has_sent;      /* it knows this endpoint: it has sent something */
};

static inline struct bridge_domain *bridge_domain_of(const struct ofp_domain *domain) { return domain->private; }
static inline struct bridge_endpoint *bridge_endpoint_of(const struct ofp_endpoint *endpoint)
{
    return endpoint->private;
}
static inline struct bridge_peer *bridge_peer_of(const struct ofp_peer *peer) { return peer->private; }

extern const struct ofp_core *bridge_core;

/* library.c. Held while the library is loaded. */
extern pthread_mutex_t bridge_library_lock;
/* Any thread, no lock. NULL with the reason and the remedy in `text`; looked for again at the next call. */
const struct bridge_library *bridge_library_get(char *text, size_t text_size);

/* Of a code that came with a completion. */
const char *bridge_error_describe(int provider_error);

/* An error of the library, negative or positive, as a positive one of ours. */
int bridge_error_convert(int error);
/* A negative errno of an open call. libfabric often says nothing better than EIO where it lacked descriptors: then -EMFILE. */
int bridge_open_error_convert(int error);

/* getinfo.c. Any thread, no lock. */
int bridge_infos_query(struct ofp_info *infos, int max, char *text, size_t text_size);
/* Whether it is ofi_rxm over another provider. */
bool bridge_is_layered(const char *provider);
/* Pieces of local memory that libfabric takes; with more the bridge copies. */
uint64_t bridge_segment_limit_compute(const struct lf_info *info);
/*
 * The library's info behind one of ours, with addresses for `node` and `service` (flags: LF_GETINFO_SOURCE or 0). Owned by
 * the caller. 0 or a negative errno.
 */
int bridge_info_find(const struct bridge_library *library, const struct ofp_info *info, const char *node,
                     const char *service, uint64_t flags, struct lf_info **found);
/* The library's infos with a peer's address, best first; owned by the caller. */
int bridge_info_find_remote(const struct bridge_library *library, const struct ofp_info *info, const char *node,
                            const char *service, struct lf_info **found);
/* LF_…_COMPLETE of those levels that the provider has. */
uint64_t bridge_completion_levels_query(const struct bridge_library *library, const struct ofp_info *info);
/* domain.c */
int bridge_domain_open(struct ofp_domain *domain, char *text, size_t text_size);
void bridge_domain_close(struct ofp_domain *domain);
void bridge_opened_release(struct bridge_opened *opened);
struct lf_cq *bridge_cq_open(struct bridge_domain *domain, bool waits, int *error);

/* endpoint.c */
/*
 * The library's info for an own endpoint or listener, at `service` if there is one; `here`: at the info's own address, not any.
 * Owned by the caller. 0, or a negative errno with a text.
 */
int bridge_info_find_own(const struct bridge_domain *domain, const struct ofp_info *info, const char *service,
                         bool here, struct lf_info **found, char *text, size_t text_size);
void bridge_limits_set(struct ofp_endpoint *endpoint, const struct lf_info *info);
/* Have the descriptor of its completion queue watched, if there is one. */
int bridge_queue_watch(struct ofp_endpoint *endpoint);
/* Close all that it has of libfabric's. */
void bridge_endpoint_close_objects(struct ofp_endpoint *endpoint);
/* What was accepted still leaves, unless the peer does not take it: until `sends` is 0. */
void bridge_endpoint_drain(struct ofp_endpoint *endpoint, const uint64_t *sends, uint64_t deadline);
int bridge_endpoint_open(struct ofp_endpoint *endpoint, const char *service, char *text, size_t text_size);
void bridge_endpoint_close(struct ofp_endpoint *endpoint, uint64_t deadline);
/* Each may be NULL. */
void bridge_objects_close(struct lf_ep *ep, struct lf_av *av, struct lf_cq *cq);
int bridge_endpoint_get_address(struct ofp_endpoint *endpoint, void *address, size_t *length);
bool bridge_endpoint_arm(struct ofp_endpoint *endpoint);
void bridge_endpoint_disarm(struct ofp_endpoint *endpoint);

/* block.c */
struct bridge_block *bridge_block_allocate(struct bridge_endpoint *endpoint); /* NULL: out of memory */
void bridge_block_free(struct bridge_endpoint *endpoint, struct bridge_block *block);
/* Of the memory that it stands for. */
void bridge_block_release(struct bridge_block *block);
void bridge_slabs_free(struct bridge_slab *slabs);

/* neighbour.c. Of the list of neighbours. */
extern pthread_mutex_t bridge_neighbours_lock;
/* The endpoint is enabled. 0 or a negative errno. */
int bridge_neighbour_enter(struct ofp_endpoint *endpoint);
/* Before the endpoint closes its objects: where it has neighbours they are no longer its. */
void bridge_neighbour_leave(struct bridge_endpoint *endpoint);

/* remote.c */
/* Places of the other operands of an atomic among the descriptors, behind those of the local pieces. */
enum { BRIDGE_RESULT = OFP_SEGMENT_LIMIT, BRIDGE_COMPARE, BRIDGE_DESCRIPTORS };

/* What every call of libfabric's gets. */
struct bridge_call {
    struct lf_ep *ep;
    uint64_t address;
    void *context;
    uint64_t data;
    void **local; /* `descriptors`; NULL: it wants them, and the pieces have none, as they go inline */
    void *descriptors[BRIDGE_DESCRIPTORS];
};

ssize_t bridge_call_remote(const struct bridge_call *call, const struct ofp_transfer *transfer, uint64_t flags);
/* Of an open domain's info; others answer -EOPNOTSUPP. */
int bridge_atomic_query(const struct ofp_info *info, uint32_t operation_code, uint32_t atomic_op, uint32_t datatype,
                        uint64_t *count);
/* Whether libfabric has this atomic, and takes that much in one: 0, -EOPNOTSUPP, -EMSGSIZE. */
int bridge_atomic_check(const struct ofp_endpoint *endpoint, const struct ofp_transfer *transfer);
/* Bytes of the longest vector of any atomic; 0: there is none. */
uint64_t bridge_atomic_compute_longest(const struct bridge_domain *domain);

/* post.c */
/* A receive that libfabric does not get yet. 0 or a negative errno. */
int bridge_receive_defer(struct ofp_endpoint *endpoint, const struct ofp_transfer *transfer,
                         struct bridge_block **block);
/* One that was kept, or that libfabric has given back, to libfabric; or it ends with the error. */
void bridge_receive_start(struct ofp_endpoint *endpoint, struct bridge_block *block);
int bridge_operation_post(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer);

/* completion.c */
/* How a receive ends that libfabric did not take; its block is free again. */
void bridge_receive_failed(struct ofp_endpoint *endpoint, struct bridge_block *block, int error);
int bridge_endpoint_progress(struct ofp_endpoint *endpoint);
/* Whether there is nothing to tell; what there is is kept for progress. */
bool bridge_queue_is_empty(struct ofp_endpoint *endpoint);
/* Take back a receive; what else is heard of meanwhile is kept for progress. 0 or -EINPROGRESS. */
int bridge_receive_cancel(struct ofp_endpoint *endpoint, struct ofp_pending *pending);
/* Hear the answer to a peek at once where libfabric has it, so that what it tells of is still there. */
void bridge_peek_read(struct ofp_endpoint *endpoint, const struct bridge_block *block);

/* sender.c; the endpoint is enabled */
void bridge_sender_open(struct ofp_endpoint *endpoint);
/* Who sent what has come, `address` by libfabric; NULL: unknown. A name is no longer the user's data then. */
struct ofp_peer *bridge_sender_resolve(struct ofp_endpoint *endpoint, struct lf_cq_entry *entry, uint64_t address);
/* Whether a message carries remote CQ data, its user's or the sender's name. */
static inline bool bridge_message_has_data(const struct bridge_endpoint *self, const struct ofp_peer *peer,
                                           const struct ofp_operation *op, uint64_t *data)
{
    bool given = op->flags & OFP_REMOTE_CQ_DATA;
    bool named =
        !given && self->name && !ofp_operation_is(op->op, OFP_RECEIVES | OFP_REMOTE) && !bridge_peer_of(peer)->has_sent;

    *data = named ? self->name : op->data;
    return given || named;
}

/* memory.c */
int bridge_region_open(struct ofp_domain *domain, struct ofp_region *region);
void bridge_region_close(struct ofp_domain *domain, struct ofp_region *region);
/* The endpoint opens; it closes, and with it every registration that is bound to it. */
void bridge_regions_attach(struct ofp_endpoint *endpoint);
void bridge_regions_detach(struct ofp_endpoint *endpoint);
/*
 * What libfabric calls the memory of a transfer: BRIDGE_DESCRIPTORS entries; memory without a region is registered for the
 * time of the operation where the provider wants that. 0 or a negative errno.
 */
int bridge_descriptors_prepare(struct ofp_endpoint *endpoint, const struct ofp_transfer *transfer,
                               struct bridge_block *block, void **descriptors);

/* address.c */
/* -EINVAL with a text: a number that is no port, which libfabric would take for another one. */
int bridge_service_check(const struct ofp_info *info, const char *service, char *text, size_t text_size);
int bridge_address_resolve(const struct ofp_info *info, const char *node, const char *service, void *address,
                           size_t *length, char *text, size_t text_size);
/* AF_UNSPEC: no IP address. */
sa_family_t bridge_address_find_family(const struct ofp_info *info, const void *address, size_t length);
int bridge_address_check(const struct ofp_info *info, const void *address, size_t length);
int bridge_address_format(const struct ofp_info *info, const void *address, size_t length, char *text,
                          size_t text_size);
int bridge_peer_open(struct ofp_peer *peer);
int bridge_peer_connect(struct ofp_peer *peer, char *text, size_t text_size);
void bridge_peer_close(struct ofp_peer *peer);
void bridge_peer_drain(struct ofp_peer *peer);
struct ofp_peer *bridge_peer_find(const struct bridge_endpoint *endpoint, uint64_t address); /* NULL: unknown */

/* node.c */
/* The own IP address of an info as a node for getinfo; false where it has none. */
bool bridge_node_format_own(const struct lf_info *info, char *node, size_t size);
int bridge_node_check(struct ofp_info *info, const char *node, char *text, size_t text_size);
int bridge_address_check_family(const struct ofp_info *info, const void *address, size_t length, char *text,
                                size_t text_size);

#endif
