/* SPDX-License-Identifier: BSD-3-Clause */
/* Domains: libfabric's fabric and domain of one domain of ofipy. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "events.h"

struct lf_cq *bridge_cq_open(struct bridge_domain *domain, bool waits, int *error)
{
    struct lf_cq_attr attr = {
        .size = domain->info->tx_attr->size + domain->info->rx_attr->size,
        .format = domain->untagged ? LF_CQ_FORMAT_DATA : LF_CQ_FORMAT_TAGGED,
        .wait_object = waits ? LF_WAIT_FD : LF_WAIT_NONE,
    };
    struct lf_cq *cq = NULL;
    int result = domain->domain->ops->cq_open(domain->domain, &attr, &cq, NULL);

    *error = result ? -bridge_error_convert(result) : 0;
    return result ? NULL : cq;
}

static int describe_open_error(const struct bridge_library *library, const char *what, int error, char *text,
                               size_t text_size)
{
    int result = bridge_open_error_convert(-bridge_error_convert(error));

    snprintf(text, text_size, "libfabric cannot open a %s: %s", what, library->strerror(-result));
    return result;
}

static bool has_descriptor(struct bridge_domain *self)
{
    int fd, error;
    struct lf_cq *probe = bridge_cq_open(self, true, &error);

    if (!probe)
        return false;
    error = probe->fid.ops->control(&probe->fid, LF_COMMAND_GETWAIT, &fd);
    probe->fid.ops->close(&probe->fid);
    return error == 0;
}

/*
 * Providers on libfabric's common receive queue use the wrong address for receives for any source when a message
 * arrives for which a receive with its source is posted: util_get_tag and util_get_msg in util_srx.c.
 */
static bool has_confused_sources(const struct bridge_domain *domain)
{
    static const char *const built_on_it[] = {"shm", "sm2", "efa"};
    const char *provider = domain->info->fabric_attr->prov_name;

    if (domain->library->version < LF_VERSION(1, 19) || !(domain->info->caps & LF_DIRECTED_RECV))
        return false;
    for (size_t i = 0; i < sizeof(built_on_it) / sizeof(built_on_it[0]); i++)
        if (strcmp(provider, built_on_it[i]) == 0)
            return true;
    return bridge_is_layered(provider) && domain->library->version >= LF_VERSION(2, 0);
}

/* Before 1.19 shm treats a peek as a receive. */
static bool can_peek(const struct bridge_domain *domain)
{
    return domain->library->version >= LF_VERSION(1, 19) || strcmp(domain->info->fabric_attr->prov_name, "shm") != 0;
}

/*
 * sockets (seen with 1.17 and 2.5) completes a send as soon as its own buffer contains it, and drops that buffer when
 * the endpoint closes. The answer of a program that then ends would be lost. With FI_TRANSMIT_COMPLETE the peer's
 * endpoint has received the message.
 */
static bool has_early_completions(const struct bridge_domain *domain)
{
    return strcmp(domain->info->fabric_attr->prov_name, "sockets") == 0 && domain->levels & LF_TRANSMIT_COMPLETE;
}

/*
 * A descriptor for each endpoint's queue beside that of the domain's events would connect every socket to the sleeping
 * descriptor by another chain, and the kernel allows ten (epoll_ctl: EINVAL). Since tcp was merged with net it needs
 * none: its events report for all queues.
 */
static bool can_events_wake_all(const struct bridge_domain *domain)
{
    return strcmp(domain->info->fabric_attr->prov_name, "tcp") == 0 && domain->library->version >= LF_VERSION(1, 18);
}

void bridge_opened_release(struct bridge_opened *opened)
{
    OFP_CHECK(atomic_load_explicit(&opened->users, memory_order_relaxed) > 0);
    if (atomic_fetch_sub_explicit(&opened->users, 1, memory_order_acq_rel) > 1)
        return;
    if (opened->domain)
        opened->domain->fid.ops->close(&opened->domain->fid);
    if (opened->fabric)
        opened->fabric->fid.ops->close(&opened->fabric->fid);
    if (opened->info)
        opened->library->freeinfo(opened->info);
    free(opened);
}

