/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface between the core and a provider.
 *
 * A provider is a shared object that exports one function, `ofp_provider_entry`. The core calls it once, passes the
 * table of its own services, and receives the provider's table. Neither is linked against the other: all calls go
 * through these tables.
 *
 * Rules for every entry, unless the entry says otherwise:
 * - The core calls it with the domain's lock held. The provider calls the core's services with that lock held. A
 *   provider needs no lock of its own for this, and must not block.
 * - Results are 0 or a negative errno / OFP_E… value.
 * - Memory that a peer can write is copied, then checked, then used.
 * - An optional entry may be NULL. The core then returns -EOPNOTSUPP, or uses the default that the entry names.
 */
#ifndef OFIPY_PROVIDER_H
#define OFIPY_PROVIDER_H

#include <pthread.h>
#include <stddef.h>

#include "ofipy/objects.h"
#include "ofipy/operation.h"

/*
 * Within a major version (OFP_PROVIDER_ABI in types.h) two kinds of structures can grow at their end: those that the core
 * allocates (endpoint, peer, domain, region, pending, receive), and the tables, whose first members give their size.
 * Structures that a provider allocates never grow (message, remote access, watch, timer, offloaded, and transfer, which
 * is a member of others); they have spare words instead.
 *
 * A provider that is built with these headers may run in an older core of the same major version. It checks each service
 * that was added since 4.0 before the first call: OFP_CORE_HAS(core, hold_in_fork).
 */
#define OFP_CORE_HAS(core, service)                                                                                    \
    ((core)->size >= offsetof(struct ofp_core, service) + sizeof((core)->service) && (core)->service)

struct ofp_core;

enum ofp_log_level { OFP_LOG_DEBUG = 10, OFP_LOG_INFO = 20, OFP_LOG_WARNING = 30, OFP_LOG_ERROR = 40 };

/*
 * A fraction is between 0 and 1. A time is written with its unit, "100us", and is stored in nanoseconds. The value of
 * an OFP_PARAM_ALWAYS is that of a bool, or 2 for the text `always`.
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
 * A parameter `OFIPY_<NAME>`, declared once. All strings are literals of the provider or hook that declares it. The
 * core checks the bounds of numbers for values from the environment and from the configuration file, so the results of
 * core->param_int and core->param_size are always within them.
 */
struct ofp_param {
    const char *name; /* upper case, e.g. "SHM_INLINE_SIZE" */
    enum ofp_param_type type;
    const char *default_value;
    const char *help;
    int64_t least, most; /* inclusive bounds of OFP_PARAM_SIZE, OFP_PARAM_INT and OFP_PARAM_TIME */
};

/* ------------------------------------------------------------------------------------------------ provider's tables */

struct ofp_domain_ops {
    /* Size of this table in the header that the provider was built with. Every table here has such a member. */
    uint32_t size;
    size_t domain_size; /* of struct ofp_domain.private */
    /*
     * Acquire the resources that the domain's endpoints share. May block briefly: no lock is held, since no other
     * thread knows the domain yet. On failure write the reason into `text`.
     */
    int (*open)(struct ofp_domain *domain, char *text, size_t text_size);
    /* The core calls this after every endpoint and region of the domain was closed. Must not fail. */
    void (*close)(struct ofp_domain *domain);
    /*
     * Optional. Register memory with a device, and deregister it. Called WITHOUT the lock, because pinning can take
     * long; no other thread uses the region at that time. `region_open` may replace `key` and set `remote_base`. With
     * `key_fixed` it must leave both as they are, and the core carries out the peers' accesses. After an error the
     * device must know nothing of the region.
     */
    int (*region_open)(struct ofp_domain *domain, struct ofp_region *region);
    void (*region_close)(struct ofp_domain *domain, struct ofp_region *region);
    /*
     * Optional. Start and end direct access of peers to a region. `region_withdraw` returns -EAGAIN while a peer's
     * access is in progress; the core then makes progress and calls it again.
     */
    int (*region_publish)(struct ofp_domain *domain, struct ofp_region *region);
    int (*region_withdraw)(struct ofp_domain *domain, struct ofp_region *region);
    /*
     * Optional; default: anonymous memory. Allocate memory that the transport moves best: set region->base.
     * region->length is set already, and a multiple of the page size. -ENOMEM if the machine does not have that memory;
     * `text` then says what the user can do.
     */
    int (*memory_allocate)(struct ofp_domain *domain, struct ofp_region *region, char *text, size_t text_size);
    void (*memory_free)(struct ofp_domain *domain, struct ofp_region *region);
    /*
     * Mandatory with domain->keeps_above. The owner of this memory is about to free it. Deregister everything that is
     * registered of it before this returns: the addresses may belong to other memory afterwards. No operation uses the
     * memory. With NULL in place of a region, memory is short: drop all cached registrations that no operation uses.
     */
    void (*region_disowned)(struct ofp_domain *domain, struct ofp_region *region);
};

