/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdm/transfer/endpoint.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "rdm/transfer/arrive.h"
#include "rdm/transfer/hello.h"
#include "rdm/transfer/meeting.h"
#include "rdm/transfer/move.h"
#include "rdm/transfer/path.h"
#include "rdm/transfer/push.h"
#include "rdm/transfer/request.h"
#include "rdm/transfer/rma.h"
#include "rdm/transfer/send.h"
#include "ofipy/check.h"

#define MILLISECOND 1000000ull
#define RETRY_PAUSE (MILLISECOND / 4)
#define RETRY_PAUSE_LONGEST (8 * MILLISECOND)

/* --------------------------------------------------------------------------------------------- events of the channel */

static void packet_arrived(struct ofpi_channel *channel, struct ofpi_path *base, struct ofpi_packet *packet,
                           const void *address, size_t address_length)
{
    struct ofpi_rdm_path *path = ofpi_rdm_path_of(base);

    (void)address, (void)address_length;
    if (!path || !base->peer) {
        ofpi_rdm_packet_post((struct ofpi_rdm_endpoint *)channel, packet);
        return;
    }
    /*
     * A peer that sends knows that its request was accepted, so this packet confirms the path before the device does.
     */
    if (path->state != OFPI_RDM_UP)
        ofpi_rdm_confirmed(base);
    if (path->state == OFPI_RDM_UP || ofpi_rdm_is_known(path))
        ofpi_rdm_packet_handle(path, packet);
    else
        ofpi_rdm_packet_handle_early(path, packet);
}

static void path_closed(struct ofpi_path *base)
{
    struct ofpi_rdm_path *path = ofpi_rdm_path_of(base);

    ofpi_rdm_moves_end(path);
    ofpi_rdm_path_free(path);
}

static const struct ofpi_channel_user user = {
    .arrived = packet_arrived,
    .sent = ofpi_rdm_sent,
    .moved = ofpi_rdm_moved,
    .requested = ofpi_rdm_requested,
    .accepted = ofpi_rdm_accepted,
    .refused = ofpi_rdm_refused,
    .confirmed = ofpi_rdm_confirmed,
    .broken = ofpi_rdm_broken,
    .closed = path_closed,
    .first_hello = ofpi_rdm_first_hello_write,
    .first_hello_check = ofpi_rdm_first_hello_check,
};

/* ---------------------------------------------------------------------------------------------- opening and closing */

uint64_t ofpi_rdm_eager_compute_size(const struct ofpi_channel_limits *limits)
{
    return limits->packet_size - OFPI_RDM_EAGER_HEADER;
}

/* Check the limits without which the module cannot work. */
static int check_channel(const struct ofpi_rdm_attr *attr, char *text, size_t text_size)
{
    const struct ofpi_channel_limits *limits = &attr->limits;

    if ((attr->ops->properties & OFPI_CHANNEL_FULL) != OFPI_CHANNEL_FULL) {
        snprintf(text, text_size, "the channel is not reliable, ordered and connected; a session has to stand upon it");
        return -EOPNOTSUPP;
    }
    if (limits->packet_size >= OFPI_RDM_PACKET_MIN && limits->receive_size >= OFPI_CREDIT_POOL_LEAST &&
        limits->send_size && limits->path_window && limits->move_size)
        return 0;
    snprintf(text, text_size,
             "the device has too little room: packets of %u bytes (at least %u are needed), %u of them to receive "
             "(%u), %u to send, %u for a peer",
             limits->packet_size, OFPI_RDM_PACKET_MIN, limits->receive_size, OFPI_CREDIT_POOL_LEAST, limits->send_size,
             limits->path_window);
    return -EINVAL;
}

static size_t compute_multiple(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

/*
 * Each packet begins on a cache line, because the core executes atomics in it and needs the alignment. No other data
 * is on these pages: a device may prevent that a child of fork inherits them.
 */
static int create_packets(struct ofpi_rdm_endpoint *endpoint)
{
    const struct ofpi_channel_limits *limits = &endpoint->channel.limits;
    size_t size = compute_multiple(limits->packet_size, 64);
    size_t count = (size_t)limits->receive_size + limits->spare_size + limits->send_size;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    endpoint->packets = calloc(count, sizeof(*endpoint->packets));
    endpoint->memory = aligned_alloc(page, compute_multiple(size * count, page));
    if (!endpoint->packets || !endpoint->memory)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        endpoint->packets[i].bytes = (uint8_t *)endpoint->memory + i * size;
        endpoint->packets[i].index = (uint32_t)i;
    }
    return endpoint->channel.ops->buffers_open(&endpoint->channel, endpoint->memory, size * count);
}

