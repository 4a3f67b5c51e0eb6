/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records, constants and error codes shared by the core, its providers and Python.
 *
 * Python reads this file too: declarations, enums and plain integer #defines only.
 */
#ifndef OFIPY_TYPES_H
#define OFIPY_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Version of the two record layouts below; a change of either raises it. */
#define OFP_RECORD_VERSION 1

/*
 * Version of the interface between core and providers, provider.h: core and provider must have the same major version.
 * The minor version counts what was added since. It decides nothing: each table states its size.
 */
#define OFP_PROVIDER_ABI 4
#define OFP_PROVIDER_ABI_MINOR 1

/*
 * Errors are negative errno values. The codes below have no errno. Where libfabric has the same error, the number is
 * libfabric's (fi_errno(3)).
 */
#define OFP_ETOOSMALL 257     /* the buffer for an address or an option is too small */
#define OFP_EADDRNOTAVAIL 262 /* no address has this address vector index */
#define OFP_ETRUNC 265        /* the message was longer than the receive buffer */
#define OFP_ENOKEY 266        /* no remote region has this key */
#define OFP_EOVERRUN 268      /* a queue overran */
#define OFP_ENORX 269         /* no receive buffer at the peer */
#define OFP_EPEERLOST 512     /* the peer's process has ended, or another one has its address */
#define OFP_EFORKED 513       /* the object belongs to the parent process */
#define OFP_ETHREAD 514       /* the domain is bound to another thread */
#define OFP_EREMOTE 515       /* the peer refused the operation (key, bounds or rights) */
#define OFP_ENOREGION 516     /* no open region of the domain has this id */
#define OFP_EEXHAUSTED 517    /* the table has assigned all its ids */
#define OFP_ETOOLONG 518      /* the message was longer than OFIPY_BOUNCE_SIZE */
#define OFP_EPEERLEFT 519     /* the peer's process has left the job normally */
#define OFP_EPEERDIED 520     /* the peer's process has died */
#define OFP_EMISMATCH 521     /* the members of a group do not make the same calls */

/* Codes of operations. */
enum ofp_operation_code {
    OFP_SEND = 1,
    OFP_RECV = 2,
    OFP_TSEND = 3,
    OFP_TRECV = 4,
    OFP_READ = 5,
    OFP_WRITE = 6,
    OFP_ATOMIC = 7,
    OFP_FETCH_ATOMIC = 8,
    OFP_COMPARE_ATOMIC = 9,
    /* The core's own, on a channel that applications cannot receive from; callers may not post them. */
    OFP_INTERNAL_SEND = 10,
    OFP_INTERNAL_RECV = 11,
    /* Collectives of a group, the nine of fi_collective(3); collective.h says what their records have. */
    OFP_BARRIER = 12,
    OFP_BROADCAST = 13,
    OFP_ALLTOALL = 14,
    OFP_ALLREDUCE = 15,
    OFP_ALLGATHER = 16,
    OFP_REDUCE_SCATTER = 17,
    OFP_REDUCE = 18,
    OFP_SCATTER = 19,
    OFP_GATHER = 20
};

/* Functions of atomic operations (fi_atomic(3)). The numbers are those of libfabric's `enum fi_op`. */
enum ofp_atomic_op {
    OFP_ATOMIC_MIN = 0,
    OFP_ATOMIC_MAX = 1,
    OFP_ATOMIC_SUM = 2,
    OFP_ATOMIC_PROD = 3,
    OFP_ATOMIC_LOR = 4,
    OFP_ATOMIC_LAND = 5,
    OFP_ATOMIC_BOR = 6,
    OFP_ATOMIC_BAND = 7,
    OFP_ATOMIC_LXOR = 8,
    OFP_ATOMIC_BXOR = 9,
    OFP_ATOMIC_READ = 10,
    OFP_ATOMIC_WRITE = 11,
    OFP_ATOMIC_CSWAP = 12,
    OFP_ATOMIC_CSWAP_NE = 13,
    OFP_ATOMIC_CSWAP_LE = 14,
    OFP_ATOMIC_CSWAP_LT = 15,
    OFP_ATOMIC_CSWAP_GE = 16,
    OFP_ATOMIC_CSWAP_GT = 17,
    OFP_ATOMIC_MSWAP = 18,
    OFP_ATOMIC_DIFF = 19
};

