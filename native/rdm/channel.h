/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A packet channel: what carries packets between endpoints, and bytes between their memories, and knows no messages.
 * A device is one (verbs), so is a socket (udp), and so is whatever stands upon one of them and gives it properties
 * that it lacks. Above it is its user: native/rdm/transfer makes reliable messages, RMA and atomics of a channel that
 * has every property in OFPI_CHANNEL_FULL. docs/explanation/rdm.md
 *
 * The rules of ofipy/provider.h hold on both sides: the domain's lock is held, nobody blocks, results are 0 or a
 * negative errno. Either side may call the other from within a call of it, with these exceptions: `close` of a path is
 * the last that the user asks of it, and `closed` the last that is told of it; and nothing is told of a path from
 * within its `connect`, `accept`, `send`, `get` and `put`.
 */
#ifndef OFPI_CHANNEL_H
#define OFPI_CHANNEL_H

#include "ofipy/objects.h"

/* Properties. */
#define OFPI_CHANNEL_RELIABLE 0x1  /* what was sent arrives once and whole, or the path breaks */
#define OFPI_CHANNEL_ORDERED 0x2   /* packets of a path arrive as they were sent, and behind earlier puts */
#define OFPI_CHANNEL_CONNECTED 0x4 /* a path is there when both sides want it, and each hears of its end */
#define OFPI_CHANNEL_GET 0x8
#define OFPI_CHANNEL_PUT 0x10
#define OFPI_CHANNEL_FULL (OFPI_CHANNEL_RELIABLE | OFPI_CHANNEL_ORDERED | OFPI_CHANNEL_CONNECTED)

/* What a device told, or a user chose within that: asked, never assumed. Bytes. */
struct ofpi_channel_limits {
    uint32_t packet_size;  /* of a buffer; a path may carry less */
    uint32_t receive_size; /* buffers that can be posted at a time, for all paths */
    uint32_t send_size;    /* buffers on their way at a time, of all paths */
    uint32_t path_window;  /* packets, gets and puts that one path takes before the first of them is over */
    uint32_t inline_size;  /* packets up to this are taken within `send` */
    uint64_t move_size;    /* of one get or put */
};

/*
 * A buffer for one packet, within memory that was given to `buffers_open`. Owned by the user, or by the channel while
 * posted.
 */
struct ofpi_packet {
    struct ofp_list node; /* the owner's */
    uint8_t *bytes;
    uint32_t length;  /* of what is in it; 0 to packet_size */
    uint32_t index;   /* of the buffer */
    bool completed;   /* it carries an operation that its owner takes for done once `send` has it */
    uint64_t private; /* the channel's */
};

/* Memory that gets and puts touch: here, or, as a peer was told of it, there. */
struct ofpi_memory {
    void *base;
    uint64_t length;
    struct ofp_region *region; /* the one that it lies in, or NULL */
    /* The channel's, from `hold` to `release`. What a peer has to know of it: */
    uint64_t address, key;
    uint64_t private[2];
};

struct ofpi_path;
struct ofpi_channel;

/* What a device does with a word of 64 bits of the peer's, in one step: add `operand`, or store it where `compare` was. */
struct ofpi_word {
    uint64_t address, key;
    uint64_t operand, compare;
    bool compares;
};

/* Asked for a path: all that a user says of itself when it meets another; transfer/hello.h. */
#define OFPI_HELLO_MAX 40

/* Somebody asks for a path. Valid during `requested`; `id` until accept or refuse. */
struct ofpi_path_request {
    uint64_t id;
    const void *address; /* of the endpoint that asks, as `name` gives it there */
    size_t address_length;
    const uint8_t *hello;
    size_t hello_length;
};

/* How a path ends, or does not come up. */
struct ofpi_path_end {
    int error;         /* positive */
    bool process_gone; /* and so is whoever was there */
    bool unsure;       /* it broke without a word: `probe` finds out */
    bool absent;       /* nobody is there who could say no */
    const char *text;  /* what happened, what to do; or NULL */
};

/* What the user asks of a channel. */
struct ofpi_channel_ops {
    uint32_t properties;
    size_t path_size; /* of struct ofpi_path.private; zeroed, allocated by the user */

    /* Packets are sent from this memory, and received into it. */
    int (*buffers_open)(struct ofpi_channel *channel, void *memory, size_t length);
    void (*buffers_close)(struct ofpi_channel *channel);
    /*
     * Post a buffer for the next packet that comes, whatever its path: `arrived` gives it back, and so does `end`.
     */
    int (*receive)(struct ofpi_channel *channel, struct ofpi_packet *packet);
    /*
     * Send packet->length bytes. OFP_POST_DONE: the buffer is the user's again. OFP_POST_PENDING: `sent` gives it
     * back. An error breaks the path. `more`: another call follows at once, or `flush`.
     */
    int (*send)(struct ofpi_path *path, struct ofpi_packet *packet, bool more);
    void (*flush)(struct ofpi_channel *channel); /* optional */

