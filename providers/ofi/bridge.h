/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bridge's own types: an installed libfabric as a provider. An object of the bridge owns the libfabric objects in
 * its struct, and closes them when it closes. The core's domain lock guards everything, except where a member says
 * otherwise. Regions are registered and closed without that lock, since pinning may take long, so libfabric is opened
 * with FI_THREAD_SAFE.
 */
#ifndef OFI_BRIDGE_H
#define OFI_BRIDGE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "abi.h"
#include "ofipy/check.h"
#include "ofipy/services.h"

#define BRIDGE_NAME "ofi"

/* The loaded library: constant once loaded, for the life of the process. */
struct bridge_library {
    uint32_t version; /* the library's version */
    uint32_t api;     /* the API version that is requested: the library's, or LF_NEWEST */
    lf_getinfo_fn *getinfo;
    lf_dupinfo_fn *dupinfo;
    lf_freeinfo_fn *freeinfo;
    lf_fabric_fn *fabric;
    lf_strerror_fn *strerror;
    lf_tostr_r_fn *tostr_r; /* NULL before 1.14 */
};

/* Injects up to this size are accepted by every provider: the bridge copies where libfabric's own bound is lower. */
#define BRIDGE_INJECT_SIZE 4096

/* The libfabric objects of a domain. A resting endpoint (neighbour.c) references them beyond the domain's end. */
struct bridge_opened {
    const struct bridge_library *library;
    struct lf_info *info; /* libfabric's info of the opened domain */
    struct lf_fabric *fabric;
    struct lf_domain *domain;
    _Atomic uint32_t users;
};

struct bridge_events;

struct bridge_domain {
    struct bridge_opened *opened; /* a reference; the next four members are copies of its members */
    const struct bridge_library *library;
    struct lf_info *info;
    struct lf_fabric *fabric;
    struct lf_domain *domain;
    bool peeks;                   /* FI_PEEK works */
    bool misreads_atomics;        /* an atomic fetching read returns nothing; remote.c */
    bool confuses_sources;        /* receives for one source and for any source must not be posted together; domain.c */
    uint64_t levels;              /* the supported completion levels, LF_…_COMPLETE */
    bool completes_early;         /* a completed send is lost if its endpoint closes; domain.c */
    bool untagged;                /* its completion queues have no tags */
    bool events_wake_all;         /* the descriptor of `events` also becomes readable when messages arrive; domain.c */
    bool data_consumes_receives;  /* remote CQ data of a write consume a posted receive */
    struct bridge_events *events; /* connection events, owned; NULL: no connected endpoints */
    _Atomic uint64_t next_key;    /* key of the next registration that no peer uses */
    pthread_mutex_t lock;         /* guards the rest: regions open and close without the core's lock */
    struct ofp_list regions;      /* bound to `regions_home`; memory.c */
    struct bridge_endpoint
        *regions_home; /* LF_MR_ENDPOINT: the endpoint to which regions are bound; NULL: none is open */
};

/* A user's registration: provider_data[0] of its region. */
struct bridge_region {
    struct ofp_list node; /* in the domain's `regions`, when bound to an endpoint */
    struct lf_mr *mr;     /* NULL after its endpoint has closed */
};

/*
 * The sources of a posted receive. Endangered: for one source, and must not be posted beside receives for any source.
 */
enum bridge_sources { BRIDGE_NO_RECEIVE, BRIDGE_FOR_ANY, BRIDGE_FOR_ONE, BRIDGE_ENDANGERED, BRIDGE_SOURCES };

/*
 * One operation at libfabric. libfabric gets the block's address as context and returns it with the completion. A block
 * is in the pool or at libfabric; the memory is freed when the endpoint closes, after libfabric's own endpoint.
 * Invariants: a block in the pool has no `pending`, `peer` or `copy`; `is_completed` implies `is_send`; `registered` is
 * at most the size of `regions`.
 */
struct bridge_block {
    struct lf_context2 context; /* first */
    struct ofp_peer *peer;      /* NULL: a receive from any source */
    struct ofp_pending
        *pending; /* with a peer, found by `id` at the completion: the core ends the operations of an address that it
                   * removes */
    uint64_t id;
    struct bridge_block *next;                    /* in the pool */
    char *copy;                                   /* replaces the user's memory, owned; NULL: none */
    bool scattered;                               /* data received in `copy` are scattered to the user's memory */
    char spare;                                   /* the memory of a receive of no bytes */
    bool is_send;                                 /* counted in `sends` of the endpoint */
    bool is_completed;                            /* counted in `completed` of the peer */
    bool tagged;                                  /* a tagged receive */
    uint8_t sources;                              /* enum bridge_sources */
    uint32_t registered;                          /* entries of `regions` */
    struct lf_mr *regions[OFP_SEGMENT_LIMIT + 2]; /* temporary registrations, closed with the operation */
};

