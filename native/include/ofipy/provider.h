/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The seam between the core and a provider.
 *
 * A provider is a shared object that exports one function, `ofp_provider_entry`. The core calls it once with the table
 * of its own services and gets the provider's table back. Nothing is linked: the two know each other by these tables.
 *
 * Rules for every entry, unless the entry says otherwise:
 * - The core calls it with the domain's lock held; the provider calls the core's services with that lock held. So a
 *   provider needs no lock of its own, and must not block.
 * - Results are 0 or a negative errno / OFP_E… value.
 * - Memory that a peer can write is copied, then checked, then used.
 * - An optional entry may be NULL; the core then answers -EOPNOTSUPP or uses the default named there.
 */
#ifndef OFIPY_PROVIDER_H
#define OFIPY_PROVIDER_H

#include <pthread.h>

#include "ofipy/objects.h"
#include "ofipy/operation.h"

/*
 * The major version, compared for equality. Within it, what the core allocates (endpoint, peer, domain, region, pending,
 * receive) grows at its end, and so do the tables, whose size in front tells how far they go. Frozen, with spare words, is what
 * providers allocate: message, remote access, watch, timer, offloaded, and the transfer, which lies within others.
 */
#define OFP_PROVIDER_ABI 4

struct ofp_core;

enum ofp_log_level { OFP_LOG_DEBUG = 10, OFP_LOG_INFO = 20, OFP_LOG_WARNING = 30, OFP_LOG_ERROR = 40 };

/*
 * A fraction is between 0 and 1. A time is written with its unit, "100us", and a number of nanoseconds. ALWAYS is a bool, or `always`,
 * which is 2.
 */
enum ofp_param_type {
    OFP_PARAM_STRING,
    OFP_PARAM_BOOL,
    OFP_PARAM_SIZE,
    OFP_PARAM_INT,
    OFP_PARAM_FRACTION,
    OFP_PARAM_TIME,
    OFP_PARAM_ALWAYS
};

/*
 * A setting `OFIPY_<NAME>`, declared once. All strings are literals of the declarer. A size or a number has bounds, which the
 * core holds in the environment and the file alike: what core->param_int and core->param_size return lies within.
 */
struct ofp_param {
    const char *name; /* upper case, e.g. "SHM_INLINE_SIZE" */
    enum ofp_param_type type;
    const char *default_value;
    const char *help;
    int64_t least, most; /* OFP_PARAM_SIZE, OFP_PARAM_INT and OFP_PARAM_TIME: both allowed */
};

/* ------------------------------------------------------------------------------------------------ provider's tables */

struct ofp_domain_ops {
    uint32_t size;      /* of this table in the header that the provider was built with, as of all tables here */
    size_t domain_size; /* of struct ofp_domain.private */
    /*
     * Acquire what endpoints share. May block briefly (no lock is held: nobody else knows the domain yet). Reasons for refusal
     * go into `text`.
     */
    int (*open)(struct ofp_domain *domain, char *text, size_t text_size);
    /* Every endpoint and region is closed already. Must not fail. */
    void (*close)(struct ofp_domain *domain);
    /*
     * Optional. Make memory known to a device / forget it. Called WITHOUT the lock, since pinning may take long: nobody
     * else knows the region yet, or any more. `region_open` may replace `key` and set `remote_base`, unless it is fixed: then
     * the core serves peers. After an error nothing of it is known.
     */
    int (*region_open)(struct ofp_domain *domain, struct ofp_region *region);
    void (*region_close)(struct ofp_domain *domain, struct ofp_region *region);
    /*
     * Optional. Let peers reach a region with remote access / shut them out. `region_withdraw` answers -EAGAIN while one is
     * inside: the core makes progress and calls again.
     */
    int (*region_publish)(struct ofp_domain *domain, struct ofp_region *region);
    int (*region_withdraw)(struct ofp_domain *domain, struct ofp_region *region);
    /*
     * Optional; default: anonymous memory. Memory that the transport moves best: fills region->base; region->length is
     * given, page multiples. -ENOMEM with the remedy in `text` when the machine cannot back it.
     */
    int (*memory_allocate)(struct ofp_domain *domain, struct ofp_region *region, char *text, size_t text_size);
    void (*memory_free)(struct ofp_domain *domain, struct ofp_region *region);
    /*
     * Mandatory with domain->keeps_above. The owner of this memory leaves, and what was registered of it has to be let go of
     * before this returns: other memory may be at its addresses then. No operation is in it. NULL: memory is short; let go of all
     * that is kept and that no operation is in.
     */
    void (*region_disowned)(struct ofp_domain *domain, struct ofp_region *region);
};

