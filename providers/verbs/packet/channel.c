/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/channel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "connection/channel.h"
#include "connection/reaper.h"
#include "device/device.h"
#include "endpoint/passive.h"
#include "memory/memory.h"
#include "packet/accept.h"
#include "packet/alive.h"
#include "packet/connect.h"
#include "packet/registration.h"
#include "packet/path.h"
#include "packet/probe.h"
#include "packet/receive.h"
#include "packet/work.h"

#define SEND_BUFFERS 128
/* The reserve for lost buffers is a quarter of the receive buffers. */
#define RESERVE_DIVISOR 4
/* Initial capacity of the completion queue, in paths. */
#define PATHS_FIRST 8
/* Pause between polls while an endpoint closes, ns. */
#define PAUSE 20000

/* --------------------------------------------------------------------------------------------------------- limits */

static uint32_t choose_smaller_size(uint64_t a, uint64_t b) { return (uint32_t)(a < b ? a : b); }

static uint32_t compute_path_depth(const struct verbs_port *port)
{
    return choose_smaller_size(port->limits.depth, VERBS_PATH_DEPTH);
}

void verbs_packet_limits_compute(const struct verbs_port *port, struct ofpi_channel_limits *limits)
{
    uint32_t depth = compute_path_depth(port);
    uint64_t buffers = verbs_core->param_size("VERBS_PACKET_BUFFERS"),
             most = choose_smaller_size((uint64_t)port->device.max_srq_wr,
                                        (uint64_t)port->device.max_cqe - (uint64_t)PATHS_FIRST * depth);
    uint32_t receive_size = choose_smaller_size(buffers, most);

    *limits = (struct ofpi_channel_limits){
        .packet_size = choose_smaller_size(verbs_core->param_size("VERBS_PACKET_SIZE"), port->limits.message_size),
        .receive_size = receive_size,
        .spare_size = verbs_port_is_soft_roce(port) ? receive_size / RESERVE_DIVISOR : 0,
        .send_size = SEND_BUFFERS,
        .path_window = verbs_path_compute_window(depth),
        .inline_size = port->limits.inline_size,
        .move_size = choose_smaller_size(port->limits.message_size, UINT32_C(1) << 30),
    };
}

static int open_rdm_queues(struct verbs_rdm *rdm, const struct ofpi_channel_limits *limits, char *text,
                           size_t text_size)
{
    struct verbs_domain *domain = rdm->domain;
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = limits->receive_size, .max_sge = 1}};
    int error;

    rdm->cq_reserved = limits->receive_size;
    rdm->cq_size = limits->receive_size + PATHS_FIRST * rdm->depth;
    rdm->cq = verbs_calls.create_cq(domain->port->context, (int)rdm->cq_size, &rdm->armed, domain->completions, 0);
    if (rdm->cq)
        rdm->srq = verbs_calls.create_srq(domain->pd, &attr);
    if (rdm->srq)
        return 0;
    error = errno;
    snprintf(text, text_size,
             "the device %s makes no shared receive queue of %u packets, or a completion queue of %u: %s; smaller ones "
             "are asked for by OFIPY_VERBS_PACKET_BUFFERS",
             verbs_device_name_of(domain->port), limits->receive_size, rdm->cq_size, strerror(error));
    return -error;
}

static void close_rdm_queues(struct verbs_rdm *rdm)
{
    /* The queue pairs use these queues. */
    verbs_reaper_drain_pairs(rdm->domain);
    verbs_packet_buffers_close(rdm);
    if (rdm->srq)
        verbs_calls.destroy_srq(rdm->srq);
    if (rdm->cq)
        verbs_calls.destroy_cq(rdm->cq);
    rdm->srq = NULL;
    rdm->cq = NULL;
    free(rdm->by_number);
    free(rdm->challenges);
    rdm->by_number = NULL;
    rdm->challenges = NULL;
}

static int register_packet_buffers(struct ofpi_channel *channel, void *memory, size_t length)
{
    struct verbs_rdm *rdm = verbs_rdm_of(channel);

    rdm->channel = channel;
    rdm->packets = verbs_memory_acquire(rdm->domain, NULL, memory, length, IBV_ACCESS_LOCAL_WRITE);
    return rdm->packets ? 0 : -errno;
}

