/* SPDX-License-Identifier: BSD-3-Clause */
#include "connection/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "address/resolve.h"

/* Code for an unlimited number of retries. */
#define RNR_RETRIES 7

/* ----------------------------------------------------------------------------------------------------------- events */

/*
 * The connection manager pads private data with zeros, and any peer may have written the first byte. So the length is
 * limited by both.
 */
static void decode_private_data(struct verbs_event *event, const struct rdma_conn_param *param)
{
    const uint8_t *bytes = param->private_data;
    size_t length;

    if (!bytes || !param->private_data_len)
        return;
    length = bytes[0];
    if (length > (size_t)param->private_data_len - 1)
        length = (size_t)param->private_data_len - 1;
    if (length > VERBS_ANSWER_MAX)
        length = VERBS_ANSWER_MAX;
    memcpy(event->data, bytes + 1, length);
    event->data_length = (uint8_t)length;
}

static void deliver_event(struct rdma_cm_event *given)
{
    struct verbs_listener *listener = given->listen_id ? given->listen_id->context : given->id->context;
    struct verbs_event event = {.type = given->event,
                                .status = given->status,
                                .id = given->id,
                                .pair_number = given->param.conn.qp_num,
                                .responder_resources = given->param.conn.responder_resources,
                                .initiator_depth = given->param.conn.initiator_depth};

    decode_private_data(&event, &given->param.conn);
    /* Acknowledge first: rdma_destroy_id blocks until all events of the id are acknowledged. */
    verbs_calls.ack_cm_event(given);
    if (listener)
        listener->event(listener, &event);
    else if (event.type == RDMA_CM_EVENT_CONNECT_REQUEST)
        verbs_calls.destroy_id(event.id);
}

static void read_connection_events(struct ofp_watch *watch, uint32_t events)
{
    struct verbs_domain *domain = OFP_CONTAINER_OF(watch, struct verbs_domain, event_watch);
    struct rdma_cm_event *event;

    (void)events;
    while (verbs_calls.get_cm_event(domain->events, &event) == 0)
        deliver_event(event);
}

int verbs_channel_open(struct verbs_domain *domain)
{
    int result;

    domain->events = verbs_calls.create_event_channel();
    if (!domain->events)
        return -errno;
    fcntl(domain->events->fd, F_SETFL, fcntl(domain->events->fd, F_GETFL) | O_NONBLOCK);
    domain->event_watch =
        (struct ofp_watch){.fd = domain->events->fd, .events = EPOLLIN, .ready = read_connection_events};
    result = verbs_core->watch_add(domain->base, &domain->event_watch);
    if (result) {
        verbs_calls.destroy_event_channel(domain->events);
        domain->events = NULL;
    }
    return result;
}

void verbs_channel_close(struct verbs_domain *domain)
{
    if (domain->events)
        verbs_calls.destroy_event_channel(domain->events);
    domain->events = NULL;
}

/* -------------------------------------------------------------------------------------------------------------- ids */

static void get_own_address(struct rdma_cm_id *id, union tcp_address *address)
{
    memset(address, 0, sizeof(*address));
    memcpy(address, &id->route.addr.src_addr,
           id->route.addr.src_addr.sa_family == AF_INET6 ? sizeof(address->v6) : sizeof(address->v4));
    tcp_address_clear_unused(address);
}

void verbs_id_get_peer_address(struct rdma_cm_id *id, union tcp_address *address)
{
    memset(address, 0, sizeof(*address));
    memcpy(address, &id->route.addr.dst_addr,
           id->route.addr.dst_addr.sa_family == AF_INET6 ? sizeof(address->v6) : sizeof(address->v4));
    tcp_address_clear_unused(address);
}

static int bind_id(const struct verbs_domain *domain, struct rdma_cm_id *id, union tcp_address *address)
{
    if (verbs_calls.bind_addr(id, &address->any) != 0)
        return -errno;
    if (!id->verbs || id->verbs != domain->port->context)
        return -ENODEV;
    get_own_address(id, address);
    return 0;
}

static void set_type_of_service(struct rdma_cm_id *id, uint8_t traffic_class)
{
    verbs_calls.set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &traffic_class, sizeof(traffic_class));
}

void verbs_id_set_traffic_class(struct rdma_cm_id *id, const struct ofp_endpoint *endpoint)
{
    if (endpoint->traffic_class)
        set_type_of_service(id, (uint8_t)(endpoint->traffic_class & ~OFP_TRAFFIC_CLASS));
}

int verbs_id_open(struct verbs_domain *domain, struct verbs_listener *listener, union tcp_address *address,
                  const char *service, struct rdma_cm_id **id, char *text, size_t text_size)
{
    char shown[TCP_ADDRESS_TEXT] = "";
    uint16_t port;
    int result = tcp_service_parse(service, &port, text, text_size);

    if (result)
        return result;
    if (verbs_calls.create_id(domain->events, id, listener, RDMA_PS_TCP) != 0)
        return -errno;
    tcp_address_set_port(address, port);
    result = bind_id(domain, *id, address);
    if (result) {
        tcp_address_describe(address, shown);
        snprintf(text, text_size, "%s cannot be at %s: %s", VERBS_NAME, shown[0] ? shown : "its address",
                 strerror(-result));
        verbs_calls.destroy_id(*id);
        *id = NULL;
    } else if (domain->settings.traffic_class >= 0) {
        set_type_of_service(*id, (uint8_t)domain->settings.traffic_class);
    }
    if (!result && domain->settings.ack_timeout >= 0) {
        uint8_t timeout = (uint8_t)domain->settings.ack_timeout;

        verbs_calls.set_option(*id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout));
    }
    return result;
}

/* ------------------------------------------------------------------------------------------------------- parameters */

struct rdma_conn_param verbs_parameters_build(const struct verbs_domain *domain, const struct ibv_qp *qp,
                                              const uint8_t *bytes, uint8_t length, uint8_t responder_resources,
                                              uint8_t initiator_depth)
{
    return (struct rdma_conn_param){.private_data = bytes,
                                    .private_data_len = length,
                                    .responder_resources = responder_resources,
                                    .initiator_depth = initiator_depth,
                                    .flow_control = 1,
                                    .retry_count = domain->settings.retries,
                                    .rnr_retry_count = RNR_RETRIES,
                                    .qp_num = qp ? qp->qp_num : 0};
}

uint8_t verbs_private_data_encode(uint8_t *bytes, const void *data, size_t length)
{
    bytes[0] = (uint8_t)length;
    if (length)
        memcpy(bytes + 1, data, length);
    return (uint8_t)(1 + length);
}

void verbs_id_reject(struct rdma_cm_id *id, const void *data, size_t length)
{
    uint8_t bytes[1 + VERBS_ANSWER_MAX];

    verbs_calls.reject(id, bytes, verbs_private_data_encode(bytes, data, length));
}