    /*
     * Make memory known to the device, until `release`: for gets into it or puts out of it here, and, with rights of
     * remote access, for the peer's gets or puts. -EOPNOTSUPP: it cannot be, and packets have to carry it. Only with
     * GET or PUT, as the rest.
     */
    int (*register_memory)(struct ofpi_path *path, struct ofpi_memory *memory, uint32_t access);
    void (*deregister_memory)(struct ofpi_path *path, struct ofpi_memory *memory);
    /* Whether it is the device's own key for a region of the peer's, which gets and puts may then name. */
    bool (*knows_key)(const struct ofpi_path *path, uint64_t key);
    /*
     * At most move_size bytes between local->base + offset and the peer's memory. `moved` tells of the end. An error
     * breaks the path.
     */
    int (*get)(struct ofpi_path *path, const struct ofpi_memory *local, uint64_t offset, uint64_t address, uint64_t key,
               uint64_t length, void *cookie);
    int (*put)(struct ofpi_path *path, const struct ofpi_memory *local, uint64_t offset, uint64_t address, uint64_t key,
               uint64_t length, void *cookie);

    /* Begin a path to path->peer, saying `hello`: `accepted` or `refused` follows. After an error there is none. */
    int (*connect)(struct ofpi_path *path, const uint8_t *hello, size_t length, char *text, size_t text_size);
    /*
     * Make it the path that was asked for: `confirmed` follows, or `broken`. After an error neither path nor request
     * is.
     */
    int (*accept)(struct ofpi_path *path, uint64_t request, const uint8_t *hello, size_t length);
    /* Turn it down; `later`: who asks may try again. */
    void (*refuse)(struct ofpi_channel *channel, uint64_t request, bool later);
    /*
     * End a path, whatever its state; what was sent before still leaves, and the peer is told. When this returns the
     * device touches memory of gets and puts no more, which is its owners' again. `closed` follows, now or later, when
     * it has let go of every buffer too, and never from within. What is on its way comes back meanwhile.
     */
    void (*close)(struct ofpi_path *path);
    /* Optional. Find out whether somebody is still there: `broken` follows, without `unsure`. */
    void (*probe)(struct ofpi_path *path);

    /*
     * Optional. False: something that was sent has not reached its peer's device yet. Asked before the end, until it is true or
     * time is over, while peers make progress and what they do is heard of.
     */
    bool (*is_idle)(struct ofpi_channel *channel);
    /* Optional. How many `completed` packets may not have reached the peer's device yet: none fewer than there are. */
    uint64_t (*unsent)(const struct ofpi_path *path);
    /* Take no more requests, before paths are closed: who looks for us from now on finds nobody. */
    void (*stop_listening)(struct ofpi_channel *channel);

    int (*progress)(struct ofpi_channel *channel); /* this and the next two as those of an endpoint */
    bool (*arm)(struct ofpi_channel *channel);
    void (*disarm)(struct ofpi_channel *channel);
    /*
     * The end: every path is closed, posted buffers are given back, and the device touches nothing when it returns.
     * May block until `deadline`. Of the user's calls only `release` and `buffers_close` follow, and nothing is told
     * any more.
     */
    void (*end)(struct ofpi_channel *channel, uint64_t deadline);
    /*
     * Optional: of devices that have atomics. The packet lends its first 8 bytes for what the word was before, and is the user's
     * again when `moved` tells of the end. An error breaks the path.
     */
    int (*atomic)(struct ofpi_path *path, struct ofpi_packet *packet, const struct ofpi_word *word, void *cookie);
};

/*
 * What a channel tells its user. Paths that are not the user's any more, since it closed them, tell of `sent`,
 * `moved` and `closed` only.
 */
struct ofpi_channel_user {
    /*
     * A packet, in a buffer that was posted. `path` is NULL where the channel has none for whoever sent it from
     * `address`.
     */
    void (*arrived)(struct ofpi_channel *channel, struct ofpi_path *path, struct ofpi_packet *packet,
                    const void *address, size_t address_length);
    void (*sent)(struct ofpi_path *path, struct ofpi_packet *packet);
    /* `error`: 0 or positive; `provider_error`: as that of a completion. */
    void (*moved)(struct ofpi_path *path, void *cookie, int error, int provider_error);
    void (*requested)(struct ofpi_channel *channel, const struct ofpi_path_request *request);
    void (*accepted)(struct ofpi_path *path, const uint8_t *hello, size_t length);
    void (*refused)(struct ofpi_path *path, bool later, const struct ofpi_path_end *end);
    void (*confirmed)(struct ofpi_path *path);
    /* It is over. Everything that arrived before has been told. */
    void (*broken)(struct ofpi_path *path, const struct ofpi_path_end *end);
    void (*closed)(struct ofpi_path *path);
};

/* One for each endpoint; lies in the private part of whoever uses it. */
struct ofpi_channel {
    const struct ofpi_channel_ops *ops;
    const struct ofpi_channel_user *user;
    struct ofp_endpoint *endpoint;
    struct ofpi_channel_limits limits;
    void *private; /* the channel's own */
};

/*
 * Between two endpoints; several may be begun between the same two, of which one is used. The user owns it, until
 * `closed`.
 */
struct ofpi_path {
    struct ofpi_channel *channel;
    struct ofp_peer *peer; /* NULL when the user has lost it */
    void *private;         /* the channel's */
};

#endif
