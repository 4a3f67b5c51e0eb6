/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdm/transfer/packet.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "meet/versions.h"
#include "ofipy/operation.h"

static const char magic[] = {'o', 'f', 'p', 'R'};

/* Layout of a kind of packet. */
struct kind {
    uint8_t size;  /* of the header, without pieces */
    uint8_t flags; /* flags that it may have */
    bool pieces, payload;
};

static const struct kind kinds[OFPI_RDM_KINDS] = {
    [OFPI_RDM_CREDIT] = {8, 0, false, false},
    [OFPI_RDM_EAGER] = {OFPI_RDM_EAGER_HEADER, OFPI_RDM_HAS_DATA, false, true},
    [OFPI_RDM_ANNOUNCE] = {40, OFPI_RDM_HAS_DATA | OFPI_RDM_FETCH, true, false},
    [OFPI_RDM_PULL] = {32, 0, true, false},
    [OFPI_RDM_DATA] = {24, 0, false, true},
    [OFPI_RDM_PUSHED] = {24, 0, false, false},
    [OFPI_RDM_DONE] = {24, 0, false, false},
    [OFPI_RDM_REMOTE] = {40, OFPI_RDM_HAS_DATA | OFPI_RDM_LAST, true, true},
    [OFPI_RDM_ANSWER] = {32, 0, false, true},
    [OFPI_RDM_NOTICE] = {24, 0, false, false},
};

uint32_t ofpi_rdm_header_compute_size(enum ofpi_rdm_kind kind, uint32_t count)
{
    return kinds[kind].size + (kinds[kind].pieces ? count * 24 : 0);
}

/* ---------------------------------------------------------------------------------------------------------- fields */

static uint64_t decode_u64(const uint8_t *bytes)
{
    uint64_t value;

    memcpy(&value, bytes, sizeof(value));
    return le64toh(value);
}

static uint32_t decode_u32(const uint8_t *bytes)
{
    uint32_t value;

    memcpy(&value, bytes, sizeof(value));
    return le32toh(value);
}

static uint16_t decode_u16(const uint8_t *bytes) { return (uint16_t)(bytes[0] | bytes[1] << 8); }

static void encode_u64(uint8_t *bytes, uint64_t value)
{
    value = htole64(value);
    memcpy(bytes, &value, sizeof(value));
}

static void encode_u32(uint8_t *bytes, uint32_t value)
{
    value = htole32(value);
    memcpy(bytes, &value, sizeof(value));
}

static void encode_u16(uint8_t *bytes, uint16_t value)
{
    bytes[0] = (uint8_t)value;
    bytes[1] = (uint8_t)(value >> 8);
}

/* --------------------------------------------------------------------------------------------------------- writing */

static void encode_remote(const struct ofpi_rdm_packet *packet, uint8_t *bytes)
{
    encode_u64(bytes + 8, packet->id);
    encode_u64(bytes + 16, packet->data);
    encode_u64(bytes + 24, packet->offset);
    encode_u32(bytes + 32, (uint32_t)packet->length);
    bytes[36] = packet->op;
    bytes[37] = packet->atomic_op;
    bytes[38] = packet->datatype;
    bytes[39] = 0;
}

static void encode_fields(const struct ofpi_rdm_packet *packet, uint8_t *bytes)
{
    switch ((enum ofpi_rdm_kind)packet->kind) {
    case OFPI_RDM_ANNOUNCE:
        encode_u64(bytes + 24, packet->id);
        encode_u64(bytes + 32, packet->length);
        /* fall through */
    case OFPI_RDM_EAGER:
        encode_u64(bytes + 8, packet->tag);
        encode_u64(bytes + 16, packet->data);
        break;
    case OFPI_RDM_PULL:
        encode_u64(bytes + 8, packet->id);
        encode_u64(bytes + 16, packet->receive);
        encode_u64(bytes + 24, packet->length);
        break;
    case OFPI_RDM_DATA:
        encode_u64(bytes + 8, packet->receive);
        encode_u64(bytes + 16, packet->offset);
        break;
    case OFPI_RDM_PUSHED:
    case OFPI_RDM_DONE:
        encode_u64(bytes + 8, packet->kind == OFPI_RDM_DONE ? packet->id : packet->receive);
        encode_u32(bytes + 16, (uint32_t)packet->error);
        encode_u32(bytes + 20, 0);
        break;
    case OFPI_RDM_REMOTE:
        encode_remote(packet, bytes);
        break;
    case OFPI_RDM_ANSWER:
        encode_u64(bytes + 8, packet->id);
        encode_u64(bytes + 16, packet->offset);
        encode_u32(bytes + 24, (uint32_t)packet->error);
        encode_u32(bytes + 28, (uint32_t)packet->reason);
        break;
    case OFPI_RDM_NOTICE:
        encode_u64(bytes + 8, packet->data);
        encode_u64(bytes + 16, packet->length);
        break;
    case OFPI_RDM_CREDIT:
    case OFPI_RDM_KINDS:
        break;
    }
}

