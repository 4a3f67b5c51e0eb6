/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The least that is a provider: endpoints that reach themselves. Short messages are handed over in the call that sends them,
 * long ones are announced, and copied when a receive has matched. Nothing is ever on its way, so there is no descriptor to
 * sleep on, and progress is for what the core had no room for.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ofipy/iov.h"
#include "ofipy/services.h"

#define SHORT 256 /* bytes that are handed over at once */

static const char magic[8] = {'L', 'O', 'O', 'P', 'B', 'A', 'C', 'K'};

struct address {
    char magic[sizeof(magic)];
    uint64_t process, number;
};

struct loopback {
    struct address address;
    struct ofp_pending *waiting; /* the core had no room for its announcement; what comes behind it waits too */
};

static const struct ofp_core *core;

static struct loopback *private_of(struct ofp_endpoint *endpoint) { return endpoint->private; }

/* ------------------------------------------------------------------------------------------------------- endpoints */

static int open_endpoint(struct ofp_endpoint *endpoint, const char *service, char *text, size_t text_size)
{
    static _Atomic uint64_t last_number; /* domains have locks of their own */

    if (service) {
        snprintf(text, text_size, "endpoints of loopback have no service, not %s either: insert their address",
                 service);
        return -EINVAL;
    }
    private_of(endpoint)->address = (struct address){.process = (uint64_t)getpid(), .number = ++last_number};
    memcpy(private_of(endpoint)->address.magic, magic, sizeof(magic));
    return 0;
}

static void close_endpoint(struct ofp_endpoint *endpoint, uint64_t deadline) { (void)endpoint, (void)deadline; }

static int name_endpoint(struct ofp_endpoint *endpoint, void *address, size_t *length)
{
    size_t room = *length;

    *length = sizeof(struct address);
    if (room < *length)
        return -OFP_ETOOSMALL;
    memcpy(address, &private_of(endpoint)->address, *length);
    return 0;
}

static int connect_peer(struct ofp_peer *peer, char *text, size_t text_size)
{
    if (memcmp(peer->address, &private_of(peer->endpoint)->address, sizeof(struct address)) != 0) {
        snprintf(text, text_size, "an endpoint of loopback reaches itself only; open both with another provider");
        return -EHOSTUNREACH;
    }
    ofp_peer_up(peer);
    return 0;
}

/* The core ends what was pending, and forgets what was announced. */
static void peer_down(struct ofp_peer *peer) { private_of(peer->endpoint)->waiting = NULL; }

/* -------------------------------------------------------------------------------------------------------- messages */

static struct ofp_message describe(struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    return (struct ofp_message){
        .peer = peer,
        .source = peer->index,
        .channel = ofp_operation_row(transfer->op->op)->channel,
        .has_data = (transfer->op->flags & OFP_REMOTE_CQ_DATA) != 0,
        .tag = transfer->op->tag,
        .data = transfer->op->data,
        .length = transfer->length,
    };
}

/* A receive that is posted already matches now: receive_start is called from within, and the operation is over. */
static void announce(struct ofp_pending *pending)
{
    struct ofp_message message = describe(pending->peer, &pending->transfer);
    int result;

    message.provider_data[0] = pending->id;
    result = ofp_message_announced(pending->peer->endpoint, &message);
    if (result == -ENOBUFS)
        private_of(pending->peer->endpoint)->waiting = pending;
    else if (result)
        ofp_transfer_complete(pending, -result, 0);
}

static int post(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    struct ofp_message message = describe(peer, transfer);
    struct ofp_pending *pending;
    char payload[SHORT];
    int result;

    if (private_of(endpoint)->waiting)
        return -EAGAIN;
    if (transfer->length <= SHORT && !(transfer->op->flags & OFP_MATCH_COMPLETE)) {
        ofp_iov_gather(payload, transfer->iov, transfer->iov_count, 0, transfer->length);
        result = ofp_message_arrived(endpoint, &message, payload);
        if (result != -EAGAIN)
            return result ? result : OFP_POST_DONE;
        /* Too much payload that nobody has received: the core still takes announcements. */
    }
    pending = ofp_transfer_retain(endpoint, peer, transfer);
    if (!pending)
        return -EAGAIN;
    announce(pending);
    return OFP_POST_PENDING;
}

