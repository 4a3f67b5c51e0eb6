/* SPDX-License-Identifier: BSD-3-Clause */
#include "stream/wire.h"

#include <errno.h>
#include <string.h>

#define CONTROL_CONN_DATA 24
#define REMOTE_SIZE 24

/* ---------------------------------------------------------------------------------------------------------- numbers */

static uint16_t decode_u16(const uint8_t *bytes, bool swapped)
{
    uint16_t value;

    memcpy(&value, bytes, sizeof(value));
    return swapped ? __builtin_bswap16(value) : value;
}

static uint64_t decode_u64(const uint8_t *bytes, bool swapped)
{
    uint64_t value;

    memcpy(&value, bytes, sizeof(value));
    return swapped ? __builtin_bswap64(value) : value;
}

static void encode_u16(uint8_t *bytes, uint16_t value, bool swapped)
{
    if (swapped)
        value = __builtin_bswap16(value);
    memcpy(bytes, &value, sizeof(value));
}

static uint8_t *encode_u64(uint8_t *bytes, uint64_t value, bool swapped)
{
    if (swapped)
        value = __builtin_bswap64(value);
    memcpy(bytes, &value, sizeof(value));
    return bytes + sizeof(value);
}

/* The extension's fields are little-endian on every machine. */
static const bool host_is_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;

/* ------------------------------------------------------------------------------------------------ control messages */

void tcp_control_encode(const struct tcp_control *control, uint8_t bytes[TCP_CONTROL_SIZE])
{
    memset(bytes, 0, TCP_CONTROL_SIZE);
    bytes[0] = TCP_WIRE_VERSION;
    bytes[1] = control->type;
    bytes[2] = (uint8_t)(control->private_size >> 8);
    bytes[3] = (uint8_t)control->private_size;
    encode_u64(bytes + 8, control->magic, host_is_big);
    encode_u64(bytes + 16, control->capabilities, host_is_big);
    if (control->type != TCP_NACK)
        encode_u64(bytes + CONTROL_CONN_DATA, 1, false);
}

int tcp_control_decode(const uint8_t bytes[TCP_CONTROL_SIZE], struct tcp_control *control)
{
    if (bytes[0] != TCP_WIRE_VERSION)
        return -EPROTONOSUPPORT;
    control->type = bytes[1];
    control->private_size = (uint16_t)(bytes[2] << 8 | bytes[3]);
    control->magic = decode_u64(bytes + 8, host_is_big);
    control->capabilities = decode_u64(bytes + 16, host_is_big);
    control->swapped = decode_u64(bytes + CONTROL_CONN_DATA, false) != 1;
    if (control->type != TCP_CONNREQ && control->type != TCP_CONNRESP && control->type != TCP_NACK)
        return -EPROTO;
    return control->private_size <= TCP_PRIVATE_MAX ? 0 : -EPROTO;
}

void tcp_rdm_encode(const struct tcp_rdm *rdm, uint8_t bytes[TCP_RDM_SIZE])
{
    bytes[0] = rdm->version;
    bytes[1] = rdm->features;
    bytes[2] = (uint8_t)(rdm->port >> 8);
    bytes[3] = (uint8_t)rdm->port;
    bytes[4] = (uint8_t)(rdm->pid >> 24);
    bytes[5] = (uint8_t)(rdm->pid >> 16);
    bytes[6] = (uint8_t)(rdm->pid >> 8);
    bytes[7] = (uint8_t)rdm->pid;
}

void tcp_rdm_decode(const uint8_t bytes[TCP_RDM_SIZE], struct tcp_rdm *rdm)
{
    rdm->version = bytes[0];
    rdm->features = bytes[1];
    rdm->port = (uint16_t)(bytes[2] << 8 | bytes[3]);
    rdm->pid = (uint32_t)bytes[4] << 24 | (uint32_t)bytes[5] << 16 | (uint32_t)bytes[6] << 8 | bytes[7];
}

/* --------------------------------------------------------------------------------------------------- data messages */

/* The parts behind the base header of an op, in this order. Remote CQ data are present only with their flag. */
static const struct parts {
    bool data, tag, length, remote, payload;
    uint8_t words;
} parts[TCP_OPS] = {
    [TCP_MSG] = {.data = true, .payload = true},
    [TCP_TAG] = {.data = true, .tag = true, .payload = true},
    [TCP_READ_REQ] = {.remote = true},
    [TCP_READ_RSP] = {.payload = true},
    [TCP_WRITE] = {.data = true, .remote = true, .payload = true},
    [TCP_TAG_RTS] = {.data = true, .tag = true, .length = true},
    [TCP_CTS] = {0},
    [TCP_DATA] = {.payload = true},
    [TCP_HELLO] = {.words = 5},
    [TCP_PROOF] = {.words = 4},
    [TCP_ANNOUNCE] = {.data = true, .tag = true, .length = true, .words = 1},
    [TCP_PULL] = {.words = 3},
    [TCP_PULLED] = {.words = 1, .payload = true},
    [TCP_REFUSED] = {.words = 1},
    [TCP_ATOMIC] = {.data = true, .remote = true, .payload = true},
    [TCP_FETCHED] = {.payload = true},
    [TCP_CREDIT] = {.words = 1},
    [TCP_GOODBYE] = {0},
    [TCP_INTERNAL] = {.data = true, .tag = true, .payload = true},
};

