/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The endpoint under test: a real domain over the tcp provider, with regions, and operations whose every piece of memory is an
 * allocation of its own, freed as soon as its completion says so. So what is written beside it, or late, the address sanitizer
 * sees; that each operation ends once, and only once, is checked here.
 */
#ifndef FUZZ_SIDE_H
#define FUZZ_SIDE_H

#include <sanitizer/allocator_interface.h>

#include "network.h"
#include "object/domain.h"
#include "objects.h"
#include "ofipy/connect.h"
#include "provider/provider_registry.h"

#define SIDE_OPERATIONS 64
#define SIDE_PIECES 3
#define SIDE_REGIONS 3
#define SIDE_UNTOUCHED 0xa5
#define SIDE_KEY "a key that is long enough"
/* What an endpoint may hold for its peers, beside what the program posted. */
#define SIDE_MEMORY (UINT64_C(3) << 20)

const struct ofp_provider *ofp_provider_entry(const struct ofp_core *core);

struct side_operation {
    bool used, done, many, looks, silent;
    uint16_t op;
    uint64_t length;
    uint8_t *pieces[SIDE_PIECES];
    uint64_t lengths[SIDE_PIECES];
    struct ofp_segment segments[SIDE_PIECES];
    struct ofp_remote_segment remote[2];
};

struct side {
    bool connects; /* type MSG */
    struct ofp_domain *domain;
    struct ofp_cq *cq;
    struct ofp_eq *eq;
    struct ofp_av *av;
    struct ofp_passive *passive;
    struct ofp_endpoint *endpoint;
    struct side_operation operations[SIDE_OPERATIONS];
    uint32_t operation_count;
    uint8_t *memory[SIDE_REGIONS];
    struct ofp_region_handle regions[SIDE_REGIONS];
    uint64_t allocated; /* before */
    uint64_t posted;    /* bytes */
};

static const uint64_t side_region_lengths[SIDE_REGIONS] = {4096, 30000, 100};
static const uint32_t side_region_access[SIDE_REGIONS] = {OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE,
                                                          OFP_ACCESS_REMOTE_READ, OFP_ACCESS_REMOTE_WRITE};

static inline struct ofpi_keyring *side_create_ring(void)
{
    struct ofpi_key key = {.length = sizeof(SIDE_KEY)};
    struct ofpi_keyring *ring;

    memcpy(key.bytes, SIDE_KEY, key.length);
    ring = ofpi_keyring_create(&key, 1);
    check(ring != NULL);
    return ring;
}

/* ---------------------------------------------------------------------------------------------------------- regions */

/* Peers name it by its number from 1 on. */
static inline void side_open_region(struct side *side, unsigned i)
{
    struct ofp_region_attr attr = {
        .length = side_region_lengths[i], .access = side_region_access[i], .has_key = 1, .key = i + 1};

    attr.base = side->memory[i] = malloc(attr.length);
    memset(attr.base, SIDE_UNTOUCHED, attr.length);
    check(ofp_region_register(side->domain, &attr, &side->regions[i]) == 0);
}

static inline void side_close_region(struct side *side, unsigned i)
{
    /* Nobody had the right to write here. */
    for (uint64_t k = 0; !(side_region_access[i] & OFP_ACCESS_REMOTE_WRITE) && k < side_region_lengths[i]; k++)
        check(side->memory[i][k] == SIDE_UNTOUCHED);
    check(ofp_region_close(side->domain, side->regions[i].id) == 0);
    free(side->memory[i]);
}

/* ------------------------------------------------------------------------------------------------- opening, closing */

