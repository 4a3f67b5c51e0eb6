/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core's services for one endpoint. Each endpoint has its own table, so that hooks, or an endpoint over several
 * lanes, can replace entries. Providers call the inline functions of this file, which find the table.
 */
#ifndef OFIPY_SERVICES_H
#define OFIPY_SERVICES_H

#include "ofipy/provider.h"

struct ofp_services {
    uint32_t size; /* of this table in the core that runs */

    /*
     * Find the peer with this address, or create it (auto_insert). NULL: unknown and not to be inserted, or out of
     * memory.
     */
    struct ofp_peer *(*peer_by_address)(struct ofp_endpoint *endpoint, const void *address, size_t length);
    void (*peer_connecting)(struct ofp_peer *peer); /* the peer connects to this side */
    void (*peer_up)(struct ofp_peer *peer);         /* its backlog is posted from the next round of progress on */
    /*
     * The connection to the peer is lost. `error`: the error with which its operations end (ECONNREFUSED, ETIMEDOUT,
     * OFP_EPEERLOST …). `process_gone`: its process is known to be dead or replaced, so receives that name it end too.
     * `text`, which may be NULL, is the text of the exceptions of its operations: what happened; what to do. Calls
     * peer_down.
     */
    void (*peer_lost)(struct ofp_peer *peer, int error, bool process_gone, const char *text);

    /*
     * Deliver the private data of the other side's accept or reject; call it before peer_up or peer_lost. Data beyond
     * OFP_EVENT_DATA_MAX are cut off.
     */
    void (*connection_answered)(struct ofp_peer *peer, const void *data, size_t length);

    /*
     * Retain an operation beyond `post`: returns a copy with memory of its own. NULL: out of memory; return -EAGAIN
     * from `post`.
     */
    struct ofp_pending *(*transfer_retain)(struct ofp_endpoint *endpoint, struct ofp_peer *peer,
                                           const struct ofp_transfer *transfer);
    /* NULL: no operation of this peer with that id is pending. Call it for every id that comes from a peer. */
    struct ofp_pending *(*pending_find)(struct ofp_peer *peer, uint64_t id);
    /* Complete the operation; `error` is 0 or positive. The core frees the pending object. */
    void (*transfer_complete)(struct ofp_pending *pending, int error, int provider_error);
    /*
     * The same for a receive on an endpoint with `offloads_matching`. `message`: the received message (source, tag,
     * data, length). For a receive with OFP_MULTI_RECV, call this for each message. NULL means no message: the buffer
     * is released, and no message is still being written into it. A message is never split, nor truncated because
     * earlier messages used the buffer.
     */
    void (*offloaded_receive_complete)(struct ofp_pending *pending, const struct ofp_message *message,
                                       const struct ofp_offloaded *offloaded);

    /*
     * A whole message has arrived. `payload` is valid during the call only: the core copies it to the matching receive,
     * or stores it as an unexpected message. -EAGAIN: the bound on unexpected payload is reached and the message was
     * not accepted; announce it instead, or call message_begin with another bound.
     */
    int (*message_arrived)(struct ofp_endpoint *endpoint, const struct ofp_message *message, const void *payload);
    /*
     * The first part of a message has arrived and the rest follows in a stream; or the provider will fetch the payload
     * of a message that its sender announced because it waits for delivery. The core matches the message now, in its
     * place in the order. *receive says where the payload is to be written: `length` bytes into `iov`, which is the
     * posted buffer, or memory for an unexpected message. The provider discards payload beyond `length`. Ends by
     * receive_complete, or when the peer is lost. -ENOBUFS: the bound that `room` names is reached and the message was
     * not accepted; stop reading and try again from progress, or call message_announced.
     */
    int (*message_begin)(struct ofp_endpoint *endpoint, const struct ofp_message *message, enum ofp_room room,
                         struct ofp_receive **receive);
    /*
     * A message has been announced; its payload is still at the sender. The core matches it at once, and calls
     * receive_start within this call, or stores it as an unexpected message until a receive matches. -ENOBUFS: the
     * bound on announcements is reached; store the announcement and try again from progress.
     */
    int (*message_announced)(struct ofp_endpoint *endpoint, const struct ofp_message *message);
    /*
     * True while unexpected payload is above its bound: senders should then announce messages instead of sending the
     * payload.
     */
    bool (*announce_only)(struct ofp_endpoint *endpoint);
    /*
     * Copy into the receive's memory at `offset`; providers write to user memory by this function only. Nothing is
     * written beyond receive->length.
     */
    void (*receive_write)(struct ofp_receive *receive, uint64_t offset, const void *data, uint64_t length);
    struct ofp_receive *(*receive_find)(struct ofp_peer *peer, uint64_t id);
    /* `error` is 0 or positive. The core handles truncation. The core frees the receive. */
    void (*receive_complete)(struct ofp_receive *receive, int error, int provider_error);