static bool has_data(const struct tcp_header *header)
{
    return parts[header->op].data && header->flags & TCP_FLAG_CQ_DATA && !tcp_header_is_ack(header);
}

size_t tcp_header_compute_size(const struct tcp_header *header)
{
    const struct parts *part = &parts[header->op];
    size_t words = (size_t)has_data(header) + part->tag + part->length + part->words;

    return TCP_HEADER_BASE + words * 8 + (part->remote ? header->remote_count * (size_t)REMOTE_SIZE : 0);
}

size_t tcp_header_encode(const struct tcp_header *header, uint8_t id, bool swapped, uint8_t *bytes)
{
    const struct parts *part = &parts[header->op];
    size_t size = tcp_header_compute_size(header);
    uint8_t *next = bytes + TCP_HEADER_BASE;

    bytes[0] = TCP_WIRE_VERSION;
    bytes[1] = header->op;
    encode_u16(bytes + 2, header->flags, swapped);
    bytes[4] = header->op_data;
    /* The answer to a read repeats the count of the request. */
    bytes[5] = header->remote_count;
    bytes[6] = (uint8_t)size;
    bytes[7] = id;
    encode_u64(bytes + 8, size + header->payload, swapped);
    if (has_data(header))
        next = encode_u64(next, header->data, swapped);
    if (part->tag)
        next = encode_u64(next, header->tag, swapped);
    if (part->length)
        next = encode_u64(next, header->length, swapped);
    for (unsigned i = 0; i < part->words; i++)
        next = encode_u64(next, header->words[i], swapped);
    for (unsigned i = 0; part->remote && i < header->remote_count; i++) {
        next = encode_u64(next, header->remote[i].offset, swapped);
        next = encode_u64(next, header->remote[i].length, swapped);
        next = encode_u64(next, header->remote[i].key, swapped);
    }
    return size;
}

static const char *decode_remote_segments(const uint8_t *bytes, bool swapped, struct tcp_header *header)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < header->remote_count; i++, bytes += REMOTE_SIZE) {
        struct ofp_remote_segment *remote = &header->remote[i];

        remote->offset = decode_u64(bytes, swapped);
        remote->length = decode_u64(bytes + 8, swapped);
        remote->key = decode_u64(bytes + 16, swapped);
        if (remote->length > INT64_MAX - sum)
            return "remote segments of impossible length";
        sum += remote->length;
    }
    header->length = sum;
    if (header->op == TCP_WRITE && sum != header->payload)
        return "a write whose payload is not as long as its target";
    if (header->op == TCP_ATOMIC && (sum > INT64_MAX / 2 || header->payload != tcp_atomic_compute_payload(header)))
        return "an atomic whose operands are not as long as its target";
    return NULL;
}

static const char *decode_base_header(const uint8_t *bytes, bool swapped, bool extended, struct tcp_header *header)
{
    uint64_t size = decode_u64(bytes + 8, swapped);

    header->op = bytes[1];
    header->flags = decode_u16(bytes + 2, swapped);
    header->op_data = bytes[4];
    header->remote_count = 0;
    header->header_size = bytes[6];
    if (header->op >= (extended ? TCP_OPS : TCP_STOCK_OPS))
        return "an unknown operation";
    if (header->op == TCP_MSG && header->op_data && !tcp_header_is_ack(header))
        return "an unknown kind of message";
    if (header->op == TCP_ANNOUNCE && header->op_data > OFP_CHANNEL_INTERNAL)
        return "an announcement on an unknown channel";
    /* In ops without remote segments this byte is undefined: libfabric does not clear it. */
    if (parts[header->op].remote) {
        header->remote_count = bytes[5];
        if (!header->remote_count || header->remote_count > TCP_REMOTE_MAX)
            return "an impossible number of remote segments";
    }
    if (header->header_size != tcp_header_compute_size(header))
        return "a header that is not as long as its contents";
    if (size < header->header_size || size > INT64_MAX)
        return "an impossible size";
    header->payload = size - header->header_size;
    if (header->payload && (!parts[header->op].payload || tcp_header_is_ack(header)))
        return "payload where there is none";
    return NULL;
}

const char *tcp_header_decode(const uint8_t *bytes, bool swapped, bool extended, struct tcp_header *header)
{
    const char *wrong = decode_base_header(bytes, swapped, extended, header);
    const struct parts *part = &parts[header->op < TCP_OPS ? header->op : 0];
    const uint8_t *next = bytes + TCP_HEADER_BASE;

    if (wrong)
        return wrong;
    header->data = header->tag = header->length = 0;
    if (has_data(header)) {
        header->data = decode_u64(next, swapped);
        next += 8;
    }
    if (part->tag) {
        header->tag = decode_u64(next, swapped);
        next += 8;
    }
    if (part->length) {
        header->length = decode_u64(next, swapped);
        if (header->length > INT64_MAX)
            return "an impossible length";
        next += 8;
    }
    for (unsigned i = 0; i < part->words; i++, next += 8)
        header->words[i] = decode_u64(next, swapped);
    return part->remote ? decode_remote_segments(next, swapped, header) : NULL;
}
