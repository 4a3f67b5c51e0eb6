/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A packet channel carries packets between endpoints, and bytes between their memories. It knows no messages. A
 * device is a channel (verbs), a socket can be one (udp), and a channel can stand on another one and add properties
 * that it lacks. The user of a channel is above it: native/rdm/transfer makes reliable messages, RMA and atomics of a
 * channel that has every property in OFPI_CHANNEL_FULL. docs/explanation/rdm.md
 *
 * The rules of ofipy/provider.h apply on both sides: the domain's lock is held, no call blocks, results are 0 or a
 * negative errno. Either side may call the other from within a call, with two exceptions. `close` is the user's last
 * call for a path, and `closed` the channel's last. The channel reports nothing about a path from within its
 * `connect`, `accept`, `send`, `get` and `put`.
 */
#ifndef OFPI_CHANNEL_H
#define OFPI_CHANNEL_H

#include "meet/manager.h"
#include "ofipy/objects.h"

/* Properties. */
#define OFPI_CHANNEL_RELIABLE 0x1  /* a sent packet arrives once and whole, or the path breaks */
#define OFPI_CHANNEL_ORDERED 0x2   /* packets of a path arrive in order, and after earlier puts */
#define OFPI_CHANNEL_CONNECTED 0x4 /* a path exists when both sides want it, and each side is notified of its end */
#define OFPI_CHANNEL_GET 0x8
#define OFPI_CHANNEL_PUT 0x10
#define OFPI_CHANNEL_FULL (OFPI_CHANNEL_RELIABLE | OFPI_CHANNEL_ORDERED | OFPI_CHANNEL_CONNECTED)

/* Limits of the device, or smaller ones that the user chose. Bytes, or buffers. */
struct ofpi_channel_limits {
    uint32_t packet_size;  /* size of a buffer; a path may carry less */
    uint32_t receive_size; /* receive buffers that can be posted at a time, for all paths */
    uint32_t spare_size;   /* receive buffers beyond these, which the channel posts in place of lost ones */
    uint32_t send_size;    /* send buffers in flight at a time, of all paths */
    uint32_t path_window;  /* packets, gets and puts that one path can have in flight */
    uint32_t inline_size;  /* `send` copies packets up to this length */
    uint64_t move_size;    /* largest get or put */
};

/*
 * A buffer for one packet, within the memory of `buffers_open`. The user owns it, but the channel owns it while it is
 * posted or in flight.
 */
struct ofpi_packet {
    struct ofp_list node; /* for a list of the owner's */
    uint8_t *bytes;
    uint32_t length;  /* of the packet; 0 to packet_size */
    uint32_t index;   /* index of the buffer; the packets of an endpoint are an array in this order */
    bool completed;   /* the operation in it completes when `send` has accepted it, before it reaches the peer */
    uint64_t private; /* for the channel */
};

/* Memory of gets and puts: local, or the description of it that a peer received. */
struct ofpi_memory {
    void *base;
    uint64_t length;
    struct ofp_region *region; /* the region that contains it, or NULL */
    /* Set by the channel from `register_memory` to `deregister_memory`. The peer needs address and key. */
    uint64_t address, key;
    uint64_t private[2];
};

struct ofpi_path;
struct ofpi_channel;

/* An atomic of the device on one 64-bit word of the peer: add `operand`, or store it if the word equals `compare`. */
struct ofpi_word {
    uint64_t address, key;
    uint64_t operand, compare;
    bool compares;
};

/* Size of the hello, which a user sends with a path request and with its answer; transfer/hello.h. */
#define OFPI_HELLO_MAX 40

/* A peer requests a path. The structure is valid during `requested`, and `id` until accept or refuse. */
struct ofpi_path_request {
    uint64_t id;
    const void *address; /* of the requesting endpoint, as its `name` returns it */
    size_t address_length;
    const uint8_t *hello;
    size_t hello_length;
};

/* Why a request for a path is refused. */
enum ofpi_refusal {
    OFPI_REFUSE,             /* for good */
    OFPI_REFUSE_LATER,       /* the peer may try again */
    OFPI_REFUSE_INCOMPATIBLE /* the hellos have no version in common */
};

/* Functions that the user calls. */
struct ofpi_channel_ops {
    uint32_t properties;
    size_t path_size; /* size of struct ofpi_path.private; zeroed memory that the user allocates */

    /* Announce the memory of all packet buffers. */
    int (*buffers_open)(struct ofpi_channel *channel, void *memory, size_t length);
    void (*buffers_close)(struct ofpi_channel *channel);
    /* Post a buffer for the next packet of any path. `arrived` returns it, and so does `end`. */
    int (*receive)(struct ofpi_channel *channel, struct ofpi_packet *packet);
    /*
     * Send packet->length bytes. OFP_POST_DONE: the user owns the buffer again. OFP_POST_PENDING: `sent` returns it.
     * An error breaks the path. `more`: another call, or `flush`, follows at once.
     */
    int (*send)(struct ofpi_path *path, struct ofpi_packet *packet, bool more);
    void (*flush)(struct ofpi_channel *channel); /* optional */

    /*
     * Register memory with the device until `deregister_memory`: for local gets into it or puts out of it, and, with
     * rights of remote access, for the peer's gets or puts. -EOPNOTSUPP: the device cannot, and packets carry the
     * data. This and the next four functions need the property GET or PUT.
     */
    int (*register_memory)(struct ofpi_path *path, struct ofpi_memory *memory, uint32_t access);
    void (*deregister_memory)(struct ofpi_path *path, struct ofpi_memory *memory);
    /* Whether the key is the peer device's key for a region, so that gets and puts can name it. */
    bool (*knows_key)(const struct ofpi_path *path, uint64_t key);
    /*
     * Move at most move_size bytes between local->base + offset and the peer's memory. `moved` reports the end. An
     * error breaks the path.
     */
    int (*get)(struct ofpi_path *path, const struct ofpi_memory *local, uint64_t offset, uint64_t address, uint64_t key,
               uint64_t length, void *cookie);
    int (*put)(struct ofpi_path *path, const struct ofpi_memory *local, uint64_t offset, uint64_t address, uint64_t key,
               uint64_t length, void *cookie);