/* The operation of a block; NULL: the core has ended it. */
static inline struct ofp_pending *bridge_pending_of(const struct bridge_block *block)
{
    return block->peer && block->pending ? ofp_pending_find(block->peer, block->id) : block->pending;
}

struct bridge_slab;
struct bridge_neighbour;
struct bridge_receive_buffers;

/* A completion of libfabric. */
struct bridge_event {
    struct lf_cq_entry entry; /* `length`: of the whole message, even if it was truncated */
    uint64_t source;          /* LF_ADDR_NOTAVAIL: unknown */
    int error, provider_error;
};

/* Entry of the table from libfabric's number of an address to the peer. Open addressing; a NULL peer is a free slot. */
struct bridge_source {
    uint64_t address;
    struct ofp_peer *peer;
};

struct bridge_endpoint {
    struct lf_ep *ep; /* NULL once closed */
    struct lf_cq *cq;
    struct lf_av *av;
    struct bridge_neighbour *neighbour;     /* owned; NULL: not needed by the provider */
    struct bridge_receive_buffers *buffers; /* of datagram endpoints, owned; NULL: libfabric matches messages */
    struct ofp_watch watch;                 /* the queue's descriptor, -1: none */
    bool connects;                          /* is a struct bridge_msg */
    bool flushed;                           /* connects: operations were flushed, so the connection has ended */
    bool accepts_names;                     /* accepts sender names; sender.c */
    uint64_t name;                          /* the own name in remote CQ data, 0: none; sender.c */
    size_t inject_size;                     /* libfabric's own bounds */
    size_t segment_limit;
    uint64_t internal_bit;                /* of tags, kept for internal messages; 0: none is. internal.c */
    uint64_t sends;                       /* operations at libfabric that are no receives */
    uint32_t receives[2][BRIDGE_SOURCES]; /* receives at libfabric; first index: tagged */
    struct bridge_block *free_blocks;
    struct bridge_slab *slabs;
    struct bridge_event *deferred; /* completions that could not be delivered when they were read; progress delivers
                                    * them first */
    uint32_t deferred_count, deferred_capacity;
    struct bridge_source *sources; /* `source_capacity` slots, a power of two, or none */
    uint32_t source_count, source_capacity;
};

struct bridge_peer {
    uint64_t address;   /* libfabric's number of the peer */
    bool known;         /* `address` is valid; false after the core has marked the peer lost, until it connects again */
    uint64_t sends;     /* operations to the peer at libfabric */
    uint64_t completed; /* operations of `sends` that are already completed for their owners */
    bool reached;       /* a send has succeeded: short messages need no completion of their own */
    /* The place of the last write or atomic that may complete early; `length` 0: none has no confirmation behind it. */
    struct ofp_remote_segment unconfirmed;
    bool has_sent; /* the peer has sent a message, so it knows this endpoint's address */
};

static inline struct bridge_domain *bridge_domain_of(const struct ofp_domain *domain) { return domain->private; }
static inline struct bridge_endpoint *bridge_endpoint_of(const struct ofp_endpoint *endpoint)
{
    return endpoint->private;
}
static inline struct bridge_peer *bridge_peer_of(const struct ofp_peer *peer) { return peer->private; }

extern const struct ofp_core *bridge_core;

/* library.c. Serialises the loading of the library. */
extern pthread_mutex_t bridge_library_lock;
/* Any thread, no lock. NULL with the reason and the remedy in `text`; the next call tries again. */
const struct bridge_library *bridge_library_get(char *text, size_t text_size);

/* The text of a completion's provider error. */
const char *bridge_error_describe(int provider_error);

/* Convert an error of the library, negative or positive, to a positive errno of ofipy. */
int bridge_error_convert(int error);
/*
 * Correct a negative errno of an open call. libfabric often reports EIO when it has no descriptors left: then -EMFILE.
 */
int bridge_open_error_convert(int error);

/* getinfo.c. Any thread, no lock. */
int bridge_infos_query(struct ofp_info *infos, int max, char *text, size_t text_size);
/* Whether the provider is ofi_rxm over another provider. */
bool bridge_is_layered(const char *provider);
/* Pieces of local memory that libfabric accepts; the bridge copies an operation with more. */
uint64_t bridge_segment_limit_compute(const struct lf_info *info);
/*
 * Find libfabric's info for one of ofipy's, with addresses for `node` and `service` (flags: LF_GETINFO_SOURCE or 0).
 * Owned by the caller. 0 or a negative errno.
 */
