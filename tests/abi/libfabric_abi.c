/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compiled, never run: providers/ofi/abi.h beside the real headers of libfabric. Every member that the bridge touches lies
 * where libfabric has it, every constant has its value, and what we hand in is no smaller than what it reads.
 */
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include "abi_connection.h"
#include "ofipy/types.h"

#define SIZE_OF(type, member) sizeof(((struct type *)0)->member)
#define MEMBER(ours, mine, theirs, its)                                                                                \
    _Static_assert(offsetof(struct ours, mine) == offsetof(struct theirs, its), #ours "." #mine);                      \
    _Static_assert(SIZE_OF(ours, mine) == SIZE_OF(theirs, its), "size of " #ours "." #mine)
#define WHOLE(ours, theirs) _Static_assert(sizeof(struct ours) == sizeof(struct theirs), #ours)
#define HANDED_IN(ours, theirs) _Static_assert(sizeof(struct ours) >= sizeof(struct theirs), #ours)
#define VALUE(ours, theirs) _Static_assert((uint64_t)(ours) == (uint64_t)(theirs), #ours)

MEMBER(lf_tx_attr, caps, fi_tx_attr, caps);
MEMBER(lf_tx_attr, mode, fi_tx_attr, mode);
MEMBER(lf_tx_attr, op_flags, fi_tx_attr, op_flags);
MEMBER(lf_tx_attr, msg_order, fi_tx_attr, msg_order);
MEMBER(lf_tx_attr, comp_order, fi_tx_attr, comp_order);
MEMBER(lf_tx_attr, inject_size, fi_tx_attr, inject_size);
MEMBER(lf_tx_attr, size, fi_tx_attr, size);
MEMBER(lf_tx_attr, iov_limit, fi_tx_attr, iov_limit);
MEMBER(lf_tx_attr, rma_iov_limit, fi_tx_attr, rma_iov_limit);
MEMBER(lf_tx_attr, traffic_class, fi_tx_attr, tclass);

MEMBER(lf_rx_attr, caps, fi_rx_attr, caps);
MEMBER(lf_rx_attr, mode, fi_rx_attr, mode);
MEMBER(lf_rx_attr, op_flags, fi_rx_attr, op_flags);
MEMBER(lf_rx_attr, msg_order, fi_rx_attr, msg_order);
MEMBER(lf_rx_attr, comp_order, fi_rx_attr, comp_order);
MEMBER(lf_rx_attr, total_buffered_recv, fi_rx_attr, total_buffered_recv);
MEMBER(lf_rx_attr, size, fi_rx_attr, size);
MEMBER(lf_rx_attr, iov_limit, fi_rx_attr, iov_limit);

MEMBER(lf_ep_attr, type, fi_ep_attr, type);
MEMBER(lf_ep_attr, protocol, fi_ep_attr, protocol);
MEMBER(lf_ep_attr, protocol_version, fi_ep_attr, protocol_version);
MEMBER(lf_ep_attr, max_msg_size, fi_ep_attr, max_msg_size);
MEMBER(lf_ep_attr, msg_prefix_size, fi_ep_attr, msg_prefix_size);
MEMBER(lf_ep_attr, max_order_raw_size, fi_ep_attr, max_order_raw_size);
MEMBER(lf_ep_attr, max_order_war_size, fi_ep_attr, max_order_war_size);
MEMBER(lf_ep_attr, max_order_waw_size, fi_ep_attr, max_order_waw_size);
MEMBER(lf_ep_attr, mem_tag_format, fi_ep_attr, mem_tag_format);
MEMBER(lf_ep_attr, tx_ctx_cnt, fi_ep_attr, tx_ctx_cnt);
MEMBER(lf_ep_attr, rx_ctx_cnt, fi_ep_attr, rx_ctx_cnt);

MEMBER(lf_domain_attr, domain, fi_domain_attr, domain);
MEMBER(lf_domain_attr, name, fi_domain_attr, name);
MEMBER(lf_domain_attr, threading, fi_domain_attr, threading);
MEMBER(lf_domain_attr, control_progress, fi_domain_attr, control_progress);
MEMBER(lf_domain_attr, data_progress, fi_domain_attr, data_progress);
MEMBER(lf_domain_attr, resource_mgmt, fi_domain_attr, resource_mgmt);
MEMBER(lf_domain_attr, av_type, fi_domain_attr, av_type);
MEMBER(lf_domain_attr, mr_mode, fi_domain_attr, mr_mode);
MEMBER(lf_domain_attr, mr_key_size, fi_domain_attr, mr_key_size);
MEMBER(lf_domain_attr, cq_data_size, fi_domain_attr, cq_data_size);

MEMBER(lf_fabric_attr, fabric, fi_fabric_attr, fabric);
MEMBER(lf_fabric_attr, name, fi_fabric_attr, name);
MEMBER(lf_fabric_attr, prov_name, fi_fabric_attr, prov_name);
MEMBER(lf_fabric_attr, prov_version, fi_fabric_attr, prov_version);
MEMBER(lf_fabric_attr, api_version, fi_fabric_attr, api_version);

MEMBER(lf_info, next, fi_info, next);
MEMBER(lf_info, caps, fi_info, caps);
MEMBER(lf_info, mode, fi_info, mode);
MEMBER(lf_info, addr_format, fi_info, addr_format);
MEMBER(lf_info, src_addrlen, fi_info, src_addrlen);
MEMBER(lf_info, dest_addrlen, fi_info, dest_addrlen);
MEMBER(lf_info, src_addr, fi_info, src_addr);
MEMBER(lf_info, dest_addr, fi_info, dest_addr);
MEMBER(lf_info, handle, fi_info, handle);
MEMBER(lf_info, tx_attr, fi_info, tx_attr);
MEMBER(lf_info, rx_attr, fi_info, rx_attr);
MEMBER(lf_info, ep_attr, fi_info, ep_attr);
MEMBER(lf_info, domain_attr, fi_info, domain_attr);
MEMBER(lf_info, fabric_attr, fi_info, fabric_attr);

MEMBER(lf_object_ops, size, fi_ops, size);
MEMBER(lf_object_ops, close, fi_ops, close);
MEMBER(lf_object_ops, bind, fi_ops, bind);
MEMBER(lf_object_ops, control, fi_ops, control);

MEMBER(lf_fid, kind, fid, fclass);
MEMBER(lf_fid, context, fid, context);
MEMBER(lf_fid, ops, fid, ops);
WHOLE(lf_fid, fid);

MEMBER(lf_fabric_ops, size, fi_ops_fabric, size);
MEMBER(lf_fabric_ops, domain, fi_ops_fabric, domain);
MEMBER(lf_fabric_ops, passive_ep, fi_ops_fabric, passive_ep);
MEMBER(lf_fabric_ops, eq_open, fi_ops_fabric, eq_open);
MEMBER(lf_fabric_ops, trywait, fi_ops_fabric, trywait);

MEMBER(lf_fabric, fid, fid_fabric, fid);
MEMBER(lf_fabric, ops, fid_fabric, ops);
MEMBER(lf_fabric, api_version, fid_fabric, api_version);

MEMBER(lf_av_attr, type, fi_av_attr, type);
MEMBER(lf_av_attr, rx_ctx_bits, fi_av_attr, rx_ctx_bits);
MEMBER(lf_av_attr, count, fi_av_attr, count);
MEMBER(lf_av_attr, ep_per_node, fi_av_attr, ep_per_node);
MEMBER(lf_av_attr, name, fi_av_attr, name);
MEMBER(lf_av_attr, map_addr, fi_av_attr, map_addr);
MEMBER(lf_av_attr, flags, fi_av_attr, flags);
HANDED_IN(lf_av_attr, fi_av_attr);

MEMBER(lf_cq_attr, size, fi_cq_attr, size);
MEMBER(lf_cq_attr, flags, fi_cq_attr, flags);
MEMBER(lf_cq_attr, format, fi_cq_attr, format);
MEMBER(lf_cq_attr, wait_object, fi_cq_attr, wait_obj);
MEMBER(lf_cq_attr, signaling_vector, fi_cq_attr, signaling_vector);
MEMBER(lf_cq_attr, wait_condition, fi_cq_attr, wait_cond);
MEMBER(lf_cq_attr, wait_set, fi_cq_attr, wait_set);
HANDED_IN(lf_cq_attr, fi_cq_attr);

MEMBER(lf_eq_attr, size, fi_eq_attr, size);
MEMBER(lf_eq_attr, flags, fi_eq_attr, flags);
MEMBER(lf_eq_attr, wait_object, fi_eq_attr, wait_obj);
MEMBER(lf_eq_attr, signaling_vector, fi_eq_attr, signaling_vector);
MEMBER(lf_eq_attr, wait_set, fi_eq_attr, wait_set);
HANDED_IN(lf_eq_attr, fi_eq_attr);

MEMBER(lf_eq_entry, fid, fi_eq_cm_entry, fid);
MEMBER(lf_eq_entry, info, fi_eq_cm_entry, info);
_Static_assert(sizeof(struct lf_eq_entry) == offsetof(struct fi_eq_cm_entry, data), "data of lf_eq_entry");

MEMBER(lf_eq_error, fid, fi_eq_err_entry, fid);
MEMBER(lf_eq_error, context, fi_eq_err_entry, context);
MEMBER(lf_eq_error, data, fi_eq_err_entry, data);
MEMBER(lf_eq_error, error, fi_eq_err_entry, err);
MEMBER(lf_eq_error, provider_error, fi_eq_err_entry, prov_errno);
MEMBER(lf_eq_error, error_data, fi_eq_err_entry, err_data);
MEMBER(lf_eq_error, error_data_size, fi_eq_err_entry, err_data_size);
HANDED_IN(lf_eq_error, fi_eq_err_entry);

MEMBER(lf_eq_ops, size, fi_ops_eq, size);
MEMBER(lf_eq_ops, read, fi_ops_eq, read);
MEMBER(lf_eq_ops, readerr, fi_ops_eq, readerr);
MEMBER(lf_eq, fid, fid_eq, fid);
MEMBER(lf_eq, ops, fid_eq, ops);

MEMBER(lf_atomic_attr, count, fi_atomic_attr, count);
MEMBER(lf_atomic_attr, size, fi_atomic_attr, size);
WHOLE(lf_atomic_attr, fi_atomic_attr);

MEMBER(lf_domain_ops, size, fi_ops_domain, size);
MEMBER(lf_domain_ops, av_open, fi_ops_domain, av_open);
MEMBER(lf_domain_ops, cq_open, fi_ops_domain, cq_open);
MEMBER(lf_domain_ops, endpoint, fi_ops_domain, endpoint);
MEMBER(lf_domain_ops, query_atomic, fi_ops_domain, query_atomic);

MEMBER(lf_mr_ops, size, fi_ops_mr, size);
MEMBER(lf_mr_ops, reg, fi_ops_mr, reg);

MEMBER(lf_domain, fid, fid_domain, fid);
MEMBER(lf_domain, ops, fid_domain, ops);
MEMBER(lf_domain, mr, fid_domain, mr);

MEMBER(lf_mr, fid, fid_mr, fid);
MEMBER(lf_mr, descriptor, fid_mr, mem_desc);
MEMBER(lf_mr, key, fid_mr, key);
WHOLE(lf_mr, fid_mr);

MEMBER(lf_av_ops, size, fi_ops_av, size);
MEMBER(lf_av_ops, insert, fi_ops_av, insert);
MEMBER(lf_av_ops, remove, fi_ops_av, remove);
MEMBER(lf_av_ops, straddr, fi_ops_av, straddr);

MEMBER(lf_av, fid, fid_av, fid);
MEMBER(lf_av, ops, fid_av, ops);

MEMBER(lf_cq_entry, op_context, fi_cq_tagged_entry, op_context);
MEMBER(lf_cq_entry, flags, fi_cq_tagged_entry, flags);
MEMBER(lf_cq_entry, length, fi_cq_tagged_entry, len);
MEMBER(lf_cq_entry, buffer, fi_cq_tagged_entry, buf);
MEMBER(lf_cq_entry, data, fi_cq_tagged_entry, data);
MEMBER(lf_cq_entry, tag, fi_cq_tagged_entry, tag);
WHOLE(lf_cq_entry, fi_cq_tagged_entry);

MEMBER(lf_cq_error, op_context, fi_cq_err_entry, op_context);
MEMBER(lf_cq_error, flags, fi_cq_err_entry, flags);
MEMBER(lf_cq_error, length, fi_cq_err_entry, len);
MEMBER(lf_cq_error, buffer, fi_cq_err_entry, buf);
MEMBER(lf_cq_error, data, fi_cq_err_entry, data);
MEMBER(lf_cq_error, tag, fi_cq_err_entry, tag);
MEMBER(lf_cq_error, overflow, fi_cq_err_entry, olen);
MEMBER(lf_cq_error, error, fi_cq_err_entry, err);
MEMBER(lf_cq_error, provider_error, fi_cq_err_entry, prov_errno);
MEMBER(lf_cq_error, error_data, fi_cq_err_entry, err_data);
MEMBER(lf_cq_error, error_data_size, fi_cq_err_entry, err_data_size);
HANDED_IN(lf_cq_error, fi_cq_err_entry);

MEMBER(lf_cq_ops, size, fi_ops_cq, size);
MEMBER(lf_cq_ops, read, fi_ops_cq, read);
MEMBER(lf_cq_ops, readfrom, fi_ops_cq, readfrom);
MEMBER(lf_cq_ops, readerr, fi_ops_cq, readerr);
MEMBER(lf_cq_ops, strerror, fi_ops_cq, strerror);

MEMBER(lf_cq, fid, fid_cq, fid);
MEMBER(lf_cq, ops, fid_cq, ops);

MEMBER(lf_context2, internal, fi_context2, internal);
WHOLE(lf_context2, fi_context2);

MEMBER(lf_msg, iov, fi_msg, msg_iov);
MEMBER(lf_msg, descriptors, fi_msg, desc);
MEMBER(lf_msg, iov_count, fi_msg, iov_count);
MEMBER(lf_msg, address, fi_msg, addr);
MEMBER(lf_msg, context, fi_msg, context);
MEMBER(lf_msg, data, fi_msg, data);
WHOLE(lf_msg, fi_msg);

MEMBER(lf_msg_tagged, iov, fi_msg_tagged, msg_iov);
MEMBER(lf_msg_tagged, descriptors, fi_msg_tagged, desc);
MEMBER(lf_msg_tagged, iov_count, fi_msg_tagged, iov_count);
MEMBER(lf_msg_tagged, address, fi_msg_tagged, addr);
MEMBER(lf_msg_tagged, tag, fi_msg_tagged, tag);
MEMBER(lf_msg_tagged, ignore, fi_msg_tagged, ignore);
MEMBER(lf_msg_tagged, context, fi_msg_tagged, context);
MEMBER(lf_msg_tagged, data, fi_msg_tagged, data);
WHOLE(lf_msg_tagged, fi_msg_tagged);

MEMBER(lf_rma_iov, address, fi_rma_iov, addr);
MEMBER(lf_rma_iov, length, fi_rma_iov, len);
MEMBER(lf_rma_iov, key, fi_rma_iov, key);
WHOLE(lf_rma_iov, fi_rma_iov);

MEMBER(lf_msg_rma, iov, fi_msg_rma, msg_iov);
MEMBER(lf_msg_rma, descriptors, fi_msg_rma, desc);
MEMBER(lf_msg_rma, iov_count, fi_msg_rma, iov_count);
MEMBER(lf_msg_rma, address, fi_msg_rma, addr);
MEMBER(lf_msg_rma, remote, fi_msg_rma, rma_iov);
MEMBER(lf_msg_rma, remote_count, fi_msg_rma, rma_iov_count);
MEMBER(lf_msg_rma, context, fi_msg_rma, context);
MEMBER(lf_msg_rma, data, fi_msg_rma, data);
WHOLE(lf_msg_rma, fi_msg_rma);

MEMBER(lf_ioc, address, fi_ioc, addr);
MEMBER(lf_ioc, count, fi_ioc, count);
WHOLE(lf_ioc, fi_ioc);

MEMBER(lf_rma_ioc, address, fi_rma_ioc, addr);
MEMBER(lf_rma_ioc, count, fi_rma_ioc, count);
MEMBER(lf_rma_ioc, key, fi_rma_ioc, key);
WHOLE(lf_rma_ioc, fi_rma_ioc);

MEMBER(lf_msg_atomic, iov, fi_msg_atomic, msg_iov);
MEMBER(lf_msg_atomic, descriptors, fi_msg_atomic, desc);
MEMBER(lf_msg_atomic, iov_count, fi_msg_atomic, iov_count);
MEMBER(lf_msg_atomic, address, fi_msg_atomic, addr);
MEMBER(lf_msg_atomic, remote, fi_msg_atomic, rma_iov);
MEMBER(lf_msg_atomic, remote_count, fi_msg_atomic, rma_iov_count);
MEMBER(lf_msg_atomic, datatype, fi_msg_atomic, datatype);
MEMBER(lf_msg_atomic, op, fi_msg_atomic, op);
MEMBER(lf_msg_atomic, context, fi_msg_atomic, context);
MEMBER(lf_msg_atomic, data, fi_msg_atomic, data);
WHOLE(lf_msg_atomic, fi_msg_atomic);

MEMBER(lf_ep_ops, size, fi_ops_ep, size);
MEMBER(lf_ep_ops, cancel, fi_ops_ep, cancel);
MEMBER(lf_ep_ops, getopt, fi_ops_ep, getopt);
MEMBER(lf_ep_ops, setopt, fi_ops_ep, setopt);

MEMBER(lf_cm_ops, size, fi_ops_cm, size);
MEMBER(lf_cm_ops, setname, fi_ops_cm, setname);
MEMBER(lf_cm_ops, getname, fi_ops_cm, getname);
MEMBER(lf_cm_ops, connect, fi_ops_cm, connect);
MEMBER(lf_cm_ops, listen, fi_ops_cm, listen);
MEMBER(lf_cm_ops, accept, fi_ops_cm, accept);
MEMBER(lf_cm_ops, reject, fi_ops_cm, reject);
MEMBER(lf_cm_ops, shutdown, fi_ops_cm, shutdown);

MEMBER(lf_pep, fid, fid_pep, fid);
MEMBER(lf_pep, ops, fid_pep, ops);
MEMBER(lf_pep, cm, fid_pep, cm);

MEMBER(lf_msg_ops, size, fi_ops_msg, size);
MEMBER(lf_msg_ops, recvmsg, fi_ops_msg, recvmsg);
MEMBER(lf_msg_ops, sendmsg, fi_ops_msg, sendmsg);
MEMBER(lf_msg_ops, inject, fi_ops_msg, inject);
MEMBER(lf_msg_ops, injectdata, fi_ops_msg, injectdata);

MEMBER(lf_tagged_ops, size, fi_ops_tagged, size);
MEMBER(lf_tagged_ops, recvmsg, fi_ops_tagged, recvmsg);
MEMBER(lf_tagged_ops, sendmsg, fi_ops_tagged, sendmsg);
MEMBER(lf_tagged_ops, inject, fi_ops_tagged, inject);
MEMBER(lf_tagged_ops, injectdata, fi_ops_tagged, injectdata);

MEMBER(lf_rma_ops, size, fi_ops_rma, size);
MEMBER(lf_rma_ops, readmsg, fi_ops_rma, readmsg);
MEMBER(lf_rma_ops, writemsg, fi_ops_rma, writemsg);

MEMBER(lf_atomic_ops, size, fi_ops_atomic, size);
MEMBER(lf_atomic_ops, writemsg, fi_ops_atomic, writemsg);
MEMBER(lf_atomic_ops, readwritemsg, fi_ops_atomic, readwritemsg);
MEMBER(lf_atomic_ops, compwritemsg, fi_ops_atomic, compwritemsg);

MEMBER(lf_ep, fid, fid_ep, fid);
MEMBER(lf_ep, ops, fid_ep, ops);
MEMBER(lf_ep, cm, fid_ep, cm);
MEMBER(lf_ep, msg, fid_ep, msg);
MEMBER(lf_ep, rma, fid_ep, rma);
MEMBER(lf_ep, tagged, fid_ep, tagged);
MEMBER(lf_ep, atomic, fid_ep, atomic);

VALUE(LF_MSG, FI_MSG);
VALUE(LF_RMA, FI_RMA);
VALUE(LF_TAGGED, FI_TAGGED);
VALUE(LF_ATOMIC, FI_ATOMIC);
VALUE(LF_READ, FI_READ);
VALUE(LF_WRITE, FI_WRITE);
VALUE(LF_RECV, FI_RECV);
VALUE(LF_SEND, FI_SEND);
VALUE(LF_REMOTE_READ, FI_REMOTE_READ);
VALUE(LF_REMOTE_WRITE, FI_REMOTE_WRITE);
VALUE(LF_MULTI_RECV, FI_MULTI_RECV);
VALUE(LF_LOCAL_COMM, FI_LOCAL_COMM);
VALUE(LF_REMOTE_COMM, FI_REMOTE_COMM);
VALUE(LF_RMA_EVENT, FI_RMA_EVENT);
VALUE(LF_SOURCE, FI_SOURCE);
VALUE(LF_DIRECTED_RECV, FI_DIRECTED_RECV);
VALUE(LF_REMOTE_CQ_DATA, FI_REMOTE_CQ_DATA);
VALUE(LF_MORE, FI_MORE);
VALUE(LF_PEEK, FI_PEEK);
VALUE(LF_FENCE, FI_FENCE);
VALUE(LF_COMPLETION, FI_COMPLETION);
VALUE(LF_INJECT, FI_INJECT);
VALUE(LF_TRANSMIT_COMPLETE, FI_TRANSMIT_COMPLETE);
VALUE(LF_DELIVERY_COMPLETE, FI_DELIVERY_COMPLETE);
VALUE(LF_MATCH_COMPLETE, FI_MATCH_COMPLETE);
VALUE(LF_DISCARD, FI_DISCARD);
VALUE(LF_CLAIM, FI_CLAIM);
VALUE(LF_MR_LOCAL, FI_MR_LOCAL);
VALUE(LF_MR_VIRT_ADDR, FI_MR_VIRT_ADDR);
VALUE(LF_MR_ALLOCATED, FI_MR_ALLOCATED);
VALUE(LF_MR_PROV_KEY, FI_MR_PROV_KEY);
VALUE(LF_MR_ENDPOINT, FI_MR_ENDPOINT);
VALUE(LF_ORDER_RMA_RAR, FI_ORDER_RMA_RAR);
VALUE(LF_ORDER_RMA_RAW, FI_ORDER_RMA_RAW);
VALUE(LF_ORDER_RMA_WAR, FI_ORDER_RMA_WAR);
VALUE(LF_ORDER_RMA_WAW, FI_ORDER_RMA_WAW);
VALUE(LF_ORDER_ATOMIC_RAR, FI_ORDER_ATOMIC_RAR);
VALUE(LF_ORDER_ATOMIC_RAW, FI_ORDER_ATOMIC_RAW);
VALUE(LF_ORDER_ATOMIC_WAR, FI_ORDER_ATOMIC_WAR);
VALUE(LF_ORDER_ATOMIC_WAW, FI_ORDER_ATOMIC_WAW);
VALUE(LF_ADDR_UNSPEC, FI_ADDR_UNSPEC);
VALUE(LF_ADDR_NOTAVAIL, FI_ADDR_NOTAVAIL);
VALUE(LF_EP_UNSPEC, FI_EP_UNSPEC);
VALUE(LF_EP_MSG, FI_EP_MSG);
VALUE(LF_EP_DGRAM, FI_EP_DGRAM);
VALUE(LF_EP_RDM, FI_EP_RDM);
VALUE(LF_AV_UNSPEC, FI_AV_UNSPEC);
VALUE(LF_AV_MAP, FI_AV_MAP);
VALUE(LF_AV_TABLE, FI_AV_TABLE);
VALUE(LF_THREAD_UNSPEC, FI_THREAD_UNSPEC);
VALUE(LF_THREAD_SAFE, FI_THREAD_SAFE);
VALUE(LF_THREAD_FID, FI_THREAD_FID);
VALUE(LF_THREAD_DOMAIN, FI_THREAD_DOMAIN);
VALUE(LF_PROGRESS_UNSPEC, FI_PROGRESS_UNSPEC);
VALUE(LF_PROGRESS_AUTO, FI_PROGRESS_AUTO);
VALUE(LF_PROGRESS_MANUAL, FI_PROGRESS_MANUAL);
VALUE(LF_RM_UNSPEC, FI_RM_UNSPEC);
VALUE(LF_RM_DISABLED, FI_RM_DISABLED);
VALUE(LF_RM_ENABLED, FI_RM_ENABLED);
VALUE(LF_FORMAT_UNSPEC, FI_FORMAT_UNSPEC);
VALUE(LF_SOCKADDR, FI_SOCKADDR);
VALUE(LF_SOCKADDR_IN, FI_SOCKADDR_IN);
VALUE(LF_SOCKADDR_IN6, FI_SOCKADDR_IN6);
VALUE(LF_ADDR_STR, FI_ADDR_STR);
VALUE(LF_WAIT_NONE, FI_WAIT_NONE);
VALUE(LF_WAIT_UNSPEC, FI_WAIT_UNSPEC);
VALUE(LF_WAIT_SET, FI_WAIT_SET);
VALUE(LF_WAIT_FD, FI_WAIT_FD);
VALUE(LF_CQ_FORMAT_UNSPEC, FI_CQ_FORMAT_UNSPEC);
VALUE(LF_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_CONTEXT);
VALUE(LF_CQ_FORMAT_MSG, FI_CQ_FORMAT_MSG);
VALUE(LF_CQ_FORMAT_DATA, FI_CQ_FORMAT_DATA);
VALUE(LF_CQ_FORMAT_TAGGED, FI_CQ_FORMAT_TAGGED);
#if FI_MAJOR_VERSION >= 2
VALUE(LF_TAG_MAX_FORMAT, FI_TAG_MAX_FORMAT);
#endif
VALUE(LF_EAVAIL, FI_EAVAIL);
VALUE(LF_EDOMAIN, FI_EDOMAIN);
VALUE(LF_GETINFO_SOURCE, FI_SOURCE);
VALUE(LF_FETCH_ATOMIC, FI_FETCH_ATOMIC);
VALUE(LF_COMPARE_ATOMIC, FI_COMPARE_ATOMIC);
VALUE(LF_KEY_NOTAVAIL, FI_KEY_NOTAVAIL);
VALUE(LF_MODE_CONTEXT, FI_CONTEXT);
VALUE(LF_MODE_CONTEXT2, FI_CONTEXT2);
VALUE(LF_MODE_RX_CQ_DATA, FI_RX_CQ_DATA);
VALUE(LF_COMMAND_GETWAIT, FI_GETWAIT);
VALUE(LF_COMMAND_ENABLE, FI_ENABLE);
VALUE(LF_OPTION_ENDPOINT, FI_OPT_ENDPOINT);
VALUE(LF_OPTION_MIN_MULTI_RECV, FI_OPT_MIN_MULTI_RECV);
VALUE(LF_OPTION_PRIVATE_DATA, FI_OPT_CM_DATA_SIZE);
VALUE(LF_EVENT_REQUEST, FI_CONNREQ);
VALUE(LF_EVENT_CONNECTED, FI_CONNECTED);
VALUE(LF_EVENT_SHUTDOWN, FI_SHUTDOWN);
VALUE(LF_SHARED_CONTEXT, FI_SHARED_CONTEXT);
VALUE(LF_TOSTR_PROTOCOL, FI_TYPE_PROTOCOL);

/* Atomic operations and types too. */
VALUE(OFP_ATOMIC_MIN, FI_MIN);
VALUE(OFP_ATOMIC_MAX, FI_MAX);
VALUE(OFP_ATOMIC_SUM, FI_SUM);
VALUE(OFP_ATOMIC_PROD, FI_PROD);
VALUE(OFP_ATOMIC_LOR, FI_LOR);
VALUE(OFP_ATOMIC_LAND, FI_LAND);
VALUE(OFP_ATOMIC_BOR, FI_BOR);
VALUE(OFP_ATOMIC_BAND, FI_BAND);
VALUE(OFP_ATOMIC_LXOR, FI_LXOR);
VALUE(OFP_ATOMIC_BXOR, FI_BXOR);
VALUE(OFP_ATOMIC_READ, FI_ATOMIC_READ);
VALUE(OFP_ATOMIC_WRITE, FI_ATOMIC_WRITE);
VALUE(OFP_ATOMIC_CSWAP, FI_CSWAP);
VALUE(OFP_ATOMIC_CSWAP_NE, FI_CSWAP_NE);
VALUE(OFP_ATOMIC_CSWAP_LE, FI_CSWAP_LE);
VALUE(OFP_ATOMIC_CSWAP_LT, FI_CSWAP_LT);
VALUE(OFP_ATOMIC_CSWAP_GE, FI_CSWAP_GE);
VALUE(OFP_ATOMIC_CSWAP_GT, FI_CSWAP_GT);
VALUE(OFP_ATOMIC_MSWAP, FI_MSWAP);
VALUE(OFP_INT8, FI_INT8);
VALUE(OFP_UINT8, FI_UINT8);
VALUE(OFP_INT16, FI_INT16);
VALUE(OFP_UINT16, FI_UINT16);
VALUE(OFP_INT32, FI_INT32);
VALUE(OFP_UINT32, FI_UINT32);
VALUE(OFP_INT64, FI_INT64);
VALUE(OFP_UINT64, FI_UINT64);
VALUE(OFP_FLOAT, FI_FLOAT);
VALUE(OFP_DOUBLE, FI_DOUBLE);
VALUE(OFP_FLOAT_COMPLEX, FI_FLOAT_COMPLEX);
VALUE(OFP_DOUBLE_COMPLEX, FI_DOUBLE_COMPLEX);

/* Message orders pass without translation. */
VALUE(OFP_ORDER_RAR, FI_ORDER_RAR);
VALUE(OFP_ORDER_RAW, FI_ORDER_RAW);
VALUE(OFP_ORDER_RAS, FI_ORDER_RAS);
VALUE(OFP_ORDER_WAR, FI_ORDER_WAR);
VALUE(OFP_ORDER_WAW, FI_ORDER_WAW);
VALUE(OFP_ORDER_WAS, FI_ORDER_WAS);
VALUE(OFP_ORDER_SAR, FI_ORDER_SAR);
VALUE(OFP_ORDER_SAW, FI_ORDER_SAW);
VALUE(OFP_ORDER_SAS, FI_ORDER_SAS);

/* Younger than the oldest headers that this is compiled beside. */
#if FI_MAJOR_VERSION > 1 || FI_MINOR_VERSION >= 20
MEMBER(lf_cq_error, source, fi_cq_err_entry, src_addr);
#endif