    /* Request a path to path->peer with a hello. `accepted` or `refused` follows. After an error there is no path. */
    int (*connect)(struct ofpi_path *path, const uint8_t *hello, size_t length, char *text, size_t text_size);
    /*
     * Accept a request by this path. `confirmed` follows, or `broken`. After an error neither path nor request
     * exists.
     */
    int (*accept)(struct ofpi_path *path, uint64_t request, const uint8_t *hello, size_t length);
    /*
     * Reject a request. With INCOMPATIBLE the peer gets the user's `first_hello`: its channel passes that to
     * `first_hello_check` and reports the error as the reason.
     */
    void (*refuse)(struct ofpi_channel *channel, uint64_t request, enum ofpi_refusal why);
    /*
     * End a path in any state. Packets sent before still leave, and the peer is notified. When this returns, the
     * device no longer touches the memory of gets and puts, and their owners may use it. `closed` follows now or
     * later, but never from within, when the device has released every buffer. Packets in flight are returned
     * meanwhile.
     */
    void (*close)(struct ofpi_path *path);
    /* Optional. Find out whether the peer is still there: `broken` follows, without `unsure`. */
    void (*probe)(struct ofpi_path *path);

    /*
     * Optional. False: a sent packet has not reached the peer's device. Before the end of an endpoint this is polled
     * until it is true or the time is over, while peers make progress.
     */
    bool (*is_idle)(struct ofpi_channel *channel);
    /* Optional. An upper bound for the `completed` packets that have not reached the peer's device. */
    uint64_t (*unsent)(const struct ofpi_path *path);
    /* Refuse all new path requests, before existing paths are closed. */
    void (*stop_listening)(struct ofpi_channel *channel);

    int (*progress)(struct ofpi_channel *channel); /* this and the next two as those of ofp_endpoint_ops */
    bool (*arm)(struct ofpi_channel *channel);
    void (*disarm)(struct ofpi_channel *channel);
    /*
     * End the channel. All paths end, posted buffers are returned, and the device touches no memory when it returns.
     * It may block until `deadline`. Of the user's calls only `deregister_memory` and `buffers_close` follow, and the
     * channel reports nothing more.
     */
    void (*end)(struct ofpi_channel *channel, uint64_t deadline);
    /*
     * Optional, for devices with atomics. The first 8 bytes of the packet receive the old value of the word. The user
     * owns the packet again when `moved` reports the end. An error breaks the path.
     */
    int (*atomic)(struct ofpi_path *path, struct ofpi_packet *packet, const struct ofpi_word *word, void *cookie);
};

/*
 * Events that the channel reports to its user. After the user has closed a path, only `sent`, `moved` and `closed`
 * are reported for it.
 */
struct ofpi_channel_user {
    /* A packet arrived in a posted buffer. `path` is NULL if the channel has none for the sender at `address`. */
    void (*arrived)(struct ofpi_channel *channel, struct ofpi_path *path, struct ofpi_packet *packet,
                    const void *address, size_t address_length);
    void (*sent)(struct ofpi_path *path, struct ofpi_packet *packet);
    /* A get, put or atomic ended. `error` is 0 or positive; `provider_error` is as in a completion. */
    void (*moved)(struct ofpi_path *path, void *cookie, int error, int provider_error);
    void (*requested)(struct ofpi_channel *channel, const struct ofpi_path_request *request);
    void (*accepted)(struct ofpi_path *path, const uint8_t *hello, size_t length);
    void (*refused)(struct ofpi_path *path, const struct ofpi_meeting_end *end);
    void (*confirmed)(struct ofpi_path *path);
    /* The path has ended. All packets that arrived before were reported. */
    void (*broken)(struct ofpi_path *path, const struct ofpi_meeting_end *end);
    void (*closed)(struct ofpi_path *path);
    /*
     * For a channel whose two sides prove a key before `requested` and `accepted` are reported, and for a request that is
     * refused as incompatible. `first_hello` writes the hello of an endpoint that has no path to the caller yet, and
     * returns its length. `first_hello_check` checks such a hello of the endpoint that answers path->peer, and changes
     * nothing; a negative errno, with a text: connect no further.
     */
    size_t (*first_hello)(struct ofpi_channel *channel, uint8_t bytes[OFPI_HELLO_MAX]);
    int (*first_hello_check)(struct ofpi_path *path, const uint8_t *hello, size_t length, char *text, size_t text_size);
};

/* One channel per endpoint, in the private part of the user's object. */
struct ofpi_channel {
    const struct ofpi_channel_ops *ops;
    const struct ofpi_channel_user *user;
    struct ofp_endpoint *endpoint;
    struct ofpi_channel_limits limits;
    void *private; /* the channel's own */
};

/*
 * A connection between two endpoints. Both may request one at once; then one of the two is used. The user owns it
 * until `closed`.
 */
struct ofpi_path {
    struct ofpi_channel *channel;
    struct ofp_peer *peer; /* NULL once the user has closed it */
    void *private;         /* the channel's */
    /*
     * Set by the channel before `accepted`, or in its `accept`, if the peer has proved the configured key: a packet may
     * confirm an accepted path before the channel does. The user copies it into peer->proven.
     */
    bool proven;
};

#endif