static int open_library_objects(const struct ofp_domain *domain, struct bridge_opened *opened, char *text,
                                size_t text_size)
{
    int error = bridge_info_find(opened->library, domain->info, NULL, NULL, 0, &opened->info);

    if (error)
        return error;
    /* Otherwise some providers request an acknowledgement of everything. */
    opened->info->tx_attr->op_flags = 0;
    opened->info->rx_attr->op_flags = 0;
    error = opened->library->fabric(opened->info->fabric_attr, &opened->fabric, NULL);
    if (error) {
        opened->fabric = NULL;
        return describe_open_error(opened->library, "fabric", error, text, text_size);
    }
    error = opened->fabric->ops->domain(opened->fabric, opened->info, &opened->domain, NULL);
    if (error) {
        opened->domain = NULL;
        return describe_open_error(opened->library, "domain", error, text, text_size);
    }
    return 0;
}

/* Bytes of private data that listeners and endpoints accept; 0 if libfabric does not report it. */
static size_t query_private_data_size(const struct bridge_opened *opened)
{
    size_t size = 0, length = sizeof(size);
    struct lf_pep *pep;

    if (opened->fabric->ops->passive_ep(opened->fabric, opened->info, &pep, NULL) != 0)
        return 0;
    if (pep->ops->getopt(&pep->fid, LF_OPTION_ENDPOINT, LF_OPTION_PRIVATE_DATA, &size, &length) != 0)
        size = 0;
    pep->fid.ops->close(&pep->fid);
    return size < OFP_EVENT_DATA_MAX ? size : OFP_EVENT_DATA_MAX;
}

/* Open the queue of connection events, and set the info's size of private data. */
static int open_events(struct ofp_domain *domain, char *text, size_t text_size)
{
    struct bridge_domain *self = bridge_domain_of(domain);
    size_t private_data = query_private_data_size(self->opened);
    int error;

    if (private_data)
        domain->info->max_private_data = private_data;
    self->events = malloc(sizeof(*self->events));
    if (!self->events)
        return -ENOMEM;
    error = bridge_events_open(self->events, domain);
    self->events_wake_all = !error && can_events_wake_all(self);
    if (self->events_wake_all) {
        error = bridge_notification_open(self->events);
        if (error)
            bridge_events_close(self->events);
    }
    if (!error)
        return 0;
    free(self->events);
    self->events = NULL;
    return describe_open_error(self->library, "queue of events", error, text, text_size);
}

int bridge_domain_open(struct ofp_domain *domain, char *text, size_t text_size)
{
    struct bridge_domain *self = bridge_domain_of(domain);
    struct bridge_opened *opened = calloc(1, sizeof(*opened));
    int error;

    if (!opened)
        return -ENOMEM;
    opened->users = 1;
    opened->library = bridge_library_get(text, text_size);
    error = opened->library ? open_library_objects(domain, opened, text, text_size) : -ENOENT;
    if (error) {
        bridge_opened_release(opened);
        return error;
    }
    self->opened = opened;
    self->library = opened->library;
    self->info = opened->info;
    self->fabric = opened->fabric;
    self->domain = opened->domain;
    self->data_consumes_receives = (self->info->mode | self->info->rx_attr->mode) & LF_MODE_RX_CQ_DATA;
    self->untagged = domain->info->ep_types == OFP_EP_MSG && !(domain->info->caps & OFP_CAP_TAGGED);
    error = domain->info->ep_types == OFP_EP_MSG ? open_events(domain, text, text_size) : 0;
    if (error) {
        bridge_opened_release(opened);
        return error;
    }
    pthread_mutex_init(&self->lock, NULL);
    ofp_list_init(&self->regions);
    self->peeks = can_peek(self);
    self->misreads_atomics = strcmp(self->info->fabric_attr->prov_name, "sm2") == 0;
    self->confuses_sources = has_confused_sources(self);
    /* A datagram's completion means that the system has accepted it; there is no other level. */
    self->levels = domain->info->ep_types == OFP_EP_DGRAM ? LF_TRANSMIT_COMPLETE
                                                          : bridge_completion_levels_query(self->library, domain->info);
    self->completes_early = has_early_completions(self);
    /* Some of the info is known only now; no other thread has this copy of it yet. */
    domain->info->wait_fd = domain->info->wait_fd && has_descriptor(self);
    domain->info->provider_data[1] = (uintptr_t)self;
    if (domain->info->caps & OFP_CAP_ATOMIC)
        domain->info->max_atomic_size = bridge_atomic_compute_longest(self);
    return 0;
}

void bridge_domain_close(struct ofp_domain *domain)
{
    struct bridge_domain *self = bridge_domain_of(domain);

    if (self->events)
        bridge_events_close(self->events);
    free(self->events);
    pthread_mutex_destroy(&self->lock);
    bridge_opened_release(self->opened);
}
