/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of libfabric's binary interface that the bridge uses, in our own words. Layouts follow the exported versions 1.8
 * and later of fi_getinfo and fi_dupinfo; tests/abi holds every offset and constant against the real headers.
 *
 * Structures and tables only ever grow at their end. A table carries its size: what lies beyond is not there (LF_HAS).
 * A structure of the library's says nothing: fields marked with a version are read only from libraries that old or newer.
 * Structures that we hand in end with zeros, so that a newer library reads "not given".
 */
#ifndef OFI_ABI_H
#define OFI_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define LF_VERSION(major, minor) ((uint32_t)(major) << 16 | (uint32_t)(minor))
/* The newest interface that these declarations describe; a library is asked for this one or its own, if that is older. */
#define LF_NEWEST LF_VERSION(2, 0)

/* ------------------------------------------------------------------------------------------------------- constants */

/* Capabilities, and the same bits as flags of completions. */
#define LF_MSG (1ull << 1)
#define LF_RMA (1ull << 2)
#define LF_TAGGED (1ull << 3)
#define LF_ATOMIC (1ull << 4)
#define LF_READ (1ull << 8)
#define LF_WRITE (1ull << 9)
#define LF_RECV (1ull << 10)
#define LF_SEND (1ull << 11)
#define LF_REMOTE_READ (1ull << 12)
#define LF_REMOTE_WRITE (1ull << 13)
#define LF_MULTI_RECV (1ull << 16)
#define LF_LOCAL_COMM (1ull << 51)
#define LF_REMOTE_COMM (1ull << 52)
#define LF_RMA_EVENT (1ull << 56)
#define LF_SOURCE (1ull << 57)
#define LF_DIRECTED_RECV (1ull << 59)

/* Flags of operations. CLAIM and DISCARD share bits with capabilities. */
#define LF_REMOTE_CQ_DATA (1ull << 17)
#define LF_MORE (1ull << 18)
#define LF_PEEK (1ull << 19)
#define LF_FENCE (1ull << 21)
#define LF_COMPLETION (1ull << 24)
#define LF_INJECT (1ull << 25)
#define LF_TRANSMIT_COMPLETE (1ull << 27)
#define LF_DELIVERY_COMPLETE (1ull << 28)
#define LF_MATCH_COMPLETE (1ull << 31)
#define LF_DISCARD (1ull << 58)
#define LF_CLAIM (1ull << 59)

/* Flags of queries for atomics. */
#define LF_FETCH_ATOMIC (1ull << 58)
#define LF_COMPARE_ATOMIC (1ull << 59)

/* Key of a registration that has none. */
#define LF_KEY_NOTAVAIL UINT64_MAX

/* Flag of fi_getinfo: node and service are the own address. As a capability bit it means SOURCE. */
#define LF_GETINFO_SOURCE (1ull << 57)

/* Modes: duties that a provider puts on us. */
#define LF_MODE_CONTEXT (1ull << 59)
#define LF_MODE_CONTEXT2 (1ull << 52)
#define LF_MODE_RX_CQ_DATA (1ull << 56)

/* Duties of memory registration. */
#define LF_MR_LOCAL (1 << 2)
#define LF_MR_VIRT_ADDR (1 << 4)
#define LF_MR_ALLOCATED (1 << 5)
#define LF_MR_PROV_KEY (1 << 6)
#define LF_MR_ENDPOINT (1 << 9)

/* Orders: bits 0 to 8 of messages are those of OFP_ORDER_…; those of bytes lie higher. */
#define LF_ORDER_MESSAGES 0x1ffull
#define LF_ORDER_RMA_RAR (1ull << 32)
#define LF_ORDER_RMA_RAW (1ull << 33)
#define LF_ORDER_RMA_WAR (1ull << 34)
#define LF_ORDER_RMA_WAW (1ull << 35)
#define LF_ORDER_ATOMIC_RAR (1ull << 36)
#define LF_ORDER_ATOMIC_RAW (1ull << 37)
#define LF_ORDER_ATOMIC_WAR (1ull << 38)
#define LF_ORDER_ATOMIC_WAW (1ull << 39)

/* A number of receive contexts: those of other endpoints. */
#define LF_SHARED_CONTEXT SIZE_MAX

#define LF_ADDR_UNSPEC UINT64_MAX
#define LF_ADDR_NOTAVAIL UINT64_MAX

