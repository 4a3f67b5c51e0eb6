/* SPDX-License-Identifier: BSD-3-Clause */
/* Two endpoints over a packet channel of one kind within this process. */
#ifndef RDM_FIXTURE_H
#define RDM_FIXTURE_H

#include "core_fixture.h"

#include <unistd.h>

#include "channel.h"
#include "rdm/transfer/endpoint.h"

static inline void rdm_side_open(struct side *side, enum rdmfake_kind kind, uint64_t unexpected_limit)
{
    struct ofp_info infos[RDMFAKE_KINDS];
    struct ofp_domain_attr domain_attr = {.progress = OFP_PROGRESS_MANUAL};
    struct ofp_cq_attr cq_attr = {.size = 256};
    struct ofp_av_attr av_attr = {.auto_insert = 1};
    struct ofp_endpoint_attr attr = {.unexpected_limit = unexpected_limit};
    char text[OFP_TEXT_MAX];

    assert_int_equal(ofp_provider_getinfo(fake_provider(), infos, RDMFAKE_KINDS, text, sizeof(text)), RDMFAKE_KINDS);
    assert_int_equal(ofp_domain_open(fake_provider(), &infos[kind], &domain_attr, &side->domain, text, sizeof(text)),
                     0);
    assert_int_equal(ofp_cq_open(side->domain, &cq_attr, &side->cq), 0);
    assert_int_equal(ofp_av_open(side->domain, &av_attr, &side->av), 0);
    attr.tx_cq = attr.rx_cq = side->cq;
    attr.av = side->av;
    assert_int_equal(ofp_endpoint_open(side->domain, &attr, &side->endpoint, text, sizeof(text)), 0);
}

static inline struct ofpi_rdm_endpoint *rdm_of(const struct side *side) { return ofpi_rdm_endpoint_of(side->endpoint); }

/* The only path of an endpoint. */
static inline struct ofpi_rdm_path *rdm_path_of(const struct side *side)
{
    return OFP_CONTAINER_OF(rdm_of(side)->paths.next, struct ofpi_rdm_path, node);
}

static inline uint64_t timers_of(const struct side *side)
{
    return ((const struct ofpi_domain *)side->domain)->timers.count;
}

/* Rounds of progress on both sides, until nothing happens any more; not even later, as when a request was put off. */
static inline void rdm_settle(struct side *a, struct side *b)
{
    uint64_t deadline = ofpi_clock_read() + 5000000000ull;

    for (int quiet = 0; quiet < 4 || timers_of(a) + timers_of(b);) {
        int events = ofp_domain_progress(a->domain) + ofp_domain_progress(b->domain);

        quiet = events > 0 ? 0 : quiet + 1;
        if (quiet >= 4) {
            assert_true(ofpi_clock_read() < deadline);
            usleep(200);
        }
    }
}

/* Nothing of native/rdm is left of a path that ended. */
static inline void rdm_check_idle(const struct side *side)
{
    const struct ofpi_rdm_endpoint *endpoint = rdm_of(side);
    uint32_t free = 0;

    for (const struct ofp_list *node = endpoint->free.next; node != &endpoint->free; node = node->next)
        free++;
    assert_int_equal(free, endpoint->channel.limits.send_size);
    if (ofp_list_empty(&endpoint->paths))
        assert_int_equal(endpoint->pool.granted, 0);
}

#endif
