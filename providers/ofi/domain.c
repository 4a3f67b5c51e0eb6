/* SPDX-License-Identifier: BSD-3-Clause */
/* Domains: libfabric's fabric and domain behind one of ours. */
#include <errno.h>

#include "bridge.h"

struct lf_cq *bridge_cq_open(struct bridge_domain *domain, bool waits, int *error)
{
    struct lf_cq_attr attr = {
        .size = domain->info->tx_attr->size + domain->info->rx_attr->size,
        .format = LF_CQ_FORMAT_TAGGED,
        .wait_object = waits ? LF_WAIT_FD : LF_WAIT_NONE,
    };
    struct lf_cq *cq = NULL;
    int result = domain->domain->ops->cq_open(domain->domain, &attr, &cq, NULL);

    *error = result ? -bridge_error(result) : 0;
    return result ? NULL : cq;
}

static int refuse(const struct ofp_domain *domain, const char *what, int error)
{
    bridge_core->log(OFP_LOG_ERROR, BRIDGE_NAME, "%s: cannot open a %s: %s", domain->info.provider, what,
                     bridge_domain_of(domain)->library->strerror(error < 0 ? -error : error));
    return -bridge_error(error);
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

int bridge_domain_open(struct ofp_domain *domain)
{
    struct bridge_domain *self = bridge_domain_of(domain);
    char text[OFP_TEXT_MAX];
    int error;

    self->library = bridge_library_get(text, sizeof(text));
    if (!self->library)
        return -ENOENT;
    pthread_mutex_init(&self->lock, NULL);
    ofp_list_init(&self->regions);
    error = bridge_info_find(self->library, &domain->info, NULL, NULL, 0, &self->info);
    if (error)
        return error;
    /* Otherwise some providers ask the peer for an acknowledgement of everything. */
    self->info->tx_attr->op_flags = 0;
    self->info->rx_attr->op_flags = 0;
    error = self->library->fabric(self->info->fabric_attr, &self->fabric, NULL);
    if (error) {
        error = refuse(domain, "fabric", error);
        goto no_fabric;
    }
    error = self->fabric->ops->domain(self->fabric, self->info, &self->domain, NULL);
    if (error) {
        error = refuse(domain, "domain", error);
        goto no_domain;
    }
    self->levels = bridge_completion_levels(self->library, &domain->info);
    /* Only now some of the info shows; nobody else has seen this copy of it yet. */
    domain->info.wait_fd = domain->info.wait_fd && has_descriptor(self);
    domain->info.provider_data[1] = (uintptr_t)self;
    if (domain->info.caps & OFP_CAP_ATOMIC)
        domain->info.max_atomic_size = bridge_atomic_longest(self);
    return 0;
no_domain:
    self->fabric->fid.ops->close(&self->fabric->fid);
no_fabric:
    self->library->freeinfo(self->info);
    return error;
}

void bridge_domain_close(struct ofp_domain *domain)
{
    struct bridge_domain *self = bridge_domain_of(domain);

    self->domain->fid.ops->close(&self->domain->fid);
    self->fabric->fid.ops->close(&self->fabric->fid);
    self->library->freeinfo(self->info);
}