    /*
     * The target side of RMA and atomics. `remote_access` checks region key, bounds and rights (`access`:
     * OFP_ACCESS_REMOTE_READ, …_WRITE or both) and fills *result. End the access with core->remote_release. Errors,
     * after which there is nothing to release: -OFP_ENOKEY, -ERANGE, -EACCES.
     */
    int (*remote_access)(struct ofp_endpoint *endpoint, uint64_t key, uint64_t offset, uint64_t length, uint32_t access,
                         struct ofp_remote_access *result);
    /*
     * A peer's access has taken effect. `flags`: OFP_COMPLETED_REMOTE_READ or …_REMOTE_WRITE, with …_ATOMIC for
     * atomics, and with …_REMOTE_CQ_DATA if `data` is valid. `region`: the region of the first segment. It may be NULL
     * if the region was closed, or if the provider does not know the region and the region has no `remote_events`.
     */
    void (*remote_event)(struct ofp_endpoint *endpoint, struct ofp_peer *peer, struct ofp_region *region,
                         uint64_t flags, uint64_t data, uint64_t length);

    /*
     * Request one call of `flush` before the current public call releases the domain, which may be many rounds of
     * progress later. Use it for work that costs the same for one operation and for many. Calls have no effect while a
     * `flush` is already requested. `arm` must not leave any work to that `flush`.
     */
    void (*flush_later)(struct ofp_endpoint *endpoint);

    /*
     * A peer that connects to this endpoint has sent its identity, and whether it accepts connections (`connects_only`
     * false). As peer_by_address, except that the same identity means the same peer, at any address.
     */
    struct ofp_peer *(*peer_by_identity)(struct ofp_endpoint *endpoint, const uint8_t *identity, bool connects_only,
                                         const void *address, size_t length);
    /*
     * The endpoint that answers `connect` has sent its identity; call this before peer_up. -ECONNREFUSED with a text:
     * it is another endpoint than expected; call peer_lost with that error and text.
     */
    int (*peer_identified)(struct ofp_peer *peer, const uint8_t *identity, char *text, size_t text_size);

    /*
     * Type DGRAM, where a sender's address can be forged. Returns the index of an address that is in the vector, or
     * OFP_PEER_UNKNOWN; never inserts an address or creates a peer. Use the result as the message's `source`, and NULL
     * as its `peer`.
     */
    uint32_t (*source_find)(struct ofp_endpoint *endpoint, const void *address, size_t length);
    /* Type DGRAM: count a message that was discarded because message_arrived had no space for it. */
    void (*message_dropped)(struct ofp_endpoint *endpoint);

    /*
     * Translate a piece of the peer's memory into the form that the peer's device uses: the `key` that the peer's
     * region_open set, and an `offset` that includes `remote_base`. False: the device's form is not known here; the
     * peer's core accepts `remote` unchanged.
     */
    bool (*remote_at_device)(struct ofp_peer *peer, const struct ofp_remote_segment *remote,
                             struct ofp_remote_segment *there);

    /*
     * A posted operation needs a call of `progress` to advance. If the application makes no progress, the helper
     * thread, if there is one, does so within milliseconds. Only for operations that need this while the endpoint is
     * not armed.
     */
    void (*look_soon)(struct ofp_endpoint *endpoint);

    /*
     * State CONNECTING: nothing listens at the peer's address. If the core expects a process there, it calls `connect`
     * again after a pause, until OFIPY_CONNECT_TIMEOUT; otherwise it acts as for peer_lost with ECONNREFUSED. Calls
     * peer_down in either case. If a peer has rejected the connection, call peer_lost instead. `text`: as for
     * peer_lost.
     */
    void (*peer_absent)(struct ofp_peer *peer, const char *text);
    /* Call it before receive_complete: the copy method of an announced payload, for statistics and hooks. */
    void (*payload_moved)(struct ofp_receive *receive, enum ofp_moved how);
    /*
     * As peer_identified, for an identity that the endpoint has yet to prove: it is checked, and not stored. Optional:
     * ofp_peer_identity_check.
     */
    int (*peer_identity_check)(struct ofp_peer *peer, const uint8_t *identity, char *text, size_t text_size);
    /*
     * State CONNECTING: the peer is there and defers our request, or this side lacks descriptors, memory or space for
     * it. The core calls `connect` again after a pause, until OFIPY_CONNECT_TIMEOUT; then the peer is lost with this
     * error and text. Meanwhile the peer may connect to this side. Calls peer_down. Optional: ofp_peer_deferred.
     */
    void (*peer_deferred)(struct ofp_peer *peer, int error, const char *text);
};

static inline struct ofp_peer *ofp_peer_by_address(struct ofp_endpoint *endpoint, const void *address, size_t length)
{
    return endpoint->services->peer_by_address(endpoint, address, length);
}

static inline void ofp_peer_connecting(struct ofp_peer *peer) { peer->endpoint->services->peer_connecting(peer); }

static inline void ofp_peer_up(struct ofp_peer *peer) { peer->endpoint->services->peer_up(peer); }

static inline void ofp_peer_lost(struct ofp_peer *peer, int error, bool process_gone, const char *text)
{
    peer->endpoint->services->peer_lost(peer, error, process_gone, text);
}