int bridge_info_find(const struct bridge_library *library, const struct ofp_info *info, const char *node,
                     const char *service, uint64_t flags, struct lf_info **found);
/* Find libfabric's infos with a peer's address, best first; owned by the caller. */
int bridge_info_find_remote(const struct bridge_library *library, const struct ofp_info *info, const char *node,
                            const char *service, struct lf_info **found);
/* LF_…_COMPLETE of the levels that the provider supports. */
uint64_t bridge_completion_levels_query(const struct bridge_library *library, const struct ofp_info *info);
/* domain.c */
int bridge_domain_open(struct ofp_domain *domain, char *text, size_t text_size);
void bridge_domain_close(struct ofp_domain *domain);
void bridge_opened_release(struct bridge_opened *opened);
struct lf_cq *bridge_cq_open(struct bridge_domain *domain, bool waits, int *error);

/* endpoint.c */
/*
 * Find libfabric's info for an endpoint or listener of this process, at `service` if it is not NULL. `here`: at the
 * info's own address, not any. Owned by the caller. 0, or a negative errno with a text.
 */
int bridge_info_find_own(const struct bridge_domain *domain, const struct ofp_info *info, const char *service,
                         bool here, struct lf_info **found, char *text, size_t text_size);
void bridge_limits_set(struct ofp_endpoint *endpoint, const struct lf_info *info);
/* Watch the descriptor of the completion queue, if there is one. */
int bridge_queue_watch(struct ofp_endpoint *endpoint);
/* Close all libfabric objects of the endpoint. */
void bridge_endpoint_close_objects(struct ofp_endpoint *endpoint);
/* Progress until `sends` is 0, the deadline has passed, or nothing has completed for a while. */
void bridge_endpoint_drain(struct ofp_endpoint *endpoint, const uint64_t *sends, uint64_t deadline);
int bridge_endpoint_open(struct ofp_endpoint *endpoint, const char *service, char *text, size_t text_size);
void bridge_endpoint_close(struct ofp_endpoint *endpoint, uint64_t deadline);
/* Each argument may be NULL. */
void bridge_objects_close(struct lf_ep *ep, struct lf_av *av, struct lf_cq *cq);
int bridge_endpoint_get_address(struct ofp_endpoint *endpoint, void *address, size_t *length);
bool bridge_endpoint_arm(struct ofp_endpoint *endpoint);
void bridge_endpoint_disarm(struct ofp_endpoint *endpoint);

/* block.c */
struct bridge_block *bridge_block_allocate(struct bridge_endpoint *endpoint); /* NULL: out of memory */
void bridge_block_free(struct bridge_endpoint *endpoint, struct bridge_block *block);
/* Release the copy and the temporary registrations of a block. */
void bridge_block_release(struct bridge_block *block);
void bridge_slabs_free(struct bridge_slab *slabs);
/* Whether a posted receive may match tags that have this bit. */
bool bridge_receive_is_posted(const struct bridge_endpoint *endpoint, uint64_t bit);

/* neighbour.c. Guards the list of neighbours. */
extern pthread_mutex_t bridge_neighbours_lock;
/* Called when the endpoint is enabled. 0 or a negative errno. */
int bridge_neighbour_enter(struct ofp_endpoint *endpoint);
/* Called before the endpoint closes its objects. A resting neighbour then owns them. */
void bridge_neighbour_leave(struct bridge_endpoint *endpoint);

/* remote.c */
/* Indexes of the other operands of an atomic among the descriptors, behind those of the local pieces. */
enum { BRIDGE_RESULT = OFP_SEGMENT_LIMIT, BRIDGE_COMPARE, BRIDGE_DESCRIPTORS };

/* The common arguments of libfabric's calls. */
struct bridge_call {
    struct lf_ep *ep;
    uint64_t address;
    void *context;
    uint64_t data;
    void **local; /* `descriptors`; NULL: the pieces go inline and have none */
    void *descriptors[BRIDGE_DESCRIPTORS];
};

/* The flags that an RMA operation or atomic needs besides its own, so that a flush can prove its delivery. */
uint64_t bridge_remote_choose_flags(const struct ofp_endpoint *endpoint, const struct ofp_transfer *transfer);
/* Store what a posted operation means for the next flush of the peer. */
void bridge_remote_posted(const struct ofp_peer *peer, const struct ofp_transfer *transfer, uint64_t flags);
bool bridge_peer_needs_flush(const struct ofp_peer *peer, struct ofp_remote_segment *there);
ssize_t bridge_call_remote(const struct bridge_call *call, const struct ofp_transfer *transfer, uint64_t flags);
/* For the info of an open domain; -EOPNOTSUPP for others. */
int bridge_atomic_query(const struct ofp_info *info, uint32_t operation_code, uint32_t atomic_op, uint32_t datatype,
                        uint64_t *count);