/* The peer is this endpoint, so what it announced is one of its own operations, unless it was cancelled meanwhile. */
static void receive_start(struct ofp_endpoint *endpoint, struct ofp_receive *receive)
{
    struct ofp_pending *pending = ofp_pending_find(receive->message.peer, receive->message.provider_data[0]);
    uint64_t written = 0;

    (void)endpoint;
    for (uint32_t i = 0; pending && i < pending->transfer.iov_count && written < receive->length; i++) {
        const struct iovec *iov = &pending->transfer.iov[i];
        uint64_t room = receive->length - written, piece = iov->iov_len < room ? iov->iov_len : room;

        ofp_receive_write(receive, written, iov->iov_base, piece);
        written += piece;
    }
    ofp_receive_complete(receive, pending ? 0 : ECANCELED, 0);
    if (pending)
        ofp_transfer_complete(pending, 0, 0);
}

static int progress(struct ofp_endpoint *endpoint)
{
    struct ofp_pending *pending = private_of(endpoint)->waiting;

    private_of(endpoint)->waiting = NULL;
    if (pending)
        announce(pending);
    return pending && !private_of(endpoint)->waiting;
}

static bool arm(struct ofp_endpoint *endpoint) { return !private_of(endpoint)->waiting; }

static void disarm(struct ofp_endpoint *endpoint) { (void)endpoint; }

static const struct ofp_endpoint_ops table = {
    .size = sizeof(struct ofp_endpoint_ops),
    .endpoint_size = sizeof(struct loopback),
    .open = open_endpoint,
    .close = close_endpoint,
    .name = name_endpoint,
    .connect = connect_peer,
    .peer_down = peer_down,
    .post = post,
    .receive_start = receive_start,
    .progress = progress,
    .arm = arm,
    .disarm = disarm,
};

/* ------------------------------------------------------------------------------------- discovery, addresses, entry */

static int getinfo(struct ofp_info *infos, int max, char *text, size_t text_size)
{
    (void)text, (void)text_size; /* for who cannot run here */
    if (max < 1)
        return 0;
    infos[0] = (struct ofp_info){
        .provider = "loopback",
        .fabric = "loopback",
        .domain = "loopback",
        .protocol = "loopback",
        .ep_types = OFP_EP_RDM,
        .caps = OFP_CAP_MSG | OFP_CAP_TAGGED | OFP_CAP_DIRECTED_RECV | OFP_CAP_SOURCE | OFP_CAP_LOCAL_COMM,
        .msg_order = OFP_ORDER_SAS,
        .max_msg_size = INT64_MAX,
        .inject_size = SHORT,
        .tx_size = core->param_size("TX_QUEUE"),
        .rx_size = UINT64_MAX,
        .segment_limit = OFP_SEGMENT_LIMIT,
        .cq_data_size = 8,
        .address_format = OFP_ADDRESS_OPAQUE,
        .wait_fd = 1,
    };
    return 1;
}

static int resolve(const struct ofp_info *info, const char *node, const char *service, void *address, size_t *length,
                   char *text, size_t text_size)
{
    (void)info, (void)node, (void)service, (void)address, (void)length;
    snprintf(text, text_size, "endpoints of loopback have no names: insert the endpoint's own address");
    return -EHOSTUNREACH;
}

static int check(const struct ofp_info *info, const void *address, size_t length)
{
    (void)info;
    return length == sizeof(struct address) && memcmp(address, magic, sizeof(magic)) == 0 ? 0 : -EINVAL;
}

static int format(const struct ofp_info *info, const void *bytes, size_t length, char *text, size_t text_size)
{
    struct address address;

    (void)info, (void)length; /* the core has checked it */
    memcpy(&address, bytes, sizeof(address));
    snprintf(text, text_size, "%" PRIu64 ":%" PRIu64, address.process, address.number);
    return 0;
}

static const struct ofp_endpoint_ops *endpoint_ops(const struct ofp_info *info)
{
    (void)info;
    return &table;
}

static const struct ofp_provider provider = {
    .abi = OFP_PROVIDER_ABI,
    .size = sizeof(struct ofp_provider),
    .info_size = sizeof(struct ofp_info),
    .version = 0 << 16 | 1,
    .name = "loopback",
    .description = "endpoints that reach themselves: the least that is a provider",
    .getinfo = getinfo,
    .resolve = resolve,
    .address_check = check,
    .address_format = format,
    .endpoint_ops = endpoint_ops,
};

__attribute__((visibility("default"))) const struct ofp_provider *ofp_provider_entry(const struct ofp_core *services);

const struct ofp_provider *ofp_provider_entry(const struct ofp_core *services)
{
    core = services;
    return core->abi == OFP_PROVIDER_ABI ? &provider : NULL;
}