/* Type of one element. The numbers are those of libfabric's `enum fi_datatype`, of which this is a part. */
enum ofp_datatype {
    OFP_INT8 = 0,
    OFP_UINT8 = 1,
    OFP_INT16 = 2,
    OFP_UINT16 = 3,
    OFP_INT32 = 4,
    OFP_UINT32 = 5,
    OFP_INT64 = 6,
    OFP_UINT64 = 7,
    OFP_FLOAT = 8,
    OFP_DOUBLE = 9,
    OFP_FLOAT_COMPLEX = 10,
    OFP_DOUBLE_COMPLEX = 11,
    OFP_FLOAT16 = 16
};

/* Flags of an operation (fi_msg(3), fi_tagged(3), fi_cq(3)). */
#define OFP_INJECT 0x1         /* the buffer is reusable when the post returns */
#define OFP_COMPLETION 0x2     /* write a completion on an endpoint with selective completion */
#define OFP_REMOTE_CQ_DATA 0x4 /* carry `data` to the target's completion */
#define OFP_MORE 0x8           /* another post follows at once */
#define OFP_FENCE 0x10         /* start after earlier operations to this peer have finished */
#define OFP_TRANSMIT_COMPLETE 0x20
#define OFP_DELIVERY_COMPLETE 0x40
#define OFP_MATCH_COMPLETE 0x80
#define OFP_PEEK 0x100             /* report an unexpected message that matches, without receiving it */
#define OFP_CLAIM 0x200            /* with PEEK or HOLD: set the message aside; alone: receive the one set aside */
#define OFP_DISCARD 0x400          /* with PEEK or CLAIM: drop the message */
#define OFP_HOLD 0x800             /* with CLAIM: stay posted until a message matches, then set it aside */
#define OFP_MULTI_RECV 0x1000      /* the buffer receives several messages */
#define OFP_DEVICE_ATOMIC 0x2000   /* of an atomic: the device executes it, not the core */
#define OFP_BOUND 0x4000           /* only in the incarnation of the peer that `reserved` numbers */
#define OFP_OPERATION_FLAGS 0x7fff /* every flag that a caller may set */

/* Flags of a completion: what finished. */
#define OFP_COMPLETED_SEND 0x1
#define OFP_COMPLETED_RECV 0x2
#define OFP_COMPLETED_READ 0x4
#define OFP_COMPLETED_WRITE 0x8
#define OFP_COMPLETED_ATOMIC 0x10
#define OFP_COMPLETED_MSG 0x20
#define OFP_COMPLETED_TAGGED 0x40
#define OFP_COMPLETED_RMA 0x80
#define OFP_COMPLETED_REMOTE_READ 0x100
#define OFP_COMPLETED_REMOTE_WRITE 0x200
#define OFP_COMPLETED_REMOTE_CQ_DATA 0x400 /* `data` is valid */
#define OFP_COMPLETED_MULTI_RECV 0x800     /* the multi-receive buffer is released; alone: without a message */
#define OFP_COMPLETED_CLAIM 0x1000         /* the message is set aside under `context` */
#define OFP_COMPLETED_COLLECTIVE 0x2000

/*
 * Address vector indices and region ids contain a generation in their upper 12 bits, so that an index or id is refused,
 * and never names another entry or region, after its own was removed. Indices of a new address vector start at 0; a
 * domain's regions start at a random generation.
 */
/* OFP_PEER_ANY: `peer` of a receive from any source. OFP_PEER_UNKNOWN: `source` of a message from an unknown sender. */
#define OFP_PEER_ANY 0xffffffffu
#define OFP_PEER_UNKNOWN 0xfffffffeu

/* Region 0 is the process's own address space: its offsets are virtual addresses. */
#define OFP_REGION_PROCESS 0u