enum lf_ep_type { LF_EP_UNSPEC, LF_EP_MSG, LF_EP_DGRAM, LF_EP_RDM };
enum lf_av_type { LF_AV_UNSPEC, LF_AV_MAP, LF_AV_TABLE };
enum lf_threading { LF_THREAD_UNSPEC, LF_THREAD_SAFE, LF_THREAD_FID, LF_THREAD_DOMAIN };
enum lf_progress { LF_PROGRESS_UNSPEC, LF_PROGRESS_AUTO, LF_PROGRESS_MANUAL };
enum lf_resource_mgmt { LF_RM_UNSPEC, LF_RM_DISABLED, LF_RM_ENABLED };
enum lf_address_format { LF_FORMAT_UNSPEC, LF_SOCKADDR, LF_SOCKADDR_IN, LF_SOCKADDR_IN6, LF_ADDR_STR = 9 };
enum lf_wait_object { LF_WAIT_NONE, LF_WAIT_UNSPEC, LF_WAIT_SET, LF_WAIT_FD };
enum lf_cq_format {
    LF_CQ_FORMAT_UNSPEC,
    LF_CQ_FORMAT_CONTEXT,
    LF_CQ_FORMAT_MSG,
    LF_CQ_FORMAT_DATA,
    LF_CQ_FORMAT_TAGGED
};
enum lf_command { LF_COMMAND_GETWAIT = 5, LF_COMMAND_ENABLE = 6 };
enum lf_option_level { LF_OPTION_ENDPOINT };
enum lf_option { LF_OPTION_MIN_MULTI_RECV, LF_OPTION_PRIVATE_DATA };
enum lf_tostr { LF_TOSTR_PROTOCOL = 12 };

/* Formats of tags below this one have names, the others are bit patterns. */
#define LF_TAG_MAX_FORMAT (1ull << 16)

/* Errors, beyond those of the operating system. */
#define LF_EAVAIL 259
#define LF_EDOMAIN 262

/* ------------------------------------------------------------------------------------------------------------ infos */

struct lf_fid;
struct lf_fabric;
struct lf_domain;

struct lf_tx_attr {
    uint64_t caps, mode, op_flags, msg_order, comp_order;
    size_t inject_size, size, iov_limit, rma_iov_limit;
    uint32_t traffic_class;
};

struct lf_rx_attr {
    uint64_t caps, mode, op_flags, msg_order, comp_order;
    size_t total_buffered_recv, size, iov_limit;
};

struct lf_ep_attr {
    enum lf_ep_type type;
    uint32_t protocol, protocol_version;
    size_t max_msg_size, msg_prefix_size;
    size_t max_order_raw_size, max_order_war_size, max_order_waw_size;
    uint64_t mem_tag_format;
    size_t tx_ctx_cnt, rx_ctx_cnt;
};

struct lf_domain_attr {
    struct lf_domain *domain;
    char *name;
    enum lf_threading threading;
    enum lf_progress control_progress, data_progress;
    enum lf_resource_mgmt resource_mgmt;
    enum lf_av_type av_type;
    int mr_mode;
    size_t mr_key_size, cq_data_size;
};

struct lf_fabric_attr {
    struct lf_fabric *fabric;
    char *name, *prov_name;
    uint32_t prov_version, api_version;
};

struct lf_info {
    struct lf_info *next;
    uint64_t caps, mode;
    uint32_t addr_format;
    size_t src_addrlen, dest_addrlen;
    void *src_addr, *dest_addr;
    struct lf_fid *handle;
    struct lf_tx_attr *tx_attr;
    struct lf_rx_attr *rx_attr;
    struct lf_ep_attr *ep_attr;
    struct lf_domain_attr *domain_attr;
    struct lf_fabric_attr *fabric_attr;
};

/* ---------------------------------------------------------------------------------------------------------- objects */

struct lf_object_ops {
    size_t size;
    int (*close)(struct lf_fid *object);
    int (*bind)(struct lf_fid *object, struct lf_fid *to, uint64_t flags);
    int (*control)(struct lf_fid *object, int command, void *argument);
};

struct lf_ep;
struct lf_cq;
struct lf_av;
struct lf_mr;
struct lf_eq;
struct lf_eq_attr;
struct lf_pep;

/* Every object begins with one. */
struct lf_fid {
    size_t kind;
    void *context;
    struct lf_object_ops *ops;
};

/* True when a table reaches as far as the entry and has it. */
#define LF_HAS(table, type, entry) ((table) && (table)->size > offsetof(type, entry) && (table)->entry)

struct lf_fabric_ops {
    size_t size;
    int (*domain)(struct lf_fabric *fabric, struct lf_info *info, struct lf_domain **domain, void *context);
    int (*passive_ep)(struct lf_fabric *fabric, struct lf_info *info, struct lf_pep **pep, void *context);
    int (*eq_open)(struct lf_fabric *fabric, struct lf_eq_attr *attr, struct lf_eq **eq, void *context);
    void *unused_wait;
    int (*trywait)(struct lf_fabric *fabric, struct lf_fid **objects, int count);
};

