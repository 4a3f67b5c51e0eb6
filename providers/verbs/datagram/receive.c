/* SPDX-License-Identifier: BSD-3-Clause */
#include "datagram/receive.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "datagram/work_id.h"

#define BATCH 16

/* ------------------------------------------------------------------------------------------------------------ rooms */

static char *buffer_of_number(const struct verbs_datagram *endpoint, uint32_t number)
{
    return endpoint->buffers + (size_t)number * endpoint->buffer_size;
}

/* Receive buffers that are posted together. */
struct batch {
    struct ibv_recv_wr requests[BATCH];
    struct ibv_sge segments[BATCH];
    int count;
};

static void add_to_batch(struct verbs_datagram *endpoint, struct batch *batch, uint32_t number)
{
    int place = batch->count++;

    /* The first byte tells the two kinds of headers apart, so that of the last message must not remain. */
    buffer_of_number(endpoint, number)[0] = 0;
    batch->segments[place] = (struct ibv_sge){.addr = (uintptr_t)buffer_of_number(endpoint, number),
                                              .length = VERBS_GRH_SIZE + endpoint->limit,
                                              .lkey = endpoint->buffers_mr->lkey};
    batch->requests[place] = (struct ibv_recv_wr){
        .wr_id = verbs_work_id_build(endpoint, number, true), .sg_list = &batch->segments[place], .num_sge = 1};
    if (place)
        batch->requests[place - 1].next = &batch->requests[place];
}

static int post_batch(struct verbs_datagram *endpoint, struct batch *batch)
{
    struct ibv_recv_wr *bad;

    return batch->count ? -ibv_post_recv(endpoint->qp, batch->requests, &bad) : 0;
}

int verbs_datagram_buffers_post(struct verbs_datagram *endpoint)
{
    int result = 0;

    for (uint32_t number = 0; number < endpoint->buffer_count && !result;) {
        struct batch batch = {.count = 0};

        while (number < endpoint->buffer_count && batch.count < BATCH)
            add_to_batch(endpoint, &batch, number++);
        result = post_batch(endpoint, &batch);
    }
    return result;
}

/* ---------------------------------------------------------------------------------------------------------- messages */

/*
 * For IPv4 over Ethernet (RoCE v2) the device writes the packet's IP header into the second half of the 40 bytes, and
 * nothing into the first half.
 */
#define IPV4_SIZE 20
#define IPV4_SOURCE 12

static bool has_valid_checksum(const uint8_t header[IPV4_SIZE])
{
    uint32_t sum = 0;

    for (int i = 0; i < IPV4_SIZE; i += 2)
        sum += (uint32_t)header[i] << 8 | header[i + 1];
    return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

/*
 * In all other cases the 40 bytes begin with a 6 (IPv6, or InfiniBand's GRH). The first half may also contain old
 * bytes, so the checksum of the IPv4 header decides.
 */
static bool is_ipv4(const uint8_t *front, const uint8_t header[IPV4_SIZE])
{
    return header[0] == 0x45 && (front[0] >> 4 != 6 || has_valid_checksum(header));
}

static void read_source_gid(const char *front, union ibv_gid *gid)
{
    const uint8_t *bytes = (const uint8_t *)front, *ipv4 = bytes + VERBS_GRH_SIZE - IPV4_SIZE;

    if (is_ipv4(bytes, ipv4)) {
        memset(gid, 0, sizeof(*gid));
        gid->raw[10] = gid->raw[11] = 0xff;
        memcpy(gid->raw + 12, ipv4 + IPV4_SOURCE, 4);
    } else {
        /* IPv6 and InfiniBand's GRH have the source GID in the same place. */
        memcpy(gid->raw, ((const struct ibv_grh *)(const void *)bytes)->sgid.raw, sizeof(gid->raw));
    }
}

static uint32_t find_source(struct verbs_datagram *endpoint, const char *front, const struct ibv_wc *wc)
{
    struct verbs_datagram_address address = {.qpn = wc->src_qp};

    if (!(wc->wc_flags & IBV_WC_GRH))
        return OFP_PEER_UNKNOWN;
    read_source_gid(front, &address.gid);
    return ofp_source_find(endpoint->base, &address, sizeof(address));
}

static void deliver_datagram(struct verbs_datagram *endpoint, const struct ibv_wc *wc)
{
    const char *front = buffer_of_number(endpoint, verbs_number_of_work_id(wc->wr_id));
    struct ofp_message message = {.channel = OFP_CHANNEL_MESSAGE};

    if (wc->byte_len < VERBS_GRH_SIZE)
        return;
    message.length = wc->byte_len - VERBS_GRH_SIZE;
    message.source = find_source(endpoint, front, wc);
    if (wc->wc_flags & IBV_WC_WITH_IMM) {
        message.has_data = true;
        message.data = ntohl(wc->imm_data);
    }
    if (ofp_message_arrived(endpoint->base, &message, front + VERBS_GRH_SIZE) != 0)
        ofp_message_dropped(endpoint->base);
}

void verbs_datagram_arrived(struct verbs_datagram *endpoint, const struct ibv_wc *completions, int count)
{
    struct batch batch = {.count = 0};
    int error;

    for (int i = 0; i < count; i++) {
        if (!verbs_work_id_is_receive(completions[i].wr_id))
            continue;
        deliver_datagram(endpoint, &completions[i]);
        add_to_batch(endpoint, &batch, verbs_number_of_work_id(completions[i].wr_id));
    }
    error = -post_batch(endpoint, &batch);
    if (error)
        verbs_core->log(OFP_LOG_ERROR, VERBS_NAME, "endpoint %u: the device takes no receive: %s", endpoint->base->id,
                        strerror(error));
}
