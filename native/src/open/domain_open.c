/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open and close domains. This layer is above all others, so it fills struct ofpi_upper, by which lower layers notify
 * upper ones.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/param.h"
#include "base/pool.h"
#include "base/reactor.h"
#include "base/timer.h"
#include "collective/advance.h"
#include "collective/group_operation.h"
#include "completion/request_slots.h"
#include "hook/hook_list.h"
#include "hook/hook_load.h"
#include "hook/hooked.h"
#include "completion/entries.h"
#include "object/domain.h"
#include "object/fork.h"
#include "object/region.h"
#include "ofipy/ofp.h"
#include "operation/deferred.h"
#include "operation/receive_offloaded.h"
#include "peer/connection.h"
#include "peer/peer_post.h"
#include "peer/pending.h"
#include "progress/helper.h"
#include "progress/progress.h"
#include "progress/wait.h"
#include "provider/provider_registry.h"
#include "request/request_end.h"

static const struct ofpi_upper upper = {
    .start_due = ofpi_works_start,
    .run_turns = ofpi_turns_run,
    .post_backlogs = ofpi_peers_flush,
    .counter_closes = ofpi_works_leave_counter,
    .group_check = ofpi_group_operation_check,
    .group_post = ofpi_group_operation_post,
    .request_released = ofpi_request_end_released,
    .receive_recalled = ofpi_offloaded_post_again,
    .connection_ends_here = ofpi_connection_is_ending,
    .connection_finish = ofpi_connection_shutdown,
    .connection_up = ofpi_connection_established,
    .connection_lost = ofpi_connection_lost,
    .connection_end_receives = ofpi_connection_end_receives,
    .hooks_post = ofpi_hooks_post,
    .hooks_peer_changed = ofpi_hooks_peer_changed,
    .hooks_released = ofpi_hooks_released,
};

static struct ofpi_domain *create_domain(struct ofp_provider *provider, const struct ofp_info *info,
                                         const struct ofp_domain_attr *attr)
{
    struct ofpi_domain *domain = calloc(1, sizeof(*domain) + provider->domain_ops->domain_size);

    if (!domain)
        return NULL;
    domain->upper = &upper;
    domain->base.provider = provider;
    domain->info = *info;
    domain->base.info = &domain->info;
    domain->base.private = domain + 1;
    domain->base.engine = &domain->base;
    domain->threading = attr->threading;
    ofp_store_relaxed(&domain->owner, ofpi_thread_identify());
    domain->fork_generation = ofpi_fork_generation;
    ofp_list_init(&domain->endpoints);
    ofp_list_init(&domain->receive_contexts);
    ofp_list_init(&domain->queues);
    ofp_list_init(&domain->to_flush);
    ofp_list_init(&domain->due);
    ofp_list_init(&domain->groups);
    ofp_list_init(&domain->due_turns);
    ofp_list_init(&domain->vectors);
    ofp_list_init(&domain->counters);
    ofp_list_init(&domain->event_queues);
    ofp_list_init(&domain->passives);
    ofp_list_init(&domain->free_requests);
    ofpi_regions_init(&domain->regions);
    ofpi_reserve_open(&domain->entries, sizeof(struct ofpi_entry));
    ofpi_pool_init(&domain->pendings, sizeof(struct ofpi_pending));
    ofpi_pool_init(&domain->works, sizeof(struct ofpi_work));
    domain->pendings.backing = domain->works.backing = &domain->entries;
    ofpi_timers_init(&domain->timers);
    return domain;
}

static void free_domain(struct ofpi_domain *domain)
{
    ofpi_requests_free(domain);
    ofpi_timers_close(&domain->timers);
    ofpi_pool_close(&domain->works);
    ofpi_pool_close(&domain->pendings);
    ofpi_reserve_close(&domain->entries);
    ofpi_regions_close(&domain->regions);
    ofpi_hook_list_free(domain->hooks);
    free(domain);
}

static int describe_open_failure(int error, const char *what, char *text, size_t text_size)
{
    if (!text[0])
        snprintf(text, text_size, "%s: %s", what, ofp_strerror(error));
    return error;
}

static int check_encryption(const struct ofp_info *info, char *text, size_t text_size)
{
    if (ofpi_info_can_encrypt(info))
        return 0;
    snprintf(text, text_size,
             "%s cannot encrypt, and OFIPY_ENCRYPTION=required: use tcp, link or shm, or set it to off",
             info->provider);
    return -EOPNOTSUPP;
}

int ofp_domain_open(struct ofp_provider *provider, const struct ofp_info *info, const struct ofp_domain_attr *attr,
                    struct ofp_domain **result, char *text, size_t text_size)
{
    struct ofpi_domain *domain = create_domain(provider, info, attr);
    int error;

    text[0] = 0;
    if (!domain)
        return describe_open_failure(-ENOMEM, "cannot open a domain", text, text_size);
    error = check_encryption(info, text, text_size);
    if (error)
        goto no_reactor;
    ofpi_hooks_enter_tree();
    error = ofpi_hook_list_read(attr->hooks ? attr->hooks : ofpi_param_get_string("HOOKS"), &domain->hooks, text,
                                text_size);
    if (error) {
        describe_open_failure(error, "cannot read the list of hooks", text, text_size);
        goto no_reactor;
    }
    domain->connect_ns = (uint64_t)ofpi_param_get_int("CONNECT_TIMEOUT") * 1000000000;
    domain->hook_peer_size = domain->hooks ? domain->hooks->peer_size : 0;
    ofpi_fork_watch();
    error = ofpi_reactor_open(&domain->reactor);
    if (error) {
        describe_open_failure(error, "cannot make an epoll descriptor", text, text_size);
        goto no_reactor;
    }
    error = ofpi_wait_open(domain);
    if (error) {
        describe_open_failure(error, "cannot make an eventfd", text, text_size);
        goto no_wait;
    }
    error = provider->domain_ops->open ? provider->domain_ops->open(&domain->base, text, text_size) : 0;
    if (error) {
        describe_open_failure(error, "the provider cannot open its domain", text, text_size);
        goto no_provider;
    }
    if (!provider->domain_ops->region_disowned)
        domain->base.keeps_above = 0;
    /* Start the helper last: it makes progress in the domain at once. */
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
    free_domain(domain);
    return error;
}

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
    /* Without endpoints all operations have ended: waiting threads only have to wake up and leave. */
    if (!busy)
        ofpi_wait_for_leavers(domain, &domain->waiting);
    domain->retired = !busy;
    ofpi_domain_leave(domain);
    if (busy)
        return -EBUSY;
    /* Without the lock, which the helper needs to end. */
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
        free_domain(domain);
}

int ofp_domain_close(struct ofp_domain *domain)
{
    int result = ofp_domain_retire(domain);

    if (!result)
        ofp_domain_free(domain);
    return result;
}
