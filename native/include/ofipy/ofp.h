/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core's public interface: what Python calls, and a C program could.
 *
 * Conventions: results are 0 or a negative errno / OFP_E… value unless said otherwise. Any function may be called from any
 * thread (with OFP_THREAD_DOMAIN: from the domain's thread only, -OFP_ETHREAD elsewhere); each takes the domain's lock
 * itself. In a forked child every object of the parent answers -OFP_EFORKED. Time-outs are nanoseconds, negative:
 * for ever. Functions that take `text` write a sentence for the user there when they fail.
 *
 * The end of an object has two steps. `retire` ends it: operations are cancelled, threads that wait in it leave, and every
 * later call answers -ECANCELED. `free` gives its memory back, once no thread can be on its way into a call with it; it leaves
 * alone what was not retired. `close` is both, for callers without other threads.
 *
 * Python reads this file too: declarations, enums and plain integer #defines only.
 */
#ifndef OFIPY_OFP_H
#define OFIPY_OFP_H

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
/* Number of infos written, 0 with a reason in `text`, or an error. */
int ofp_provider_getinfo(struct ofp_provider *provider, struct ofp_info *infos, int max, char *text, size_t text_size);
/* The same under a name that begins with the provider's own, as "link:shm+tcp"; infos of other names may be among them. */
int ofp_provider_getinfo_as(struct ofp_provider *provider, const char *name, struct ofp_info *infos, int max,
                            char *text, size_t text_size);
/* Addresses, as the transport of that info writes them. */
int ofp_provider_resolve(struct ofp_provider *provider, const struct ofp_info *info, const char *node,
                         const char *service, void *address, size_t *length, char *text, size_t text_size);
int ofp_provider_address_check(struct ofp_provider *provider, const struct ofp_info *info, const void *address,
                               size_t length);
int ofp_provider_address_format(struct ofp_provider *provider, const struct ofp_info *info, const void *address,
                                size_t length, char *text, size_t text_size);
/*
 * Narrow an info to a name or address of this host, so that what is opened from it is there and nowhere else.
 * -EHOSTUNREACH: it is not this host's, or not this info's. -EOPNOTSUPP: the provider cannot be told.
 */
int ofp_provider_at_node(struct ofp_provider *provider, struct ofp_info *info, const char *node, char *text,
                         size_t text_size);
/* Whether endpoints of this info can reach that address at all; -EHOSTUNREACH: they cannot, and `text` says why. */
int ofp_provider_reaches(struct ofp_provider *provider, const struct ofp_info *info, const void *address, size_t length,
                         char *text, size_t text_size);
int ofp_provider_describe(struct ofp_provider *provider, const struct ofp_info *info, char *text, size_t text_size);
/* Text of the provider_error of a completion, NULL when there is none. */
const char *ofp_provider_error_text(struct ofp_provider *provider, int provider_error);

/* The sentence behind a provider_error from OFP_REASON on. 1: it is in `text`; 0: there is none, or it was forgotten. */
int ofp_reason(int provider_error, char *text, size_t text_size);
/* Reason number of this thread's last call that returned -ENOMEM; 0: none. Reading it clears it. */
int ofp_explained(void);
/* English text of an errno or OFP_E… value, either sign. */
const char *ofp_strerror(int error);

/*
 * The same number for two processes only if they share boot and network namespace, and OFIPY_HOST_ID says the same to both. A
 * negative errno: there is none, since one of the two cannot be read, as `text` says.
 */
int ofp_host_id(uint64_t *id, char *text, size_t text_size);

/* Parameters: declared by core and providers; `set` takes values from the configuration file, before first use. */
struct ofp_param_info {
    const char *name;
    const char *type;
    const char *default_value;
    const char *help;
    const char *range;   /* allowed values: "1 to 16m", "yes or no"; empty: any text */
    const char *value;   /* in force now */
    const char *source;  /* "default", "file" or "environment" */
    const char *refused; /* invalid value of the environment, in place of which the default applies; NULL: none */
};
int ofp_param_count(void);
int ofp_param_get(int index, struct ofp_param_info *info);
/* -ENOENT: there is no such parameter; -EINVAL: the value is not in its range. */
int ofp_param_set(const char *name, const char *value);
/* Value in force of a declared parameter, NULL when there is none of that name. */
const char *ofp_param_value(const char *name);

/* Log: records wait in a ring until Python takes them. Returns 1 with a record, 0 when there is none. */
int ofp_log_next(int *level, char *provider, size_t provider_size, char *text, size_t text_size);
int ofp_log_waiting(void); /* nonzero while records wait; cheap */
void ofp_log_set_level(int level);

/* ------------------------------------------------------------------------------------------------------------ hooks */

/* Load a hook's shared object; a second load of the same name leaves the first. */
int ofp_hook_load(const char *path, char *text, size_t text_size);
/* The hooks that are known, by index. -EINVAL: there is none. */
int ofp_hook_count(void);
int ofp_hook_get(int index, const char **name, const char **description);
struct ofp_hook_option_info {
    const char *name;
    const char *type;
    const char *default_value;
    const char *help;
    char range[64]; /* as of parameters */
};
/* -ENOENT: it has no more options. */
int ofp_hook_option(int index, int option, struct ofp_hook_option_info *info);
/* Whether a list can be meant, "trace:file=t.json;fault:fail=0.01"; -EINVAL with a text that says what is wrong with it. */
int ofp_hooks_check(const char *list, char *text, size_t text_size);
/* How many operations hooks have seen in this process. */
uint64_t ofp_hooks_operations(void);
/*
 * Results of an endpoint's hook, as JSON: writes at most `size` bytes with the zero, returns the length of the whole
 * text. The first hook with this `name` counts. -ENOENT: the endpoint has none, -EOPNOTSUPP: the hook has no results.
 */
int64_t ofp_endpoint_hook_report(struct ofp_endpoint *endpoint, const char *name, char *json, size_t size);

/* ----------------------------------------------------------------------------------------------------------- domain */

struct ofp_domain_attr {
    uint32_t threading; /* OFP_THREAD_… */
    uint32_t progress;  /* OFP_PROGRESS_…: AUTO starts the helper thread */
    /* Hooks of its endpoints: "trace:file=t.json;fault:fail=0.01". Empty: none; NULL: what OFIPY_HOOKS says. */
    const char *hooks;
};
int ofp_domain_open(struct ofp_provider *provider, const struct ofp_info *info, const struct ofp_domain_attr *attr,
                    struct ofp_domain **domain, char *text, size_t text_size);
/* The domain's info, with the changes of the provider's `open`. Valid while the domain is open. */
const struct ofp_info *ofp_domain_info(const struct ofp_domain *domain);
/* -EBUSY while it has children. Free them first. */
int ofp_domain_close(struct ofp_domain *domain);
int ofp_domain_retire(struct ofp_domain *domain);
void ofp_domain_free(struct ofp_domain *domain);
/* With OFP_THREAD_DOMAIN: hand the domain over to the calling thread. */
int ofp_domain_adopt(struct ofp_domain *domain);
/* Drive every endpoint of the domain once. Returns the number of events handled. */
int ofp_domain_progress(struct ofp_domain *domain);

/*
 * Which atomic operations the domain's endpoints carry out (fi_query_atomic(3)): `operation_code` is OFP_ATOMIC,
 * OFP_FETCH_ATOMIC or OFP_COMPARE_ATOMIC, the others are of enum ofp_atomic_op and enum ofp_datatype. 0 and the elements
 * of the longest vector in *count, or -EOPNOTSUPP for a combination that there is not. With OFP_DEVICE_ATOMIC in the
 * operation_code it asks for those of the device.
 */
int ofp_atomic_query(struct ofp_domain *domain, uint32_t operation_code, uint32_t atomic_op, uint32_t datatype,
                     uint64_t *count);

/* The OFP_INJECT … that an operation may have, and the OFP_CAP_… that its endpoint needs; 0 of any number that is none. */
uint32_t ofp_operation_allowed_flags(uint32_t code);
uint64_t ofp_operation_capability(uint32_t code);

/* ---------------------------------------------------------------------------------------------------------- regions */

struct ofp_region_attr {
    void *base; /* of the memory to register; NULL to allocate */
    uint64_t length;
    uint32_t access;  /* OFP_ACCESS_… */
    uint32_t has_key; /* 1: `key` is asked for; 0: a random one */
    uint64_t key;
    /* Count what peers read and write in it, atomics too (fi_mr_bind); NULL: not counted. */
    struct ofp_counter *remote_read, *remote_write;
};
/* A registered region. Peers access its byte n by `key` and the offset `remote_base` + n. */
struct ofp_region_handle {
    void *base;
    uint64_t length; /* bytes; whole pages when allocated */
    uint64_t key;    /* 0 without remote access */
    uint64_t remote_base;
    uint32_t id; /* its id in operation records */
    uint32_t access;
    bool has_ways; /* peers access it over several lanes, which may have their own keys: ofp_region_ways */
};
/* -OFP_ENOKEY: the key that was asked for is in use, or the transport makes its own. -EINVAL: a counter of another domain. */
int ofp_region_register(struct ofp_domain *domain, const struct ofp_region_attr *attr,
                        struct ofp_region_handle *region);
/* Memory that the provider moves best. The bytes start as zero. */
int ofp_region_allocate(struct ofp_domain *domain, const struct ofp_region_attr *attr, struct ofp_region_handle *region,
                        char *text, size_t text_size);
/*
 * -OFP_ENOREGION: it is closed already. -EBUSY while operations of this process use it. Peers lose their access: what they still move ends at them with an error.
 * Allocated memory goes away with it.
 */
int ofp_region_close(struct ofp_domain *domain, uint32_t region);

/* -------------------------------------------------------------------------------------------------- completion queue */

struct ofp_cq_attr {
    /* Completions that fit before the queue spills into memory it allocates, up to OFP_COUNT_MAX; 0: default. */
    uint64_t size;
};
int ofp_cq_open(struct ofp_domain *domain, const struct ofp_cq_attr *attr, struct ofp_cq **cq);
/* -EBUSY while an endpoint uses it. */
int ofp_cq_close(struct ofp_cq *cq);
int ofp_cq_retire(struct ofp_cq *cq);
void ofp_cq_free(struct ofp_cq *cq);
/* Make progress, then take up to `max` completions. Returns how many, 0 for none. */
int64_t ofp_cq_read(struct ofp_cq *cq, struct ofp_completion *rows, uint64_t max);
/*
 * Wait until `min` completions are there (at most `max`), take up to `max`. Returns how many: fewer than `min` after
 * the time-out; -EINTR on a signal, -ECANCELED after ofp_cq_signal. One call waits at most one second: 0 or fewer
 * than `min` and *expired false mean: call again with the time left.
 */
int64_t ofp_cq_wait(struct ofp_cq *cq, struct ofp_completion *rows, uint64_t max, uint64_t min, int64_t timeout,
                    bool *expired);
/*
 * The same into a batch, whose count is what the call returns: for callers that may lose that to a signal handler which raises
 * an exception as the call returns.
 */
struct ofp_cq_batch {
    struct ofp_completion *rows;
    uint64_t size; /* of `rows` */
    int64_t count;
};
void ofp_cq_read_batch(struct ofp_cq *cq, struct ofp_cq_batch *batch);
void ofp_cq_wait_batch(struct ofp_cq *cq, struct ofp_cq_batch *batch, uint64_t min, int64_t timeout, bool *expired);
/* Wake one waiter, now or when it comes. */
int ofp_cq_signal(struct ofp_cq *cq);
/* The descriptor to sleep on, for select, epoll, asyncio. It stays the queue's. */
int ofp_cq_fileno(struct ofp_cq *cq);
/* fi_trywait(3): 1: safe to sleep on the descriptor; 0: completions are there, read first. */
int ofp_cq_arm(struct ofp_cq *cq);

/* ----------------------------------------------------------------------------------------------------- event queues */

struct ofp_eq_attr {
    /* Events up to which the program may write its own, up to OFP_COUNT_MAX; the core's go beyond. 0: default. */
    uint64_t size;
};
int ofp_eq_open(struct ofp_domain *domain, const struct ofp_eq_attr *attr, struct ofp_eq **eq);
/* -EBUSY while an endpoint uses it. */
int ofp_eq_close(struct ofp_eq *eq);
int ofp_eq_retire(struct ofp_eq *eq);
void ofp_eq_free(struct ofp_eq *eq);
/* Make progress, then take (peek: look at) the oldest event: 1, or 0 for none. `data`: OFP_EVENT_DATA_MAX bytes of room. */
int ofp_eq_read(struct ofp_eq *eq, struct ofp_event *event, void *data);
int ofp_eq_peek(struct ofp_eq *eq, struct ofp_event *event, void *data);
/* Wait for an event and take it: 1. 0 and *expired as ofp_cq_wait; -EINTR on a signal. */
int ofp_eq_wait(struct ofp_eq *eq, struct ofp_event *event, void *data, int64_t timeout, bool *expired);
/* The same, but the event stays. */
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
/* -EBUSY while an endpoint uses it. Regions that it counts for go on without. */
int ofp_counter_close(struct ofp_counter *counter);
int ofp_counter_retire(struct ofp_counter *counter);
void ofp_counter_free(struct ofp_counter *counter);
/* Make progress, then look. */
int ofp_counter_read(struct ofp_counter *counter, uint64_t *value);
int ofp_counter_read_error(struct ofp_counter *counter, uint64_t *errors);
int ofp_counter_add(struct ofp_counter *counter, uint64_t value);
int ofp_counter_set(struct ofp_counter *counter, uint64_t value);
int ofp_counter_add_error(struct ofp_counter *counter, uint64_t value);
int ofp_counter_set_error(struct ofp_counter *counter, uint64_t value);
/*
 * Wait until the value is at least `threshold` (1), or the error value is another than `errors`, the one that the caller
 * knows (2). 0 and *expired as ofp_cq_wait; -EINTR on a signal.
 */
int ofp_counter_wait(struct ofp_counter *counter, uint64_t threshold, uint64_t errors, int64_t timeout, bool *expired);
/*
 * As ofp_cq_fileno and ofp_cq_arm, for what ofp_counter_wait waits for: 1: safe to sleep, the descriptor becomes readable when
 * it has come about, or when there is work, so that the caller looks and arms again. One who sleeps at a time.
 */
int ofp_counter_fileno(struct ofp_counter *counter);
int ofp_counter_arm(struct ofp_counter *counter, uint64_t threshold, uint64_t errors);

/* --------------------------------------------------------------------------------------------------- address vector */

struct ofp_av_attr {
    uint32_t auto_insert; /* 1: senders enter at their first message */
};
int ofp_av_open(struct ofp_domain *domain, const struct ofp_av_attr *attr, struct ofp_av **av);
/* -EBUSY while an endpoint uses it. */
int ofp_av_close(struct ofp_av *av);
int ofp_av_retire(struct ofp_av *av);
void ofp_av_free(struct ofp_av *av);
/* Index of the address, which enters when it is new; an index is valid until removed, and then refused. -OFP_EEXHAUSTED. */
int ofp_av_insert(struct ofp_av *av, const void *address, size_t length, uint32_t *index);
int ofp_av_remove(struct ofp_av *av, uint32_t index);
int ofp_av_lookup(struct ofp_av *av, uint32_t index, void *address, size_t *length);
/* Index of a known address, -ENOENT otherwise. */
int ofp_av_find(struct ofp_av *av, const void *address, size_t length, uint32_t *index);
uint32_t ofp_av_count(struct ofp_av *av);
/* Iteration, from *cursor = 0 on: the next index in use; -ENOENT: there is none. Entries may come and go meanwhile. */
int ofp_av_next(struct ofp_av *av, uint32_t *cursor, uint32_t *index);

/* ----------------------------------------------------------------------------------------------------------- roster */

/*
 * The ranks of a job, and which of their processes have ended. Endpoints that follow a roster end what names such a rank:
 * sends and receives with OFP_EPEERLEFT or OFP_EPEERDIED, once what the rank sent before has been received.
 */
struct ofp_roster;
int ofp_roster_open(uint32_t size, struct ofp_roster **roster);
/* Endpoints that follow it go on without news. */
void ofp_roster_close(struct ofp_roster *roster);
/* The process of this rank has ended; only the first word about a rank counts. Any thread, no lock of a domain is taken. */
int ofp_roster_depart(struct ofp_roster *roster, uint32_t rank, bool died);
/*
 * From now on the endpoint hears of departures, those before included. `peers`: indices of its vector, by rank. `waits`: where
 * a peer's process is gone, receives that name it wait up to a second for the roster to say how it ended; false for an
 * endpoint by which that is found out.
 */
int ofp_roster_follow(struct ofp_roster *roster, struct ofp_endpoint *endpoint, const uint32_t *peers, bool waits);

/* --------------------------------------------------------------------------------------------------------- endpoint */

#define OFP_SELECTIVE_TRANSMIT 1
#define OFP_SELECTIVE_RECEIVE 2

struct ofp_endpoint_attr {
    struct ofp_cq *tx_cq;
    struct ofp_cq *rx_cq;
    struct ofp_av *av;               /* NULL for endpoints of type MSG: they have one peer */
    struct ofp_endpoint *rx_context; /* of ofp_receive_context_open: receives are posted there; NULL: an own one */
    const char *service;             /* NULL: any address */
    /* In place of `service`: that of a listener which was closed, as its address is written; type MSG. NULL: none. */
    const char *listener_service;
    uint64_t tx_flags; /* default flags of sends: OFP_INJECT, OFP_COMPLETION, OFP_TRANSMIT_COMPLETE … */
    uint64_t rx_flags; /* of posted receives: OFP_COMPLETION, OFP_MULTI_RECV */
    /* Up to OFP_COUNT_MAX and OFP_BYTES_MAX. */
    uint64_t tx_size;              /* 0: the info's */
    uint64_t unexpected_limit;     /* bytes that unexpected messages take; 0: default */
    uint64_t min_multi_recv;       /* bytes; multi-receive buffers with less room left are released. 0: default */
    uint32_t selective_completion; /* OFP_SELECTIVE_…: only operations with OFP_COMPLETION write queue entries */
    uint32_t remote_events; /* 1: what peers read and write here writes entries to rx_cq, also without remote CQ data */
    struct ofp_counter *counters[OFP_COUNTER_CLASSES]; /* by enum ofp_counter_class; NULL: not counted */
    struct ofp_eq *eq;                                 /* hears of its peers; NULL: nobody */
    uint64_t request; /* type MSG: handle of the connection request to be accepted; 0: it connects itself */
};
/*
 * Open and enable: the endpoint is reachable when this returns; one of type MSG may be connected. -ENOENT: there is no such
 * connection request, or it was answered.
 */
int ofp_endpoint_open(struct ofp_domain *domain, const struct ofp_endpoint_attr *attr, struct ofp_endpoint **endpoint,
                      char *text, size_t text_size);
/* Operations in flight end as ECANCELED. Blocks for at most `timeout`. -EBUSY while the endpoint has aliases. */
int ofp_endpoint_close(struct ofp_endpoint *endpoint, int64_t timeout);
int ofp_endpoint_retire(struct ofp_endpoint *endpoint, int64_t timeout);
void ofp_endpoint_free(struct ofp_endpoint *endpoint);

/*
 * Linger: before an endpoint is closed, let what was posted leave. An operation has left when a live peer that keeps its endpoint
 * open receives it without this process. The caller makes progress, calls ofp_endpoint_linger until it answers 0 or time is over,
 * then ofp_endpoint_drain likewise, then ofp_endpoint_retire, which ends the rest as ECANCELED, then ofp_endpoint_unsent. Several
 * endpoints do so side by side. docs/explanation/linger.md
 */
/*
 * `refuse`: operations are refused with ECANCELED from now on. 1: sends, writes or atomics to peers that are up or connecting are here
 * still, or deferred ones that are due; 0: none is.
 */
int ofp_endpoint_linger(struct ofp_endpoint *endpoint, uint32_t refuse);
/* Empty the transport's own queues and take leave of the peers. 1: not done yet; 0: done. */
int ofp_endpoint_drain(struct ofp_endpoint *endpoint);

/* Sends, writes and atomics that have not left. */
struct ofp_unsent {
    uint64_t count;
    uint64_t operations; /* a bit 1 << enum ofp_operation_code for each kind among them */
    uint64_t peers;      /* peers for ofp_endpoint_unsent_peer; before retiring only those of failed operations */
};
/*
 * Those that failed since ofp_endpoint_linger, and those that are here now; after ofp_endpoint_retire all that it ended. -ENOLCK:
 * another thread is in the domain; this call never waits.
 */
int ofp_endpoint_unsent(struct ofp_endpoint *endpoint, struct ofp_unsent *unsent);
/* Address of a peer of theirs, from number 0 on; *length in: room, out: size. After ofp_endpoint_retire. */
int ofp_endpoint_unsent_peer(const struct ofp_endpoint *endpoint, uint64_t number, void *address, size_t *length);

int ofp_endpoint_address(struct ofp_endpoint *endpoint, void *address, size_t *length);
/* The addresses beside that one where it is reached as well, from number 0 on. -ENOENT: there are no more. */
int ofp_endpoint_address_also(struct ofp_endpoint *endpoint, uint32_t number, void *address, size_t *length);
/* OFP_IDENTITY_SIZE random bytes, constant: no other endpoint that was or will be at its addresses has them. */
void ofp_endpoint_identity(struct ofp_endpoint *endpoint, uint8_t *identity);
uint32_t ofp_endpoint_id(struct ofp_endpoint *endpoint);
/*
 * Another handle of an endpoint, with default flags of its own in place of the endpoint's (fi_ep_alias): what is posted,
 * prepared, started or deferred through it takes those. In all else it is the endpoint: queues, peers, options other than
 * "tx_flags" and "rx_flags", name, id, statistics. Connections (connect.h) are made through the endpoint itself: -EOPNOTSUPP.
 * Retiring it leaves the endpoint, and what was started through it, as they are; the endpoint answers -EBUSY as long as it has
 * aliases. -EINVAL: flags that cannot be defaults; -EOPNOTSUPP: of a receive context.
 */
int ofp_endpoint_alias(struct ofp_endpoint *endpoint, uint64_t tx_flags, uint64_t rx_flags,
                       struct ofp_endpoint **alias);
/*
 * A receive context that several endpoints share (fi_srx_context): receives posted to it take messages of all of them, and
 * complete at the endpoint where the message arrived. It is used as an endpoint that receives only: ofp_post, ofp_cancel,
 * ofp_request_start, options, statistics. Its queue takes what ends without a message. The endpoints use the same address
 * vector, so that a receive can name a source. -EOPNOTSUPP where the transport matches receives itself.
 */
struct ofp_receive_context_attr {
    struct ofp_cq *cq;
    struct ofp_av *av;         /* NULL for endpoints of type MSG */
    uint64_t unexpected_limit; /* as of endpoints, of all of them together */
    uint64_t min_multi_recv;
};
int ofp_receive_context_open(struct ofp_domain *domain, const struct ofp_receive_context_attr *attr,
                             struct ofp_endpoint **context);
/* -EBUSY while an endpoint uses it. What is posted ends as ECANCELED. Free it with ofp_endpoint_free. */
int ofp_receive_context_retire(struct ofp_endpoint *context);
int ofp_receive_context_close(struct ofp_endpoint *context);
/*
 * Options by name (fi_endpoint(3), fi_getopt): "min_multi_recv", "tx_size", "tx_flags", "rx_flags"; read only are
 * "inject_size", "max_msg_size", "max_rma_size", "max_atomic_size", "rx_size". What is set counts for operations posted
 * afterwards. -ENOPROTOOPT: this endpoint has no such option, -EPERM: it cannot be set, -EINVAL: not to that value.
 */
int ofp_endpoint_option_get(struct ofp_endpoint *endpoint, const char *name, uint64_t *value);
int ofp_endpoint_option_set(struct ofp_endpoint *endpoint, const char *name, uint64_t value);

/*
 * Post `count` records. Returns how many were accepted, always a prefix; a negative error only when none was.
 * -EAGAIN: the transmit queue is full. The end of the batch is a flush.
 */
int64_t ofp_post(struct ofp_endpoint *endpoint, const struct ofp_operation *operations, uint64_t count);
/*
 * Cancel the newest operation with this context; its completion says ECANCELED. -ENOENT: none can be cancelled. -EINPROGRESS:
 * the transport was asked, the completion tells.
 */
int ofp_cancel(struct ofp_endpoint *endpoint, uint64_t context);

struct ofp_endpoint_statistics {
    uint64_t sends, receives, reads, writes, atomics; /* operations finished */
    uint64_t bytes_sent, bytes_received, errors;
    uint64_t posted_receives, unexpected_messages, unexpected_bytes, announced_messages; /* now */
    uint64_t linear_searches;  /* masks beyond the indexed ones */
    uint64_t backlog, pending; /* operations: kept until the transport has room, and in flight; now */
    uint64_t peers_up, peers_lost;
    uint64_t sleeps, wakeups, progress_calls;
    uint64_t registrations, registrations_reused, registrations_dropped; /* of memory, for operations of the domain */
    uint64_t messages_dropped; /* arrived at an endpoint of type DGRAM that had no room */
    uint64_t messages_mapped, messages_pipelined,
        messages_attached; /* received: enum ofp_moved of those that were announced */
};
int ofp_endpoint_statistics(struct ofp_endpoint *endpoint, struct ofp_endpoint_statistics *statistics);

/* ---------------------------------------------------------------------------------------------------- deferred work */

/*
 * As ofp_post, but each record, copied with the arrays it points to and with injected payload, is posted when the counter
 * has reached the threshold: in the order of thresholds, then of calls. Records that look for a message, set one aside or
 * take many are refused. What fails then, or is cancelled, has an error completion with its context.
 */
int64_t ofp_post_after(struct ofp_endpoint *endpoint, const struct ofp_operation *operations, uint64_t count,
                       struct ofp_counter *counter, uint64_t threshold);

enum ofp_work_kind { OFP_WORK_OPERATION = 0, OFP_WORK_COUNTER_ADD = 1, OFP_WORK_COUNTER_SET = 2, OFP_WORK_REDUCE = 3 };
/*
 * A reduction is of local memory: target[i] = target[i] op source[i], each element in one step, as an atomic of `atomic_op` and
 * `datatype` would do it. The record's local segment is the source (OFP_ACCESS_WRITE), result_region and result_offset say
 * where the target is (OFP_ACCESS_READ), as long as it; they are the same memory or have none in common. All of it is done
 * with the domain's lock held, within the call or the round of progress that finds it due. It has no completion.
 */
struct ofp_deferred_work {
    uint32_t kind;               /* enum ofp_work_kind */
    struct ofp_counter *counter; /* starts it on reaching `threshold` */
    uint64_t threshold;
    /* Operation and reduction: gets 1 added when it has finished, 1 error when it has not; NULL: none. Else what is changed. */
    struct ofp_counter *target;
    uint64_t value;                 /* added to the target, or set */
    struct ofp_operation operation; /* of an operation `endpoint` says of which endpoint of the domain */
};
int ofp_work_queue(struct ofp_domain *domain, const struct ofp_deferred_work *work, uint64_t *id);
/* End it before it starts; an operation completes as ECANCELED. -ENOENT: it has started. Closing a counter does the same
 * to what waits for it or would change it; an operation that was to tell it about its end goes on. */
int ofp_work_cancel(struct ofp_domain *domain, uint64_t id);
/* Cancel all work of the domain that has not started. Returns how many. */
int64_t ofp_work_flush(struct ofp_domain *domain);

#endif