uint32_t ofpi_rdm_encode(const struct ofpi_rdm_packet *packet, uint8_t *bytes)
{
    uint8_t *piece = bytes + kinds[packet->kind].size;

    bytes[0] = packet->kind;
    bytes[1] = packet->flags;
    encode_u32(bytes + 2, 0);
    bytes[6] = packet->channel;
    bytes[7] = packet->count;
    encode_fields(packet, bytes);
    for (uint32_t i = 0; i < packet->count; i++, piece += 24) {
        encode_u64(piece, packet->pieces[i].address);
        encode_u64(piece + 8, packet->pieces[i].length);
        encode_u64(piece + 16, packet->pieces[i].key);
    }
    return (uint32_t)(piece - bytes);
}

void ofpi_rdm_encode_credits(uint8_t *bytes, const uint16_t credits[2], bool full)
{
    if (full)
        bytes[1] |= OFPI_RDM_FULL;
    encode_u16(bytes + 2, credits[0]);
    encode_u16(bytes + 4, credits[1]);
}

/* --------------------------------------------------------------------------------------------------------- reading */

static void decode_fields(const uint8_t *bytes, struct ofpi_rdm_packet *packet)
{
    switch ((enum ofpi_rdm_kind)packet->kind) {
    case OFPI_RDM_ANNOUNCE:
        packet->id = decode_u64(bytes + 24);
        packet->length = decode_u64(bytes + 32);
        /* fall through */
    case OFPI_RDM_EAGER:
        packet->tag = decode_u64(bytes + 8);
        packet->data = decode_u64(bytes + 16);
        break;
    case OFPI_RDM_PULL:
        packet->id = decode_u64(bytes + 8);
        packet->receive = decode_u64(bytes + 16);
        packet->length = decode_u64(bytes + 24);
        break;
    case OFPI_RDM_DATA:
        packet->receive = decode_u64(bytes + 8);
        packet->offset = decode_u64(bytes + 16);
        break;
    case OFPI_RDM_PUSHED:
    case OFPI_RDM_DONE:
        packet->id = packet->receive = decode_u64(bytes + 8);
        packet->error = (int32_t)decode_u32(bytes + 16);
        break;
    case OFPI_RDM_REMOTE:
        packet->id = decode_u64(bytes + 8);
        packet->data = decode_u64(bytes + 16);
        packet->offset = decode_u64(bytes + 24);
        packet->length = decode_u32(bytes + 32);
        packet->op = bytes[36];
        packet->atomic_op = bytes[37];
        packet->datatype = bytes[38];
        break;
    case OFPI_RDM_ANSWER:
        packet->id = decode_u64(bytes + 8);
        packet->offset = decode_u64(bytes + 16);
        packet->error = (int32_t)decode_u32(bytes + 24);
        packet->reason = (int32_t)decode_u32(bytes + 28);
        break;
    case OFPI_RDM_NOTICE:
        packet->data = decode_u64(bytes + 8);
        packet->length = decode_u64(bytes + 16);
        break;
    case OFPI_RDM_CREDIT:
    case OFPI_RDM_KINDS:
        break;
    }
}

/* Decode the pieces and sum their lengths. False: an address or the sum wraps around. */
static bool decode_pieces(const uint8_t *bytes, bool by_address, struct ofpi_rdm_packet *packet, uint64_t *sum)
{
    *sum = 0;
    for (uint32_t i = 0; i < packet->count; i++, bytes += 24) {
        struct ofpi_rdm_piece piece = {decode_u64(bytes), decode_u64(bytes + 8), decode_u64(bytes + 16)};

        if (piece.length > UINT64_MAX - *sum || (by_address && piece.length > UINT64_MAX - piece.address))
            return false;
        *sum += piece.length;
        packet->pieces[i] = piece;
    }
    return true;
}

/* A part has exactly the operands of its operation. */
static const char *check_remote(const struct ofpi_rdm_packet *packet, uint64_t sum)
{
    const struct ofp_operation_row *row = ofp_operation_row(packet->op);
    uint64_t operands = packet->length;

    if (!(row->traits & OFP_REMOTE) || !packet->count)
        return "a request for no operation on memory";
    if (packet->offset > sum || packet->length > sum - packet->offset)
        return "a part that is not within its operation";
    if (!(ofp_operation_remote_access(packet->op, packet->atomic_op) & OFP_ACCESS_REMOTE_WRITE))
        operands = 0;
    else if (row->traits & OFP_COMPARES)
        operands *= 2;
    return packet->payload_length == operands ? NULL : "a request with operands of another length";
}

