/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagram endpoints: opening, peers, progress, arming, closing. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "datagram/finder.h"
#include "datagram/work_id.h"
#include "datagram/pair.h"
#include "datagram/handle.h"
#include "datagram/receive.h"
#include "datagram/send.h"
#include "queue/fault.h"

#define BATCH 16

uint32_t verbs_datagram_compute_limit(const struct verbs_port *port)
{
    int64_t asked = verbs_core->param_int("VERBS_PATH_MTU");
    uint32_t limit = 128u << port->attr.active_mtu;

    return asked >= 256 && asked < limit ? (uint32_t)asked : limit;
}

static int open_datagram_endpoint(struct ofp_endpoint *base, const char *service, char *text, size_t text_size)
{
    struct verbs_datagram *endpoint = verbs_datagram_of(base);
    int result;

    endpoint->base = base;
    endpoint->domain = verbs_domain_of(base->domain);
    endpoint->limit = (uint32_t)base->info->max_msg_size;
    if (service) {
        snprintf(text, text_size,
                 "service %s: the device numbers datagram endpoints itself; leave it out, and give ep.address away",
                 service);
        return -EINVAL;
    }
    result = verbs_datagram_address_fill(endpoint);
    if (result) {
        snprintf(text, text_size, "the port has no GID of this address any more; see rdma link, ip address");
        return result;
    }
    result = verbs_datagram_pair_open(endpoint, text, text_size);
    if (!result)
        endpoint->address.qpn = endpoint->qp->qp_num;
    return result;
}

static int get_datagram_address(struct ofp_endpoint *base, void *address, size_t *length)
{
    size_t space = *length;

    *length = sizeof(struct verbs_datagram_address);
    if (space < *length)
        return -OFP_ETOOSMALL;
    memcpy(address, &verbs_datagram_of(base)->address, *length);
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------ peers */

static int connect_datagram_peer(struct ofp_peer *peer, char *text, size_t text_size)
{
    struct verbs_datagram *endpoint = verbs_datagram_of(peer->endpoint);
    struct verbs_datagram_peer *known = peer->private;
    struct verbs_datagram_address to;
    struct ibv_ah_attr attr;
    int result;

    if (verbs_datagram_address_decode(peer->address, peer->address_length, &to) != 0)
        return -EINVAL;
    known->qpn = to.qpn;
    attr = verbs_datagram_handle_build(endpoint, &to);
    result = verbs_search_start(endpoint->domain, peer, &attr);
    if (result)
        snprintf(text, text_size, "no way can be looked for: %s", strerror(-result));
    return result;
}

static void disconnect_datagram_peer(struct ofp_peer *peer)
{
    struct verbs_datagram_peer *known = peer->private;

    if (known->search)
        verbs_search_abandon(known->search);
    if (known->handle)
        verbs_calls.destroy_ah(known->handle);
    known->search = NULL;
    known->handle = NULL;
}

/* -------------------------------------------------------------------------------------------------------- progress */

/* A failed work request fails the whole queue pair. Its first completion that is not "flushed" has the reason. */
static bool handle_datagram_completion(struct verbs_datagram *endpoint, const struct ibv_wc *wc)
{
    if (!verbs_work_id_is_current(endpoint, wc->wr_id))
        return false;
    if (wc->status != IBV_WC_SUCCESS) {
        int fault = verbs_fault_identify(endpoint->domain, wc->status);

        verbs_datagram_pair_repair(endpoint, verbs_fault_find_error(fault), verbs_code_of_fault(fault));
        return false;
    }
    if (!verbs_work_id_is_receive(wc->wr_id))
        verbs_datagram_sent(endpoint, verbs_number_of_work_id(wc->wr_id));
    return true;
}

static int poll_datagram_queue(struct verbs_datagram *endpoint)
{
    struct ibv_wc completions[BATCH];
    int count = ibv_poll_cq(endpoint->cq, BATCH, completions), remaining = 0;

    if (count < 0 || atomic_exchange_explicit(&endpoint->qp_context.fatal, 0, memory_order_acquire)) {
        verbs_datagram_pair_repair(endpoint, ECONNRESET, 0);
        return 1;
    }
    for (int i = 0; i < count; i++)
        if (handle_datagram_completion(endpoint, &completions[i]))
            completions[remaining++] = completions[i];
    if (remaining)
        verbs_datagram_arrived(endpoint, completions, remaining);
    return count;
}

static int progress_datagrams(struct ofp_endpoint *base)
{
    struct verbs_datagram *endpoint = verbs_datagram_of(base);

    return endpoint->dead ? 0 : poll_datagram_queue(endpoint);
}

static bool arm_datagram_queue(struct ofp_endpoint *base)
{
    struct verbs_datagram *endpoint = verbs_datagram_of(base);

    if (endpoint->dead)
        return true;
    if (!endpoint->armed && ibv_req_notify_cq(endpoint->cq, 0) != 0)
        return false;
    endpoint->armed = true;
    return poll_datagram_queue(endpoint) == 0;
}

/* An armed completion queue notifies once, which costs one poll. */
static void disarm_datagram_queue(struct ofp_endpoint *base) { (void)base; }

/* ---------------------------------------------------------------------------------------------------------- closing */

static int drain_datagram_endpoint(struct ofp_endpoint *base)
{
    struct verbs_datagram *endpoint = verbs_datagram_of(base);

    return endpoint->dead || verbs_datagram_is_idle(endpoint) ? 0 : -EAGAIN;
}

static void close_datagram_endpoint(struct ofp_endpoint *base, uint64_t deadline)
{
    (void)deadline;
    verbs_datagram_pair_close(verbs_datagram_of(base));
}

/* A datagram message always arrives whole, so the core never fetches an announced one. */
static void fail_announced_receive(struct ofp_endpoint *base, struct ofp_receive *receive)
{
    (void)base;
    ofp_receive_complete(receive, EPROTO, 0);
}

/* Two addresses of the same endpoint differ in nothing that a handle needs. */
static void datagram_peer_readdressed(struct ofp_peer *peer) { (void)peer; }

const struct ofp_endpoint_ops verbs_datagram_ops = {
    .size = sizeof(struct ofp_endpoint_ops),
    .endpoint_size = sizeof(struct verbs_datagram),
    .peer_size = sizeof(struct verbs_datagram_peer),
    .open = open_datagram_endpoint,
    .drain = drain_datagram_endpoint,
    .close = close_datagram_endpoint,
    .name = get_datagram_address,
    .connect = connect_datagram_peer,
    .peer_down = disconnect_datagram_peer,
    .peer_readdressed = datagram_peer_readdressed,
    .post = verbs_datagram_post,
    .receive_start = fail_announced_receive,
    .progress = progress_datagrams,
    .arm = arm_datagram_queue,
    .disarm = disarm_datagram_queue,
    .marks_packets = true,
};