/* Capabilities (fi_getinfo(3), "caps"). */
#define OFP_CAP_MSG 0x1
#define OFP_CAP_TAGGED 0x2
#define OFP_CAP_RMA 0x4
#define OFP_CAP_ATOMIC 0x8
#define OFP_CAP_MULTICAST 0x10
#define OFP_CAP_COLLECTIVE 0x20
#define OFP_CAP_DIRECTED_RECV 0x40
#define OFP_CAP_MULTI_RECV 0x80
#define OFP_CAP_SOURCE 0x100
#define OFP_CAP_RMA_EVENT 0x200
#define OFP_CAP_TRIGGER 0x400
#define OFP_CAP_FENCE 0x800
#define OFP_CAP_LOCAL_COMM 0x1000
#define OFP_CAP_REMOTE_COMM 0x2000
#define OFP_CAP_HMEM 0x4000
#define OFP_CAP_SHARED_CONTEXT 0x8000
#define OFP_CAP_ANY_INJECT 0x10000    /* messages longer than inject_size can be injected too */
#define OFP_CAP_DEVICE_ATOMIC 0x20000 /* atomics that a device executes by itself, in memory registered for them */

/* Message ordering (fi_endpoint(3), "msg_order"): which later operation must not overtake which earlier one. */
#define OFP_ORDER_RAR 0x1
#define OFP_ORDER_RAW 0x2
#define OFP_ORDER_RAS 0x4
#define OFP_ORDER_WAR 0x8
#define OFP_ORDER_WAW 0x10
#define OFP_ORDER_WAS 0x20
#define OFP_ORDER_SAR 0x40
#define OFP_ORDER_SAW 0x80
#define OFP_ORDER_SAS 0x100

/* Access rights of a memory region (fi_mr(3)). */
#define OFP_ACCESS_SEND 0x1
#define OFP_ACCESS_RECV 0x2
#define OFP_ACCESS_READ 0x4
#define OFP_ACCESS_WRITE 0x8
#define OFP_ACCESS_REMOTE_READ 0x10
#define OFP_ACCESS_REMOTE_WRITE 0x20
/*
 * Only atomics of the peers' devices may access the memory: atomics of a device and of a processor are not atomic
 * towards each other.
 */
#define OFP_ACCESS_DEVICE_ATOMIC 0x40

/* Endpoint types, as bits of `ep_types`. */
#define OFP_EP_MSG 0x1
#define OFP_EP_RDM 0x2
#define OFP_EP_DGRAM 0x4

/* Threading levels and progress models of a domain. */
#define OFP_THREAD_SAFE 0
#define OFP_THREAD_DOMAIN 1
#define OFP_PROGRESS_MANUAL 0
#define OFP_PROGRESS_AUTO 1

/* One local piece of memory. */
struct ofp_segment {
    uint64_t offset; /* from the region's start; a virtual address in OFP_REGION_PROCESS */
    uint64_t length; /* bytes */
    uint32_t region;
    uint32_t reserved;
};

/* One remote piece of memory. */
struct ofp_remote_segment {
    uint64_t offset;
    uint64_t length;
    uint64_t key;
};

/*
 * Operation record: any data transfer. The poster owns it and may reuse it as soon as the post returns.
 * Field order is the layout: 128 bytes, no padding.
 */
struct ofp_operation {
    uint16_t op; /* enum ofp_operation_code */
    uint8_t atomic_op;
    uint8_t datatype;
    uint32_t peer; /* address vector index, or OFP_PEER_ANY; of a collective: the group's number */
    uint64_t flags;
    uint64_t context; /* returned in the completion */
    union {
        uint64_t tag;
        uint64_t compare_offset; /* comparing atomics: location of the value to compare with */
    };
    union {
        uint64_t ignore; /* bits of the tag that a receive does not compare */
        uint64_t compare_region;
    };
    uint64_t data;   /* remote CQ data */
    uint64_t offset; /* the inline local segment */
    uint64_t length;
    uint32_t region;
    uint32_t endpoint;      /* endpoint id, for records that travel without their endpoint (deferred work) */
    uint64_t segments;      /* address of struct ofp_segment[segment_count]; used when segment_count > 0 */
    uint32_t segment_count; /* or OFP_LAYOUT */
    uint32_t remote_segment_count;
    uint64_t remote_segments; /* address of struct ofp_remote_segment[remote_segment_count] */
    uint64_t remote_offset;   /* the inline remote segment; its length is the local one's */
    uint64_t remote_key;
    uint64_t result_offset; /* fetching atomics: location for the fetched value */
    uint32_t result_region;
    uint32_t reserved; /* OFP_BOUND: number of the peer's incarnation; else not read */
};