static const char *check_packet(const struct ofpi_rdm_packet *packet, uint64_t sum)
{
    bool message = packet->kind == OFPI_RDM_EAGER || packet->kind == OFPI_RDM_ANNOUNCE;

    /* Message kinds have a channel of enum ofp_channel; all others have 0. */
    if (packet->channel > (message ? OFP_CHANNEL_INTERNAL : 0))
        return "a message on no channel";
    if (packet->error < 0 || packet->reason < 0)
        return "an error that is none";
    if (packet->kind == OFPI_RDM_REMOTE)
        return check_remote(packet, sum);
    if (packet->count && sum != packet->length)
        return "memory of another length than it is for";
    return NULL;
}

const char *ofpi_rdm_decode(const uint8_t *bytes, uint32_t length, struct ofpi_rdm_packet *packet)
{
    const struct kind *kind;
    uint32_t header;
    uint64_t sum;

    /* Pieces are filled in up to `count`; clearing all would cost more. */
    memset(packet, 0, offsetof(struct ofpi_rdm_packet, pieces));
    if (length < kinds[OFPI_RDM_CREDIT].size || bytes[0] >= OFPI_RDM_KINDS)
        return "a packet of no kind";
    packet->kind = bytes[0];
    packet->flags = bytes[1];
    packet->credits[0] = decode_u16(bytes + 2);
    packet->credits[1] = decode_u16(bytes + 4);
    packet->channel = bytes[6];
    packet->count = bytes[7];
    kind = &kinds[packet->kind];
    if (packet->flags & ~(kind->flags | OFPI_RDM_FULL) || packet->count > (kind->pieces ? OFP_SEGMENT_LIMIT : 0))
        return "a packet with what its kind does not have";
    header = ofpi_rdm_header_compute_size((enum ofpi_rdm_kind)packet->kind, packet->count);
    if (length < header || (length > header && !kind->payload))
        return "a packet of a length that its kind does not have";
    decode_fields(bytes, packet);
    packet->payload = bytes + header;
    packet->payload_length = length - header;
    if (!decode_pieces(bytes + kind->size, packet->kind != OFPI_RDM_REMOTE, packet, &sum))
        return "memory that wraps around";
    return check_packet(packet, sum);
}

/* ----------------------------------------------------------------------------------------------------------- hello */

void ofpi_rdm_hello_encode(const struct ofpi_rdm_hello *hello, uint8_t bytes[OFPI_RDM_HELLO_SIZE])
{
    memcpy(bytes, magic, sizeof(magic));
    bytes[4] = hello->version;
    bytes[5] = hello->oldest;
    bytes[6] = hello->connects_only;
    bytes[7] = 0;
    encode_u32(bytes + 8, hello->packet_size);
    encode_u16(bytes + 12, hello->credits[0]);
    encode_u16(bytes + 14, hello->credits[1]);
    encode_u64(bytes + 16, hello->incarnation);
    memcpy(bytes + 24, hello->identity, sizeof(hello->identity));
}

int ofpi_rdm_hello_decode(const uint8_t *bytes, size_t length, struct ofpi_rdm_hello *hello, char *text,
                          size_t text_size)
{
    const struct ofpi_versions ours = {OFPI_RDM_VERSION, OFPI_RDM_OLDEST};
    struct ofpi_versions theirs;

    if (length < 6 || memcmp(bytes, magic, sizeof(magic)) != 0) {
        snprintf(text, text_size, "who is there speaks another protocol than ofipy's");
        return -ECONNREFUSED;
    }
    hello->version = bytes[4];
    hello->oldest = bytes[5];
    theirs = (struct ofpi_versions){hello->version, hello->oldest};
    if (!ofpi_versions_are_compatible(ours, theirs)) {
        ofpi_versions_describe("the rdm protocol", ours, theirs, text, text_size);
        return -EPROTONOSUPPORT;
    }
    if (length >= OFPI_RDM_HELLO_SIZE) {
        hello->connects_only = bytes[6];
        hello->packet_size = decode_u32(bytes + 8);
        hello->credits[0] = decode_u16(bytes + 12);
        hello->credits[1] = decode_u16(bytes + 14);
        hello->incarnation = decode_u64(bytes + 16);
        memcpy(hello->identity, bytes + 24, sizeof(hello->identity));
        if (hello->packet_size >= OFPI_RDM_PACKET_MIN && hello->credits[0] && hello->credits[1] && hello->incarnation)
            return 0;
    }
    snprintf(text, text_size, "it says nothing with which a connection could begin");
    return -ECONNREFUSED;
}
