/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The used part of the binary interface of libibverbs and librdmacm (IBVERBS_1.1, RDMACM_1.0), under the libraries' names.
 * tests/abi/check_verbs.py compares types, offsets, sizes and constants with the real headers, except members named `unused`.
 * The interface only grows: an object of a library ends where the library says, and a structure that grew is passed with its size.
 */
#ifndef VERBS_ABI_H
#define VERBS_ABI_H

#include <linux/types.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------------------------------------------- constants */

enum ibv_transport_type { IBV_TRANSPORT_IWARP = 1 };
enum ibv_atomic_cap { IBV_ATOMIC_NONE, IBV_ATOMIC_HCA };
enum ibv_mtu { IBV_MTU_256 = 1, IBV_MTU_4096 = 5 }; /* 128 bytes shifted left by the code */
enum ibv_port_state { IBV_PORT_ACTIVE = 4 };
enum { IBV_LINK_LAYER_INFINIBAND = 1, IBV_LINK_LAYER_ETHERNET = 2 };
enum ibv_fork_status { IBV_FORK_UNNEEDED = 2 };

/* Rights to memory. */
enum ibv_access_flags {
    IBV_ACCESS_LOCAL_WRITE = 1,
    IBV_ACCESS_REMOTE_WRITE = 2,
    IBV_ACCESS_REMOTE_READ = 4,
    IBV_ACCESS_REMOTE_ATOMIC = 8
};

/* On-demand paging: whether the device has it, and for which operations. */
enum ibv_odp_general_caps { IBV_ODP_SUPPORT = 1 };
enum ibv_odp_transport_cap_bits {
    IBV_ODP_SUPPORT_SEND = 1,
    IBV_ODP_SUPPORT_RECV = 2,
    IBV_ODP_SUPPORT_WRITE = 4,
    IBV_ODP_SUPPORT_READ = 8,
    IBV_ODP_SUPPORT_ATOMIC = 16
};

enum ibv_qp_type { IBV_QPT_RC = 2, IBV_QPT_UD = 4 };
enum ibv_qp_state { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR = 6 };
enum ibv_qp_attr_mask {
    IBV_QP_STATE = 1 << 0,
    IBV_QP_ACCESS_FLAGS = 1 << 3,
    IBV_QP_PKEY_INDEX = 1 << 4,
    IBV_QP_PORT = 1 << 5,
    IBV_QP_QKEY = 1 << 6,
    IBV_QP_MAX_QP_RD_ATOMIC = 1 << 13,
    IBV_QP_MIN_RNR_TIMER = 1 << 15,
    IBV_QP_SQ_PSN = 1 << 16,
    IBV_QP_MAX_DEST_RD_ATOMIC = 1 << 17
};

enum ibv_wr_opcode {
    IBV_WR_RDMA_WRITE,
    IBV_WR_RDMA_WRITE_WITH_IMM,
    IBV_WR_SEND,
    IBV_WR_SEND_WITH_IMM,
    IBV_WR_RDMA_READ,
    IBV_WR_ATOMIC_CMP_AND_SWP,
    IBV_WR_ATOMIC_FETCH_AND_ADD
};
enum ibv_send_flags { IBV_SEND_SIGNALED = 2, IBV_SEND_INLINE = 8 };

enum ibv_wc_status {
    IBV_WC_SUCCESS = 0,
    IBV_WC_LOC_LEN_ERR = 1,
    IBV_WC_LOC_QP_OP_ERR = 2,
    IBV_WC_LOC_PROT_ERR = 4,
    IBV_WC_WR_FLUSH_ERR = 5,
    IBV_WC_BAD_RESP_ERR = 7,
    IBV_WC_LOC_ACCESS_ERR = 8,
    IBV_WC_REM_INV_REQ_ERR = 9,
    IBV_WC_REM_ACCESS_ERR = 10,
    IBV_WC_REM_OP_ERR = 11,
    IBV_WC_RETRY_EXC_ERR = 12,
    IBV_WC_RNR_RETRY_EXC_ERR = 13,
    IBV_WC_REM_ABORT_ERR = 16,
    IBV_WC_FATAL_ERR = 19,
    IBV_WC_RESP_TIMEOUT_ERR = 20
};
enum ibv_wc_opcode { IBV_WC_RECV_RDMA_WITH_IMM = 129 };
enum ibv_wc_flags { IBV_WC_GRH = 1, IBV_WC_WITH_IMM = 2 };