struct lf_fabric {
    struct lf_fid fid;
    struct lf_fabric_ops *ops;
    uint32_t api_version;
};

struct lf_av_attr {
    enum lf_av_type type;
    int rx_ctx_bits;
    size_t count, ep_per_node;
    const char *name;
    void *map_addr;
    uint64_t flags;
    uint64_t later[4];
};

struct lf_cq_attr {
    size_t size;
    uint64_t flags;
    enum lf_cq_format format;
    enum lf_wait_object wait_object;
    int signaling_vector;
    int wait_condition;
    void *wait_set;
    uint64_t later[4];
};

struct lf_atomic_attr {
    size_t count, size;
};

struct lf_domain_ops {
    size_t size;
    int (*av_open)(struct lf_domain *domain, struct lf_av_attr *attr, struct lf_av **av, void *context);
    int (*cq_open)(struct lf_domain *domain, struct lf_cq_attr *attr, struct lf_cq **cq, void *context);
    int (*endpoint)(struct lf_domain *domain, struct lf_info *info, struct lf_ep **ep, void *context);
    void *unused[5];
    int (*query_atomic)(struct lf_domain *domain, int datatype, int op, struct lf_atomic_attr *attr, uint64_t flags);
};

struct lf_mr_ops {
    size_t size;
    int (*reg)(struct lf_fid *domain, const void *buffer, size_t length, uint64_t access, uint64_t offset,
               uint64_t requested_key, uint64_t flags, struct lf_mr **mr, void *context);
};

struct lf_domain {
    struct lf_fid fid;
    struct lf_domain_ops *ops;
    struct lf_mr_ops *mr;
};

struct lf_mr {
    struct lf_fid fid;
    void *descriptor;
    uint64_t key;
};

struct lf_av_ops {
    size_t size;
    int (*insert)(struct lf_av *av, const void *addresses, size_t count, uint64_t *fi_addr, uint64_t flags,
                  void *context);
    void *unused[2];
    int (*remove)(struct lf_av *av, uint64_t *fi_addr, size_t count, uint64_t flags);
    void *unused_lookup;
    const char *(*straddr)(struct lf_av *av, const void *address, char *buffer, size_t *length);
};

struct lf_av {
    struct lf_fid fid;
    struct lf_av_ops *ops;
};

/* ------------------------------------------------------------------------------------------------------ completions */

struct lf_cq_entry {
    void *op_context;
    uint64_t flags;
    size_t length;
    void *buffer;
    uint64_t data, tag;
};

struct lf_cq_error {
    void *op_context;
    uint64_t flags;
    size_t length;
    void *buffer;
    uint64_t data, tag;
    size_t overflow; /* bytes that did not fit */
    int error, provider_error;
    void *error_data;
    size_t error_data_size; /* in: room at error_data */
    uint64_t source;        /* 1.20 */
    uint64_t later[4];
};

struct lf_cq_ops {
    size_t size;
    ssize_t (*read)(struct lf_cq *cq, void *entries, size_t count);
    ssize_t (*readfrom)(struct lf_cq *cq, void *entries, size_t count, uint64_t *sources);
    ssize_t (*readerr)(struct lf_cq *cq, struct lf_cq_error *error, uint64_t flags);
    void *unused[3];
    const char *(*strerror)(struct lf_cq *cq, int provider_error, const void *error_data, char *buffer, size_t length);
};

struct lf_cq {
    struct lf_fid fid;
    struct lf_cq_ops *ops;
};

/* -------------------------------------------------------------------------------------------------------- operations */

/* The library's own during an operation, where a provider asks for it; always there. */
struct lf_context2 {
    void *internal[8];
};

struct lf_msg {
    const struct iovec *iov;
    void **descriptors;
    size_t iov_count;
    uint64_t address;
    void *context;
    uint64_t data;
};

struct lf_msg_tagged {
    const struct iovec *iov;
    void **descriptors;
    size_t iov_count;
    uint64_t address, tag, ignore;
    void *context;
    uint64_t data;
};

struct lf_rma_iov {
    uint64_t address;
    size_t length;
    uint64_t key;
};

struct lf_msg_rma {
    const struct iovec *iov;
    void **descriptors;
    size_t iov_count;
    uint64_t address;
    const struct lf_rma_iov *remote;
    size_t remote_count;
    void *context;
    uint64_t data;
};

/* Atomics count elements where others count bytes. */
struct lf_ioc {
    void *address;
    size_t count;
};

struct lf_rma_ioc {
    uint64_t address;
    size_t count;
    uint64_t key;
};

