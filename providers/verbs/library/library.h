/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibverbs and librdmacm are loaded at first use and never linked, so only this provider needs them. Posting and
 * polling call the functions of the device's driver.
 */
#ifndef VERBS_LIBRARY_H
#define VERBS_LIBRARY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "library/abi.h"
#include "library/prototypes.h"

#define VERBS_IBVERBS_CALLS(CALL)                                                                                      \
    CALL(get_device_list, ibv_get_device_list)                                                                         \
    CALL(free_device_list, ibv_free_device_list)                                                                       \
    CALL(get_device_name, ibv_get_device_name)                                                                         \
    CALL(open_device, ibv_open_device)                                                                                 \
    CALL(close_device, ibv_close_device)                                                                               \
    CALL(query_device, ibv_query_device)                                                                               \
    CALL(query_port, ibv_query_port)                                                                                   \
    CALL(query_gid, ibv_query_gid)                                                                                     \
    CALL(query_pkey, ibv_query_pkey)                                                                                   \
    CALL(get_async_event, ibv_get_async_event)                                                                         \
    CALL(ack_async_event, ibv_ack_async_event)                                                                         \
    CALL(event_type_str, ibv_event_type_str)                                                                           \
    CALL(wc_status_str, ibv_wc_status_str)                                                                             \
    CALL(fork_init, ibv_fork_init)                                                                                     \
    CALL(alloc_pd, ibv_alloc_pd)                                                                                       \
    CALL(dealloc_pd, ibv_dealloc_pd)                                                                                   \
    CALL(reg_mr, ibv_reg_mr)                                                                                           \
    CALL(dereg_mr, ibv_dereg_mr)                                                                                       \
    CALL(create_comp_channel, ibv_create_comp_channel)                                                                 \
    CALL(destroy_comp_channel, ibv_destroy_comp_channel)                                                               \
    CALL(get_cq_event, ibv_get_cq_event)                                                                               \
    CALL(ack_cq_events, ibv_ack_cq_events)                                                                             \
    CALL(create_cq, ibv_create_cq)                                                                                     \
    CALL(destroy_cq, ibv_destroy_cq)                                                                                   \
    CALL(resize_cq, ibv_resize_cq)                                                                                     \
    CALL(create_srq, ibv_create_srq)                                                                                   \
    CALL(destroy_srq, ibv_destroy_srq)                                                                                 \
    CALL(create_qp, ibv_create_qp)                                                                                     \
    CALL(modify_qp, ibv_modify_qp)                                                                                     \
    CALL(destroy_qp, ibv_destroy_qp)                                                                                   \
    CALL(create_ah, ibv_create_ah)                                                                                     \
    CALL(destroy_ah, ibv_destroy_ah)

#define VERBS_RDMACM_CALLS(CALL)                                                                                       \
    CALL(create_event_channel, rdma_create_event_channel)                                                              \
    CALL(destroy_event_channel, rdma_destroy_event_channel)                                                            \
    CALL(get_cm_event, rdma_get_cm_event)                                                                              \
    CALL(ack_cm_event, rdma_ack_cm_event)                                                                              \
    CALL(create_id, rdma_create_id)                                                                                    \
    CALL(destroy_id, rdma_destroy_id)                                                                                  \
    CALL(set_option, rdma_set_option)                                                                                  \
    CALL(bind_addr, rdma_bind_addr)                                                                                    \
    CALL(resolve_addr, rdma_resolve_addr)                                                                              \
    CALL(resolve_route, rdma_resolve_route)                                                                            \
    CALL(init_qp_attr, rdma_init_qp_attr)                                                                              \
    CALL(listen, rdma_listen)                                                                                          \
    CALL(connect, rdma_connect)                                                                                        \
    CALL(establish, rdma_establish)                                                                                    \
    CALL(accept, rdma_accept)                                                                                          \
    CALL(reject, rdma_reject)                                                                                          \
    CALL(notify, rdma_notify)                                                                                          \
    CALL(disconnect, rdma_disconnect)

#define VERBS_DECLARE(name, function) __typeof__(function) *name;

struct verbs_calls {
    VERBS_IBVERBS_CALLS(VERBS_DECLARE)
    VERBS_RDMACM_CALLS(VERBS_DECLARE)
};

/* Valid after verbs_library_load has returned true. */
extern struct verbs_calls verbs_calls;
/* From rdma-core 34 on; NULL: missing. */
extern __typeof__(ibv_reg_dmabuf_mr) *verbs_reg_dmabuf_mr;

/* Held while the libraries are loaded. */
extern pthread_mutex_t verbs_library_lock;
/*
 * May be called by any thread. Returns false, with a text that says what to install, if a library is missing. Loaded
 * libraries stay loaded.
 */
bool verbs_library_load(char *text, size_t text_size);

/* ------------------------------------------------------------------------------------------ through a driver's table */

static inline int ibv_poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *completions)
{
    return cq->context->ops.poll_cq(cq, most, completions);
}

static inline int ibv_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    return cq->context->ops.req_notify_cq(cq, solicited_only);
}

static inline int ibv_post_send(struct ibv_qp *qp, struct ibv_send_wr *requests, struct ibv_send_wr **bad)
{
    return qp->context->ops.post_send(qp, requests, bad);
}

static inline int ibv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *requests, struct ibv_recv_wr **bad)
{
    return qp->context->ops.post_recv(qp, requests, bad);
}

static inline int ibv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *requests, struct ibv_recv_wr **bad)
{
    return srq->context->ops.post_srq_recv(srq, requests, bad);
}

/* The extension in front of a context, if it reaches to `entry`. NULL: the library or the driver is older. */
#define VERBS_EXTENSION(context, entry)                                                                                \
    verbs_extension_find(context, sizeof(struct verbs_context) - offsetof(struct verbs_context, entry))

static inline struct verbs_context *verbs_extension_find(struct ibv_context *context, size_t reach)
{
    struct verbs_context *whole =
        (struct verbs_context *)(void *)((char *)context - offsetof(struct verbs_context, context));

    return context->abi_compat == VERBS_EXTENDED && whole->sz >= reach ? whole : NULL;
}

#endif