enum ibv_event_type {
    IBV_EVENT_CQ_ERR = 0,
    IBV_EVENT_QP_FATAL = 1,
    IBV_EVENT_QP_REQ_ERR = 2,
    IBV_EVENT_QP_ACCESS_ERR = 3,
    IBV_EVENT_COMM_EST = 4,
    IBV_EVENT_PATH_MIG_ERR = 7,
    IBV_EVENT_DEVICE_FATAL = 8,
    IBV_EVENT_PORT_ACTIVE = 9,
    IBV_EVENT_PORT_ERR = 10,
    IBV_EVENT_LID_CHANGE = 11,
    IBV_EVENT_PKEY_CHANGE = 12,
    IBV_EVENT_SM_CHANGE = 13,
    IBV_EVENT_CLIENT_REREGISTER = 17,
    IBV_EVENT_GID_CHANGE = 18
};

enum rdma_cm_event_type {
    RDMA_CM_EVENT_ADDR_RESOLVED = 0,
    RDMA_CM_EVENT_ADDR_ERROR = 1,
    RDMA_CM_EVENT_ROUTE_RESOLVED = 2,
    RDMA_CM_EVENT_ROUTE_ERROR = 3,
    RDMA_CM_EVENT_CONNECT_REQUEST = 4,
    RDMA_CM_EVENT_CONNECT_RESPONSE = 5,
    RDMA_CM_EVENT_CONNECT_ERROR = 6,
    RDMA_CM_EVENT_UNREACHABLE = 7,
    RDMA_CM_EVENT_REJECTED = 8,
    RDMA_CM_EVENT_ESTABLISHED = 9,
    RDMA_CM_EVENT_DISCONNECTED = 10,
    RDMA_CM_EVENT_DEVICE_REMOVAL = 11,
    RDMA_CM_EVENT_TIMEWAIT_EXIT = 15
};
enum rdma_port_space { RDMA_PS_TCP = 0x106 };

/* Level and options of rdma_set_option. */
enum { RDMA_OPTION_ID };
enum { RDMA_OPTION_ID_TOS = 0, RDMA_OPTION_ID_ACK_TIMEOUT = 3 };

/* --------------------------------------------------------------------------------------------------------- devices */

struct ibv_ah;
struct ibv_cq;
struct ibv_pd;
struct ibv_qp;
struct ibv_recv_wr;
struct ibv_send_wr;
struct ibv_srq;
struct ibv_wc;

union ibv_gid {
    uint8_t raw[16];
    struct {
        __be64 subnet_prefix;
        __be64 interface_id;
    } global;
};

struct ibv_device {
    void *unused_ops[2];
    int unused_node;
    enum ibv_transport_type transport_type;
    char unused_name[64];
    char dev_name[64];
};

struct ibv_device_attr {
    char fw_ver[64];
    uint64_t unused_names[4];
    uint32_t vendor_id;
    uint32_t unused_version[2];
    int unused_pairs;
    int max_qp_wr;
    unsigned unused_capabilities;
    int max_sge;
    int unused_queues[2];
    int max_cqe;
    int unused_objects[2];
    int max_qp_rd_atom;
    int unused_reads[2];
    int max_qp_init_rd_atom;
    int unused_contexts;
    enum ibv_atomic_cap atomic_cap;
    int unused_others[12];
    int max_srq_wr;
    int unused_segments;
    uint16_t max_pkeys;
    uint8_t unused_delay;
    uint8_t phys_port_cnt;
};

struct ibv_odp_caps {
    uint64_t general_caps;
    struct {
        uint32_t rc_odp_caps;
        uint32_t unused[2];
    } per_transport_caps;
};

/* The caller passes its size. */
struct ibv_device_attr_ex {
    struct ibv_device_attr unused_attr;
    uint32_t unused_mask;
    struct ibv_odp_caps odp_caps;
    uint64_t unused[17];
};

