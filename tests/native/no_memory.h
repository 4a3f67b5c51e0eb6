/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two endpoints of a provider meet and exchange a little of everything, again and again: the first time the first
 * allocation fails, then the second, until there are no more to fail; then the same with all that follow failing too.
 * Each time all may end with an error, or come through; nothing may crash, leak, or hold up the closing of what was
 * opened. The linker leads the allocations of core and provider here.
 */
#ifndef NO_MEMORY_H
#define NO_MEMORY_H

#include "core_fixture.h"

#define LONG 100000
#define ROUNDS 3000           /* of progress, until what has not ended by then is given up */
#define QUIET_NS 100000000ull /* and so long at least */
/* Until what must end has ended: the far side tells at the latest when its connection ends. */
#define PATIENCE_NS 20000000000ull

static long until_failure = -1; /* allocations that still succeed; negative: all do */
static bool for_good, failed;

static bool fails(void)
{
    if (until_failure != 0) {
        until_failure -= until_failure > 0;
        return false;
    }
    until_failure = for_good ? 0 : -1;
    failed = true;
    return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_malloc(size_t size) { return fails() ? NULL : __real_malloc(size); }
void *__wrap_calloc(size_t count, size_t size) { return fails() ? NULL : __real_calloc(count, size); }
void *__wrap_realloc(void *memory, size_t size) { return fails() ? NULL : __real_realloc(memory, size); }

static struct side a, b;
static char text[OFP_TEXT_MAX];

static bool open_one(struct side *side, const struct ofp_info *info)
{
    struct ofp_domain_attr domain_attr = {.progress = OFP_PROGRESS_MANUAL};
    struct ofp_cq_attr cq_attr = {.size = 4};
    struct ofp_av_attr av_attr = {.auto_insert = 1};
    struct ofp_endpoint_attr attr = {0};

    if (ofp_domain_open(fake_provider(), info, &domain_attr, &side->domain, text, sizeof(text)) != 0 ||
        ofp_cq_open(side->domain, &cq_attr, &side->cq) != 0 || ofp_av_open(side->domain, &av_attr, &side->av) != 0)
        return false;
    attr.tx_cq = attr.rx_cq = side->cq;
    attr.av = side->av;
    return ofp_endpoint_open(side->domain, &attr, &side->endpoint, text, sizeof(text)) == 0;
}

static void close_one(struct side *side)
{
    if (side->endpoint)
        assert_int_equal(ofp_endpoint_close(side->endpoint, 1000000000), 0);
    if (side->av)
        assert_int_equal(ofp_av_close(side->av), 0);
    if (side->cq)
        assert_int_equal(ofp_cq_close(side->cq), 0);
    if (side->domain)
        assert_int_equal(ofp_domain_close(side->domain), 0);
}

static bool knows(struct side *side, struct side *other)
{
    char address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);

    return ofp_endpoint_address(other->endpoint, address, &length) == 0 &&
           ofp_av_insert(side->av, address, length, &side->peer) == 0;
}

/* Post, and count what is to come back. */
static int start(struct side *side, struct ofp_operation op) { return ofp_post(side->endpoint, &op, 1) == 1; }

/*
 * Progress of both until so many operations have ended, or nothing more comes; returns how many ended well. `all`: none may
 * be left.
 */
static int settle(int expected, bool all)
{
    uint64_t begin = ofpi_clock_read();
    int well = 0, ended = 0;

    for (int i = 0; ended < expected && (i < ROUNDS || ofpi_clock_read() - begin < (all ? PATIENCE_NS : QUIET_NS));
         i++) {
        struct ofp_completion row;

        ofp_domain_progress(a.domain);
        ofp_domain_progress(b.domain);
        for (int side = 0; side < 2; side++)
            while (ofp_cq_read(side ? a.cq : b.cq, &row, 1) == 1) {
                ended++;
                well += !row.error;
            }
    }
    assert_true(ended >= expected || !all);
    return well;
}

/* True when all of it came through. */
static bool exchange(void)
{
    static char out[LONG], in[LONG], memory[LONG];
    struct ofp_region_attr attr = {
        .base = memory, .length = LONG, .access = OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE};
    struct ofp_region_handle region;
    struct ofp_operation op;
    uint64_t one = 1, result = 0;
    bool well = true;

    for (int late = 0; late < 2; late++)
        for (uint64_t length = 8; length <= LONG; length += LONG - 8) {
            int posted = late ? 0 : start(&b, tagged(OFP_TRECV, OFP_PEER_ANY, length, in, length, 0));

            posted += start(&a, tagged(OFP_TSEND, a.peer, length, out, length, 0));
            if (late) {
                settle(0, false);
                for (int i = 0; i < 50; i++) {
                    ofp_domain_progress(a.domain);
                    ofp_domain_progress(b.domain);
                }
                posted += start(&b, tagged(OFP_TRECV, OFP_PEER_ANY, length, in, length, 0));
            }
            well &= posted == 2 && settle(2, false) == 2;
        }
    if (ofp_region_register(b.domain, &attr, &region) != 0)
        return false;
    for (int i = 0; i < 4; i++) {
        op = tagged(i < 2 ? OFP_WRITE : i == 2 ? OFP_READ : OFP_FETCH_ATOMIC, a.peer, 0, in, i == 0 ? 8 : LONG, 0);
        if (i == 3) {
            op.offset = (uint64_t)(uintptr_t)&one;
            op.length = sizeof(one);
            op.result_offset = (uint64_t)(uintptr_t)&result;
            op.atomic_op = OFP_ATOMIC_SUM;
            op.datatype = OFP_UINT64;
        }
        op.remote_key = region.key;
        op.remote_offset = region.remote_base;
        well &= start(&a, op) && settle(1, !for_good) == 1;
    }
    assert_int_equal(ofp_region_close(b.domain, region.id), 0);
    return well;
}

static void fail_each_in_turn(void)
{
    struct ofp_info info = fake_info(false);
    bool well = false;
    long count = 0;

    for (; !well || failed; count++) {
        failed = false;
        until_failure = count;
        well = open_one(&a, &info) && open_one(&b, &info) && knows(&a, &b) && knows(&b, &a) && exchange();
        until_failure = -1;
        close_one(&a);
        close_one(&b);
        a = b = (struct side){0};
        /* Without a failure all comes through. */
        assert_true(well || failed);
        forget_warnings();
    }
    print_message("%ld allocations\n", count - 1);
}

static void test_each_allocation_fails_once(void **state)
{
    (void)state;
    for_good = false;
    fail_each_in_turn();
}

static void test_there_is_no_more_memory_from_then_on(void **state)
{
    (void)state;
    for_good = true;
    fail_each_in_turn();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_allocation_fails_once),
        cmocka_unit_test(test_there_is_no_more_memory_from_then_on),
    };

#ifdef PREPARE
    int result = PREPARE();

    if (result)
        return result;
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