/* Relation between a known and a given address that have a key in common (address_key). */
enum ofp_address_relation {
    OFP_ADDRESS_OTHER, /* of different endpoints */
    OFP_ADDRESS_SAME,
    OFP_ADDRESS_BETTER /* of the same endpoint; the given address is as complete as the known one, or more complete */
};

/* Results of `post`. */
#define OFP_POST_DONE 1    /* finished within the call: the buffer is reusable, the core completes the operation */
#define OFP_POST_BOUNCED 2 /* the same, of a message whose payload travels by OFP_PROTOCOL_BOUNCE */
#define OFP_POST_PENDING 0 /* the provider called transfer_retain and will call transfer_complete */

struct ofp_endpoint_ops {
    uint32_t size;
    size_t endpoint_size; /* of struct ofp_endpoint.private */
    size_t peer_size;     /* of struct ofp_peer.private */
    /*
     * Bind to an address. `service` is a port number as text, or NULL for any; the core has already translated a name
     * that the user wrote into a port number. A provider without ports uses its own form of service, which begins with
     * '~' (no name does). On failure write the reason into `text`. May block briefly.
     *
     * Type MSG: peers never connect to this address; it is only the source address of the endpoint's connection. It may
     * be the address of a closed listener: `service` is then the part behind the last ':' of the text that
     * address_format wrote for that listener. If endpoint->request is set, the connection of that request passes from
     * the listener to the endpoint when this returns 0: `accept` accepts it, and `close` without `accept` rejects it.
     * The requester may have ended meanwhile; `accept` then reports that.
     */
    int (*open)(struct ofp_endpoint *endpoint, const char *service, char *text, size_t text_size);
    /*
     * Optional. Called repeatedly before `close`, until it returns 0 or the deadline has passed. Send what was accepted
     * for sending, then send the goodbyes. -EAGAIN: something is still in flight; the core makes progress, and releases
     * the lock between calls.
     */
    int (*drain)(struct ofp_endpoint *endpoint);
    /*
     * Close the endpoint and notify its peers. After this returns no operation of the endpoint may be in flight at the
     * transport; the core then completes all pending operations with ECANCELED. May block until `deadline`
     * (CLOCK_MONOTONIC, ns).
     */
    void (*close)(struct ofp_endpoint *endpoint, uint64_t deadline);
    /*
     * Write the endpoint's own address. *length is the size of the buffer on entry, and that of the address on return.
     */
    int (*name)(struct ofp_endpoint *endpoint, void *address, size_t *length);