static int post_packets(struct ofpi_rdm_endpoint *endpoint)
{
    const struct ofpi_channel_limits *limits = &endpoint->channel.limits;
    uint32_t receives = limits->receive_size + limits->spare_size;

    for (uint32_t i = 0; i < receives; i++) {
        int result = endpoint->channel.ops->receive(&endpoint->channel, &endpoint->packets[i]);

        if (result)
            return result;
    }
    for (uint32_t i = 0; i < limits->send_size; i++)
        ofp_list_append(&endpoint->free, &endpoint->packets[receives + i].node);
    endpoint->pool.posted = limits->receive_size;
    return 0;
}

static void free_packets(struct ofpi_rdm_endpoint *endpoint)
{
    free(endpoint->packets);
    free(endpoint->memory);
    endpoint->packets = NULL;
    endpoint->memory = NULL;
}

/* Fill in a random number other than 0. */
static bool fill_random_number(uint64_t *number)
{
    bool filled = getrandom(number, sizeof(*number), 0) == sizeof(*number);

    *number |= 1;
    return filled;
}

/* The timer only ends a sleep. Progress then handles the requests that wait. */
static void retry_timer_expired(struct ofp_timer *timer, uint64_t now) { (void)timer, (void)now; }

int ofpi_rdm_open(struct ofp_endpoint *base, const struct ofpi_rdm_attr *attr, char *text, size_t text_size)
{
    struct ofpi_rdm_endpoint *endpoint = ofpi_rdm_endpoint_of(base);
    int result = check_channel(attr, text, text_size);

    if (result)
        return result;
    endpoint->channel = (struct ofpi_channel){
        .ops = attr->ops, .user = &user, .endpoint = base, .limits = attr->limits, .private = attr->private};
    endpoint->base = base;
    endpoint->core = attr->core;
    endpoint->provider = attr->provider;
    endpoint->connect_timeout = attr->connect_timeout;
    endpoint->retry_timer.expired = retry_timer_expired;
    endpoint->retry_pause = RETRY_PAUSE;
    ofp_list_init(&endpoint->free);
    ofp_list_init(&endpoint->paths);
    ofp_list_init(&endpoint->scheduled);
    if (!fill_random_number(&endpoint->incarnation) || !fill_random_number(&endpoint->own_request))
        return -EIO;
    result = create_packets(endpoint);
    if (!result) {
        result = post_packets(endpoint);
        if (result)
            endpoint->channel.ops->buffers_close(&endpoint->channel);
    }
    if (result)
        free_packets(endpoint);
    endpoint->open = !result;
    return result;
}

int ofpi_rdm_drain(struct ofp_endpoint *base)
{
    struct ofpi_rdm_endpoint *endpoint = ofpi_rdm_endpoint_of(base);
    struct ofpi_channel *channel = &endpoint->channel;

    for (const struct ofp_list *node = endpoint->paths.next; node != &endpoint->paths; node = node->next) {
        const struct ofpi_rdm_path *path = OFP_CONTAINER_OF(node, const struct ofpi_rdm_path, node);

        if (path->in_flight || !ofp_list_empty(&path->controls))
            return -EAGAIN;
    }
    return channel->ops->is_idle && !channel->ops->is_idle(channel) ? -EAGAIN : 0;
}

uint64_t ofpi_rdm_peer_count_unsent(const struct ofp_peer *peer)
{
    const struct ofpi_rdm_path *path = ofpi_rdm_peer_of(peer)->path;

    return path ? ofpi_rdm_path_count_unsent(path) : 0;
}

/* A peer that has a path; NULL if there is none. */
static struct ofp_peer *find_connected_peer(const struct ofpi_rdm_endpoint *endpoint)
{
    for (const struct ofp_list *node = endpoint->paths.next; node != &endpoint->paths; node = node->next) {
        struct ofp_peer *peer = OFP_CONTAINER_OF(node, const struct ofpi_rdm_path, node)->base.peer;

        if (peer)
            return peer;
    }
    return NULL;
}

void ofpi_rdm_close(struct ofp_endpoint *base, uint64_t deadline)
{
    struct ofpi_rdm_endpoint *endpoint = ofpi_rdm_endpoint_of(base);
    struct ofp_peer *peer;

    endpoint->open = false;
    endpoint->core->timer_stop(base->domain, &endpoint->retry_timer);
    endpoint->channel.ops->stop_listening(&endpoint->channel);
    /* The core ends the operations of these peers afterwards. */
    while ((peer = find_connected_peer(endpoint)))
        ofpi_rdm_peer_disconnect(peer);
    endpoint->channel.ops->end(&endpoint->channel, deadline);
    while (!ofp_list_empty(&endpoint->paths))
        path_closed(&OFP_CONTAINER_OF(endpoint->paths.next, struct ofpi_rdm_path, node)->base);
    OFP_CHECK(endpoint->pool.granted == 0 && ofp_list_empty(&endpoint->paths));
    endpoint->channel.ops->buffers_close(&endpoint->channel);
    free_packets(endpoint);
}

