/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagram endpoints: opening, peers, progress, going to sleep, closing. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "datagram/finder.h"
#include "datagram/mark.h"
#include "datagram/pair.h"
#include "datagram/path.h"
#include "datagram/receive.h"
#include "datagram/send.h"
#include "queue/fault.h"

#define BATCH 16

uint32_t verbs_datagram_limit(const struct verbs_port *port)
{
    int64_t asked = verbs_core->param_int("VERBS_PATH_MTU");
    uint32_t limit = 128u << port->attr.active_mtu;

    return asked >= 256 && asked < limit ? (uint32_t)asked : limit;
}

static int datagram_open(struct ofp_endpoint *base, const char *service, char *text, size_t text_size)
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
    result = verbs_datagram_find_self(endpoint);
    if (result) {
        snprintf(text, text_size, "the port has no GID of this address any more; see rdma link, ip address");
        return result;
    }
    result = verbs_datagram_pair_open(endpoint, text, text_size);
    if (!result)
        endpoint->address.qpn = endpoint->qp->qp_num;
    return result;
}

static int datagram_name(struct ofp_endpoint *base, void *address, size_t *length)
{
    size_t room = *length;

    *length = sizeof(struct verbs_datagram_address);
    if (room < *length)
        return -OFP_ETOOSMALL;
    memcpy(address, &verbs_datagram_of(base)->address, *length);
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------ peers */

static int datagram_connect(struct ofp_peer *peer, char *text, size_t text_size)
{
    struct verbs_datagram *endpoint = verbs_datagram_of(peer->endpoint);
    struct verbs_datagram_peer *known = peer->private;
    struct verbs_datagram_address to;
    struct ibv_ah_attr attr;
    int result;

    if (verbs_datagram_parse(peer->address, peer->address_length, &to) != 0)
        return -EINVAL;
    known->qpn = to.qpn;
    attr = verbs_datagram_path(endpoint, &to);
    result = verbs_finder_ask(endpoint->domain, peer, &attr);
    if (result)
        snprintf(text, text_size, "no way can be looked for: %s", strerror(-result));
    return result;
}

static void datagram_peer_down(struct ofp_peer *peer)
{
    struct verbs_datagram_peer *known = peer->private;

    if (known->search)
        verbs_finder_forget(known->search);
    if (known->handle)
        verbs_calls.destroy_ah(known->handle);
    known->search = NULL;
    known->handle = NULL;
}

/* -------------------------------------------------------------------------------------------------------- progress */

/* What failed takes the queue pair along, so the first that is not merely flushed is why. */
static bool handle(struct verbs_datagram *endpoint, const struct ibv_wc *wc)
{
    if (!verbs_mark_is_of_this_life(endpoint, wc->wr_id))
        return false;
    if (wc->status != IBV_WC_SUCCESS) {
        int fault = verbs_fault_of(endpoint->domain, wc->status);

        verbs_datagram_pair_mend(endpoint, verbs_fault_error(fault), verbs_fault_code(fault));
        return false;
    }
    if (!verbs_mark_is_receive(wc->wr_id))
        verbs_datagram_sent(endpoint, verbs_mark_number(wc->wr_id));
    return true;
}

static int poll(struct verbs_datagram *endpoint)
{
    struct ibv_wc completions[BATCH];
    int count = ibv_poll_cq(endpoint->cq, BATCH, completions), kept = 0;

    if (count < 0 || atomic_exchange_explicit(&endpoint->told.fatal, 0, memory_order_acquire)) {
        verbs_datagram_pair_mend(endpoint, ECONNRESET, 0);
        return 1;
    }
    for (int i = 0; i < count; i++)
        if (handle(endpoint, &completions[i]))
            completions[kept++] = completions[i];
    if (kept)
        verbs_datagram_arrived(endpoint, completions, kept);
    return count;
}

static int datagram_progress(struct ofp_endpoint *base)
{
    struct verbs_datagram *endpoint = verbs_datagram_of(base);

    return endpoint->dead ? 0 : poll(endpoint);
}

static bool datagram_arm(struct ofp_endpoint *base)
{
    struct verbs_datagram *endpoint = verbs_datagram_of(base);

    if (endpoint->dead)
        return true;
    if (!endpoint->armed && ibv_req_notify_cq(endpoint->cq, 0) != 0)
        return false;
    endpoint->armed = true;
    return poll(endpoint) == 0;
}

/* What was asked to tell does so once, which costs one look. */
static void datagram_disarm(struct ofp_endpoint *base) { (void)base; }

/* ---------------------------------------------------------------------------------------------------------- closing */

static int datagram_drain(struct ofp_endpoint *base)
{
    struct verbs_datagram *endpoint = verbs_datagram_of(base);

    return endpoint->dead || verbs_datagram_sends_are_over(endpoint) ? 0 : -EAGAIN;
}

static void datagram_close(struct ofp_endpoint *base, uint64_t deadline)
{
    (void)deadline;
    verbs_datagram_pair_close(verbs_datagram_of(base));
}

/* All that a message may say is in its posted room: nothing is announced. */
static void datagram_receive_start(struct ofp_endpoint *base, struct ofp_receive *receive)
{
    (void)base;
    ofp_receive_complete(receive, EPROTO, 0);
}

/* Nothing of an address tells more than another one of the same endpoint. */
static void datagram_readdressed(struct ofp_peer *peer) { (void)peer; }

const struct ofp_endpoint_ops verbs_datagram_ops = {
    .size = sizeof(struct ofp_endpoint_ops),
    .endpoint_size = sizeof(struct verbs_datagram),
    .peer_size = sizeof(struct verbs_datagram_peer),
    .open = datagram_open,
    .drain = datagram_drain,
    .close = datagram_close,
    .name = datagram_name,
    .connect = datagram_connect,
    .peer_down = datagram_peer_down,
    .peer_readdressed = datagram_readdressed,
    .post = verbs_datagram_post,
    .receive_start = datagram_receive_start,
    .progress = datagram_progress,
    .arm = datagram_arm,
    .disarm = datagram_disarm,
};