    /*
     * Start to connect to a peer, which is in state CONNECTING. The attempt ends with a later call of peer_up,
     * peer_absent, peer_deferred or peer_lost. The core treats an error return as peer_lost with that error, and -ECONNREFUSED as
     * peer_absent. The core calls this for the first operation to a peer, for the first operation after the peer was
     * lost, and again while the peer is absent.
     *
     * Type MSG: ofp_connect calls this, once. peer->address is the address of a listener, which receives
     * peer->private_data. The provider passes the private data of the listener's answer to connection_answered, before
     * it calls peer_up (accepted) or peer_lost with ECONNREFUSED (rejected).
     */
    int (*connect)(struct ofp_peer *peer, char *text, size_t text_size);
    /*
     * Mandatory for type MSG: accept the connection request that the endpoint was opened from, and send private data
     * with the answer. Called once, in state CONNECTING. Ends, now or later, in peer_up as soon as data may be sent, or
     * in peer_lost, as `connect` does.
     */
    int (*accept)(struct ofp_peer *peer, const void *data, size_t length);
    /*
     * Type MSG, optional; default: peer_lost at once. Begin the orderly end of a connection in state UP: send what was
     * posted (the core's backlog is empty, and nothing more is posted), notify the other side, then call peer_lost with
     * error 0. The provider of the other side calls peer_lost with ESHUTDOWN, and uses that error for an orderly end
     * only.
     */
    int (*shutdown)(struct ofp_peer *peer);
    /*
     * The peer is leaving state UP or CONNECTING: release the private state. The core then fails the pending
     * operations.
     */
    void (*peer_down)(struct ofp_peer *peer);
    /*
     * Optional, for transports with an address table of their own. The core has created a peer object (state UNUSED),
     * or is about to free it. With `eager_peers` the core creates peer objects as soon as an address is inserted into
     * the vector, so that the provider can find the sender of a message that arrives.
     */
    int (*peer_open)(struct ofp_peer *peer);
    void (*peer_close)(struct ofp_peer *peer);
    bool eager_peers;
    /*
     * The provider also carries messages of OFP_CHANNEL_INTERNAL, and delivers them with that channel. `post` returns
     * -EOPNOTSUPP if the peer does not support the channel. Their tags have OFP_INTERNAL_TAG_BITS bits. False: the core
     * refuses such operations.
     */
    bool internal_channel;

    /*
     * Start one send-like operation to a peer in state UP. Returns
     *   OFP_POST_DONE, OFP_POST_BOUNCED, OFP_POST_PENDING,
     *   -EAGAIN: no space now; the core stores the operation and posts it again from progress, in order for each peer,
     *   another error: the operation is refused; nothing was sent.
     *
     * With `offloads_matching` receives are posted here too; `peer` is NULL for a receive from any source. A receive
     * with OFP_PEEK, whatever its other flags, only reports the first unexpected message that matches, or ENOMSG, by
     * offloaded_receive_complete; the core claims or drops the message by another receive. Return -EOPNOTSUPP if the
     * transport cannot peek.
     *
     * OFP_INJECT: the memory is valid during the call only. OFP_MORE: the provider may delay the operation until a
     * later post or `flush`. OFP_DELIVERY_COMPLETE of a message: complete the operation when the payload is in the
     * target's memory, in that of a receive or of an unexpected message. The target must make progress for that. If the
     * target has reached its bound on unexpected messages, the operation completes only after a receive has matched the
     * message.
     */
    int (*post)(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer);
    /* Optional. End of a batch: submit what was delayed because of OFP_MORE, or until this call by flush_later. */
    void (*flush)(struct ofp_endpoint *endpoint);

    /*
     * Only without `offloads_matching`: move the payload of an announced message, receive->length bytes into
     * receive->iov. Notify the sender, then call receive_complete, now or later. With length 0 move nothing, but notify
     * the sender.
     */
    void (*receive_start)(struct ofp_endpoint *endpoint, struct ofp_receive *receive);

    /*
     * Only with `offloads_matching`: cancel a posted receive. 0: the transport has removed it; -ENOENT: too late;
     * -EINPROGRESS: the transport was requested to cancel it, and a completion follows, cancelled or not.
     */
    int (*cancel)(struct ofp_endpoint *endpoint, struct ofp_pending *pending);

