/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/probe.h"

#include <errno.h>
#include <stdlib.h>

#include "connection/channel.h"
#include "connection/reaper.h"

/* The connection manager itself waits for a minute if the peer does not answer. */
#define PATIENCE (2 * VERBS_SECOND)

static void end_probe(struct verbs_path *path, bool gone)
{
    struct ofpi_meeting_end end = {.error = gone ? OFP_EPEERLOST : ECONNRESET,
                                   .process_gone = gone,
                                   .text = gone ? "its endpoint was closed, or its process has ended"
                                                : "the connection ended there"};

    verbs_probe_stop(path);
    path->base->channel->user->broken(path->base, &end);
}

static void probe_expired(struct ofp_timer *timer, uint64_t now)
{
    (void)now;
    end_probe(OFP_CONTAINER_OF(timer, struct verbs_path, probe_deadline), false);
}

static void send_probe(struct verbs_path *path)
{
    struct rdma_conn_param param = verbs_parameters_build(path->rdm->domain, path->probe_pair, NULL, 0, 0, 0);

    if (verbs_calls.connect(path->probe, &param) != 0)
        end_probe(path, false);
}

static void handle_probe_event(struct verbs_listener *listener, const struct verbs_event *event)
{
    struct verbs_path *path = OFP_CONTAINER_OF(listener, struct verbs_path, probe_listener);

    if (event->type == RDMA_CM_EVENT_ROUTE_RESOLVED)
        send_probe(path);
    else if (event->type != RDMA_CM_EVENT_ADDR_RESOLVED)
        end_probe(path, event->type == RDMA_CM_EVENT_REJECTED && event->status == VERBS_REJECTED_NO_SERVICE);
    else if (verbs_calls.resolve_route(path->probe, VERBS_RESOLVE_MS) != 0)
        end_probe(path, false);
}

/*
 * A queue pair that never leaves RESET. The connection manager of the peer tells requests of one host apart by the
 * number of the queue pair. An invented number could be that of another connection, which the kernel then ends.
 */
static bool create_probe_pair(struct verbs_path *path)
{
    struct verbs_rdm *rdm = path->rdm;
    struct ibv_qp_init_attr attr = {.qp_type = IBV_QPT_RC,
                                    .send_cq = rdm->cq,
                                    .recv_cq = rdm->cq,
                                    .srq = rdm->srq,
                                    .cap = {.max_send_wr = 1, .max_send_sge = 1}};

    attr.qp_context = calloc(1, sizeof(struct verbs_qp_context));
    path->probe_pair = attr.qp_context ? verbs_calls.create_qp(rdm->domain->pd, &attr) : NULL;
    if (!path->probe_pair)
        free(attr.qp_context);
    return path->probe_pair;
}

/* `probe` itself must not report. The timer reports that the peer could not be asked. */
void verbs_probe_start(struct ofpi_path *base)
{
    struct verbs_path *path = base->private;
    struct verbs_domain *domain = path->rdm->domain;
    union tcp_address from = path->rdm->address, to;
    char text[OFP_TEXT_MAX];
    bool begun;

    if (path->probe || !base->peer)
        return;
    path->probe_listener.event = handle_probe_event;
    begun = tcp_address_parse(base->peer->address, base->peer->address_length, &to) == 0 &&
            verbs_id_open(domain, &path->probe_listener, &from, NULL, &path->probe, text, sizeof(text)) == 0;
    if (begun) {
        verbs_id_set_traffic_class(path->probe, base->peer->endpoint);
        begun = create_probe_pair(path) && verbs_calls.resolve_addr(path->probe, NULL, &to.any, VERBS_RESOLVE_MS) == 0;
    }
    path->probe_deadline.expired = probe_expired;
    path->probe_deadline.deadline = verbs_core->now() + (begun ? PATIENCE : 0);
    verbs_core->timer_start(domain->base, &path->probe_deadline);
}

void verbs_probe_stop(struct verbs_path *path)
{
    verbs_core->timer_stop(path->rdm->domain->base, &path->probe_deadline);
    if (path->probe)
        verbs_id_close_later(path->rdm->domain, path->probe, path->probe_pair);
    path->probe = NULL;
    path->probe_pair = NULL;
}