struct lf_msg_atomic {
    const struct lf_ioc *iov;
    void **descriptors;
    size_t iov_count;
    uint64_t address;
    const struct lf_rma_ioc *remote;
    size_t remote_count;
    int datatype, op;
    void *context;
    uint64_t data;
};

struct lf_ep_ops {
    size_t size;
    ssize_t (*cancel)(struct lf_fid *ep, void *context);
    int (*getopt)(struct lf_fid *ep, int level, int option, void *value, size_t *length);
    int (*setopt)(struct lf_fid *ep, int level, int option, const void *value, size_t length);
};

struct lf_cm_ops {
    size_t size;
    int (*setname)(struct lf_fid *ep, void *address, size_t length);
    int (*getname)(struct lf_fid *ep, void *address, size_t *length);
    void *unused_getpeer;
    int (*connect)(struct lf_ep *ep, const void *address, const void *data, size_t length);
    int (*listen)(struct lf_pep *pep);
    int (*accept)(struct lf_ep *ep, const void *data, size_t length);
    int (*reject)(struct lf_pep *pep, struct lf_fid *request, const void *data, size_t length);
    int (*shutdown)(struct lf_ep *ep, uint64_t flags);
};

struct lf_msg_ops {
    size_t size;
    void *unused_recv[2];
    ssize_t (*recvmsg)(struct lf_ep *ep, const struct lf_msg *msg, uint64_t flags);
    void *unused_send[2];
    ssize_t (*sendmsg)(struct lf_ep *ep, const struct lf_msg *msg, uint64_t flags);
    ssize_t (*inject)(struct lf_ep *ep, const void *buffer, size_t length, uint64_t address);
    void *unused_data;
    ssize_t (*injectdata)(struct lf_ep *ep, const void *buffer, size_t length, uint64_t data, uint64_t address);
};

struct lf_tagged_ops {
    size_t size;
    void *unused_recv[2];
    ssize_t (*recvmsg)(struct lf_ep *ep, const struct lf_msg_tagged *msg, uint64_t flags);
    void *unused_send[2];
    ssize_t (*sendmsg)(struct lf_ep *ep, const struct lf_msg_tagged *msg, uint64_t flags);
    ssize_t (*inject)(struct lf_ep *ep, const void *buffer, size_t length, uint64_t address, uint64_t tag);
    void *unused_data;
    ssize_t (*injectdata)(struct lf_ep *ep, const void *buffer, size_t length, uint64_t data, uint64_t address,
                          uint64_t tag);
};

struct lf_rma_ops {
    size_t size;
    void *unused_read[2];
    ssize_t (*readmsg)(struct lf_ep *ep, const struct lf_msg_rma *msg, uint64_t flags);
    void *unused_write[2];
    ssize_t (*writemsg)(struct lf_ep *ep, const struct lf_msg_rma *msg, uint64_t flags);
};

struct lf_atomic_ops {
    size_t size;
    void *unused_write[2];
    ssize_t (*writemsg)(struct lf_ep *ep, const struct lf_msg_atomic *msg, uint64_t flags);
    void *unused_inject;
    void *unused_fetch[2];
    ssize_t (*readwritemsg)(struct lf_ep *ep, const struct lf_msg_atomic *msg, struct lf_ioc *results,
                            void **result_descriptors, size_t result_count, uint64_t flags);
    void *unused_compare[2];
    ssize_t (*compwritemsg)(struct lf_ep *ep, const struct lf_msg_atomic *msg, const struct lf_ioc *compares,
                            void **compare_descriptors, size_t compare_count, struct lf_ioc *results,
                            void **result_descriptors, size_t result_count, uint64_t flags);
};

struct lf_ep {
    struct lf_fid fid;
    struct lf_ep_ops *ops;
    struct lf_cm_ops *cm;
    struct lf_msg_ops *msg;
    struct lf_rma_ops *rma;
    struct lf_tagged_ops *tagged;
    struct lf_atomic_ops *atomic;
};

/* ---------------------------------------------------------------------------------------------- exported functions */

typedef uint32_t lf_version_fn(void);
typedef int lf_getinfo_fn(uint32_t version, const char *node, const char *service, uint64_t flags,
                          const struct lf_info *hints, struct lf_info **infos);
typedef struct lf_info *lf_dupinfo_fn(const struct lf_info *info);
typedef void lf_freeinfo_fn(struct lf_info *info);
typedef int lf_fabric_fn(struct lf_fabric_attr *attr, struct lf_fabric **fabric, void *context);
typedef const char *lf_strerror_fn(int error);
typedef char *lf_tostr_r_fn(char *buffer, size_t length, const void *data, int type);

#endif
