/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective/group_close.h"

#include <errno.h>

#include "collective/advance.h"
#include "collective/breaking.h"
#include "collective/control.h"
#include "collective/drain.h"
#include "collective/group_agreement.h"
#include "progress/progress.h"
#include "progress/wait.h"

static void close_group(struct ofp_group *group, bool can_send)
{
    if (group->closed)
        return;
    group->closed = true;
    ofpi_group_fail(group, ECANCELED);
    ofpi_control_stop(group, can_send && group->endpoint);
}

bool ofpi_groups_are_needed(const struct ofpi_endpoint *endpoint)
{
    const struct ofp_list *groups = &endpoint->domain->groups;

    for (const struct ofp_list *node = groups->next; node != groups; node = node->next) {
        const struct ofp_group *group = OFP_CONTAINER_OF(node, const struct ofp_group, node);

        if (group->endpoint == endpoint && ofpi_group_agreement_is_needed(group))
            return true;
    }
    return false;
}

void ofpi_groups_leave_endpoint(struct ofpi_endpoint *endpoint)
{
    struct ofp_list *node, *following, *one, *next;

    OFP_LIST_EACH(node, following, &endpoint->domain->groups) {
        struct ofp_group *group = OFP_CONTAINER_OF(node, struct ofp_group, node);

        if (group->endpoint != endpoint)
            continue;
        /* The end of a collective may be the last use but this one. */
        ofp_fetch_add(&group->uses, 1);
        close_group(group, false);
        OFP_LIST_EACH(one, next, &group->running)
            ofpi_collective_end(OFP_CONTAINER_OF(one, struct ofpi_collective, node));
        /* The end of the last collective of a closed group has done it already. */
        if (group->endpoint)
            ofpi_group_leave_endpoint(group);
        ofpi_group_agreement_end_service(group);
        ofpi_drain_end(endpoint, group);
        ofpi_group_release(group);
    }
}

/* The group stays in the domain's list while transfers of it are in flight, at the latest until its endpoint closes. */
int ofp_group_close(struct ofp_group *group)
{
    int result;

    /* After the endpoint's close there is nothing to do, and the domain may be closed, too. */
    if (group->closed)
        return 0;
    result = ofpi_domain_enter(group->domain);
    if (result)
        return result;
    close_group(group, true);
    ofpi_wait_for_leavers(group->domain, &group->waiting);
    if (ofpi_group_is_over(group))
        ofpi_group_leave_endpoint(group);
    ofpi_domain_leave(group->domain);
    return 0;
}