/* Relation of two addresses that share a part. */
enum ofp_address_relation {
    OFP_ADDRESS_OTHER, /* of different endpoints */
    OFP_ADDRESS_SAME,
    OFP_ADDRESS_BETTER /* the same, and the one that is given now tells as much, or more */
};

/* Results of `post`. */
#define OFP_POST_DONE 1    /* finished in the call: the buffer is reusable, the core completes the operation */
#define OFP_POST_PENDING 0 /* taken with transfer_retain; transfer_complete follows */

struct ofp_endpoint_ops {
    uint32_t size;
    size_t endpoint_size; /* of struct ofp_endpoint.private */
    size_t peer_size;     /* of struct ofp_peer.private */
    /*
     * Bind to an address: `service` is a port number as text, which a name that the user chose stands for; NULL for any.
     * What a provider without ports calls such an endpoint begins with '~', as no name does. Reasons for refusal go into
     * `text`. May block briefly.
     *
     * Type MSG: nobody connects to this address, it is where connections come from. A listener that was closed may have had it:
     * `service` is then the part behind the last ':' of what address_format made of that address. With endpoint->request set the
     * connection of that request passes from the listener to the endpoint when this returns 0: `accept` answers it,
     * `close` without `accept` refuses it. The requester may have gone meanwhile; `accept` finds out.
     */
    int (*open)(struct ofp_endpoint *endpoint, const char *service, char *text, size_t text_size);
    /*
     * Optional. Before `close`, again and again until it answers 0 or the deadline has passed: let what was accepted leave,
     * say goodbye. -EAGAIN: something is still under way; the core makes progress, with the lock let go in between.
     */
    int (*drain)(struct ofp_endpoint *endpoint);
    /*
     * No operation of the endpoint may be in flight at the transport after it returns; peers are told. The core completes
     * what was pending as ECANCELED afterwards. May block up to `deadline` (CLOCK_MONOTONIC, ns).
     */
    void (*close)(struct ofp_endpoint *endpoint, uint64_t deadline);
    /* Write the own address; *length in: room, out: size. */
    int (*name)(struct ofp_endpoint *endpoint, void *address, size_t *length);

    /*
     * Start to reach a peer (state CONNECTING). Ends later in peer_up, peer_absent or peer_lost. An error return counts as
     * peer_lost with that error, -ECONNREFUSED as peer_absent. Called for the first operation to a peer, for the first after it
     * was lost, and again while it is absent.
     *
     * Type MSG: called by ofp_connect, once; peer->address is that of a listener, which is told peer->private_data. What it
     * answers goes to connection_answered, before peer_up (accepted) or peer_lost with ECONNREFUSED (rejected).
     */
    int (*connect)(struct ofp_peer *peer, char *text, size_t text_size);
    /*
     * Type MSG, mandatory there: accept the request that the endpoint was opened from, with private data. Called once,
     * in state CONNECTING; ends in peer_up when data may be sent, now or later, or in peer_lost, as `connect` does.
     */
    int (*accept)(struct ofp_peer *peer, const void *data, size_t length);
    /*
     * Type MSG, optional; default: peer_lost at once. Begin the orderly end of a connection in state UP: what was posted
     * still leaves (the core's backlog is empty, and nothing is posted any more), then the other side is told, then
     * peer_lost with error 0. The other side calls peer_lost with ESHUTDOWN, which stands for this end and no other.
     */
    int (*shutdown)(struct ofp_peer *peer);
    /* The peer is leaving state UP or CONNECTING: drop the private state; the core fails what is pending afterwards. */
    void (*peer_down)(struct ofp_peer *peer);
    /*
     * Optional. A peer object is made (state UNUSED) / freed: for transports with an address table of their own. With
     * `eager_peers` objects are made as soon as an address enters the vector, so that arrivals can be named.
     */
    int (*peer_open)(struct ofp_peer *peer);
    void (*peer_close)(struct ofp_peer *peer);
    bool eager_peers;
    /*
     * Messages of OFP_CHANNEL_INTERNAL travel too, and come in with that channel; `post` answers -EOPNOTSUPP towards a peer that
     * does not know it. False: the core refuses them.
     */
    bool internal_channel;