/* --------------------------------------------------------------------------------------------------------- entries */

int ofpi_rdm_post(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    struct ofpi_rdm_path *path = ofpi_rdm_peer_of(peer)->path;

    (void)endpoint;
    /*
     * No path: the core retries until the peer is connected or lost. `parting`: parts of an earlier operation have
     * yet to leave, and order must be preserved.
     */
    if (!path || path->state != OFPI_RDM_UP || path->parting)
        return -EAGAIN;
    OFP_CHECK(path->base.peer == peer && !path->error);
    return transfer->remote_count ? ofpi_rdm_remote_post(path, transfer) : ofpi_rdm_message_send(path, transfer);
}

void ofpi_rdm_flush(struct ofp_endpoint *base)
{
    struct ofpi_channel *channel = &ofpi_rdm_endpoint_of(base)->channel;

    if (channel->ops->flush)
        channel->ops->flush(channel);
}

/* Resume what a path could not do before. */
static int advance_path(struct ofpi_rdm_path *path)
{
    int count = ofpi_rdm_requests_resume(path);

    if (path->state == OFPI_RDM_UP) {
        count += ofpi_rdm_controls_resume(path);
        count += ofpi_rdm_moves_resume(path);
        count += ofpi_rdm_pushes_resume(path);
        count += ofpi_rdm_remote_resume(path);
    }
    if (path->error && !path->reported) {
        path->reported = true;
        ofpi_rdm_path_failed(path);
    } else if (path->state == OFPI_RDM_OVER) {
        ofpi_rdm_path_drained(path);
    }
    return count;
}

/* Advance the scheduled paths. A path that cannot finish its work schedules itself again. */
static int advance_scheduled_paths(struct ofpi_rdm_endpoint *endpoint)
{
    struct ofp_list now, *node;
    int count = 0;

    endpoint->urgent = false;
    if (ofp_list_empty(&endpoint->scheduled))
        return 0;
    now = endpoint->scheduled;
    now.next->previous = now.previous->next = &now;
    ofp_list_init(&endpoint->scheduled);
    while ((node = ofp_list_pop(&now))) {
        struct ofpi_rdm_path *path = OFP_CONTAINER_OF(node, struct ofpi_rdm_path, scheduled);

        if (!ofp_list_empty(&path->waiting))
            ofpi_rdm_path_schedule(path);
        count += advance_path(path);
    }
    if (count)
        endpoint->retry_pause = RETRY_PAUSE;
    return count;
}

int ofpi_rdm_progress(struct ofp_endpoint *base)
{
    struct ofpi_rdm_endpoint *endpoint = ofpi_rdm_endpoint_of(base);
    int count = endpoint->channel.ops->progress(&endpoint->channel);

    count += advance_scheduled_paths(endpoint);
    ofpi_rdm_flush(base);
    return count;
}

static bool has_waiting_requests(const struct ofpi_rdm_endpoint *endpoint)
{
    const struct ofp_list *node;

    for (node = endpoint->scheduled.next; node != &endpoint->scheduled; node = node->next)
        if (!ofp_list_empty(&OFP_CONTAINER_OF(node, const struct ofpi_rdm_path, scheduled)->waiting))
            return true;
    return false;
}

bool ofpi_rdm_arm(struct ofp_endpoint *base)
{
    struct ofpi_rdm_endpoint *endpoint = ofpi_rdm_endpoint_of(base);

    if (endpoint->urgent || !endpoint->channel.ops->arm(&endpoint->channel))
        return false;
    if (has_waiting_requests(endpoint)) {
        endpoint->retry_timer.deadline = endpoint->core->now() + endpoint->retry_pause;
        if (endpoint->retry_pause < RETRY_PAUSE_LONGEST)
            endpoint->retry_pause *= 2;
        endpoint->core->timer_start(base->domain, &endpoint->retry_timer);
    }
    return true;
}

void ofpi_rdm_disarm(struct ofp_endpoint *base)
{
    struct ofpi_channel *channel = &ofpi_rdm_endpoint_of(base)->channel;

    channel->ops->disarm(channel);
}