/* The caller passes its size, but to ibv_query_port, which takes an older version that ends with `link_layer`. */
struct ibv_port_attr {
    enum ibv_port_state state;
    enum ibv_mtu max_mtu;
    enum ibv_mtu active_mtu;
    int gid_tbl_len;
    uint32_t unused_flags;
    uint32_t max_msg_sz;
    uint32_t unused_counters[2];
    uint16_t pkey_tbl_len;
    uint16_t lid;
    uint16_t sm_lid;
    uint8_t unused_lid[2];
    uint8_t sm_sl;
    uint8_t unused_subnet[2];
    uint8_t active_width;
    uint8_t active_speed;
    uint8_t unused_state;
    uint8_t link_layer;
    uint8_t unused_end[3];
};
struct _compat_ibv_port_attr;

/* Operations that a device's driver provides. */
struct ibv_context_ops {
    void *unused_first[11];
    int (*poll_cq)(struct ibv_cq *cq, int most, struct ibv_wc *completions);
    int (*req_notify_cq)(struct ibv_cq *cq, int solicited_only);
    void *unused_queues[7];
    int (*post_srq_recv)(struct ibv_srq *srq, struct ibv_recv_wr *requests, struct ibv_recv_wr **bad);
    void *unused_pairs[4];
    int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *requests, struct ibv_send_wr **bad);
    int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *requests, struct ibv_recv_wr **bad);
    void *unused_last[5];
};

struct ibv_context {
    struct ibv_device *device;
    struct ibv_context_ops ops;
    int unused_command;
    int async_fd;
    int unused_vectors;
    pthread_mutex_t unused_mutex;
    void *abi_compat; /* VERBS_EXTENDED: this structure is the end of a verbs_context */
};

#define VERBS_EXTENDED ((void *)UINTPTR_MAX)

struct ibv_query_device_ex_input;

/* New versions grow at the front. The last `sz` bytes exist. */
struct verbs_context {
    int (*query_port)(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size);
    void *unused_objects[26];
    int (*query_device_ex)(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                           struct ibv_device_attr_ex *attr, size_t size);
    void *unused_first[10];
    uint64_t unused_version;
    size_t sz;
    struct ibv_context context;
};

struct ibv_async_event {
    union {
        struct ibv_qp *qp;
        int port_num;
    } element;
    enum ibv_event_type event_type;
};

/* ---------------------------------------------------------------------------------------- memory, queues, queue pairs */

struct ibv_mr {
    void *unused_owners[2];
    void *addr;
    size_t length;
    uint32_t unused_handle;
    uint32_t lkey;
    uint32_t rkey;
};

struct ibv_comp_channel {
    struct ibv_context *context;
    int fd;
};

struct ibv_cq {
    struct ibv_context *context;
};

struct ibv_srq {
    struct ibv_context *context;
};

struct ibv_srq_init_attr {
    void *srq_context;
    struct {
        uint32_t max_wr;
        uint32_t max_sge;
        uint32_t unused_limit;
    } attr;
};

struct ibv_qp {
    struct ibv_context *context;
    void *qp_context;
    void *unused_objects[4];
    uint32_t unused_handle;
    uint32_t qp_num;
};

struct ibv_qp_cap {
    uint32_t max_send_wr;
    uint32_t max_recv_wr;
    uint32_t max_send_sge;
    uint32_t max_recv_sge;
    uint32_t max_inline_data;
};

struct ibv_qp_init_attr {
    void *qp_context;
    struct ibv_cq *send_cq;
    struct ibv_cq *recv_cq;
    struct ibv_srq *srq;
    struct ibv_qp_cap cap;
    enum ibv_qp_type qp_type;
    int sq_sig_all;
};

struct ibv_global_route {
    union ibv_gid dgid;
    uint32_t flow_label;
    uint8_t sgid_index;
    uint8_t hop_limit;
    uint8_t traffic_class;
};

struct ibv_ah_attr {
    struct ibv_global_route grh;
    uint16_t dlid;
    uint8_t sl;
    uint8_t unused_path[2];
    uint8_t is_global;
    uint8_t port_num;
};