    /*
     * Start one send-like operation towards a peer in state UP. Returns
     *   OFP_POST_DONE, OFP_POST_PENDING,
     *   -EAGAIN: no room now; the core keeps the operation and posts it again from progress, order kept per peer,
     *   another error: the operation is refused; nothing was sent.
     * On an endpoint with `offloads_matching` receives come here too (peer is NULL for any source). With OFP_PEEK, whatever
     * else is asked for, only tell of the first unexpected message that matches, or of ENOMSG, with
     * offloaded_receive_complete; the core claims or drops it by a receive. Refuse it with -EOPNOTSUPP otherwise.
     * OFP_INJECT: the memory is valid during the call only. OFP_MORE: a later post or `flush` may carry it.
     * OFP_DELIVERY_COMPLETE of a message: it completes when the target's core has the payload in memory, in that of a receive or
     * kept, and not before the target makes progress; above the target's bound on unexpected messages, when a receive has matched it.
     */
    int (*post)(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer);
    /* Optional. End of a batch: hand over what was held back because of OFP_MORE, or with flush_later. */
    void (*flush)(struct ofp_endpoint *endpoint);

    /*
     * Move the payload of an announced message (core-matched endpoints): receive->length bytes into receive->iov, tell
     * the sender, then receive_complete, now or later. With length 0 only the sender is told.
     */
    void (*receive_start)(struct ofp_endpoint *endpoint, struct ofp_receive *receive);

    /*
     * Only with `offloads_matching`: take back a posted receive. 0: it is gone from the transport; -ENOENT: too late;
     * -EINPROGRESS: asked for, its end follows as a completion, cancelled or not.
     */
    int (*cancel)(struct ofp_endpoint *endpoint, struct ofp_pending *pending);

    /* Look for work in memory, or in one kernel call; bounded work per call. Returns how many events it handled. */
    int (*progress)(struct ofp_endpoint *endpoint);
    /*
     * The sleep handshake: ask that arrivals make one of the watched descriptors readable. False: work is there already,
     * do not sleep. `disarm` takes it back, cheap and idempotent.
     */
    bool (*arm)(struct ofp_endpoint *endpoint);
    void (*disarm)(struct ofp_endpoint *endpoint);

    /* Optional. The addresses beside `name` where it is reached as well, from number 0 on. -ENOENT: there are no more. */
    int (*name_also)(struct ofp_endpoint *endpoint, uint32_t number, void *address, size_t *length);

    /* `private` of a peer is zero when it is made, and stays as it is when it was lost and connects again. */
    bool peers_persist;
    /*
     * Mandatory with the provider's `address_key`. The peer, in any state, was inserted again by an address that tells more of
     * it: peer->address is that one now.
     */
    void (*peer_readdressed)(struct ofp_peer *peer);
    /*
     * Optional; default: none. Of the operations to this peer that were completed, how many are in a queue of the provider's own
     * still, or in a socket that closing it would reset. Asked before `close`, if `drain` could not end in time.
     */
    uint64_t (*unsent)(const struct ofp_peer *peer);
    /*
     * Optional; default: the address that a peer was inserted by equals its endpoint's `name`. Where one endpoint has several
     * addresses: the OFP_IDENTITY_SIZE bytes that its endpoint has as `identity`, valid until the engine is asked for progress
     * again. Known from `peer_up` on; NULL before that, and where the peer does not state it.
     */
    const uint8_t *(*peer_identity)(const struct ofp_peer *peer);
};

/*
 * Listeners, for endpoints of type MSG. There is no entry for progress: what listeners do, watches and timers of the domain
 * make them do.
 */
struct ofp_passive_ops {
    uint32_t size;
    size_t passive_size; /* of struct ofp_passive.private */
    /* Bind to an address, as `open` of an endpoint does. Nobody gets through before `listen`. */
    int (*open)(struct ofp_passive *passive, const char *service, char *text, size_t text_size);
    /* The address that others connect to; *length in: room, out: size. */
    int (*name)(struct ofp_passive *passive, void *address, size_t *length);
    /*
     * Take connection requests from now on: each, once it is read whole, goes to core->connection_requested. Until then it is
     * the provider's affair, with a deadline and a bound. `backlog`: requests that the core keeps unanswered.
     */
    int (*listen)(struct ofp_passive *passive, uint32_t backlog);
    /*
     * Reject a request that core->connection_requested accepted: the other side's connection is lost with ECONNREFUSED
     * and these data. The request is gone afterwards, whatever this returns.
     */
    int (*reject)(struct ofp_passive *passive, uint64_t request, const void *data, size_t length);
    /*
     * The core has rejected what was unanswered; requests that endpoints were opened from are theirs and go on. Refuse
     * those that are half read. Must not fail.
     */
    void (*close)(struct ofp_passive *passive);
};