    /*
     * Poll for events, in memory or by one system call, and handle a bounded number of them. Returns how many it
     * handled.
     */
    int (*progress)(struct ofp_endpoint *endpoint);
    /*
     * Before a thread sleeps: arrange that arrivals make one of the watched descriptors readable. False: events are
     * ready already, and the thread must not sleep. `disarm` ends this; it must be cheap, and may be called when
     * nothing is armed.
     */
    bool (*arm)(struct ofp_endpoint *endpoint);
    void (*disarm)(struct ofp_endpoint *endpoint);

    /*
     * Optional. Further addresses of the endpoint, besides that of `name`, numbered from 0. -ENOENT: there is no such
     * number.
     */
    int (*name_also)(struct ofp_endpoint *endpoint, uint32_t number, void *address, size_t *length);

    /*
     * True: the core zeroes a peer's `private` only when it creates the peer. The content stays when the peer was lost
     * and connects again.
     */
    bool peers_persist;
    /*
     * Mandatory with the provider's `address_key`. The peer, in any state, was inserted again with a more complete
     * address, which peer->address is now.
     */
    void (*peer_readdressed)(struct ofp_peer *peer);
    /*
     * Optional; default: none. Returns how many completed operations to this peer are still in a queue of the
     * provider's, or in a socket whose closing would reset the connection. The core calls this before `close` if
     * `drain` did not finish in time.
     */
    uint64_t (*unsent)(const struct ofp_peer *peer);
    /*
     * Optional, for transports where one endpoint has several addresses; default: the address that a peer was inserted
     * with equals the `name` of its endpoint. Returns the OFP_IDENTITY_SIZE bytes of `identity` of the peer's endpoint,
     * valid until the next call of `progress`. NULL before `peer_up`, and if the peer does not send its identity.
     */
    const uint8_t *(*peer_identity)(const struct ofp_peer *peer);
    /*
     * Optional; default: false, a write or an atomic completes when its bytes are in the peer's memory. True if one of
     * this peer has completed that may not be there, and that no write with OFP_DELIVERY_COMPLETE was posted behind:
     * `there` is then its place. The core posts such a write of no bytes to that place, and takes its completion as the
     * proof that everything before it has arrived.
     */
    bool (*needs_flush)(const struct ofp_peer *peer, struct ofp_remote_segment *there);
    /*
     * Optional; default: false, the core packs the memory of a layout into one buffer, and unpacks it. True: `post` and
     * `receive_start` also get operations and receives whose iov_count is OFP_LAYOUT. `post` may return -E2BIG for one
     * that this peer's transport cannot move; the core then packs it and posts it again.
     */
    bool moves_layouts;
    /*
     * Optional; default: false, the core refuses endpoints with a traffic class. True: `open` applies
     * endpoint->traffic_class to all packets that the endpoint sends, as far as the operating system allows.
     */
    bool marks_packets;
    /*
     * Optional, with `internal_channel`; default: nothing to do. The endpoint is about to have a group, its first one or
     * another: prepare for messages of OFP_CHANNEL_INTERNAL. Returns 0; -EBUSY if a posted receive would get such
     * messages; or -EOPNOTSUPP, with the reason in the log, if this device or library cannot carry them.
     */
    int (*internal_channel_open)(struct ofp_endpoint *endpoint);
    /*
     * Optional, for endpoints over several lanes: the peer as the lane sees it that carries its messages, or would carry
     * them. NULL: none does.
     */
    const struct ofp_peer *(*peer_lane)(const struct ofp_peer *peer);
    /*
     * Optional; default: EAGER. How a message to or from this peer, in state UP, would travel now: what the functions
     * decide that `post` and `receive_start` call for it. False: this side does not choose.
     */
    bool (*protocol_choose)(const struct ofp_peer *peer, const struct ofp_protocol_query *query,
                            struct ofp_protocol_choice *choice);
};

/*
 * Listeners, for endpoints of type MSG. There is no `progress` entry: a listener works through watches and timers of
 * the domain.
 */
