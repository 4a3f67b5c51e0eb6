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

    /* Peers. `peer_by_address` finds the entry or makes one (auto_insert); NULL: unknown and not to be inserted, or -ENOMEM. */
    struct ofp_peer *(*peer_by_address)(struct ofp_endpoint *endpoint, const void *address, size_t length);
    void (*peer_connecting)(struct ofp_peer *peer); /* the peer connects to this side */
    void (*peer_up)(struct ofp_peer *peer);         /* operations kept for it are posted from the next progress on */
    /*
     * The connection to the peer is lost. `error`: what its operations end with (ECONNREFUSED, ETIMEDOUT, OFP_EPEERLOST
     * …); `process_gone`: its process is known dead or replaced, so receives directed at it end too. `text`, which may
     * be NULL, is what the exceptions of its operations say: what happened; what to do. Calls peer_down.
     */
    void (*peer_lost)(struct ofp_peer *peer, int error, bool process_gone, const char *text);

    /*
     * Private data of the other side's accept or reject; call it before peer_up or peer_lost. Data beyond
     * OFP_EVENT_DATA_MAX is cut off.
     */
    void (*connection_answered)(struct ofp_peer *peer, const void *data, size_t length);

    /* Keep an operation beyond `post`: a copy with memory of its own. NULL: out of memory (answer -EAGAIN). */
    struct ofp_pending *(*transfer_retain)(struct ofp_endpoint *endpoint, struct ofp_peer *peer,
                                           const struct ofp_transfer *transfer);
    /* NULL when no such operation of this peer is pending: ids come from outside. */
    struct ofp_pending *(*pending_find)(struct ofp_peer *peer, uint64_t id);
    /* Finish it; error 0 or positive. The pending object is gone afterwards. */
    void (*transfer_complete)(struct ofp_pending *pending, int error, int provider_error);
    /*
     * The same for a receive on an endpoint with `offloads_matching`. `message`: what came (source, tag, data, length). With
     * OFP_MULTI_RECV it is called for each message, and NULL stands for none: the buffer is released, and no message is
     * on its way into it. No message is split, or cut because others came before it.
     */
    void (*offloaded_receive_complete)(struct ofp_pending *pending, const struct ofp_message *message,
                                       const struct ofp_offloaded *offloaded);

    /*
     * A whole message is here, `payload` valid during the call only: matched and copied, or kept as unexpected.
     * -EAGAIN: the bound on unexpected payload is reached and nothing was taken; announce it instead, or call
     * message_begin with another bound.
     */
    int (*message_arrived)(struct ofp_endpoint *endpoint, const struct ofp_message *message, const void *payload);
    /*
     * The first piece of a message is here and the rest follows in a stream, or it was announced by who waits for delivery
     * and will be fetched: matched now. *receive says where the payload
     * goes: `length` bytes into `iov`, the posted buffer or memory in which the core keeps the message, in its place in the
     * order, while it fills. What is beyond `length` is the provider's to drop. Ended by receive_complete, or with the peer.
     * -ENOBUFS: the bound that `room` names is reached and nothing was taken; cease to read, try again from progress,
     * or call message_announced.
     */
    int (*message_begin)(struct ofp_endpoint *endpoint, const struct ofp_message *message, enum ofp_room room,
                         struct ofp_receive **receive);
    /*
     * A message whose payload is still elsewhere. Either matched at once (receive_start is called from within) or kept
     * until it is. -ENOBUFS: the bound on announcements is reached; keep it and announce again from progress.
     */
    int (*message_announced)(struct ofp_endpoint *endpoint, const struct ofp_message *message);
    /* True while unexpected payload is above its bound: senders should announce instead of sending. */
    bool (*announce_only)(struct ofp_endpoint *endpoint);
    /* Copy into the receive's memory at `offset`; the one place that touches user memory. Never past receive->length. */
    void (*receive_write)(struct ofp_receive *receive, uint64_t offset, const void *data, uint64_t length);
    struct ofp_receive *(*receive_find)(struct ofp_peer *peer, uint64_t id);
    /* error 0 or positive. Truncation is the core's affair. The receive is gone afterwards. */
    void (*receive_complete)(struct ofp_receive *receive, int error, int provider_error);

    /*
     * The target of RMA and atomics. `remote_access` checks key, bounds and rights (`access`: OFP_ACCESS_REMOTE_READ or
     * …_WRITE or both) and fills *result, which core->remote_release ends: 0, -OFP_ENOKEY, -ERANGE, -EACCES; nothing to
     * release then.
     */
    int (*remote_access)(struct ofp_endpoint *endpoint, uint64_t key, uint64_t offset, uint64_t length, uint32_t access,
                         struct ofp_remote_access *result);
    /*
     * A peer's access has taken effect. `flags`: OFP_COMPLETED_REMOTE_READ or …_REMOTE_WRITE, with …_ATOMIC, and with
     * …_REMOTE_CQ_DATA where `data` came along. `region`: that of the first segment; may be NULL when it is gone, or not
     * known and has no `remote_events`.
     */
    void (*remote_event)(struct ofp_endpoint *endpoint, struct ofp_peer *peer, struct ofp_region *region,
                         uint64_t flags, uint64_t data, uint64_t length);

    /*
     * Have `flush` called before the public call that is running lets go of the domain, which may be many rounds of progress
     * later: for what costs as much once as for all of them. Called again at any time; no effect when it is due already.
     * `arm` must not leave anything to it.
     */
    void (*flush_later)(struct ofp_endpoint *endpoint);

    /*
     * A caller has stated its identity, and whether it accepts connections: as peer_by_address, but the same identity
     * is the same peer at any address.
     */
    struct ofp_peer *(*peer_by_identity)(struct ofp_endpoint *endpoint, const uint8_t *identity, bool connects_only,
                                         const void *address, size_t length);
    /*
     * The endpoint that answers `connect` has stated its identity; call it before peer_up. -ECONNREFUSED with a text:
     * it is another endpoint than expected, and the provider calls peer_lost with both.
     */
    int (*peer_identified)(struct ofp_peer *peer, const uint8_t *identity, char *text, size_t text_size);

    /*
     * Type DGRAM, whose senders anybody may forge: the index of one that is in the vector, or OFP_PEER_UNKNOWN. Nothing is made. A
     * message of it has that source, and no peer.
     */
    uint32_t (*source_find)(struct ofp_endpoint *endpoint, const void *address, size_t length);
    /* Type DGRAM: one that message_arrived had no room for is gone, and counted. */
    void (*message_dropped)(struct ofp_endpoint *endpoint);

    /*
     * How the peer's device names a piece of the peer's memory: `key` as its region_open made it, `offset` from its
     * remote_base on. False: that is not known here; the peer's core knows `remote` as it is.
     */
    bool (*remote_at_device)(struct ofp_peer *peer, const struct ofp_remote_segment *remote,
                             struct ofp_remote_segment *there);

    /*
     * Something that was posted waits for the next call of `progress`: where the application calls for none the helper thread, if
     * there is one, does so within milliseconds. For who waits so only while it is not armed.
     */
    void (*look_soon)(struct ofp_endpoint *endpoint);

    /*
     * State CONNECTING: nothing listens at the peer's address. If a process is expected there, `connect` is called
     * again after a pause, until OFIPY_CONNECT_TIMEOUT; otherwise as peer_lost with ECONNREFUSED. Calls peer_down in
     * either case. For a peer that has rejected the connection call peer_lost instead. `text` as of peer_lost.
     */
    void (*peer_absent)(struct ofp_peer *peer, const char *text);
    /* Call it before receive_complete: the copy method of an announced payload, for statistics and hooks. */
    void (*payload_moved)(struct ofp_receive *receive, enum ofp_moved how);
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