static void deregister_packet_buffers(struct ofpi_channel *channel)
{
    struct verbs_rdm *rdm = verbs_rdm_of(channel);

    if (rdm->packets)
        verbs_cache_release(&rdm->domain->cache, rdm->packets);
    rdm->packets = NULL;
}

/* -------------------------------------------------------------------------------------------------------- progress */

static void flush_packets(struct ofpi_channel *channel) { verbs_packets_flush(verbs_rdm_of(channel)); }

static int progress_channel(struct ofpi_channel *channel)
{
    struct verbs_rdm *rdm = verbs_rdm_of(channel);
    bool empty;
    int count;

    verbs_packets_flush(rdm);
    verbs_packet_holders_check(rdm);
    count = verbs_rdm_poll(rdm, &empty);
    verbs_packet_buffers_reclaim(rdm, empty);
    return count + (empty ? verbs_paths_report_ends(rdm) : 0);
}

static bool arm_channel(struct ofpi_channel *channel)
{
    struct verbs_rdm *rdm = verbs_rdm_of(channel);

    if (!rdm->armed && ibv_req_notify_cq(rdm->cq, 0) != 0)
        return false;
    rdm->armed = true;
    /* Completions before arming cause no notification. */
    return progress_channel(channel) == 0 && ofp_list_empty(&rdm->scheduled);
}

/* An armed completion queue notifies once, which costs one poll. */
static void disarm_channel(struct ofpi_channel *channel) { (void)channel; }

/* ------------------------------------------------------------------------------------------------------------- end */

/*
 * The peer may close at the same time, and its queue pair acknowledges nothing any more. The connection manager would
 * report that, but `end` reads no connection events.
 */
static bool drain_channel_paths(struct ofpi_channel *channel)
{
    struct verbs_rdm *rdm = verbs_rdm_of(channel);
    bool idle = true;

    for (struct ofp_list *node = rdm->paths.next; node != &rdm->paths; node = node->next)
        if (!verbs_path_drain(OFP_CONTAINER_OF(node, struct verbs_path, node)))
            idle = false;
    return idle;
}

static void stop_channel_listener(struct ofpi_channel *channel)
{
    struct verbs_rdm *rdm = verbs_rdm_of(channel);

    /* This does not block, and the port must be free before the end is reported. */
    if (rdm->id)
        verbs_calls.destroy_id(rdm->id);
    rdm->id = NULL;
}

static void close_packet_channel(struct ofpi_channel *channel, uint64_t deadline)
{
    static const struct timespec pause = {.tv_nsec = PAUSE};
    struct verbs_rdm *rdm = verbs_rdm_of(channel);
    uint64_t polled = 0;
    int count;

    verbs_alive_stop(rdm);
    /*
     * Behind the deadline at most one queue length of completions is read: a sending peer, or a device that fails
     * every receive, fills the queue without end.
     */
    while ((count = progress_channel(channel)) || !ofp_list_empty(&rdm->paths)) {
        polled += (uint64_t)count;
        if (verbs_core->now() >= deadline && (!count || polled >= rdm->cq_size))
            break;
        nanosleep(&pause, NULL);
    }
    verbs_paths_remove(rdm);
    close_rdm_queues(rdm);
}

/* ---------------------------------------------------------------------------------------------------------- tables */

static const struct ofpi_channel_ops channel_ops = {
    .properties = OFPI_CHANNEL_FULL | OFPI_CHANNEL_GET | OFPI_CHANNEL_PUT,
    .path_size = sizeof(struct verbs_path),
    .buffers_open = register_packet_buffers,
    .buffers_close = deregister_packet_buffers,
    .receive = verbs_packet_post_receive,
    .send = verbs_packet_send,
    .flush = flush_packets,
    .register_memory = verbs_transfer_register,
    .deregister_memory = verbs_transfer_deregister,
    .knows_key = verbs_path_can_use_key,
    .get = verbs_path_post_read,
    .put = verbs_path_post_write,
    .atomic = verbs_path_post_atomic,
    .connect = verbs_path_connect,
    .accept = verbs_path_accept,
    .refuse = verbs_path_reject,
    .close = verbs_path_close,
    .probe = verbs_probe_start,
    .is_idle = drain_channel_paths,
    .unsent = verbs_path_count_unsent,
    .stop_listening = stop_channel_listener,
    .progress = progress_channel,
    .arm = arm_channel,
    .disarm = disarm_channel,
    .end = close_packet_channel,
};

