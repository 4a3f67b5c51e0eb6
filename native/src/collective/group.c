/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "progress/progress.h"
#include "schedule/schedule.h"

/* ---------------------------------------------------------------------------------------------------- open and join */

static bool is_number_in_use(const struct ofpi_endpoint *endpoint, uint32_t number)
{
    const struct ofp_list *groups = &endpoint->domain->groups;

    for (const struct ofp_list *node = groups->next; node != groups; node = node->next) {
        const struct ofp_group *group = OFP_CONTAINER_OF(node, const struct ofp_group, node);

        if (group->endpoint == endpoint && group->number == number)
            return true;
    }
    return false;
}

/* Numbers count up, so that one is used again only after many others: a late message meets no new group. */
static uint32_t find_free_number(struct ofpi_endpoint *endpoint)
{
    uint32_t number;

    do
        number = endpoint->domain->next_group++ % OFP_GROUP_WANTED;
    while (is_number_in_use(endpoint, number));
    return number;
}

/* 0, or why the endpoint cannot have a group. */
static int prepare_endpoint(struct ofpi_endpoint *endpoint)
{
    const struct ofp_info *info = &endpoint->info;
    const struct ofp_endpoint_ops *ops = endpoint->base.ops;

    if (endpoint->refuses)
        return -ECANCELED;
    if (!endpoint->av || !ops->internal_channel || !(info->caps & OFP_CAP_DIRECTED_RECV))
        return -EOPNOTSUPP;
    /* The order tells rounds apart, and remote CQ data contain the signature. */
    if (!(info->msg_order & OFP_ORDER_SAS) || info->cq_data_size < sizeof(uint64_t))
        return -EOPNOTSUPP;
    return ops->internal_channel_open ? ops->internal_channel_open(&endpoint->base) : 0;
}

static int open_group(struct ofpi_endpoint *endpoint, uint32_t wanted, struct ofp_group *group)
{
    int result = prepare_endpoint(endpoint);

    if (result)
        return result;
    group->domain = endpoint->domain;
    group->endpoint = endpoint;
    group->number = wanted == OFP_GROUP_ANY ? find_free_number(endpoint) : wanted;
    group->next_wanted = UINT64_MAX;
    ofp_list_init(&group->running);
    ofp_store_relaxed(&group->uses, 1);
    ofp_list_append(&endpoint->domain->groups, &group->node);
    return 0;
}

int ofp_group_open(struct ofp_endpoint *handle, uint32_t wanted, uint32_t *number, struct ofp_group **result)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    struct ofp_group *group;
    int error;

    if (wanted != OFP_GROUP_ANY && (wanted < OFP_GROUP_WANTED || wanted >= OFP_GROUP_LIMIT))
        return -EINVAL;
    group = calloc(1, sizeof(*group));
    error = group ? ofpi_endpoint_enter(endpoint) : -ENOMEM;
    if (!error) {
        error = open_group(endpoint->behind, wanted, group);
        ofpi_domain_leave(endpoint->domain);
    }
    if (error) {
        free(group);
        return error;
    }
    *number = group->number;
    *result = group;
    return 0;
}

/* --------------------------------------------------------------------------------------------------------------- end */

int ofpi_group_check(const struct ofp_group *group)
{
    if (group->closed)
        return -ECANCELED;
    if (!group->peers)
        return -ENOTCONN;
    return -group->error;
}

void ofpi_group_leave_endpoint(struct ofp_group *group)
{
    group->endpoint = NULL;
    ofp_list_remove(&group->node);
}

void ofpi_group_release(struct ofp_group *group)
{
    if (ofp_fetch_add(&group->uses, UINT32_MAX) != 1)
        return;
    free(group->agreement);
    free(group->members);
    free(group);
}

void ofp_group_free(struct ofp_group *group)
{
    if (group->closed)
        ofpi_group_release(group);
}