struct ofp_provider {
    uint32_t abi;                   /* OFP_PROVIDER_ABI of the header it was built with */
    uint32_t size;                  /* of this table in that header */
    uint32_t info_size;             /* of struct ofp_info there: `getinfo` fills an array of such */
    uint32_t version;               /* the provider's own, major << 16 | minor */
    const char *name;               /* "shm" */
    const char *description;        /* one line */
    const struct ofp_param *params; /* ended by a NULL name; NULL: none */
    /*
     * Fill up to `max` infos, best first; returns how many. None and a text that says why and what to do when the
     * provider cannot run here; why need not be found out where `text_size` is 1, since nobody will read it. No lock is
     * held; may be called from any thread; may take milliseconds.
     */
    int (*getinfo)(struct ofp_info *infos, int max, char *text, size_t text_size);
    /*
     * Address of a peer from what a person writes: `node` a host name or NULL for this host, `service` a port number, or
     * what the provider itself calls an endpoint. No lock is held; may block in
     * name resolution. -EHOSTUNREACH with a text when this provider cannot reach that host. `info`: one of its own, for
     * providers that speak for several transports.
     */
    int (*resolve)(const struct ofp_info *info, const char *node, const char *service, void *address, size_t *length,
                   char *text, size_t text_size);
    /* Check an address from outside: 0 when well formed. */
    int (*address_check)(const struct ofp_info *info, const void *address, size_t length);
    /* The address as the part of a URI behind "<name>://", zero-terminated. */
    int (*address_format)(const struct ofp_info *info, const void *address, size_t length, char *text,
                          size_t text_size);
    /*
     * Optional; without it a program that names a node is refused. Narrow an info to a name or address of this host:
     * endpoints and listeners opened from it are there and nowhere else. -EHOSTUNREACH with a text when the node is not
     * this host's, or not this info's. No lock is held; may block in name resolution.
     */
    int (*at_node)(struct ofp_info *info, const char *node, char *text, size_t text_size);
    /*
     * Optional; default: they do. Whether endpoints of this info can reach a well-formed address at all: 0, or
     * -EHOSTUNREACH with a text, as for another address family. Whether anybody is there only connecting shows. Any
     * thread, no lock; does not block.
     */
    int (*reaches)(const struct ofp_info *info, const void *address, size_t length, char *text, size_t text_size);
    /*
     * Optional; default: what the core's executor can do. The largest vector, in elements, of an atomic operation towards
     * peers, or -EOPNOTSUPP; -ENOSYS for the default. Any thread, no lock. An operation_code with the bit OFP_DEVICE_ATOMIC asks
     * for those of the device; with that capability the entry is mandatory.
     */
    int (*atomic_query)(const struct ofp_info *info, uint32_t operation_code, uint32_t atomic_op, uint32_t datatype,
                        uint64_t *count);
    /*
     * Optional. English text of a provider_error in a completion; static, any thread, no lock. Of the codes that
     * core->remote_access returns at the peer the core has texts, for a provider that reports them as they are.
     */
    const char *(*error_text)(int provider_error);
    const struct ofp_domain_ops *domain_ops; /* NULL: every entry is its default */
    /* One table per kind of endpoint, chosen by the info the domain was opened with. */
    const struct ofp_endpoint_ops *(*endpoint_ops)(const struct ofp_info *info);
    /* Only with infos of type MSG, and mandatory for those. */
    const struct ofp_passive_ops *passive_ops;
    /*
     * Optional; default: one, all of it. The parts of a well-formed address by which it is found, from number 0 on; NULL: there
     * are no more. Any thread, no lock.
     */
    const void *(*address_key)(const void *address, size_t *length, uint32_t number);
    /* Mandatory with address_key: what an address that was found by a part of another is to that one. Any thread, no lock. */
    enum ofp_address_relation (*address_relation)(const void *known, size_t known_length, const void *given,
                                                  size_t given_length);
    /*
     * Optional; default: `getinfo`, and of its infos those whose `provider` is that name. The same as `getinfo` under a name
     * that begins with the provider's own, as "link:shm+tcp".
     */
    int (*getinfo_as)(const char *name, struct ofp_info *infos, int max, char *text, size_t text_size);
    /*
     * Optional. What else there is to know of the device behind an info, for people: lines of a name, a tab and a value. No
     * lock is held; may be called from any thread; may take milliseconds.
     */
    int (*describe)(const struct ofp_info *info, char *text, size_t text_size);
};