static int start_channel_listener(struct verbs_rdm *rdm, char *text, size_t text_size)
{
    int error;

    if (verbs_calls.listen(rdm->id, VERBS_BACKLOG) == 0)
        return 0;
    error = errno;
    snprintf(text, text_size, "the connection manager takes no requests: %s", strerror(error));
    return -error;
}

static int open_packet_channel(struct ofp_endpoint *base, struct verbs_rdm *rdm,
                               const struct ofpi_channel_limits *limits, char *text, size_t text_size)
{
    struct ofpi_rdm_attr attr = {.core = verbs_core,
                                 .provider = VERBS_NAME,
                                 .ops = &channel_ops,
                                 .limits = *limits,
                                 .private = rdm,
                                 .connect_timeout = rdm->domain->settings.connect_ns};
    int result = ofpi_rdm_open(base, &attr, text, text_size);

    if (result && !text[0])
        snprintf(text, text_size, "the device %s takes no memory for %u packets of %u bytes: %s",
                 verbs_device_name_of(rdm->domain->port), limits->receive_size + limits->spare_size + limits->send_size,
                 limits->packet_size, strerror(-result));
    return result;
}

/* Callers prove the key of the domain, if there is one. */
static int create_challenges(struct verbs_rdm *rdm)
{
    if (!rdm->domain->has_key)
        return 0;
    rdm->challenges = malloc(sizeof(*rdm->challenges));
    if (!rdm->challenges)
        return -ENOMEM;
    verbs_challenges_init(rdm->challenges);
    return 0;
}

static int open_rdm_endpoint(struct ofp_endpoint *base, const char *service, char *text, size_t text_size)
{
    struct verbs_rdm *rdm = ofpi_rdm_private_of(base);
    struct ofpi_channel_limits limits;
    int result;

    rdm->listener.event = verbs_path_requested;
    rdm->domain = verbs_domain_of(base->domain);
    rdm->depth = compute_path_depth(rdm->domain->port);
    ofp_list_init(&rdm->paths);
    ofp_list_init(&rdm->scheduled);
    tcp_info_get_address(base->info, &rdm->address);
    verbs_packet_limits_compute(rdm->domain->port, &limits);
    result = open_rdm_queues(rdm, &limits, text, text_size);
    if (result)
        goto no_queues;
    result = create_challenges(rdm);
    if (!result)
        result = verbs_packet_buffers_open(rdm, &limits);
    if (result)
        goto no_queues;
    result = verbs_id_open(rdm->domain, &rdm->listener, &rdm->address, service, &rdm->id, text, text_size);
    if (result)
        goto no_queues;
    base->connects_only = base->listens_if_asked && !tcp_info_is_chosen(base->info) && !rdm->domain->has_key;
    result = open_packet_channel(base, rdm, &limits, text, text_size);
    if (result)
        goto no_channel;
    result = base->connects_only ? 0 : start_channel_listener(rdm, text, text_size);
    if (result)
        ofpi_rdm_close(base, 0);
    else
        verbs_alive_start(rdm);
    return result;
no_channel:
    verbs_calls.destroy_id(rdm->id);
no_queues:
    close_rdm_queues(rdm);
    return result;
}

static int get_rdm_address(struct ofp_endpoint *base, void *address, size_t *length)
{
    const struct verbs_rdm *rdm = ofpi_rdm_private_of(base);
    size_t space = *length;

    *length = tcp_address_get_length(&rdm->address);
    if (space < *length)
        return -OFP_ETOOSMALL;
    memcpy(address, &rdm->address, *length);
    return 0;
}

const struct ofp_endpoint_ops verbs_rdm_ops = {
    OFPI_RDM_ENDPOINT_OPS(sizeof(struct verbs_rdm)),
    .open = open_rdm_endpoint,
    .name = get_rdm_address,
    .marks_packets = true,
};