struct ofp_passive_ops {
    uint32_t size;
    size_t passive_size; /* of struct ofp_passive.private */
    /* Bind to an address, as `open` of an endpoint does. No connection request is accepted before `listen`. */
    int (*open)(struct ofp_passive *passive, const char *service, char *text, size_t text_size);
    /*
     * The address that peers connect to. *length is the size of the buffer on entry, and that of the address on return.
     */
    int (*name)(struct ofp_passive *passive, void *address, size_t *length);
    /*
     * Accept connection requests from now on, and pass each one to core->connection_requested when all of it was read.
     * Until then the provider is responsible for it, and limits the number of such requests and the time that each may
     * take. `backlog`: the number of unanswered requests that the core stores.
     */
    int (*listen)(struct ofp_passive *passive, uint32_t backlog);
    /*
     * Reject a request that core->connection_requested has accepted: the other side's connection is lost with
     * ECONNREFUSED and receives these private data. The request is freed, whatever this returns.
     */
    int (*reject)(struct ofp_passive *passive, uint64_t request, const void *data, size_t length);
    /*
     * Close the listener, and reject requests that were read in part. The core has already rejected the unanswered
     * ones. Requests from which endpoints were opened belong to those endpoints and continue. Must not fail.
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
     * Fill up to `max` infos, best first; returns how many. If the provider cannot run here, return 0 and write into
     * `text` why, and what the user can do. With a `text_size` of 1 the caller does not read the text, so the provider
     * need not find out the reason. No lock is held; may be called from any thread; may take milliseconds.
     */
    int (*getinfo)(struct ofp_info *infos, int max, char *text, size_t text_size);
    /*
     * Translate what a user writes into the address of a peer. `node` is a host name, or NULL for this host; `service`
     * is a port number, or the provider's own form of service. -EHOSTUNREACH with a text if this provider cannot reach
     * that host. `info` is one of the provider's own, for providers with several transports. No lock is held; may block
     * in name resolution.
     */
    int (*resolve)(const struct ofp_info *info, const char *node, const char *service, void *address, size_t *length,
                   char *text, size_t text_size);
    /*
     * Check whether an address that comes from outside is well formed: 0 if it is. In this entry and the next one `info`
     * is NULL if the provider has returned no info, as when there was no memory for one.
     */
    int (*address_check)(const struct ofp_info *info, const void *address, size_t length);
    /* The address as the part of a URI behind "<name>://", zero-terminated. */
    int (*address_format)(const struct ofp_info *info, const void *address, size_t length, char *text,
                          size_t text_size);
    /*
     * Optional; without it the core refuses programs that name a node. Narrow an info to a name or address of this
     * host: endpoints and listeners that are opened from it then use that address only. -EHOSTUNREACH with a text if
     * the node is not an address of this host, or of this info. No lock is held; may block in name resolution.
     */
    int (*at_node)(struct ofp_info *info, const char *node, char *text, size_t text_size);
    /*
     * Optional; default: always 0. Returns 0 if endpoints of this info can connect to a well-formed address in
     * principle, or -EHOSTUNREACH with a text, for example for another address family. The result does not say whether
     * an endpoint exists at that address. Any thread, no lock; does not block.
     */
    int (*reaches)(const struct ofp_info *info, const void *address, size_t length, char *text, size_t text_size);
    /*
     * Optional; default, also by the result -ENOSYS: what the core's executor supports. The largest vector, in
     * elements, of an atomic operation towards peers, or -EOPNOTSUPP. An operation_code with the bit OFP_DEVICE_ATOMIC
     * queries the atomics of the device; with that capability the entry is mandatory. Any thread, no lock.
     */
    int (*atomic_query)(const struct ofp_info *info, uint32_t operation_code, uint32_t atomic_op, uint32_t datatype,
                        uint64_t *count);
    /*
     * Optional. English text of a provider_error in a completion; a static string. Any thread, no lock. If a provider
     * reports codes of the peer's core->remote_access unchanged, return NULL for them: the core has their texts.
     */
    const char *(*error_text)(int provider_error);
    const struct ofp_domain_ops *domain_ops; /* NULL: every entry is its default */
    /* One table per kind of endpoint, chosen by the info the domain was opened with. */
    const struct ofp_endpoint_ops *(*endpoint_ops)(const struct ofp_info *info);
    /* Only with infos of type MSG, and mandatory for those. */
    const struct ofp_passive_ops *passive_ops;
    /*
     * Optional; default: one key, the whole address. The keys by which a well-formed address is found, which are parts
     * of it, numbered from 0. NULL: there is no such number. Any thread, no lock.
     */
    const void *(*address_key)(const void *address, size_t *length, uint32_t number);
    /*
     * Mandatory with address_key: the relation of a given address to a known one with which it has a key in common. Any
     * thread, no lock.
     */
    enum ofp_address_relation (*address_relation)(const void *known, size_t known_length, const void *given,
                                                  size_t given_length);
    /*
     * Optional; default: those infos of `getinfo` whose `provider` is `name`. The same as `getinfo` under a name that
     * begins with the provider's own, as "link:shm+tcp".
     */
    int (*getinfo_as)(const char *name, struct ofp_info *infos, int max, char *text, size_t text_size);
    /*
     * Optional. Further properties of the device behind an info, for users: one line each, with name, tab and value. No
     * lock is held; may be called from any thread; may take milliseconds.
     */
    int (*describe)(const struct ofp_info *info, char *text, size_t text_size);
};