/*
 * A layout: local memory of any number of pieces, in place of segments. The elements of its parts follow one another.
 * The layout, its parts and its dimensions belong to the caller, and stay as they are until the operation has ended.
 *
 * A part has elements of `run` bytes, at the places that its dimensions span: the last dimension changes first. A
 * dimension steps `stride` bytes, `count` times. A part without dimensions is one element.
 */
struct ofp_dimension {
    uint64_t count;
    int64_t stride; /* bytes; may be negative or 0 */
};
struct ofp_layout_part {
    uint64_t address;   /* of the first element */
    uint64_t run;       /* bytes of an element, not 0 */
    uint64_t length;    /* bytes of all elements */
    uint64_t start;     /* bytes of all parts before this one */
    uint32_t rank;      /* number of dimensions, at most OFP_RANK_MAX */
    uint32_t dimension; /* index of the first one */
};
struct ofp_layout {
    uint64_t length;     /* bytes of all parts */
    uint64_t parts;      /* address of struct ofp_layout_part[part_count]; none is empty */
    uint64_t dimensions; /* address of struct ofp_dimension[dimension_count] */
    uint32_t part_count;
    uint32_t dimension_count;
};
/* As segment_count of an operation: `segments` is the address of a struct ofp_layout. */
#define OFP_LAYOUT 0xffffffff
#define OFP_RANK_MAX 64

/*
 * Completion record, 64 bytes. On an error `error` is a positive errno or OFP_E…, and `provider_error` is the
 * provider's own code, or one from OFP_REASON on. After truncation `length` is the message's full length.
 */
struct ofp_completion {
    uint64_t context;
    uint64_t flags;  /* OFP_COMPLETED_… */
    uint64_t length; /* bytes */
    /*
     * Multi-receive: where in the buffer the message starts. With OFP_COMPLETED_CLAIM, of a receive with OFP_HOLD: the
     * number of the sender's incarnation, 0: unknown.
     */
    uint64_t buffer_offset;
    uint64_t data;
    uint64_t tag;
    uint32_t source;   /* address vector index of the sender, or OFP_PEER_UNKNOWN */
    uint32_t endpoint; /* endpoint id */
    int32_t error;
    int32_t provider_error;
};

/* Kinds of events. Endpoints of type MSG write the kinds for connections, other endpoints the kinds for peers. */
enum ofp_event_kind {
    OFP_EVENT_USER = 0,      /* written by the program */
    OFP_EVENT_PEER_UP = 1,   /* `peer` is connected */
    OFP_EVENT_PEER_LOST = 2, /* the connection to `peer` is lost, with `error` */
    OFP_EVENT_CONNREQ = 3, /* `handle` names the request, `endpoint` the listener; data: the requester's private data */
    OFP_EVENT_CONNECTED = 4, /* connected, or failed with `error`; data: the other side's private data */
    OFP_EVENT_SHUTDOWN = 5,  /* the other side shut the connection down; with `error`: it failed */
    /* The domain's device has changed. Data: a text that says what; `error`: the error of affected operations. */
    OFP_EVENT_DEVICE = 6
};

/* Event record, 64 bytes. `error` is a positive errno or OFP_E…, 0: none. */
struct ofp_event {
    uint32_t kind;     /* enum ofp_event_kind */
    uint32_t endpoint; /* endpoint id */
    uint32_t peer;     /* address vector index, or OFP_PEER_UNKNOWN */
    int32_t error;
    int32_t provider_error;
    uint32_t data_length; /* bytes of data of the event, up to OFP_EVENT_DATA_MAX */
    uint64_t context;     /* the program's */
    uint64_t handle;      /* of PEER_UP and PEER_LOST: number of the incarnation; 0: the peer was not up */
    uint64_t reserved[3];
};
#define OFP_EVENT_DATA_MAX 512

