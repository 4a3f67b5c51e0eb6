/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading. One system call reads the rest of the current payload into its destination, and what follows into the
 * domain's scratch buffer. So one call reads many small messages, and only the beginning of a large one is copied.
 *
 * If the core has no space for a message, the connection stalls: unread input is copied to connection->stash, and
 * progress
 * retries it. A stalled connection is in endpoint->stalled and is not read. The caller holds the domain's lock.
 */
#include "message/receive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "connection/connection.h"
#include "connection/credit.h"
#include "message/dispatch.h"
#include "ofipy/iov.h"
#include "stream/inbound.h"
#include "connection/poller.h"
#include "stream/queue.h"
#include "stream/send.h"

/* Copy the part of the current payload that is in the scratch buffer. Returns its length. */
static size_t copy_scratch_payload(struct tcp_connection *connection, const uint8_t *bytes, size_t length)
{
    struct tcp_inbound *in = &connection->in;
    size_t part = length < in->left ? length : in->left;
    struct iovec iov[OFP_SEGMENT_LIMIT];
    uint32_t count;

    if (TCP_UNLIKELY(tcp_inbound_get_layout(in) != NULL)) {
        if (in->offset < in->space)
            ofp_layout_scatter(tcp_inbound_get_layout(in), in->offset, bytes,
                               part < in->space - in->offset ? part : in->space - in->offset);
    } else {
        tcp_inbound_fill_iov(in, iov, OFP_SEGMENT_LIMIT, &count);
        ofp_iov_scatter(iov, count, 0, bytes, part);
    }
    in->offset += part;
    in->left -= part;
    if (!in->left)
        tcp_payload_received(connection);
    return part;
}

/* ---------------------------------------------------------------------------------------------------------- headers */

/*
 * A whole header: in `bytes`, or in connection->in.header if it arrived in pieces. NULL: it is not complete, or the
 * connection is over. *used: bytes of it that were in `bytes`.
 */
static const uint8_t *gather_header(struct tcp_connection *connection, const uint8_t *bytes, size_t length,
                                    size_t *used)
{
    struct tcp_inbound *in = &connection->in;
    size_t size = TCP_HEADER_BASE;

    *used = 0;
    if (TCP_LIKELY(!in->received && length >= TCP_HEADER_BASE)) {
        size = tcp_header_decode_length(bytes);
        if (TCP_UNLIKELY(!size)) {
            tcp_connection_end_for_violation(connection, "a header of impossible length");
            return NULL;
        }
        if (TCP_LIKELY(length >= size)) {
            *used = size;
            return bytes;
        }
    }
    for (;;) {
        size_t part;

        if (in->received >= TCP_HEADER_BASE) {
            size = tcp_header_decode_length(in->header);
            if (!size) {
                tcp_connection_end_for_violation(connection, "a header of impossible length");
                return NULL;
            }
        }
        if (in->received == size)
            return in->header;
        part = size - in->received < length - *used ? size - in->received : length - *used;
        if (!part)
            return NULL;
        memcpy(in->header + in->received, bytes + *used, part);
        in->received += (uint8_t)part;
        *used += part;
    }
}

/*
 * Handle one message, or the part of it that is here. Returns the bytes used; fewer than there are if the core has no
 * space or the connection is over.
 */
static size_t handle_message(struct tcp_connection *connection, const uint8_t *bytes, size_t length, bool *stalled)
{
    struct tcp_header header;
    size_t used;
    const uint8_t *whole = gather_header(connection, bytes, length, &used);
    const char *wrong;
    ssize_t result;

    if (!whole)
        return used;
    wrong = tcp_header_decode(whole, connection->swapped, connection->extended, &header);
    if (TCP_UNLIKELY(wrong != NULL)) {
        tcp_connection_end_for_violation(connection, wrong);
        return used;
    }
    result = tcp_header_received(connection, &header, bytes + used, length - used);
    if (TCP_UNLIKELY(result < 0)) {
        *stalled = result == -EAGAIN;
        /* A header that arrived in pieces remains in connection->in.header for the retry. */
        return whole == bytes ? 0 : used;
    }
    connection->in.received = 0;
    return used + (size_t)result;
}