/* ------------------------------------------------------------------------- the core's services for the whole process */

struct ofp_core {
    uint32_t abi;
    uint32_t size; /* of this table in the core that runs */

    /* May be called anywhere, with or without a lock; never on the hot path. printf style. */
    void (*log)(enum ofp_log_level level, const char *provider, const char *format, ...)
        __attribute__((format(printf, 3, 4)));
    /* Value of a declared parameter (environment, configuration file, default), or NULL; valid for ever. */
    const char *(*param_string)(const char *name);
    int64_t (*param_int)(const char *name);
    uint64_t (*param_size)(const char *name); /* understands k, m, g */
    bool (*param_bool)(const char *name);
    /* CLOCK_MONOTONIC, nanoseconds. */
    uint64_t (*now)(void);
    /* The same for two processes only if they share boot and network namespace; a negative errno with a text: not known. */
    int (*host_id)(uint64_t *id, char *text, size_t text_size);

    /*
     * Type MSG. Somebody asks a listener for a connection: `request` is the provider's name for it, not 0, `address` that of
     * the endpoint that asks, `data` what it said (at most OFP_EVENT_DATA_MAX bytes). All are copied. 0: the core owns the
     * request and ends it with `reject`, or by opening an endpoint from it. -ENOBUFS (the backlog is full) or -ENOMEM: the
     * provider refuses it.
     */
    int (*connection_requested)(struct ofp_passive *passive, uint64_t request, const void *address,
                                size_t address_length, const void *data, size_t length);
    /* The end of an access that the endpoint's `remote_access` has allowed. */
    void (*remote_release)(struct ofp_remote_access *access);
    /* One atomic operation on what was accessed: `operand`, `compare` and `result` of access->length bytes. */
    int (*atomic_execute)(const struct ofp_remote_access *access, uint32_t operation_code, uint32_t atomic_op,
                          uint32_t datatype, const void *operand, const void *compare, void *result);

    /* The domain's reactor and timers. */
    int (*watch_add)(struct ofp_domain *domain, struct ofp_watch *watch);
    void (*watch_remove)(struct ofp_domain *domain, struct ofp_watch *watch);
    void (*timer_start)(struct ofp_domain *domain, struct ofp_timer *timer);
    void (*timer_stop)(struct ofp_domain *domain, struct ofp_timer *timer);

    /* A region of the domain, or NULL. */
    struct ofp_region *(*region_by_id)(struct ofp_domain *domain, uint32_t id);

    /*
     * Whether atomic_execute updates elements of this type from `memory` on by the processor's instructions: then whoever has
     * mapped it may, and need not be its owner; the access has no region then. Otherwise it takes locks of this process.
     */
    bool (*atomic_is_direct)(uint32_t datatype, const void *memory);
    /*
     * A sentence, "what happened; what to do", for a failure: the provider_error of a completion, or of the -ENOMEM that the call
     * under way returns in this thread. Any thread, with or without a lock.
     */
    int (*explain)(const char *text);
    /*
     * Something has happened to the device behind a domain, which all of its event queues hear of. `error`: what operations that
     * suffer from it end with, 0: none does.
     */
    void (*device_event)(struct ofp_domain *domain, int error, const char *text);
    /*
     * For a lock of the whole process, from the entry function of a provider or a hook: whoever forks holds it, so that a child finds it
     * free and what it guards whole. Its holder may call the functions of this table; it must not fork.
     */
    void (*hold_in_fork)(pthread_mutex_t *lock);
};

/* The one exported symbol. Returns NULL when `core->abi` is not one it can work with. */
typedef const struct ofp_provider *ofp_provider_entry_fn(const struct ofp_core *core);

#endif
