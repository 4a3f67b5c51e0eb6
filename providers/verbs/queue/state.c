/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/state.h"

#include <errno.h>
#include <string.h>

static int get_pair_attributes(struct rdma_cm_id *id, enum ibv_qp_state state, struct ibv_qp_attr *attr, int *mask)
{
    memset(attr, 0, sizeof(*attr));
    attr->qp_state = state;
    return verbs_calls.init_qp_attr(id, attr, mask) == 0 ? 0 : -errno;
}

static int set_pair_attributes(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    return -verbs_calls.modify_qp(qp, attr, mask);
}

int verbs_qp_init(const struct verbs_domain *domain, struct rdma_cm_id *id, struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    int mask, result = get_pair_attributes(id, IBV_QPS_INIT, &attr, &mask);

    if (result)
        return result;
    if (domain->settings.pkey >= 0)
        attr.pkey_index = (uint16_t)domain->settings.pkey;
    /* The peer gets rights when it is known: see start_receiving. */
    attr.qp_access_flags = IBV_ACCESS_LOCAL_WRITE;
    return set_pair_attributes(qp, &attr, mask | IBV_QP_ACCESS_FLAGS);
}

/* The regions decide what peers may access. */
static unsigned compute_peer_access(const struct verbs_port *port)
{
    return IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
           (verbs_port_has_atomics(port) ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

static int start_receiving(const struct verbs_domain *domain, struct rdma_cm_id *id, struct ibv_qp *qp,
                           uint8_t responder_resources)
{
    const struct verbs_settings *settings = &domain->settings;
    struct ibv_qp_attr attr;
    int mask, result = get_pair_attributes(id, IBV_QPS_RTR, &attr, &mask);

    if (result)
        return result;
    attr.max_dest_rd_atomic = responder_resources;
    attr.min_rnr_timer = (uint8_t)settings->rnr_timer;
    if (settings->path_mtu >= 0)
        attr.path_mtu = (enum ibv_mtu)settings->path_mtu;
    if (settings->service_level >= 0)
        attr.ah_attr.sl = (uint8_t)settings->service_level;
    attr.qp_access_flags = compute_peer_access(domain->port);
    return set_pair_attributes(qp, &attr,
                               mask | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS);
}

static int start_sending(struct rdma_cm_id *id, struct ibv_qp *qp, uint8_t initiator_depth)
{
    struct ibv_qp_attr attr;
    int mask, result = get_pair_attributes(id, IBV_QPS_RTS, &attr, &mask);

    if (result)
        return result;
    attr.max_rd_atomic = initiator_depth;
    return set_pair_attributes(qp, &attr, mask | IBV_QP_MAX_QP_RD_ATOMIC);
}

int verbs_qp_connect(const struct verbs_domain *domain, struct rdma_cm_id *id, struct ibv_qp *qp,
                     uint8_t responder_resources, uint8_t initiator_depth)
{
    int result = start_receiving(domain, id, qp, responder_resources);

    return result ? result : start_sending(id, qp, initiator_depth);
}

void verbs_qp_fail(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    verbs_calls.modify_qp(qp, &attr, IBV_QP_STATE);
}