/* Handle the messages in the scratch buffer or the stash. Returns the bytes used. */
static size_t handle_scratch(struct tcp_connection *connection, const uint8_t *bytes, size_t length)
{
    size_t used = 0;
    bool stalled = false;

    while (connection->state == TCP_UP && !stalled) {
        if (connection->in.left)
            used += used < length ? copy_scratch_payload(connection, bytes + used, length - used) : 0;
        if (connection->in.left || (used == length && !connection->in.received))
            break;
        if (used == length && connection->in.received != tcp_header_decode_length(connection->in.header))
            break;
        used += handle_message(connection, bytes + used, length - used, &stalled);
    }
    connection->stalled = stalled;
    return used;
}

/* ------------------------------------------------------------------------------------------------------------ stalls */

static void warn_of_stall(struct tcp_connection *connection)
{
    struct tcp_endpoint *endpoint = connection->endpoint;
    char text[TCP_ADDRESS_TEXT] = "";

    if (endpoint->warned_stall)
        return;
    endpoint->warned_stall = true;
    tcp_address_format(connection->peer->address, connection->peer->address_length, text, sizeof(text));
    tcp_core->log(
        OFP_LOG_WARNING, TCP_NAME,
        "endpoint %u: unexpected messages fill OFIPY_UNEXPECTED_SIZE; nothing more is read from %s until one of "
        "them is received",
        endpoint->base->id, text);
}

/* How long the input of a peer that hung up waits for receives, while none of it is received. */
#define HANGUP_TIMEOUT TCP_SECOND

bool tcp_stall_is_expired(const struct tcp_connection *connection)
{
    return connection->hangup && tcp_core->now() - connection->stalled_at > HANGUP_TIMEOUT;
}

static void clear_stall(struct tcp_connection *connection)
{
    connection->stalled = false;
    ofp_list_remove(&connection->stall);
    free(connection->stash);
    connection->stash = NULL;
    connection->stash_length = 0;
}

void tcp_stall_end(struct tcp_connection *connection)
{
    char text[TCP_ADDRESS_TEXT] = "";

    tcp_address_format(connection->peer->address, connection->peer->address_length, text, sizeof(text));
    tcp_core->log(OFP_LOG_WARNING, TCP_NAME,
                  "endpoint %u: %s has ended its connection; what it sent beyond OFIPY_UNEXPECTED_SIZE is lost",
                  connection->endpoint->base->id, text);
    clear_stall(connection);
    connection->endpoint->ops->lost(connection, ECONNRESET);
}

/* The connection is not read now, so epoll must report its end. */
static void clear_hot_connection(struct tcp_connection *connection)
{
    struct tcp_poller *poller = connection->endpoint->poller;

    if (poller->hot == connection)
        poller->hot = NULL;
    if (poller->unwatched == connection)
        tcp_poller_watch_again(poller);
}

/* Store the unread input, and stop reading. */
static void start_stall(struct tcp_connection *connection, const uint8_t *bytes, size_t length)
{
    struct tcp_endpoint *endpoint = connection->endpoint;

    warn_of_stall(connection);
    OFP_CHECK(connection->stalled && connection->stash_length == 0);
    connection->stalled_at = tcp_core->now();
    connection->asked = 0;
    clear_hot_connection(connection);
    if (length) {
        char *stash = malloc(length);

        if (!stash) {
            tcp_connection_end(connection, ENOMEM, false, NULL);
            return;
        }
        memcpy(stash, bytes, length);
        connection->stash = stash;
        connection->stash_length = (uint32_t)length;
    }
    if (!ofp_list_linked(&connection->stall))
        ofp_list_append(&endpoint->stalled, &connection->stall);
}

/*
 * The end of a peer's stream stays behind its last bytes if they find no space in the socket. The kernel of a peer that
 * has died then repeats them for half a minute, and says nothing. It answers data by a reset, so this side sends some:
 * credit of no bytes. A peer that lives ignores it.
 */
static void probe_stalled_peer(struct tcp_connection *connection)
{
    uint32_t passed = (uint32_t)((tcp_core->now() - connection->stalled_at) / HANGUP_TIMEOUT);

    if (!connection->extended || connection->shut || connection->hangup || !ofp_list_empty(&connection->out) ||
        passed == connection->asked)
        return;
    connection->asked = passed;
    tcp_header_send(connection, &(struct tcp_header){.op = TCP_CREDIT});
}