struct ibv_qp_attr {
    enum ibv_qp_state qp_state;
    enum ibv_qp_state unused_current;
    enum ibv_mtu path_mtu;
    int unused_migration;
    uint32_t qkey;
    uint32_t unused_packets;
    uint32_t sq_psn;
    uint32_t unused_pair;
    unsigned qp_access_flags;
    struct ibv_qp_cap unused_cap;
    struct ibv_ah_attr ah_attr;
    struct ibv_ah_attr unused_alternate;
    uint16_t pkey_index;
    uint16_t unused_index;
    uint8_t unused_draining[2];
    uint8_t max_rd_atomic;
    uint8_t max_dest_rd_atomic;
    uint8_t min_rnr_timer;
    uint8_t port_num;
    uint8_t timeout;
    uint8_t unused_end[4];
    uint32_t unused_rate;
};

/* --------------------------------------------------------------------------------------- work requests, completions */

struct ibv_sge {
    uint64_t addr;
    uint32_t length;
    uint32_t lkey;
};

struct ibv_send_wr {
    uint64_t wr_id;
    struct ibv_send_wr *next;
    struct ibv_sge *sg_list;
    int num_sge;
    enum ibv_wr_opcode opcode;
    unsigned send_flags;
    __be32 imm_data;
    union {
        struct {
            uint64_t remote_addr;
            uint32_t rkey;
        } rdma;
        struct {
            uint64_t remote_addr;
            uint64_t compare_add;
            uint64_t swap;
            uint32_t rkey;
        } atomic;
        struct {
            struct ibv_ah *ah;
            uint32_t remote_qpn;
            uint32_t remote_qkey;
        } ud;
    } wr;
    uint32_t unused_queue;
    struct {
        void *window;
        uint32_t key;
        void *memory;
        uint64_t range[2];
        unsigned access;
    } unused_bind;
};

struct ibv_recv_wr {
    uint64_t wr_id;
    struct ibv_recv_wr *next;
    struct ibv_sge *sg_list;
    int num_sge;
};

struct ibv_wc {
    uint64_t wr_id;
    enum ibv_wc_status status;
    enum ibv_wc_opcode opcode;
    uint32_t vendor_err;
    uint32_t byte_len;
    __be32 imm_data;
    uint32_t qp_num;
    uint32_t src_qp;
    unsigned wc_flags;
    uint16_t unused_key;
    uint16_t slid;
    uint8_t sl;
    uint8_t unused_end;
};

/* Precedes a datagram whose completion has IBV_WC_GRH. Over IPv4 its last 20 bytes are the IP header. */
struct ibv_grh {
    uint8_t unused[8];
    union ibv_gid sgid;
    union ibv_gid dgid;
};

/* ---------------------------------------------------------------------------------------------- connection manager */

struct rdma_event_channel {
    int fd;
};

struct rdma_ib_addr {
    union ibv_gid sgid;
    union ibv_gid dgid;
    __be16 pkey;
};

struct rdma_addr {
    union {
        struct sockaddr src_addr;
        struct sockaddr_storage unused_source;
    };
    union {
        struct sockaddr dst_addr;
        struct sockaddr_storage unused_peer;
    };
    union {
        struct rdma_ib_addr ibaddr;
    } addr;
};

struct rdma_cm_id {
    struct ibv_context *verbs;
    struct rdma_event_channel *channel;
    void *context;
    struct ibv_qp *qp;
    struct {
        struct rdma_addr addr;
        void *unused_paths;
        int unused_count;
    } route;
    enum rdma_port_space unused_space;
    uint8_t port_num;
};

struct rdma_conn_param {
    const void *private_data;
    uint8_t private_data_len;
    uint8_t responder_resources;
    uint8_t initiator_depth;
    uint8_t flow_control;
    uint8_t retry_count;
    uint8_t rnr_retry_count;
    uint8_t srq;
    uint32_t qp_num;
};

struct rdma_cm_event {
    struct rdma_cm_id *id;
    struct rdma_cm_id *listen_id;
    enum rdma_cm_event_type event;
    int status;
    union {
        struct rdma_conn_param conn;
    } param; /* longer in events of datagram ids */
};

#endif
