/* SPDX-License-Identifier: BSD-3-Clause */
/* A group whose members are endpoints of one domain over the fake provider, driven by hand. */
#ifndef COLLECTIVE_FIXTURE_H
#define COLLECTIVE_FIXTURE_H

#include "core_fixture.h"
#include "ofipy/collective.h"

struct member {
    struct ofp_av *av;
    struct ofp_endpoint *endpoint;
    struct ofp_group *group;
    uint32_t number;
    uint32_t *peers;
};

struct team {
    struct ofp_domain *domain;
    struct ofp_cq *cq;
    uint32_t size;
    struct member *members;
};

static inline void member_insert(struct team *team, uint32_t rank, uint32_t other)
{
    struct member *member = &team->members[rank];
    char address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);

    if (other >= team->size || member->peers[other] != OFP_PEER_ANY)
        return;
    assert_int_equal(ofp_endpoint_address(team->members[other].endpoint, address, &length), 0);
    assert_int_equal(ofp_av_insert(member->av, address, length, &member->peers[other]), 0);
}

/* The ranks that a member of a large team meets: those at powers of two. */
static inline void member_insert_partners(struct team *team, uint32_t rank)
{
    for (uint32_t distance = 1; distance < team->size; distance *= 2) {
        member_insert(team, rank, (rank + distance) % team->size);
        member_insert(team, rank, (rank + team->size - distance) % team->size);
        member_insert(team, rank, rank ^ distance);
    }
}

static inline void team_join(struct team *team)
{
    uint32_t *numbers = malloc(team->size * sizeof(*numbers));

    for (uint32_t rank = 0; rank < team->size; rank++) {
        struct member *member = &team->members[rank];

        assert_int_equal(ofp_group_open(member->endpoint, OFP_GROUP_ANY, &member->number, &member->group), 0);
        numbers[rank] = member->number;
    }
    for (uint32_t rank = 0; rank < team->size; rank++) {
        assert_int_equal(ofp_group_join(team->members[rank].group, team->size, rank, team->members[rank].peers, numbers,
                                        OFP_GROUP_ONE_HOST),
                         0);
        assert_int_equal(
            ofp_group_join(team->members[rank].group, team->size, rank, team->members[rank].peers, numbers, 0),
            -EALREADY);
    }
    free(numbers);
}

static inline void team_open(struct team *team, uint32_t size)
{
    struct ofp_info info = fake_info(false);
    struct ofp_domain_attr domain_attr = {.progress = OFP_PROGRESS_MANUAL};
    struct ofp_cq_attr cq_attr = {.size = 64};
    struct ofp_av_attr av_attr = {.auto_insert = 1};
    char text[OFP_TEXT_MAX];

    *team = (struct team){.size = size, .members = calloc(size, sizeof(struct member))};
    assert_int_equal(ofp_domain_open(fake_provider(), &info, &domain_attr, &team->domain, text, sizeof(text)), 0);
    assert_int_equal(ofp_cq_open(team->domain, &cq_attr, &team->cq), 0);
    for (uint32_t rank = 0; rank < size; rank++) {
        struct member *member = &team->members[rank];
        struct ofp_endpoint_attr attr = {.tx_cq = team->cq, .rx_cq = team->cq};

        assert_int_equal(ofp_av_open(team->domain, &av_attr, &member->av), 0);
        attr.av = member->av;
        assert_int_equal(ofp_endpoint_open(team->domain, &attr, &member->endpoint, text, sizeof(text)), 0);
        member->peers = malloc(size * sizeof(*member->peers));
        memset(member->peers, 0xff, size * sizeof(*member->peers));
    }
    for (uint32_t rank = 0; rank < size; rank++) {
        member_insert_partners(team, rank);
        for (uint32_t other = 0; size <= 16 && other < size; other++)
            member_insert(team, rank, other);
    }
    team_join(team);
}

static inline void member_close(struct member *member)
{
    if (member->endpoint)
        assert_int_equal(ofp_endpoint_close(member->endpoint, 0), 0);
    ofp_group_close(member->group);
    ofp_group_free(member->group);
    assert_int_equal(ofp_av_close(member->av), 0);
    free(member->peers);
}

static inline void team_close(struct team *team)
{
    for (uint32_t rank = 0; rank < team->size; rank++)
        member_close(&team->members[rank]);
    assert_int_equal(ofp_cq_close(team->cq), 0);
    assert_int_equal(ofp_domain_close(team->domain), 0);
    free(team->members);
}

static inline ofp_request_t member_start(struct team *team, uint32_t rank, struct ofp_collective call)
{
    return ofp_collective_start(team->members[rank].group, &call, 0, 0);
}

/* The error that the request has ended with; it is taken. */
static inline int team_await(struct team *team, ofp_request_t request)
{
    uint64_t deadline = ofpi_clock_read() + 30000000000ull;
    struct ofp_completion completion;

    assert_true(request > 0);
    while (!ofp_request_finished(request)) {
        ofp_domain_progress(team->domain);
        assert_true(ofpi_clock_read() < deadline);
    }
    assert_int_equal(ofp_request_take(request, 0, &completion), 1);
    return completion.error;
}

static inline struct ofp_collective reduction(uint32_t kind, const void *source, void *target, uint64_t count)
{
    return (struct ofp_collective){.kind = kind,
                                   .atomic_op = OFP_ATOMIC_SUM,
                                   .datatype = OFP_INT64,
                                   .count = count,
                                   .source = (uint64_t)(uintptr_t)source,
                                   .target = (uint64_t)(uintptr_t)target};
}

static inline struct ofp_collective barrier(void)
{
    return (struct ofp_collective){.kind = OFP_COLLECTIVE_BARRIER, .datatype = OFP_UINT8};
}

#endif