static inline struct ofp_info side_info(bool connects)
{
    static struct ofp_info infos[32];
    static int count;
    char text[OFP_TEXT_MAX];

    if (!count) {
        struct ofp_provider *provider;

        check(setenv("OFIPY_TCP_INTERFACE", "127.0.0.1", 1) == 0);
        check(ofpi_provider_register(ofp_provider_entry, &provider, text, sizeof(text)) == 0);
        count = ofp_provider_getinfo(provider, infos, 32, text, sizeof(text));
        ofp_log_set_level(OFP_LOG_ERROR);
    }
    for (int i = 0; i < count; i++)
        if (infos[i].ep_types == (connects ? OFP_EP_MSG : OFP_EP_RDM))
            return infos[i];
    abort();
}

static inline void side_open_endpoint(struct side *side, uint64_t request, uint64_t unexpected_limit)
{
    struct ofp_endpoint_attr attr = {.tx_cq = side->cq,
                                     .rx_cq = side->cq,
                                     .eq = side->eq,
                                     .av = side->connects ? NULL : side->av,
                                     .unexpected_limit = unexpected_limit,
                                     .min_multi_recv = 64,
                                     .remote_events = 1,
                                     .request = request};
    char text[OFP_TEXT_MAX];

    check(ofp_endpoint_open(side->domain, &attr, &side->endpoint, text, sizeof(text)) == 0);
}

static inline void side_open(struct side *side, bool connects, bool key, bool extension)
{
    struct ofp_info info = side_info(connects);
    struct ofp_provider *provider;
    struct ofp_domain_attr attr = {.progress = OFP_PROGRESS_MANUAL};
    struct ofp_cq_attr cq_attr = {.size = 64};
    struct ofp_eq_attr eq_attr = {0};
    struct ofp_av_attr av_attr = {.auto_insert = 1};
    struct tcp_domain *domain;
    char text[OFP_TEXT_MAX];

    memset(side, 0, sizeof(*side));
    side->connects = connects;
    side->allocated = __sanitizer_get_current_allocated_bytes();
    check(ofpi_provider_register(ofp_provider_entry, &provider, text, sizeof(text)) == 0);
    check(ofp_domain_open(provider, &info, &attr, &side->domain, text, sizeof(text)) == 0);
    domain = tcp_domain_of(side->domain);
    domain->extension = extension || key;
    if (key)
        domain->keys.ring = side_create_ring(); /* in place of one from a file */
    check(ofp_cq_open(side->domain, &cq_attr, &side->cq) == 0);
    check(ofp_eq_open(side->domain, &eq_attr, &side->eq) == 0);
    check(connects || ofp_av_open(side->domain, &av_attr, &side->av) == 0);
    for (unsigned i = 0; i < SIDE_REGIONS; i++)
        side_open_region(side, i);
}

static inline void side_progress(struct side *side)
{
    /* So much that every socket is looked at. */
    network.now += 100000;
    ofp_domain_progress(side->domain);
}

/* ------------------------------------------------------------------------------------------------------- operations */

static inline void side_free_operation(struct side_operation *operation)
{
    for (int i = 0; i < SIDE_PIECES; i++) {
        free(operation->pieces[i]);
        operation->pieces[i] = NULL;
    }
}

/* Nothing behind the message was touched. */
static inline void side_check_rest(const struct side_operation *operation, uint64_t length)
{
    check(length <= operation->length);
    for (int i = 0; i < SIDE_PIECES && operation->pieces[i]; i++) {
        for (uint64_t k = length < operation->lengths[i] ? length : operation->lengths[i]; k < operation->lengths[i];
             k++)
            check(operation->pieces[i][k] == SIDE_UNTOUCHED);
        length -= length < operation->lengths[i] ? length : operation->lengths[i];
    }
}

static inline void side_ended(struct side *side, const struct ofp_completion *row)
{
    struct side_operation *operation = &side->operations[row->context];
    bool receive = operation->op == OFP_RECV || operation->op == OFP_TRECV;

    check(row->error >= 0);
    if (row->flags & (OFP_COMPLETED_REMOTE_READ | OFP_COMPLETED_REMOTE_WRITE))
        return;
    check(row->context < side->operation_count && operation->used && !operation->done);
    if (receive && !operation->looks && !row->error && !operation->many)
        side_check_rest(operation, row->length);
    if (operation->many && !row->error && !(row->flags & OFP_COMPLETED_MULTI_RECV)) {
        check(row->buffer_offset + row->length <= operation->length);
        return;
    }
    if (operation->many && !(row->flags & OFP_COMPLETED_MULTI_RECV))
        return;
    operation->done = true;
    side_free_operation(operation);
}

