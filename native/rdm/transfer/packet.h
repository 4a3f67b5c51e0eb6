/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets as on the wire: little-endian; docs/explanation/rdm.md has the layout. No side effects. Everything that a
 * peer may have written is checked here.
 */
#ifndef OFPI_RDM_PACKET_H
#define OFPI_RDM_PACKET_H

#include "ofipy/types.h"

/* The versions that this side speaks. A test of versions sets others. */
#ifndef OFPI_RDM_VERSION
#define OFPI_RDM_VERSION 1
#define OFPI_RDM_OLDEST 1
#endif

enum ofpi_rdm_kind {
    OFPI_RDM_CREDIT,
    OFPI_RDM_EAGER,
    OFPI_RDM_ANNOUNCE,
    OFPI_RDM_PULL,
    OFPI_RDM_DATA,
    OFPI_RDM_PUSHED,
    OFPI_RDM_DONE,
    OFPI_RDM_REMOTE,
    OFPI_RDM_ANSWER,
    OFPI_RDM_NOTICE,
    OFPI_RDM_KINDS
};

#define OFPI_RDM_HAS_DATA 0x1
#define OFPI_RDM_FETCH 0x2
#define OFPI_RDM_LAST 0x4
#define OFPI_RDM_FULL 0x80 /* in any packet: the sender's core wants announcements only */

/*
 * The largest header of a packet with `count` pieces and without payload, and the smallest payload space of every
 * packet.
 */
#define OFPI_RDM_HEADER_MAX(count) (40 + (count) * 24u)
#define OFPI_RDM_ROOM_MIN 256
#define OFPI_RDM_PACKET_MIN (OFPI_RDM_HEADER_MAX(OFP_SEGMENT_LIMIT) + OFPI_RDM_ROOM_MIN)
#define OFPI_RDM_EAGER_HEADER 24

/* A piece of memory of a peer. In announcements and pulls it is named by address, in RMA and atomics by offset. */
struct ofpi_rdm_piece {
    uint64_t address, length, key;
};

/* A decoded packet. Only the fields of its kind are meaningful. */
struct ofpi_rdm_packet {
    uint8_t kind, flags;
    uint16_t credits[2]; /* by enum ofpi_credit_class */
    uint8_t channel, count;
    uint8_t op, atomic_op, datatype;
    uint64_t tag, data;
    uint64_t id;
    uint64_t receive;
    uint64_t offset;
    uint64_t length; /* of the message, of the requested payload, or of this part */
    int32_t error, reason;
    const uint8_t *payload;
    uint32_t payload_length;
    struct ofpi_rdm_piece pieces[OFP_SEGMENT_LIMIT];
};

/* Size of the header. */
uint32_t ofpi_rdm_header_compute_size(enum ofpi_rdm_kind kind, uint32_t count);
/* Encode everything but the credits and the payload. Returns the offset of the payload. `bytes` has space for that. */
uint32_t ofpi_rdm_encode(const struct ofpi_rdm_packet *packet, uint8_t *bytes);
/* Encode the credits and whether the core is full, last, in the packet that leaves. */
void ofpi_rdm_encode_credits(uint8_t *bytes, const uint16_t credits[2], bool full);
/* Decode and check a packet. NULL, or what is wrong. packet->payload points into `bytes`. */
const char *ofpi_rdm_decode(const uint8_t *bytes, uint32_t length, struct ofpi_rdm_packet *packet);

/* The hello of either side of a connection setup. */
#define OFPI_RDM_HELLO_SIZE 40
struct ofpi_rdm_hello {
    uint8_t version, oldest;
    bool connects_only;
    uint32_t packet_size;
    uint16_t credits[2];
    uint64_t incarnation; /* not 0 */
    uint8_t identity[16];
};
void ofpi_rdm_hello_encode(const struct ofpi_rdm_hello *hello, uint8_t bytes[OFPI_RDM_HELLO_SIZE]);
/*
 * 0, or with a text: -EPROTONOSUPPORT if no version is common, else -ECONNREFUSED. The first 6 bytes are the same in every version;
 * bytes behind a hello are for later ones.
 */
int ofpi_rdm_hello_decode(const uint8_t *bytes, size_t length, struct ofpi_rdm_hello *hello, char *text,
                          size_t text_size);

#endif