bool tcp_stall_retry(struct tcp_connection *connection)
{
    char *stash = connection->stash;
    size_t length = connection->stash_length, used;

    connection->stash = NULL;
    connection->stash_length = 0;
    /* Without a stash only a header is left, in connection->in.header. */
    used = handle_scratch(connection, (const uint8_t *)(stash ? stash : ""), length);
    if (connection->state != TCP_UP || !connection->stalled) {
        free(stash);
        if (connection->state == TCP_UP) {
            ofp_list_remove(&connection->stall);
            tcp_connection_schedule_read(connection);
        }
        return true;
    }
    if (used) {
        memmove(stash, stash + used, length - used);
    }
    connection->stash = stash;
    connection->stash_length = (uint32_t)(length - used);
    if (!used) {
        probe_stalled_peer(connection);
        return false;
    }
    connection->stalled_at = tcp_core->now();
    connection->asked = 0;
    return true;
}

/* ---------------------------------------------------------------------------------------------------------- reading */

static void discard_input(struct tcp_connection *connection)
{
    struct iovec iov = {connection->endpoint->scratch, TCP_SCRATCH};
    ssize_t result = 1;

    for (int turn = 0; turn < TCP_READ_TURNS && result > 0; turn++)
        result = connection->stream.ops->readv(&connection->stream, &iov, 1);
    if (result == 0 || (result < 0 && result != -EAGAIN))
        tcp_connection_discard(connection);
    else if (result < 0 && ofp_list_linked(&connection->ready))
        ofp_list_remove(&connection->ready);
}

/* Handle the bytes of one read: first those in the payload's destination, then those in the scratch buffer. */
static void handle_input(struct tcp_connection *connection, uint64_t direct, size_t length)
{
    uint64_t part = length < direct ? length : direct;
    const uint8_t *scratch = (const uint8_t *)connection->endpoint->scratch;
    size_t used;

    if (part) {
        connection->in.offset += part;
        connection->in.left -= part;
        if (!connection->in.left)
            tcp_payload_received(connection);
    }
    length -= part;
    if (!length || connection->state != TCP_UP)
        return;
    used = handle_scratch(connection, scratch, length);
    if (connection->state == TCP_UP && connection->stalled)
        start_stall(connection, scratch + used, length - used);
}

int tcp_connection_receive(struct tcp_connection *connection)
{
    int events = 0;

    if (connection->state == TCP_LEAVING) {
        discard_input(connection);
        return 1;
    }
    while (events < TCP_READ_TURNS && !connection->failure && tcp_connection_can_read(connection)) {
        struct iovec iov[OFP_SEGMENT_LIMIT + 1];
        uint32_t count;
        uint64_t direct = tcp_inbound_fill_iov(&connection->in, iov, OFP_SEGMENT_LIMIT, &count), asked;
        ssize_t result;

        iov[count++] = (struct iovec){connection->endpoint->scratch, TCP_SCRATCH};
        asked = direct + TCP_SCRATCH;
        result = connection->stream.ops->readv(&connection->stream, iov, (int)count);
        if (result > 0) {
            events++;
            handle_input(connection, direct, (size_t)result);
            if (connection->state != TCP_UP)
                return events;
            /* A short read emptied the socket. Read again only for the end of the stream. */
            if ((uint64_t)result == asked || connection->hangup || connection->stream.ended)
                continue;
        } else if (result != -EAGAIN || connection->output_failure) {
            connection->endpoint->ops->lost(connection, result == -EAGAIN ? connection->output_failure : (int)-result);
            return events + 1;
        } else {
            connection->hangup = false;
        }
        /* A connection that has just failed stays listed, to be ended. */
        if (ofp_list_linked(&connection->ready) && !connection->failure)
            ofp_list_remove(&connection->ready);
        break;
    }
    if (events) {
        if (!connection->stalled)
            connection->endpoint->poller->hot = connection;
        if (connection->owed)
            tcp_credit_grant_owed(connection);
    }
    return events;
}
