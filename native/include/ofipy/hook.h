/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hooks: observers and injectors between an application and its transport. docs/explanation/layers.md describes the
 * design.
 *
 * A hook outside the source tree is a shared object that exports one function, `ofp_hook_entry`, and is not linked
 * against the core. The core calls all entries with the domain's lock held; they must not block. Each entry may be
 * NULL. A hook must never post or cancel operations, because the core calls many entries in the middle of its own work.
 */
#ifndef OFIPY_HOOK_H
#define OFIPY_HOOK_H

#include "ofipy/provider.h"

#define OFP_HOOK_ABI 1

struct ofp_hook;

/* One hook at one endpoint. Owned by the core. */
struct ofp_hook_endpoint {
    const struct ofp_hook *hook;
    struct ofp_endpoint *endpoint;
    uint32_t number; /* position among the endpoint's hooks; 0: nearest to the application */
    void *private;   /* `endpoint_size` bytes, zeroed */
};

/* An operation from its post to its end. Owned by the core; no hook may keep a pointer to it beyond `completed`. */
struct ofp_hook_operation {
    const struct ofp_operation *op; /* valid during `post` only */
    uint64_t number;                /* counts all operations of the process that hooks were called for, from 1 */
    uint64_t length;                /* bytes of local memory */
    uint64_t tag;
    struct ofp_peer *peer; /* target or source; NULL: any source, or a peer object does not exist yet */
    uint32_t index;        /* address vector index of the operation, or OFP_PEER_ANY; OFP_PEER_UNKNOWN of type MSG */
    uint16_t code;         /* OFP_SEND … */
    bool posted;           /* no hook has failed it, so it was passed to the core or the transport */
    void *private;         /* `operation_size` bytes of the hook that is called, zeroed at first */
};

/* The result of `post` beside its return value. Zeroed before each call. */
struct ofp_hook_verdict {
    uint64_t retry_at;       /* with -EAGAIN: post it at this time or later (core->now) */
    char text[OFP_TEXT_MAX]; /* with an error: text of the exception */
};

enum ofp_hook_arrival { OFP_ARRIVED_WHOLE, OFP_ARRIVED_BEGUN, OFP_ARRIVED_ANNOUNCED };

struct ofp_hook {
    uint32_t abi;  /* OFP_HOOK_ABI of the header it was built with */
    uint32_t size; /* of this struct there */
    const char *name;
    const char *description;         /* one line */
    const struct ofp_param *options; /* ended by a NULL name, names in lower case; NULL: none */
    size_t endpoint_size, peer_size, operation_size;

    /*
     * The endpoint opens. Read the options by core->option_string and its relatives. On failure write the reason into
     * `text`.
     */
    int (*open)(struct ofp_hook_endpoint *hook, char *text, size_t text_size);
    void (*close)(struct ofp_hook_endpoint *hook);
    /*
     * Before an operation is posted. 0: post it. -EAGAIN: delay it until verdict->retry_at, then it is posted without
     * another call; receives are not delayed. Another error: the operation ends with it, is not posted, and hooks
     * further away from the application are not called for it. A claim or discard of a set-aside message is the second
     * half of its receive: no hook is called.
     */
    int (*post)(struct ofp_hook_endpoint *hook, struct ofp_hook_operation *operation, struct ofp_hook_verdict *verdict);
    /* The core or the transport refused it in the call; no completion follows. */
    void (*refused)(struct ofp_hook_endpoint *hook, struct ofp_hook_operation *operation, int error);
    /* The operation has ended; with `more`: a multi-receive buffer has received one message and stays posted. */
    void (*completed)(struct ofp_hook_endpoint *hook, struct ofp_hook_operation *operation,
                      const struct ofp_completion *completion, bool more);
    /*
     * The core has accepted a message of which all or the first part has arrived, or which was announced. The operation
     * that it matched may have completed already. Not called for transports that match messages themselves.
     */
    void (*arrived)(struct ofp_hook_endpoint *hook, const struct ofp_message *message, enum ofp_hook_arrival how);
    /*
     * A peer's access to local memory has taken effect; `flags` as of remote_event in ofipy/services.h. If a hook has
     * this entry, transports with OFP_CAP_RMA_EVENT report every access; other transports report none.
     */
    void (*remote)(struct ofp_hook_endpoint *hook, struct ofp_peer *peer, uint64_t flags, uint64_t length);
    /* The peer's state has changed from `before`. `error`: why it is LOST; otherwise 0. */
    void (*peer_changed)(struct ofp_hook_endpoint *hook, struct ofp_peer *peer, enum ofp_peer_state before, int error);
    /* The core is about to free a copy that it made of a payload; the hook may overwrite it. */
    void (*released)(struct ofp_hook_endpoint *hook, void *memory, size_t length);
    /* The transport writes `length` bytes at `offset` of a receive's memory, whose size is receive->length. */
    void (*written)(struct ofp_hook_endpoint *hook, const struct ofp_receive *receive, uint64_t offset,
                    uint64_t length);
    /*
     * Write the hook's results as JSON, at most `size` bytes with the zero. Returns the length of the whole text
     * without the zero.
     */
    int64_t (*report)(struct ofp_hook_endpoint *hook, char *json, size_t size);
    /* The payload of an announced message has arrived; the receive completes next. */
    void (*moved)(struct ofp_hook_endpoint *hook, const struct ofp_receive *receive, enum ofp_moved how);
};

/* The core's services for hooks, beside struct ofp_core. */
struct ofp_hook_core {
    const struct ofp_core *core;
    /* The hook's options by name: the value that the user gave, or the default. */
    const char *(*option_string)(const struct ofp_hook_endpoint *hook, const char *name);
    int64_t (*option_int)(const struct ofp_hook_endpoint *hook, const char *name);
    double (*option_fraction)(const struct ofp_hook_endpoint *hook, const char *name);
    /* The hook's `peer_size` bytes in a peer. */
    void *(*peer_private)(const struct ofp_hook_endpoint *hook, const struct ofp_peer *peer);
    /*
     * Within `post` only: disconnect a peer as soon as the post has ended. Only the first call in one post has an
     * effect.
     */
    void (*peer_lose)(const struct ofp_hook_endpoint *hook, struct ofp_peer *peer, const char *text);
    /* A peer of this endpoint by its index; NULL: there is none. */
    struct ofp_peer *(*peer_at)(const struct ofp_hook_endpoint *hook, uint32_t index);
    /* Whether this thread, or at least some thread, holds the domain's lock. */
    bool (*lock_is_held)(const struct ofp_hook_endpoint *hook);
};

/* The one exported symbol. Returns NULL if the hook cannot work with this core. */
typedef const struct ofp_hook *ofp_hook_entry_fn(const struct ofp_hook_core *core);

#endif
