/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core's public interface: the functions that Python calls. C programs can call them too.
 *
 * Conventions: results are 0 or a negative errno / OFP_E… value unless said otherwise. Any function may be called from
 * any thread (with OFP_THREAD_DOMAIN: from the domain's thread only, -OFP_ETHREAD elsewhere); each acquires the
 * domain's lock itself. In a forked child, calls with the parent's objects return -OFP_EFORKED. Time-outs are
 * nanoseconds, negative: for ever. Functions with `text` write a sentence for the user there when they fail.
 *
 * An object ends in two steps. `retire` cancels its operations, ends the calls of threads that wait in it, and makes
 * every later call return -ECANCELED. `free` frees its memory; call it when no thread can be about to enter a call with
 * the object. `free` ignores an object that was not retired. `close` does both, for callers without other threads.
 *
 * Python reads this file too: declarations, enums and plain integer #defines only.
 */
#ifndef OFIPY_OFP_H
#define OFIPY_OFP_H

#include "ofipy/statistics.h"
#include "ofipy/types.h"

struct ofp_provider;
struct ofp_domain;
struct ofp_endpoint;
struct ofp_cq;
struct ofp_av;
struct ofp_counter;
struct ofp_eq;

/* A request; request.h. 0: none. */
typedef int64_t ofp_request_t;

/* ---------------------------------------------------------------------------------------------------------- library */

/* Load a provider's shared object; a second load of the same name returns the first. */
int ofp_provider_load(const char *path, struct ofp_provider **provider, char *text, size_t text_size);
const char *ofp_provider_name(struct ofp_provider *provider);
const char *ofp_provider_description(struct ofp_provider *provider);
uint32_t ofp_provider_version(struct ofp_provider *provider);
/* Returns the number of infos written, 0 with a reason in `text`, or an error. */
int ofp_provider_getinfo(struct ofp_provider *provider, struct ofp_info *infos, int max, char *text, size_t text_size);
/* The same under a name that begins with the provider's own, as "link:shm+tcp". May include infos of other names. */
int ofp_provider_getinfo_as(struct ofp_provider *provider, const char *name, struct ofp_info *infos, int max,
                            char *text, size_t text_size);
/* Addresses, in the format of the info's transport. */
int ofp_provider_resolve(struct ofp_provider *provider, const struct ofp_info *info, const char *node,
                         const char *service, void *address, size_t *length, char *text, size_t text_size);
int ofp_provider_address_check(struct ofp_provider *provider, const struct ofp_info *info, const void *address,
                               size_t length);
int ofp_provider_address_format(struct ofp_provider *provider, const struct ofp_info *info, const void *address,
                                size_t length, char *text, size_t text_size);
/*
 * Narrow an info to a name or address of this host: what is opened from it uses that address only. -EHOSTUNREACH: the
 * address is not this host's, or not this info's. -EOPNOTSUPP: the provider cannot narrow infos.
 */
int ofp_provider_at_node(struct ofp_provider *provider, struct ofp_info *info, const char *node, char *text,
                         size_t text_size);
/* 0 if endpoints of this info can connect to that address in principle; -EHOSTUNREACH if not, and `text` says why. */
int ofp_provider_reaches(struct ofp_provider *provider, const struct ofp_info *info, const void *address, size_t length,
                         char *text, size_t text_size);
int ofp_provider_describe(struct ofp_provider *provider, const struct ofp_info *info, char *text, size_t text_size);
/* Text of the provider_error of a completion, NULL when there is none. */
const char *ofp_provider_error_text(struct ofp_provider *provider, int provider_error);

/* The sentence for a provider_error from OFP_REASON on. 1: it is in `text`; 0: none is stored. */
int ofp_reason(int provider_error, char *text, size_t text_size);
/* Reason number of this thread's last call that returned -ENOMEM; 0: none. Reading it clears it. */
int ofp_explained(void);
/* English text of an errno or OFP_E… value, either sign. */
const char *ofp_strerror(int error);

/*
 * Two processes get the same number only if they share boot and network namespace, and have the same OFIPY_HOST_ID. A
 * negative errno: boot or namespace cannot be read, and `text` says why.
 */
int ofp_host_id(uint64_t *id, char *text, size_t text_size);

/* Tell readers of the statistics page to which job this process belongs, and its rank there; -1: none. */
void ofp_process_describe(const char *job, int32_t rank);

/* Parameters, declared by core and providers. `set`, for the configuration file, is called before first use. */
struct ofp_param_info {
    const char *name;
    const char *type;
    const char *default_value;
    const char *help;
    const char *range;   /* allowed values: "1 to 16m", "yes or no"; empty: any text */
    const char *value;   /* current value */
    const char *source;  /* "default", "file" or "environment" */
    const char *refused; /* invalid value of the environment, in place of which the default applies; NULL: none */
};
int ofp_param_count(void);
int ofp_param_get(int index, struct ofp_param_info *info);
/* -ENOENT: there is no such parameter; -EINVAL: the value is not in its range. */
int ofp_param_set(const char *name, const char *value);
/* Current value of a declared parameter; NULL: there is none of that name. */
const char *ofp_param_value(const char *name);

/* Log: records are stored in a ring until Python reads them. Returns 1 with a record, 0 when there is none. */
int ofp_log_next(int *level, char *provider, size_t provider_size, char *text, size_t text_size);
int ofp_log_waiting(void); /* nonzero while the ring contains records; cheap */
void ofp_log_set_level(int level);

/* ------------------------------------------------------------------------------------------------------------ hooks */

/* Load a hook's shared object; a second load of the same name has no effect. */
int ofp_hook_load(const char *path, char *text, size_t text_size);
/* Known hooks, by index. -EINVAL: there is none with this index. */
int ofp_hook_count(void);
int ofp_hook_get(int index, const char **name, const char **description);
struct ofp_hook_option_info {
    const char *name;
    const char *type;
    const char *default_value;
    const char *help;
    char range[64]; /* as of parameters */
};
/* -ENOENT: the hook has no option with this index. */
int ofp_hook_option(int index, int option, struct ofp_hook_option_info *info);
/* Check a list of hooks, "trace:file=t.json;fault:fail=0.01". -EINVAL: invalid, and `text` says why. */
int ofp_hooks_check(const char *list, char *text, size_t text_size);
/* How many operations hooks have seen in this process. */
uint64_t ofp_hooks_operations(void);
/*
 * Results of an endpoint's hook, as JSON: writes at most `size` bytes with the zero, returns the length of the whole
 * text. The first hook with this `name` reports. -ENOENT: there is none, -EOPNOTSUPP: it has no results.
 */
int64_t ofp_endpoint_hook_report(struct ofp_endpoint *endpoint, const char *name, char *json, size_t size);

/* ----------------------------------------------------------------------------------------------------------- domain */

struct ofp_domain_attr {
    uint32_t threading; /* OFP_THREAD_… */
    uint32_t progress;  /* OFP_PROGRESS_…: AUTO starts the helper thread */
    /* Hooks of its endpoints: "trace:file=t.json;fault:fail=0.01". Empty: none; NULL: the value of OFIPY_HOOKS. */
    const char *hooks;
};
int ofp_domain_open(struct ofp_provider *provider, const struct ofp_info *info, const struct ofp_domain_attr *attr,
                    struct ofp_domain **domain, char *text, size_t text_size);
/* The domain's info, with the changes of the provider's `open`. Valid while the domain is open. */
const struct ofp_info *ofp_domain_info(const struct ofp_domain *domain);
/* -EBUSY while the domain has objects. Free them first. */
int ofp_domain_close(struct ofp_domain *domain);
int ofp_domain_retire(struct ofp_domain *domain);
void ofp_domain_free(struct ofp_domain *domain);
/* With OFP_THREAD_DOMAIN: bind the domain to the calling thread. */
int ofp_domain_adopt(struct ofp_domain *domain);
/* Make progress on every endpoint of the domain once. Returns the number of events handled. */
int ofp_domain_progress(struct ofp_domain *domain);

/*
 * Query an atomic operation (fi_query_atomic(3)): `operation_code` is OFP_ATOMIC, OFP_FETCH_ATOMIC or
 * OFP_COMPARE_ATOMIC, `atomic_op` is of enum ofp_atomic_op, `datatype` of enum ofp_datatype. 0, with the elements of
 * the longest vector in *count, or -EOPNOTSUPP if the combination is not supported. With OFP_DEVICE_ATOMIC in the
 * operation_code: the atomics that the device executes.
 */
int ofp_atomic_query(struct ofp_domain *domain, uint32_t operation_code, uint32_t atomic_op, uint32_t datatype,
                     uint64_t *count);

/* Flags that an operation may have, and OFP_CAP_… that its endpoint needs; 0 for an unknown code. */
uint32_t ofp_operation_allowed_flags(uint32_t code);
uint64_t ofp_operation_capability(uint32_t code);

/* ---------------------------------------------------------------------------------------------------------- regions */

struct ofp_region_attr {
    void *base; /* of the memory to register; NULL to allocate */
    uint64_t length;
    uint32_t access;  /* OFP_ACCESS_… */
    uint32_t has_key; /* 1: the region gets `key`; 0: a random one */
    uint64_t key;
    /* Counters of peers' reads and writes in the region, atomics included (fi_mr_bind); NULL: not counted. */
    struct ofp_counter *remote_read, *remote_write;
};
/* A registered region. Peers access its byte n by `key` and the offset `remote_base` + n. */
struct ofp_region_handle {
    void *base;
    uint64_t length; /* bytes; whole pages when allocated */
    uint64_t key;    /* 0 without remote access */
    uint64_t remote_base;
    uint32_t id; /* in operation records: its id */
    uint32_t access;
    bool has_ways; /* peers access it over several lanes, which may have their own keys: ofp_region_ways */
};
/* -OFP_ENOKEY: `key` is in use, or the transport assigns its own keys. -EINVAL: a counter of another domain. */
int ofp_region_register(struct ofp_domain *domain, const struct ofp_region_attr *attr,
                        struct ofp_region_handle *region);
/* Allocate and register memory that the provider moves best. It is zeroed. */
int ofp_region_allocate(struct ofp_domain *domain, const struct ofp_region_attr *attr, struct ofp_region_handle *region,
                        char *text, size_t text_size);
/*
 * Peers lose their access: operations that they still have in flight end with an error. Allocated memory is freed.
 * -OFP_ENOREGION: it is closed already. -EBUSY while operations of this process use it.
 */
int ofp_region_close(struct ofp_domain *domain, uint32_t region);

/* ------------------------------------------------------------------------------------------------- completion queue */

struct ofp_cq_attr {
    /* Completions that fit before the queue allocates more memory, up to OFP_COUNT_MAX; 0: default. */
    uint64_t size;
};
int ofp_cq_open(struct ofp_domain *domain, const struct ofp_cq_attr *attr, struct ofp_cq **cq);
/* -EBUSY while an endpoint uses it. */
int ofp_cq_close(struct ofp_cq *cq);
int ofp_cq_retire(struct ofp_cq *cq);
void ofp_cq_free(struct ofp_cq *cq);
/* Make progress, then read up to `max` completions. Returns how many, 0 for none. */
int64_t ofp_cq_read(struct ofp_cq *cq, struct ofp_completion *rows, uint64_t max);
/*
 * Wait until `min` completions are ready (at most `max`), then read up to `max`. Returns how many: fewer than `min`
 * after the time-out; -EINTR on a signal, -ECANCELED after ofp_cq_signal. One call waits at most one second. If it
 * returns fewer than `min` and *expired is false, call again with the remaining time.
 */
int64_t ofp_cq_wait(struct ofp_cq *cq, struct ofp_completion *rows, uint64_t max, uint64_t min, int64_t timeout,
                    bool *expired);
/*
 * Read or wait, with the result in batch->count. A signal handler that raises an exception as the call returns can make
 * a caller lose a return value, but not this count.
 */
struct ofp_cq_batch {
    struct ofp_completion *rows;
    uint64_t size; /* of `rows` */
    int64_t count;
};
void ofp_cq_read_batch(struct ofp_cq *cq, struct ofp_cq_batch *batch);
void ofp_cq_wait_batch(struct ofp_cq *cq, struct ofp_cq_batch *batch, uint64_t min, int64_t timeout, bool *expired);
/* Wake one waiter: one that waits now, or the next one. */
int ofp_cq_signal(struct ofp_cq *cq);
/* The descriptor to sleep on, for select, epoll, asyncio. The queue owns it. */
int ofp_cq_fileno(struct ofp_cq *cq);
/* As fi_trywait(3). 1: it is safe to sleep on the descriptor; 0: completions are ready, read them first. */
int ofp_cq_arm(struct ofp_cq *cq);

/* ----------------------------------------------------------------------------------------------------- event queues */

struct ofp_eq_attr {
    /* Limit of events for ofp_eq_write, at most OFP_COUNT_MAX; the core's own events have none. 0: default. */
    uint64_t size;
};
int ofp_eq_open(struct ofp_domain *domain, const struct ofp_eq_attr *attr, struct ofp_eq **eq);
/* -EBUSY while an endpoint uses it. */
int ofp_eq_close(struct ofp_eq *eq);
int ofp_eq_retire(struct ofp_eq *eq);
void ofp_eq_free(struct ofp_eq *eq);
/* Make progress, then read the oldest event (peek: it stays): 1, or 0 for none. `data`: OFP_EVENT_DATA_MAX bytes. */
int ofp_eq_read(struct ofp_eq *eq, struct ofp_event *event, void *data);
int ofp_eq_peek(struct ofp_eq *eq, struct ofp_event *event, void *data);
/* Wait for an event and read it: 1. 0 and *expired as ofp_cq_wait; -EINTR on a signal. */
int ofp_eq_wait(struct ofp_eq *eq, struct ofp_event *event, void *data, int64_t timeout, bool *expired);
/* The same, but the event stays in the queue. */
int ofp_eq_await(struct ofp_eq *eq, int64_t timeout, bool *expired);
/* Write an event with event->data_length bytes. -EAGAIN: the queue is full. */
int ofp_eq_write(struct ofp_eq *eq, const struct ofp_event *event, const void *data);
/* As ofp_cq_fileno and ofp_cq_arm. */
int ofp_eq_fileno(struct ofp_eq *eq);
int ofp_eq_arm(struct ofp_eq *eq);

/* -------------------------------------------------------------------------------------------------------- counters */

enum ofp_counter_events { OFP_COUNTER_COMPLETIONS = 0, OFP_COUNTER_BYTES = 1 };
/* Classes of operations that an endpoint counts; atomics that fetch are reads, the others writes. */
enum ofp_counter_class {
    OFP_COUNTER_SEND = 0,
    OFP_COUNTER_RECV = 1,
    OFP_COUNTER_READ = 2,
    OFP_COUNTER_WRITE = 3,
    OFP_COUNTER_REMOTE_READ = 4,
    OFP_COUNTER_REMOTE_WRITE = 5
};
#define OFP_COUNTER_CLASSES 6

struct ofp_counter_attr {
    uint32_t events; /* enum ofp_counter_events: what its value counts; the error value always counts operations */
};
int ofp_counter_open(struct ofp_domain *domain, const struct ofp_counter_attr *attr, struct ofp_counter **counter);
/* -EBUSY while an endpoint uses it. Regions that it counts for continue without it. */
int ofp_counter_close(struct ofp_counter *counter);
int ofp_counter_retire(struct ofp_counter *counter);
void ofp_counter_free(struct ofp_counter *counter);
/* Make progress, then read the value. */
int ofp_counter_read(struct ofp_counter *counter, uint64_t *value);
int ofp_counter_read_error(struct ofp_counter *counter, uint64_t *errors);
int ofp_counter_add(struct ofp_counter *counter, uint64_t value);
int ofp_counter_set(struct ofp_counter *counter, uint64_t value);
int ofp_counter_add_error(struct ofp_counter *counter, uint64_t value);
int ofp_counter_set_error(struct ofp_counter *counter, uint64_t value);
/*
 * Wait until the value is at least `threshold` (1), or the error value differs from `errors`, which the caller has read
 * before (2). 0 and *expired as ofp_cq_wait; -EINTR on a signal.
 */
int ofp_counter_wait(struct ofp_counter *counter, uint64_t threshold, uint64_t errors, int64_t timeout, bool *expired);
/*
 * As ofp_cq_fileno and ofp_cq_arm, for the conditions of ofp_counter_wait. 1: it is safe to sleep. The descriptor
 * becomes readable when a condition is true, or progress is due; check then, and arm again. Only one thread may sleep.
 */
int ofp_counter_fileno(struct ofp_counter *counter);
int ofp_counter_arm(struct ofp_counter *counter, uint64_t threshold, uint64_t errors);

/* --------------------------------------------------------------------------------------------------- address vector */

struct ofp_av_attr {
    uint32_t auto_insert; /* 1: insert the address of each unknown sender */
};
int ofp_av_open(struct ofp_domain *domain, const struct ofp_av_attr *attr, struct ofp_av **av);
/* -EBUSY while an endpoint uses it. */
int ofp_av_close(struct ofp_av *av);
int ofp_av_retire(struct ofp_av *av);
void ofp_av_free(struct ofp_av *av);
/* Insert an address if it is new, and return its index. An index is refused after its removal. -OFP_EEXHAUSTED. */
int ofp_av_insert(struct ofp_av *av, const void *address, size_t length, uint32_t *index);
int ofp_av_remove(struct ofp_av *av, uint32_t index);
int ofp_av_lookup(struct ofp_av *av, uint32_t index, void *address, size_t *length);
/* Index of a known address, -ENOENT otherwise. */
int ofp_av_find(struct ofp_av *av, const void *address, size_t length, uint32_t *index);
uint32_t ofp_av_count(struct ofp_av *av);
/* Iterate, from *cursor = 0 on: the next index in use; -ENOENT: there is none. The vector may change meanwhile. */
int ofp_av_next(struct ofp_av *av, uint32_t *cursor, uint32_t *index);

/* ----------------------------------------------------------------------------------------------------------- roster */

/*
 * The ranks of a job, and which of their processes have ended. Endpoints that follow the roster end sends to such a
 * rank, and receives that name it, with OFP_EPEERLEFT or OFP_EPEERDIED, after what it sent before was received.
 */
struct ofp_roster;
int ofp_roster_open(uint32_t size, struct ofp_roster **roster);
/* Endpoints that follow it continue, without further reports. */
void ofp_roster_close(struct ofp_roster *roster);
/* The process of this rank has ended; only the first report of a rank counts. Any thread, without a domain's lock. */
int ofp_roster_depart(struct ofp_roster *roster, uint32_t rank, bool died);
/*
 * The endpoint follows the roster from now on, and learns of earlier departures too. `peers`: indices of its vector, by
 * rank. `waits`: if a peer's process has ended, receives that name it wait up to a second for the roster to report how
 * it ended. Set it to false for an endpoint that itself serves to find that out.
 */
int ofp_roster_follow(struct ofp_roster *roster, struct ofp_endpoint *endpoint, const uint32_t *peers, bool waits);

/* --------------------------------------------------------------------------------------------------------- endpoint */

#define OFP_SELECTIVE_TRANSMIT 1
#define OFP_SELECTIVE_RECEIVE 2

struct ofp_endpoint_attr {
    struct ofp_cq *tx_cq;
    struct ofp_cq *rx_cq;
    struct ofp_av *av;               /* NULL for endpoints of type MSG: they have one peer */
    struct ofp_endpoint *rx_context; /* of ofp_receive_context_open: receives are posted there; NULL: to the endpoint */
    const char *service;             /* NULL: any address */
    /* Type MSG, instead of `service`: the service of a closed listener, as in its formatted address. NULL: none. */
    const char *listener_service;
    uint64_t tx_flags; /* default flags of sends: OFP_INJECT, OFP_COMPLETION, OFP_TRANSMIT_COMPLETE … */
    uint64_t rx_flags; /* of posted receives: OFP_COMPLETION, OFP_MULTI_RECV */
    /* Up to OFP_COUNT_MAX and OFP_BYTES_MAX. */
    uint64_t tx_size;              /* 0: the info's */
    uint64_t unexpected_limit;     /* bound on unexpected messages, bytes; 0: default */
    uint64_t min_multi_recv;       /* release a multi-receive buffer when less space is left; bytes, 0: default */
    uint32_t selective_completion; /* OFP_SELECTIVE_…: only operations with OFP_COMPLETION write queue entries */
    uint32_t remote_events;        /* 1: peers' reads and writes enter rx_cq, also without remote CQ data */
    struct ofp_counter *counters[OFP_COUNTER_CLASSES]; /* by enum ofp_counter_class; NULL: not counted */
    struct ofp_eq *eq;                                 /* receives events of its peers; may be NULL */
    uint64_t request; /* type MSG: handle of the connection request to accept; 0: for ofp_connect */
    /* OFP_TRAFFIC_CLASS | 0 to 255: of the packets that it sends; 0: the system's. -EOPNOTSUPP: cannot be chosen. */
    uint32_t traffic_class;
};
/*
 * Open and enable: peers can connect to the endpoint when this returns; for type MSG, ofp_connect or ofp_accept may be
 * called. -ENOENT: there is no such connection request, or it was answered.
 */
int ofp_endpoint_open(struct ofp_domain *domain, const struct ofp_endpoint_attr *attr, struct ofp_endpoint **endpoint,
                      char *text, size_t text_size);
/* Operations in flight end as ECANCELED. Blocks for at most `timeout`. -EBUSY while the endpoint has aliases. */
int ofp_endpoint_close(struct ofp_endpoint *endpoint, int64_t timeout);
int ofp_endpoint_retire(struct ofp_endpoint *endpoint, int64_t timeout);
/*
 * Free a retired endpoint. Requests of its receives that have a message, claimed or not, still read it: abandon, discard
 * or accept them before.
 */
void ofp_endpoint_free(struct ofp_endpoint *endpoint);

/*
 * Linger: before an endpoint is closed, wait until posted operations have left. An operation has left when a live peer
 * that keeps its endpoint open receives it without this process. Make progress and call ofp_endpoint_linger until it
 * returns 0 or time is over, then ofp_endpoint_drain likewise, then ofp_endpoint_retire, which ends the rest with
 * ECANCELED, then ofp_endpoint_unsent. Several endpoints can linger at the same time. docs/explanation/linger.md
 */
/*
 * `refuse`: refuse operations with ECANCELED from now on. 1: sends, writes or atomics to peers that are up or
 * connecting, or due deferred ones, have not left; 0: all have.
 */
int ofp_endpoint_linger(struct ofp_endpoint *endpoint, uint32_t refuse);
/* Empty the transport's own queues and send goodbyes to the peers. 1: not done yet; 0: done. */
int ofp_endpoint_drain(struct ofp_endpoint *endpoint);

/* Sends, writes and atomics that have not left. */
struct ofp_unsent {
    uint64_t count;
    uint64_t operations; /* a bit 1 << enum ofp_operation_code for each kind among them */
    uint64_t peers;      /* peers for ofp_endpoint_unsent_peer; before retiring only those of failed operations */
};
/*
 * Operations that failed since ofp_endpoint_linger, and those that have not left yet; after ofp_endpoint_retire all
 * that it ended. -ENOLCK: another thread holds the domain's lock; this call never waits.
 */
int ofp_endpoint_unsent(struct ofp_endpoint *endpoint, struct ofp_unsent *unsent);
/* Address of one of their peers, numbered from 0, after ofp_endpoint_retire; *length in: space, out: size. */
int ofp_endpoint_unsent_peer(const struct ofp_endpoint *endpoint, uint64_t number, void *address, size_t *length);

int ofp_endpoint_address(struct ofp_endpoint *endpoint, void *address, size_t *length);
/* Further addresses of the endpoint, numbered from 0. -ENOENT: there is no such number. */
int ofp_endpoint_address_also(struct ofp_endpoint *endpoint, uint32_t number, void *address, size_t *length);
/* OFP_IDENTITY_SIZE random bytes, constant. Every endpoint has its own, even one that has the same address later. */
void ofp_endpoint_identity(struct ofp_endpoint *endpoint, uint8_t *identity);
uint32_t ofp_endpoint_id(struct ofp_endpoint *endpoint);
/*
 * Create another handle of an endpoint, with its own default flags (fi_ep_alias), for operations that are posted,
 * prepared, started or deferred through it. All else is shared: queues, peers, options other than "tx_flags" and
 * "rx_flags", address, id, statistics. Connections (connect.h) need the endpoint itself: -EOPNOTSUPP. Retiring an alias
 * does not change the endpoint, nor operations that were started through the alias. The endpoint returns -EBUSY while
 * it has aliases. -EINVAL: flags that cannot be defaults; -EOPNOTSUPP: a receive context.
 */
int ofp_endpoint_alias(struct ofp_endpoint *endpoint, uint64_t tx_flags, uint64_t rx_flags,
                       struct ofp_endpoint **alias);
/*
 * A receive context that several endpoints share (fi_srx_context). Receives posted to it match messages of all of them,
 * and complete at the endpoint where the message arrived. It is used like an endpoint without sends: ofp_post,
 * ofp_cancel, ofp_request_start, options, statistics. Receives that end without a message complete in its own queue.
 * All endpoints use the same address vector. -EOPNOTSUPP if the transport matches receives itself.
 */
struct ofp_receive_context_attr {
    struct ofp_cq *cq;
    struct ofp_av *av;         /* NULL for endpoints of type MSG */
    uint64_t unexpected_limit; /* bound on unexpected messages of all endpoints together, bytes */
    uint64_t min_multi_recv;
};
int ofp_receive_context_open(struct ofp_domain *domain, const struct ofp_receive_context_attr *attr,
                             struct ofp_endpoint **context);
/* -EBUSY while an endpoint uses it. Posted receives end with ECANCELED. Free it with ofp_endpoint_free. */
int ofp_receive_context_retire(struct ofp_endpoint *context);
int ofp_receive_context_close(struct ofp_endpoint *context);
/*
 * Options by name (fi_endpoint(3), fi_getopt): "min_multi_recv", "tx_size", "tx_flags", "rx_flags"; read only are
 * "inject_size", "max_msg_size", "max_rma_size", "max_atomic_size", "rx_size". A new value applies to later operations.
 * -ENOPROTOOPT: this endpoint has no such option, -EPERM: it is read only, -EINVAL: invalid value.
 */
int ofp_endpoint_option_get(struct ofp_endpoint *endpoint, const char *name, uint64_t *value);
int ofp_endpoint_option_set(struct ofp_endpoint *endpoint, const char *name, uint64_t value);

/*
 * Post `count` records. Returns how many were accepted, always a prefix; a negative error only if none was. -EAGAIN:
 * the transmit queue is full. The transport is flushed at the end of the batch.
 */
int64_t ofp_post(struct ofp_endpoint *endpoint, const struct ofp_operation *operations, uint64_t count);
/*
 * Cancel the newest operation with this context; it completes with ECANCELED. -ENOENT: none can be cancelled.
 * -EINPROGRESS: the transport was requested to cancel it, and the completion says whether it did.
 */
int ofp_cancel(struct ofp_endpoint *endpoint, uint64_t context);

int ofp_endpoint_statistics(struct ofp_endpoint *endpoint, struct ofp_endpoint_statistics *statistics);

/* ---------------------------------------------------------------------------------------------------- deferred work */

/*
 * As ofp_post, but each record is posted when the counter has reached the threshold: in the order of thresholds, then
 * of calls. The record, its arrays and injected payload are copied, a layout is not. Records with OFP_PEEK, OFP_CLAIM,
 * OFP_HOLD or OFP_MULTI_RECV are refused. A record that fails later, or is cancelled, has an error completion with its context.
 */
int64_t ofp_post_after(struct ofp_endpoint *endpoint, const struct ofp_operation *operations, uint64_t count,
                       struct ofp_counter *counter, uint64_t threshold);

enum ofp_work_kind { OFP_WORK_OPERATION = 0, OFP_WORK_COUNTER_ADD = 1, OFP_WORK_COUNTER_SET = 2, OFP_WORK_REDUCE = 3 };
/*
 * A reduction changes local memory: target[i] = target[i] op source[i], each element atomically, as an atomic of
 * `atomic_op` and `datatype`. The source is the record's local segment (OFP_ACCESS_WRITE); the target, of the same
 * length, is at result_region and result_offset (OFP_ACCESS_READ). They are the same memory or do not overlap. A
 * reduction has no completion and runs with the domain's lock held, when it becomes due.
 */
struct ofp_deferred_work {
    uint32_t kind;               /* enum ofp_work_kind */
    struct ofp_counter *counter; /* starts it on reaching `threshold` */
    uint64_t threshold;
    /* Operation and reduction: gets 1 at success, 1 error at failure; NULL: none. Else: the counter to change. */
    struct ofp_counter *target;
    uint64_t value;                 /* added to the target, or set */
    struct ofp_operation operation; /* for an operation, its `endpoint` names an endpoint of the domain */
};
int ofp_work_queue(struct ofp_domain *domain, const struct ofp_deferred_work *work, uint64_t *id);
/*
 * Cancel work before it starts, an operation with ECANCELED. -ENOENT: it has started. Closing a counter cancels the
 * work that waits for the counter or would change it; an operation whose `target` it is continues.
 */
int ofp_work_cancel(struct ofp_domain *domain, uint64_t id);
/* Cancel all work of the domain that has not started. Returns how many. */
int64_t ofp_work_flush(struct ofp_domain *domain);

#endif