/* Check that libfabric supports this atomic at this length: 0, -EOPNOTSUPP, -EMSGSIZE. */
int bridge_atomic_check(const struct ofp_endpoint *endpoint, const struct ofp_transfer *transfer);
/* Bytes of the longest vector of any atomic; 0: there is none. */
uint64_t bridge_atomic_compute_longest(const struct bridge_domain *domain);

/* post.c */
/* Retain a receive that is posted to libfabric later. 0 or a negative errno. */
int bridge_receive_defer(struct ofp_endpoint *endpoint, const struct ofp_transfer *transfer,
                         struct bridge_block **block);
/* Post a deferred or returned receive to libfabric, or end it with the error. */
void bridge_receive_start(struct ofp_endpoint *endpoint, struct bridge_block *block);
int bridge_operation_post(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer);

/* completion.c */
/* End a receive that libfabric did not accept; its block is free afterwards. */
void bridge_receive_failed(struct ofp_endpoint *endpoint, struct bridge_block *block, int error);
int bridge_endpoint_progress(struct ofp_endpoint *endpoint);
/* Whether the completion queue is empty; a completion that is found is deferred to progress. */
bool bridge_queue_is_empty(struct ofp_endpoint *endpoint);
/* Cancel a receive; other completions that are read meanwhile are deferred to progress. 0 or -EINPROGRESS. */
int bridge_receive_cancel(struct ofp_endpoint *endpoint, struct ofp_pending *pending);
/* Read the result of a peek at once if libfabric has it, so that the message that it describes is still there. */
void bridge_peek_read(struct ofp_endpoint *endpoint, const struct bridge_block *block);

/* sender.c; the endpoint is enabled */
void bridge_sender_open(struct ofp_endpoint *endpoint);
/*
 * The sender of a completion with libfabric's number `address`; NULL: unknown. Clears the flag of remote CQ data that
 * contain only a sender name.
 */
struct ofp_peer *bridge_sender_resolve(struct ofp_endpoint *endpoint, struct lf_cq_entry *entry, uint64_t address);
/* Whether a message carries remote CQ data, the user's or the sender's name. */
static inline bool bridge_message_has_data(const struct bridge_endpoint *self, const struct ofp_peer *peer,
                                           const struct ofp_operation *op, uint64_t *data)
{
    bool given = op->flags & OFP_REMOTE_CQ_DATA;
    bool named =
        !given && self->name && !ofp_operation_is(op->op, OFP_RECEIVES | OFP_REMOTE) && !bridge_peer_of(peer)->has_sent;

    *data = named ? self->name : op->data;
    return given || named;
}

/* internal.c */
int bridge_internal_channel_open(struct ofp_endpoint *endpoint);
/* What an operation is at libfabric once the endpoint has an `internal_bit`. */
enum bridge_tag { BRIDGE_TAG_SAME, BRIDGE_TAG_NARROWED, BRIDGE_TAG_INTERNAL };
/* Other than BRIDGE_TAG_SAME: libfabric gets `converted` in its place. -EDOM: the tag has the bit. */
int bridge_tag_convert(uint64_t bit, const struct ofp_operation *op, struct ofp_operation *converted);

/* memory.c */
int bridge_region_open(struct ofp_domain *domain, struct ofp_region *region);
void bridge_region_close(struct ofp_domain *domain, struct ofp_region *region);
/* Called when the endpoint opens; and when it closes, which closes all registrations that are bound to it. */
void bridge_regions_attach(struct ofp_endpoint *endpoint);
void bridge_regions_detach(struct ofp_endpoint *endpoint);
/*
 * Fill in the descriptors of the memory of a transfer: BRIDGE_DESCRIPTORS entries. Memory without a region is
 * registered for the time of the operation if the provider requires that. 0 or a negative errno.
 */
int bridge_descriptors_prepare(struct ofp_endpoint *endpoint, const struct ofp_transfer *transfer,
                               struct bridge_block *block, void **descriptors);

/* address.c */
/* -EINVAL with a text for a number that is no port, which libfabric would change to another one. */
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
/* Format the own IP address of an info as a node for getinfo; false if there is none. */
bool bridge_node_format_own(const struct lf_info *info, char *node, size_t size);
int bridge_node_check(struct ofp_info *info, const char *node, char *text, size_t text_size);
int bridge_address_check_family(const struct ofp_info *info, const void *address, size_t length, char *text,
                                size_t text_size);

#endif
