/* SPDX-License-Identifier: BSD-3-Clause */
/* Two endpoints over the fake provider, for tests of the core through its public calls. */
#ifndef CORE_FIXTURE_H
#define CORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "object/domain.h"
#include "ofipy/request.h"
#include "ofipy/services.h"
#include "provider/provider_registry.h"

const struct ofp_provider *ofp_provider_entry(const struct ofp_core *core);

/* One side: a domain of its own with a queue, a vector and an endpoint. */
struct side {
    struct ofp_domain *domain;
    struct ofp_cq *cq;
    struct ofp_av *av;
    struct ofp_endpoint *endpoint;
    uint32_t peer; /* the other side, in `av` */
};

static inline struct ofp_provider *fake_provider(void)
{
    struct ofp_provider *provider;
    char text[OFP_TEXT_MAX] = "";

    assert_int_equal(ofpi_provider_register(ofp_provider_entry, &provider, text, sizeof(text)), 0);
    return provider;
}

static inline struct ofp_info fake_info(bool offloads_matching)
{
    struct ofp_info infos[4];
    char text[OFP_TEXT_MAX];
    int count = ofp_provider_getinfo(fake_provider(), infos, 4, text, sizeof(text));

    for (int i = 0; i < count; i++)
        if (infos[i].offloads_matching == offloads_matching)
            return infos[i];
    fail_msg("the fake provider has no such endpoint");
    return infos[0];
}

static inline void side_open_info(struct side *side, const struct ofp_info *info, uint32_t progress, uint64_t cq_size)
{
    struct ofp_domain_attr domain_attr = {.progress = progress};
    struct ofp_cq_attr cq_attr = {.size = cq_size};
    struct ofp_av_attr av_attr = {.auto_insert = 1};
    struct ofp_endpoint_attr attr = {0};
    char text[OFP_TEXT_MAX];

    assert_int_equal(ofp_domain_open(fake_provider(), info, &domain_attr, &side->domain, text, sizeof(text)), 0);
    assert_int_equal(ofp_cq_open(side->domain, &cq_attr, &side->cq), 0);
    assert_int_equal(ofp_av_open(side->domain, &av_attr, &side->av), 0);
    attr.tx_cq = attr.rx_cq = side->cq;
    attr.av = side->av;
    assert_int_equal(ofp_endpoint_open(side->domain, &attr, &side->endpoint, text, sizeof(text)), 0);
}

static inline void side_open(struct side *side, bool offloads_matching, uint32_t progress, uint64_t cq_size)
{
    struct ofp_info info = fake_info(offloads_matching);

    side_open_info(side, &info, progress, cq_size);
}

static inline void side_close(struct side *side)
{
    assert_int_equal(ofp_endpoint_close(side->endpoint, 1000000000), 0);
    assert_int_equal(ofp_av_close(side->av), 0);
    assert_int_equal(ofp_cq_close(side->cq), 0);
    assert_int_equal(ofp_domain_close(side->domain), 0);
}

static inline void sides_meet(struct side *a, struct side *b)
{
    char address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);

    assert_int_equal(ofp_endpoint_address(b->endpoint, address, &length), 0);
    assert_int_equal(ofp_av_insert(a->av, address, length, &a->peer), 0);
    length = sizeof(address);
    assert_int_equal(ofp_endpoint_address(a->endpoint, address, &length), 0);
    assert_int_equal(ofp_av_insert(b->av, address, length, &b->peer), 0);
}

static inline struct ofp_operation tagged(uint16_t op, uint32_t peer, uint64_t tag, const void *buffer, uint64_t length,
                                          uint64_t context)
{
    return (struct ofp_operation){.op = op,
                                  .peer = peer,
                                  .tag = tag,
                                  .offset = (uint64_t)(uintptr_t)buffer,
                                  .length = length,
                                  .context = context};
}

/* The next completion of a queue; both sides make progress, since one thread may drive both. */
static inline struct ofp_completion next_completion(struct side *side, struct side *other)
{
    struct ofp_completion row = {0};
    uint64_t deadline = ofpi_clock_read() + 5000000000ull;

    while (ofp_cq_read(side->cq, &row, 1) != 1) {
        ofp_domain_progress(side->domain);
        if (other)
            ofp_domain_progress(other->domain);
        assert_true(ofpi_clock_read() < deadline);
    }
    return row;
}

/* The next warning says this among other things. */
static inline void expect_warning(const char *words)
{
    int level = 0;
    char provider[32], text[OFP_TEXT_MAX] = "";

    assert_true(ofp_log_next(&level, provider, sizeof(provider), text, sizeof(text)));
    assert_int_equal(level, OFP_LOG_WARNING);
    assert_non_null(strstr(text, words));
}

static inline void forget_warnings(void)
{
    char provider[32], text[OFP_TEXT_MAX];
    int level;

    while (ofp_log_next(&level, provider, sizeof(provider), text, sizeof(text)))
        ;
}

#endif