static inline void side_completions(struct side *side)
{
    struct ofp_completion rows[16];
    int64_t count;

    while ((count = ofp_cq_read(side->cq, rows, 16)) > 0)
        for (int64_t i = 0; i < count; i++)
            side_ended(side, &rows[i]);
    check(count == 0);
}

static inline void side_events(struct side *side)
{
    struct ofp_event event;
    char data[OFP_EVENT_DATA_MAX];

    while (ofp_eq_read(side->eq, &event, data) == 1)
        check(event.data_length <= OFP_EVENT_DATA_MAX);
}

/* Memory for an operation, in `count` pieces. NULL: there have been enough of them. */
static inline struct side_operation *side_operation(struct side *side, struct ofp_operation *op, uint64_t length,
                                                    int count)
{
    struct side_operation *operation = &side->operations[side->operation_count];

    if (side->operation_count == SIDE_OPERATIONS)
        return NULL;
    operation->op = op->op;
    operation->length = length;
    operation->looks = op->flags & OFP_PEEK;
    operation->many = op->flags & OFP_MULTI_RECV;
    for (int i = 0; i < count; i++) {
        uint64_t part = i == count - 1 ? length : length / 3;

        operation->pieces[i] = malloc(part ? part : 1);
        memset(operation->pieces[i], SIDE_UNTOUCHED, part ? part : 1);
        operation->lengths[i] = part;
        operation->segments[i] =
            (struct ofp_segment){.offset = (uint64_t)(uintptr_t)operation->pieces[i], .length = part};
        length -= part;
    }
    side->posted += operation->length;
    op->context = side->operation_count;
    op->offset = operation->segments[0].offset;
    op->length = operation->lengths[0];
    if (count > 1) {
        op->segments = (uint64_t)(uintptr_t)operation->segments;
        op->segment_count = (uint32_t)count;
    }
    return operation;
}

static inline bool side_post(struct side *side, struct side_operation *operation, const struct ofp_operation *op)
{
    operation->used = true;
    side->operation_count++;
    if (!side->endpoint || ofp_post(side->endpoint, op, 1) != 1) {
        operation->done = true;
        side_free_operation(operation);
        return false;
    }
    /* Only of its failure there is a word. */
    operation->silent = op->flags & OFP_INJECT;
    if (operation->silent)
        side_free_operation(operation);
    return true;
}

/* Everything is over: each operation has ended, nothing is left behind. */
static inline void side_close(struct side *side, int64_t timeout)
{
    /* Its memory, and the copies of what was injected. */
    check(__sanitizer_get_current_allocated_bytes() < side->allocated + SIDE_MEMORY + 2 * side->posted);
    if (side->endpoint)
        check(ofp_endpoint_close(side->endpoint, timeout) == 0);
    if (side->passive)
        check(ofp_passive_close(side->passive) == 0);
    side_completions(side);
    for (uint32_t i = 0; i < side->operation_count; i++)
        check(side->operations[i].done || side->operations[i].silent);
    side_events(side);
    for (unsigned i = 0; i < SIDE_REGIONS; i++)
        side_close_region(side, i);
    check(!side->av || ofp_av_close(side->av) == 0);
    check(ofp_eq_close(side->eq) == 0);
    check(ofp_cq_close(side->cq) == 0);
    check(ofp_domain_close(side->domain) == 0);
    /* No impossible change of state, nothing that was given up. */
    check(!ofp_log_waiting());
    network_end();
}

#endif