static inline void ofp_peer_absent(struct ofp_peer *peer, const char *text)
{
    peer->endpoint->services->peer_absent(peer, text);
}

static inline void ofp_peer_deferred(struct ofp_peer *peer, int error, const char *text)
{
    const struct ofp_services *services = peer->endpoint->services;

    if (services->peer_deferred)
        services->peer_deferred(peer, error, text);
    else
        services->peer_lost(peer, error, false, text);
}

static inline void ofp_connection_answered(struct ofp_peer *peer, const void *data, size_t length)
{
    peer->endpoint->services->connection_answered(peer, data, length);
}

static inline struct ofp_pending *ofp_transfer_retain(struct ofp_endpoint *endpoint, struct ofp_peer *peer,
                                                      const struct ofp_transfer *transfer)
{
    return endpoint->services->transfer_retain(endpoint, peer, transfer);
}

static inline struct ofp_pending *ofp_pending_find(struct ofp_peer *peer, uint64_t id)
{
    return peer->endpoint->services->pending_find(peer, id);
}

static inline void ofp_transfer_complete(struct ofp_pending *pending, int error, int provider_error)
{
    pending->endpoint->services->transfer_complete(pending, error, provider_error);
}

static inline void ofp_offloaded_receive_complete(struct ofp_pending *pending, const struct ofp_message *message,
                                                  const struct ofp_offloaded *offloaded)
{
    pending->endpoint->services->offloaded_receive_complete(pending, message, offloaded);
}

static inline int ofp_message_arrived(struct ofp_endpoint *endpoint, const struct ofp_message *message,
                                      const void *payload)
{
    return endpoint->services->message_arrived(endpoint, message, payload);
}

static inline int ofp_message_begin(struct ofp_endpoint *endpoint, const struct ofp_message *message,
                                    enum ofp_room room, struct ofp_receive **receive)
{
    return endpoint->services->message_begin(endpoint, message, room, receive);
}

static inline int ofp_message_announced(struct ofp_endpoint *endpoint, const struct ofp_message *message)
{
    return endpoint->services->message_announced(endpoint, message);
}

static inline bool ofp_announce_only(struct ofp_endpoint *endpoint)
{
    return endpoint->services->announce_only(endpoint);
}

static inline void ofp_receive_write(struct ofp_receive *receive, uint64_t offset, const void *data, uint64_t length)
{
    receive->endpoint->services->receive_write(receive, offset, data, length);
}

static inline struct ofp_receive *ofp_receive_find(struct ofp_peer *peer, uint64_t id)
{
    return peer->endpoint->services->receive_find(peer, id);
}

static inline void ofp_receive_complete(struct ofp_receive *receive, int error, int provider_error)
{
    receive->endpoint->services->receive_complete(receive, error, provider_error);
}

static inline int ofp_remote_access(struct ofp_endpoint *endpoint, uint64_t key, uint64_t offset, uint64_t length,
                                    uint32_t access, struct ofp_remote_access *result)
{
    return endpoint->services->remote_access(endpoint, key, offset, length, access, result);
}

static inline void ofp_remote_event(struct ofp_endpoint *endpoint, struct ofp_peer *peer, struct ofp_region *region,
                                    uint64_t flags, uint64_t data, uint64_t length)
{
    endpoint->services->remote_event(endpoint, peer, region, flags, data, length);
}

static inline void ofp_flush_later(struct ofp_endpoint *endpoint) { endpoint->services->flush_later(endpoint); }

static inline void ofp_look_soon(struct ofp_endpoint *endpoint) { endpoint->services->look_soon(endpoint); }

static inline struct ofp_peer *ofp_peer_by_identity(struct ofp_endpoint *endpoint, const uint8_t *identity,
                                                    bool connects_only, const void *address, size_t length)
{
    return endpoint->services->peer_by_identity(endpoint, identity, connects_only, address, length);
}

static inline int ofp_peer_identified(struct ofp_peer *peer, const uint8_t *identity, char *text, size_t text_size)
{
    return peer->endpoint->services->peer_identified(peer, identity, text, text_size);
}

static inline int ofp_peer_identity_check(struct ofp_peer *peer, const uint8_t *identity, char *text, size_t text_size)
{
    const struct ofp_services *services = peer->endpoint->services;

    return services->peer_identity_check ? services->peer_identity_check(peer, identity, text, text_size) : 0;
}

static inline uint32_t ofp_source_find(struct ofp_endpoint *endpoint, const void *address, size_t length)
{
    return endpoint->services->source_find(endpoint, address, length);
}

static inline void ofp_payload_moved(struct ofp_receive *receive, enum ofp_moved how)
{
    receive->endpoint->services->payload_moved(receive, how);
}

static inline void ofp_message_dropped(struct ofp_endpoint *endpoint) { endpoint->services->message_dropped(endpoint); }

static inline bool ofp_remote_at_device(struct ofp_peer *peer, const struct ofp_remote_segment *remote,
                                        struct ofp_remote_segment *there)
{
    return peer->endpoint->services->remote_at_device(peer, remote, there);
}

#endif
