/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire protocol of libfabric's tcp provider, as bytes: control messages that set up a connection, then data
 * messages, each a header with its payload. These are pure functions without I/O. They check everything that they read.
 *
 *     control   version type seg_size(BE) … conn_data(sender's order) | private data
 *     data      version op flags op_data rma_count hdr_size id size | cq_data | tag | length | (addr len key) × n | payload
 *
 * The length of a header follows from its op, flags and count. A header whose hdr_size differs is rejected, since the
 * bytes behind it would be read as payload.
 */
#ifndef TCP_WIRE_H
#define TCP_WIRE_H

#include "ofipy/operation.h"

#define TCP_WIRE_VERSION 3

/* ------------------------------------------------------------------------------------------------ control messages */

#define TCP_CONTROL_SIZE 32
#define TCP_PRIVATE_MAX 256

enum tcp_control_type { TCP_CONNREQ = 0, TCP_CONNRESP = 1, TCP_NACK = 6 };

struct tcp_control {
    uint8_t type;
    uint16_t private_size;
    uint64_t magic;        /* conn_id: 0 from libfabric; the extension magic and version from ofipy */
    uint64_t capabilities; /* msg_id: capabilities of the extension */
    bool swapped;          /* decoded: the sender's data headers are in the other byte order, and ours to it must be */
};

void tcp_control_encode(const struct tcp_control *control, uint8_t bytes[TCP_CONTROL_SIZE]);
/* 0; -EPROTONOSUPPORT: another version; -EPROTO: an unknown type, or too long private data. */
int tcp_control_decode(const uint8_t bytes[TCP_CONTROL_SIZE], struct tcp_control *control);

/* The value of `magic` from an ofipy peer: these bytes, and in the lowest byte the newest version that it speaks. */
#define TCP_EXTENSION_MAGIC UINT64_C(0x5854595049464f00) /* "\0OFIPYTX" as bytes in memory */
/* The versions that this side speaks. A test of versions sets others. */
#ifndef TCP_EXTENSION_VERSION
#define TCP_EXTENSION_VERSION 1
#define TCP_EXTENSION_OLDEST 1
#endif
/* Highest byte of `capabilities`: how many versions before the newest the sender speaks too. */
#define TCP_CAPABILITY_EARLIER_SHIFT 56
static inline bool tcp_magic_is_extension(uint64_t magic)
{
    return (magic ^ TCP_EXTENSION_MAGIC) >> 8 == 0 && magic & 0xff;
}
/* The version that the sender of `magic` says; 0: it does not have the extension. */
static inline uint8_t tcp_magic_get_version(uint64_t magic)
{
    return tcp_magic_is_extension(magic) ? (uint8_t)magic : 0;
}
/* Bits of `capabilities`. */
#define TCP_CAPABILITY_AUTHENTICATION 0x1 /* the sender has a key, and demands a proof */
#define TCP_CAPABILITY_INTERNAL 0x2       /* the sender supports TCP_INTERNAL, and announcements on that channel */
#define TCP_CAPABILITY_IDENTITY 0x4       /* the sender sends its identity, if the answer to its request is empty */
#define TCP_CAPABILITY_HOST 0x8 /* the sender demands that the proofs cover the host, since nothing is encrypted */

/* Private data of RDM endpoints. */
#define TCP_RDM_SIZE 8
#define TCP_RDM_VERSION 1
/* Set in an answer's version: the acceptor reads this field. With it and version 1, both sides support rendezvous. */
#define TCP_RDM_UNDERSTOOD 0x80
/* Bit of `features`: the sender of the request does not accept connections. libfabric sets it behind a firewall. */
#define TCP_RDM_CONNECTS_ONLY 0x1
/* The one byte of a NACK when only one side has a key: a configured key, or a key for connections within the host. */
#define TCP_REFUSED_FOR_KEY 0
#define TCP_REFUSED_LOCALLY 1
/* Or: the acceptor demands encryption for this connection; or the connector does for others, and the acceptor never. */
#define TCP_REFUSED_UNENCRYPTED 2
#define TCP_REFUSED_NEVER_ENCRYPTS 3
/* The first byte of a TLS handshake. The first byte of a control message is its version, TCP_WIRE_VERSION. */
#define TCP_TLS_HANDSHAKE 0x16
/* Size with the endpoint's identity behind it, if the acceptor requested that. */
#define TCP_RDM_IDENTIFIED_SIZE (TCP_RDM_SIZE + OFP_IDENTITY_SIZE)

struct tcp_rdm {
    uint8_t version;
    uint8_t features;
    uint16_t port; /* listening port of the request's sender */
    uint32_t pid;
};

void tcp_rdm_encode(const struct tcp_rdm *rdm, uint8_t bytes[TCP_RDM_SIZE]);
void tcp_rdm_decode(const uint8_t bytes[TCP_RDM_SIZE], struct tcp_rdm *rdm);

/* --------------------------------------------------------------------------------------------------- data messages */

#define TCP_HEADER_BASE 16
#define TCP_HEADER_MAX 120
#define TCP_REMOTE_MAX 4
#define TCP_WORDS_MAX 5

enum tcp_op {
    TCP_MSG = 0, /* also acknowledgements, with TCP_OP_DATA_ACK */
    TCP_TAG = 1,
    TCP_READ_REQ = 2,
    TCP_READ_RSP = 3,
    TCP_WRITE = 4,
    TCP_TAG_RTS = 5,
    TCP_CTS = 6,
    TCP_DATA = 7,
    /* Ops of the extension, used only if both sides agreed to it. */
    TCP_HELLO = 8, /* words: bytes of eager payload granted beyond TCP_WINDOW_MIN, nonce × 4 */
    TCP_PROOF = 9, /* words: proof × 4 */
    /* header of a message; its payload stays with the sender; op_data: enum ofp_channel; words: the sender's id */
    TCP_ANNOUNCE = 10,
    TCP_PULL = 11,     /* words: the sender's id, the receiver's id, bytes wanted */
    TCP_PULLED = 12,   /* words: the receiver's id of the pull; payload: the message */
    TCP_REFUSED = 13,  /* sent in place of an answer; op_data: enum tcp_refused; words: errno or OFP_E… */
    TCP_ATOMIC = 14,   /* op_data: operation code; flags: TCP_ATOMIC_FLAGS; payload: operand, then compare operand */
    TCP_FETCHED = 15,  /* answer to a fetching atomic; payload: the former contents */
    TCP_CREDIT = 16,   /* words: bytes of eager payload granted */
    TCP_GOODBYE = 17,  /* the sender's last message; op_data 1: its endpoint closes */
    TCP_INTERNAL = 18, /* a message on the internal channel, otherwise as TCP_TAG; needs TCP_CAPABILITY_INTERNAL */
    TCP_OPS = 19
};
#define TCP_STOCK_OPS 8

/*
 * The message that a TCP_REFUSED replaces: the next acknowledgement, or the next answer to a read or fetching atomic.
 */
enum tcp_refused { TCP_REFUSED_ACK = 0, TCP_REFUSED_ANSWER = 1 };

/* Operation and type of an atomic are in the flags, above the other flags. */
#define TCP_ATOMIC_FLAGS(atomic_op, datatype) ((uint16_t)((atomic_op) << 4 | (datatype) << 9))
#define TCP_ATOMIC_OP(flags) ((flags) >> 4 & 0x1f)
#define TCP_ATOMIC_DATATYPE(flags) ((flags) >> 9 & 0x1f)

#define TCP_OP_DATA_ACK 2

#define TCP_FLAG_CQ_DATA 0x1
#define TCP_FLAG_DELIVERY 0x4
#define TCP_FLAG_COMMIT 0x8
#define TCP_FLAGS_ACK (TCP_FLAG_DELIVERY | TCP_FLAG_COMMIT)

struct tcp_header {
    uint8_t op;
    uint8_t op_data;
    uint8_t remote_count; /* entries in `remote`; 0 if the op has none */
    uint8_t header_size;  /* set by decoding; encoding computes it */
    uint16_t flags;       /* TCP_FLAG_… */
    uint64_t payload;     /* bytes behind the header */
    uint64_t data, tag;
    uint64_t length; /* TCP_TAG_RTS, TCP_ANNOUNCE: of the message; with `remote`: sum of the segments */
    uint64_t words[TCP_WORDS_MAX];
    struct ofp_remote_segment remote[TCP_REMOTE_MAX];
};

static inline bool tcp_header_is_ack(const struct tcp_header *header)
{
    return header->op == TCP_MSG && header->op_data == TCP_OP_DATA_ACK;
}

/* The channel of a message's op. */
static inline uint8_t tcp_channel_of(uint8_t op)
{
    if (op == TCP_TAG)
        return OFP_CHANNEL_TAGGED;
    return op == TCP_INTERNAL ? OFP_CHANNEL_INTERNAL : OFP_CHANNEL_MESSAGE;
}

/* Bytes of the operands of an atomic on `length` bytes. */
static inline uint64_t tcp_atomic_compute_payload(const struct tcp_header *header)
{
    return ofp_operation_is(header->op_data, OFP_COMPARES) ? header->length * 2 : header->length;
}

/* Length of the encoded header. */
size_t tcp_header_compute_size(const struct tcp_header *header);
/* `id`: sequence number that debug builds of libfabric check. Returns the length. */
size_t tcp_header_encode(const struct tcp_header *header, uint8_t id, bool swapped, uint8_t *bytes);

/* The header's length, from its first TCP_HEADER_BASE bytes. 0: invalid. */
static inline size_t tcp_header_decode_length(const uint8_t *bytes)
{
    size_t size = bytes[6];

    return size >= TCP_HEADER_BASE && size <= TCP_HEADER_MAX && size % 8 == 0 ? size : 0;
}
/*
 * Decode a whole header of tcp_header_decode_length bytes. `extended`: ops of the extension are allowed. Returns NULL,
 * or the text of an error. Fields that the op does not have are 0; `remote` and `words` are set as far as the op has
 * them.
 */
const char *tcp_header_decode(const uint8_t *bytes, bool swapped, bool extended, struct tcp_header *header);

#endif