/* ------------------------------------------------------------------------ the core's services for the whole process */

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
    /*
     * Two processes get the same id only if they share boot and network namespace. A negative errno with a text: the id
     * is not known.
     */
    int (*host_id)(uint64_t *id, char *text, size_t text_size);

    /*
     * Type MSG. A listener has received a connection request. `request` is the provider's number of it, not 0;
     * `address` is that of the requesting endpoint; `data` is its private data (at most OFP_EVENT_DATA_MAX bytes). The
     * core copies all of them. 0: the core owns the request and ends it by `reject`, or by opening an endpoint from it.
     * -ENOBUFS (the backlog is full) or -ENOMEM: the provider rejects the request.
     */
    int (*connection_requested)(struct ofp_passive *passive, uint64_t request, const void *address,
                                size_t address_length, const void *data, size_t length);
    /* End an access that the endpoint's `remote_access` has allowed. */
    void (*remote_release)(struct ofp_remote_access *access);
    /*
     * Execute one atomic operation on the accessed memory. `operand`, `compare` and `result` have access->length bytes
     * each.
     */
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
     * True if atomic_execute updates elements of this type, from `memory` on, with the processor's atomic instructions.
     * Any process that has mapped the memory may then execute the operation; its access has no region. False:
     * atomic_execute uses locks of this process, so only the process that owns the memory may call it.
     */
    bool (*atomic_is_direct)(uint32_t datatype, const void *memory);
    /*
     * Store a sentence about a failure, "what happened; what to do". The result is the provider_error of a completion.
     * If the current call in this thread returns -ENOMEM, the sentence also explains that. Any thread, with or without
     * a lock.
     */
    int (*explain)(const char *text);
    /*
     * The state of the device behind a domain has changed; all event queues of the domain receive an event. `error`:
     * the error with which affected operations end; 0: no operation is affected.
     */
    void (*device_event)(struct ofp_domain *domain, int error, const char *text);
    /*
     * Register a lock of the whole process; call it from the entry function of a provider or a hook. A thread that
     * forks acquires the lock before, so that the child finds it free and the data that it guards consistent. The
     * holder of the lock may call the functions of this table, and must not fork.
     */
    void (*hold_in_fork)(pthread_mutex_t *lock);
};

/* The one exported symbol. Returns NULL if the provider cannot work with `core->abi`. */
typedef const struct ofp_provider *ofp_provider_entry_fn(const struct ofp_core *core);

#endif
