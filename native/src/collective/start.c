/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting a collective, at once or prepared. */
#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "collective/advance.h"
#include "collective/awaited.h"
#include "collective/create.h"
#include "progress/progress.h"
#include "progress/wait.h"

static void release_collective(struct ofpi_kept *kept)
{
    ofpi_collective_free(OFP_CONTAINER_OF(kept, struct ofpi_collective, kept));
}

static void query_collective(const struct ofpi_kept *kept, struct ofp_collective_state *state)
{
    ofpi_collective_describe(OFP_CONTAINER_OF(kept, const struct ofpi_collective, kept), state);
}

int ofp_collective_query(ofp_request_t handle, struct ofp_collective_state *state)
{
    struct ofp_request *request;
    int result = ofpi_request_enter(handle, &request);

    if (result)
        return result;
    if (request->kept && ofp_load_relaxed(&request->state) == OFPI_REQUEST_RUNNING)
        request->kept->query(request->kept, state);
    else
        result = -EINVAL;
    ofpi_domain_leave(request->domain);
    return result;
}

static bool can_start_another(const void *argument)
{
    const struct ofp_group *group = argument;

    return group->running_count < OFPI_COLLECTIVES_MAX || ofpi_group_check(group) != 0;
}

/* 0, or -EAGAIN, -EINTR, and why the group starts nothing. */
static int wait_for_place(struct ofp_group *group, int64_t timeout)
{
    int result = 1;
    bool expired;

    if (!can_start_another(group)) {
        group->waiting++;
        result = ofpi_domain_wait(group->domain, can_start_another, group, timeout, &expired);
        group->waiting--;
    }
    if (result <= 0)
        return result ? result : -EAGAIN;
    return ofpi_group_check(group);
}

/* A prepared request starts again; its state is RUNNING. */
static int start_again(struct ofpi_kept *kept)
{
    struct ofpi_collective *collective = OFP_CONTAINER_OF(kept, struct ofpi_collective, kept);
    struct ofp_group *group = collective->group;
    int result = ofpi_group_check(group);

    if (!result && group->running_count >= OFPI_COLLECTIVES_MAX)
        result = -EAGAIN;
    if (!result)
        result = ofpi_collective_resolve(collective);
    if (!result)
        ofpi_collective_start(collective);
    return result;
}

static struct ofp_request *attach_request(struct ofpi_collective *collective)
{
    struct ofp_request *request = ofpi_request_allocate(collective->group->endpoint);

    if (request) {
        collective->kept.release = release_collective;
        collective->kept.start = start_again;
        collective->kept.query = query_collective;
        collective->request = request;
        request->kept = &collective->kept;
    } else {
        ofpi_collective_free(collective);
    }
    return request;
}

ofp_request_t ofp_collective_start(struct ofp_group *group, const struct ofp_collective *call, uint32_t how,
                                   int64_t timeout)
{
    struct ofpi_collective *collective = NULL;
    ofp_request_t result = ofpi_domain_enter_as(group->domain, how & OFP_START_AT_ONCE);

    if (result)
        return result;
    result = ofpi_group_check(group);
    if (!result)
        result = wait_for_place(group, timeout);
    if (!result)
        result = ofpi_collective_create(group, call, &collective);
    if (!result) {
        struct ofp_request *request = attach_request(collective);

        result = request ? ofpi_handle_of_request(request) : -ENOMEM;
        if (request)
            ofpi_collective_start(collective);
    }
    ofpi_domain_leave(group->domain);
    return result;
}

ofp_request_t ofp_collective_prepare(struct ofp_group *group, const struct ofp_collective *call)
{
    struct ofpi_collective *collective = NULL;
    struct ofp_operation *record = calloc(1, sizeof(*record));
    struct ofp_request *request = NULL;
    ofp_request_t result = record ? ofpi_domain_enter(group->domain) : -ENOMEM;

    if (result) {
        free(record);
        return result;
    }
    result = ofpi_group_check(group);
    if (!result && call->flags & OFP_COLLECTIVE_SIZED)
        result = -EINVAL;
    if (!result)
        result = ofpi_collective_create(group, call, &collective);
    if (!result) {
        request = attach_request(collective);
        result = request ? ofpi_handle_of_request(request) : -ENOMEM;
    }
    if (request) {
        request->prepared = record;
        ofp_store_relaxed(&request->state, OFPI_REQUEST_IDLE);
    } else {
        free(record);
    }
    ofpi_domain_leave(group->domain);
    return result;
}
