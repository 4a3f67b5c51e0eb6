/* SPDX-License-Identifier: BSD-3-Clause */
/* Domains: opening, closing, who may call. */
#include "deferred.h"
#include "hook_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t this_thread(void) { return (uint64_t)pthread_self(); }

int ofpi_domain_check(struct ofpi_domain *domain)
{
    if (domain->fork_generation != ofpi_fork_generation)
        return -OFP_EFORKED;
    if (domain->threading == OFP_THREAD_DOMAIN && ofp_load_relaxed(&domain->owner) != this_thread())
        return -OFP_ETHREAD;
    return 0;
}

int ofp_domain_adopt(struct ofp_domain *handle)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;

    if (domain->fork_generation != ofpi_fork_generation)
        return -OFP_EFORKED;
    ofp_store_relaxed(&domain->owner, this_thread());
    return 0;
}

static struct ofpi_domain *domain_new(struct ofp_provider *provider, const struct ofp_info *info,
                                      const struct ofp_domain_attr *attr)
{
    struct ofpi_domain *domain = calloc(1, sizeof(*domain) + provider->domain_ops->domain_size);

    if (!domain)
        return NULL;
    domain->base.provider = provider;
    domain->info = *info;
    domain->base.info = &domain->info;
    domain->base.private = domain + 1;
    domain->threading = attr->threading;
    ofp_store_relaxed(&domain->owner, this_thread());
    domain->fork_generation = ofpi_fork_generation;
    ofp_list_init(&domain->endpoints);
    ofp_list_init(&domain->receive_contexts);
    ofp_list_init(&domain->queues);
    ofp_list_init(&domain->to_flush);
    ofp_list_init(&domain->due);
    ofp_list_init(&domain->vectors);
    ofp_list_init(&domain->counters);
    ofp_list_init(&domain->event_queues);
    ofp_list_init(&domain->passives);
    ofp_list_init(&domain->free_requests);
    ofpi_regions_init(&domain->regions);
    ofpi_pool_init(&domain->pendings, sizeof(struct ofpi_pending));
    ofpi_pool_init(&domain->works, sizeof(struct ofpi_work));
    ofpi_timers_init(&domain->timers);
    return domain;
}

static void domain_free(struct ofpi_domain *domain)
{
    ofpi_requests_free(domain);
    ofpi_timers_fini(&domain->timers);
    ofpi_pool_fini(&domain->works);
    ofpi_pool_fini(&domain->pendings);
    ofpi_regions_fini(&domain->regions);
    ofpi_hook_list_free(domain->hooks);
    free(domain);
}

static int fail(int error, const char *what, char *text, size_t text_size)
{
    if (!text[0])
        snprintf(text, text_size, "%s: %s", what, ofp_strerror(error));
    return error;
}

int ofp_domain_open(struct ofp_provider *provider, const struct ofp_info *info, const struct ofp_domain_attr *attr,
                    struct ofp_domain **result, char *text, size_t text_size)
{
    struct ofpi_domain *domain = domain_new(provider, info, attr);
    int error;

    text[0] = 0;
    if (!domain)
        return fail(-ENOMEM, "cannot open a domain", text, text_size);
    error =
        ofpi_hook_list_read(attr->hooks ? attr->hooks : ofpi_param_string("HOOKS"), &domain->hooks, text, text_size);
    if (error) {
        fail(error, "cannot read the list of hooks", text, text_size);
        goto no_reactor;
    }
    ofpi_fork_watch();
    error = ofpi_reactor_open(&domain->reactor);
    if (error) {
        fail(error, "cannot make an epoll descriptor", text, text_size);
        goto no_reactor;
    }
    error = ofpi_wait_open(domain);
    if (error) {
        fail(error, "cannot make an eventfd", text, text_size);
        goto no_wait;
    }
    error = provider->domain_ops->open ? provider->domain_ops->open(&domain->base, text, text_size) : 0;
    if (error) {
        fail(error, "the provider cannot open its domain", text, text_size);
        goto no_provider;
    }
    if (attr->progress == OFP_PROGRESS_AUTO) {
        error = ofpi_helper_start(domain, text, text_size);
        if (error)
            goto no_helper;
    }
    *result = &domain->base;
    return 0;
no_helper:
    if (provider->domain_ops->close)
        provider->domain_ops->close(&domain->base);
no_provider:
    ofpi_wait_close(domain);
no_wait:
    ofpi_reactor_close(&domain->reactor);
no_reactor:
    domain_free(domain);
    return error;
}

const struct ofp_info *ofp_domain_info(const struct ofp_domain *domain) { return domain->info; }

int ofp_domain_retire(struct ofp_domain *handle)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    bool busy;
    int result = ofpi_domain_enter(domain);

    if (result)
        return result;
    busy = !ofp_list_empty(&domain->endpoints) || !ofp_list_empty(&domain->queues) ||
           !ofp_list_empty(&domain->vectors) || !ofp_list_empty(&domain->counters) ||
           !ofp_list_empty(&domain->event_queues) || !ofp_list_empty(&domain->passives) || domain->regions.ids.live;
    /* Without endpoints all that a thread could wait for has ended; it only has to wake up and leave. */
    if (!busy)
        ofpi_wait_for_leavers(domain, &domain->waiting);
    domain->retired = !busy;
    ofpi_domain_leave(domain);
    if (busy)
        return -EBUSY;
    ofpi_helper_stop(domain);
    if (handle->provider->domain_ops->close)
        handle->provider->domain_ops->close(handle);
    ofpi_wait_close(domain);
    ofpi_reactor_close(&domain->reactor);
    return 0;
}

void ofp_domain_free(struct ofp_domain *handle)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;

    if (domain->retired)
        domain_free(domain);
}

int ofp_domain_close(struct ofp_domain *domain)
{
    int result = ofp_domain_retire(domain);

    if (!result)
        ofp_domain_free(domain);
    return result;
}