/* Features and limits of a provider, one for each kind of endpoint and device (fi_getinfo(3)). Sizes in bytes. */
struct ofp_info {
    char provider[32];
    char fabric[64];
    char domain[64];
    char protocol[32];
    uint32_t protocol_version;
    uint32_t ep_types;      /* one OFP_EP_… bit */
    uint64_t caps;          /* OFP_CAP_… */
    uint64_t emulated_caps; /* those of `caps` that the core adds to the transport */
    uint64_t msg_order;     /* OFP_ORDER_… */
    uint64_t max_msg_size;
    uint64_t max_rma_size;
    uint64_t max_atomic_size;
    uint64_t rma_order; /* of their bytes: OFP_ORDER_… RAR RAW WAR WAW (FI_ORDER_RMA_…) */
    uint64_t atomic_order;
    uint64_t inject_size; /* the transport's own; the core copies longer payloads */
    uint64_t tx_size;     /* operations in flight before a post returns -EAGAIN */
    uint64_t rx_size;
    uint64_t segment_limit; /* local scatter-gather entries of one operation */
    uint64_t remote_segment_limit;
    uint64_t cq_data_size;
    uint64_t mr_key_size;
    uint64_t max_private_data;  /* connection requests */
    uint32_t address_format;    /* enum ofp_address_format */
    uint32_t wait_fd;           /* 1: completion queues have a descriptor to sleep on */
    uint32_t offloads_matching; /* 1: the transport matches receives itself */
    uint32_t rank;              /* order among a provider's own infos, best first */
    uint64_t provider_data[3];  /* the provider's, to find the device or library object again */
    uint32_t peer_proof;        /* enum ofp_peer_proof: the proof that every connected peer has given */
    uint32_t encryption;        /* enum ofp_encryption */
};

/* The effect of OFIPY_ENCRYPTION=required on endpoints of an info. Of several transports the smallest value applies. */
enum ofp_encryption {
    OFP_ENCRYPTION_NONE = 0, /* they cannot encrypt, and are refused */
    OFP_ENCRYPTION_TLS = 1,  /* every connection is encrypted by TLS 1.3 */
    OFP_ENCRYPTION_HOST = 2  /* their bytes do not leave this host, and are not encrypted */
};

/*
 * What endpoints of an info require of a peer before they connect to it, or accept it. The smallest value of several
 * transports applies to an endpoint over all of them.
 */
enum ofp_peer_proof {
    OFP_PROOF_NONE = 0, /* nothing, even if a key is configured */
    OFP_PROOF_KEY = 1,  /* a proof of the key in OFIPY_AUTH_KEY_FILE, if one is configured */
    OFP_PROOF_USER = 2  /* the kernel reports that the peer's process runs as the same user on this host */
};

/* With a traffic class of 0 to 255 in the low byte: mark packets with it. Without this bit: as the system does. */
#define OFP_TRAFFIC_CLASS 256

enum ofp_address_format { OFP_ADDRESS_SHM = 1, OFP_ADDRESS_IPV4 = 2, OFP_ADDRESS_IPV6 = 3, OFP_ADDRESS_OPAQUE = 4 };

/* The longest address of any provider, bytes. An address of `link` contains those of all its lanes, of tcp up to 32. */
#define OFP_ADDRESS_MAX 2048
/* Length of an identity, which differs for every endpoint, even for those that have the same address at other times. */
#define OFP_IDENTITY_SIZE 16
/* Scatter-gather entries that any core-matched endpoint accepts. */
#define OFP_SEGMENT_LIMIT 16
/* Default of "min_multi_recv": a multi-receive buffer with less space than this is released; bytes. */
#define OFP_MIN_MULTI_RECV 64
/* Upper bounds of options and parameters: entries of a queue or table, and bytes of memory. */
#define OFP_COUNT_MAX 16777216
#define OFP_BYTES_MAX 0x10000000000
/* Size of a buffer for the text of an error. */
#define OFP_TEXT_MAX 512
/*
 * A provider_error from this value on is no provider's code, but the number of a sentence about the error: see
 * ofp_reason.
 */
#define OFP_REASON 0x40000000

#endif
