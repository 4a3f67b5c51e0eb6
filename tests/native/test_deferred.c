/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations and work that wait for counters, over both kinds of the fake provider's endpoints. */
#include "core_fixture.h"

#include "completion/counter.h"

static struct ofp_counter *counter_open(const struct side *side)
{
    struct ofp_counter_attr attr = {.events = OFP_COUNTER_COMPLETIONS};
    struct ofp_counter *counter;

    assert_int_equal(ofp_counter_open(side->domain, &attr, &counter), 0);
    return counter;
}

static uint64_t value_of(struct ofp_counter *counter)
{
    uint64_t value = UINT64_MAX;

    assert_int_equal(ofp_counter_read(counter, &value), 0);
    return value;
}

static void reach(struct ofp_counter *counter, uint64_t threshold)
{
    bool expired;

    assert_int_equal(ofp_counter_wait(counter, threshold, 0, 5000000000, &expired), 1);
}

/* Against a plain array: random thresholds enter, random values are reached. */
static void test_thresholds_model(void **state)
{
    enum { WORKS = 64, ROUNDS = 200 };
    unsigned seed = 1;

    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct ofpi_domain domain = {0};
        struct ofp_counter counter = {.domain = &domain};
        struct ofpi_threshold works[WORKS] = {0};
        bool due[WORKS] = {false};
        uint64_t value = 0;

        ofp_list_init(&domain.due);
        ofp_list_init(&counter.thresholds);
        for (int i = 0; i < WORKS; i++)
            ofpi_counter_add_threshold(&counter, &works[i], (uint64_t)(rand_r(&seed) % 20));
        while (value < 20) {
            value += (uint64_t)(rand_r(&seed) % 5);
            ofpi_counter_set_value(&counter, value);
            for (;;) {
                int expected = -1;
                struct ofp_list *node = ofp_list_pop(&domain.due);

                for (int i = 0; i < WORKS; i++)
                    if (!due[i] && works[i].value <= value && (expected < 0 || works[i].value < works[expected].value))
                        expected = i;
                assert_int_equal(expected < 0, node == NULL);
                if (!node)
                    break;
                assert_ptr_equal(node, &works[expected].node);
                due[expected] = true;
            }
        }
        assert_true(ofp_list_empty(&counter.thresholds));
    }
}

static void exchange(bool offloads_matching)
{
    struct side side;
    struct ofp_counter *counter;
    struct ofp_operation receives[3], sends[3];
    char in[3] = "", out[3] = {'a', 'b', 'c'};

    side_open(&side, offloads_matching, OFP_PROGRESS_MANUAL, 64);
    sides_meet(&side, &side);
    counter = counter_open(&side);
    for (int i = 0; i < 3; i++) {
        receives[i] = tagged(OFP_TRECV, side.peer, 1, &in[i], 1, (uint64_t)i);
        sends[i] = tagged(OFP_TSEND, side.peer, 1, &out[i], 1, 0);
        sends[i].flags = OFP_INJECT;
    }
    assert_int_equal(ofp_post(side.endpoint, receives, 3), 3);
    assert_int_equal(ofp_post_after(side.endpoint, &sends[2], 1, counter, 3), 1);
    assert_int_equal(ofp_post_after(side.endpoint, &sends[0], 2, counter, 2), 2);
    memset(out, 0, sizeof(out));
    memset(sends, 0, sizeof(sends));
    assert_int_equal(ofp_counter_add(counter, 1), 0);
    ofp_domain_progress(side.domain);
    assert_int_equal(in[0], 0);
    assert_int_equal(ofp_counter_add(counter, 2), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(next_completion(&side, NULL).context, i);
    assert_memory_equal(in, "abc", 3);
    assert_int_equal(ofp_counter_close(counter), 0);
    side_close(&side);
}

static void test_posted_in_order_at_the_threshold(void **state)
{
    (void)state;
    exchange(false);
    exchange(true);
}

static void chain(bool offloads_matching)
{
    struct side side;
    struct ofp_counter *counters[3];
    struct ofp_deferred_work work = {.threshold = 1};
    uint64_t id;
    char in[8], out[8] = "chained";

    side_open(&side, offloads_matching, OFP_PROGRESS_MANUAL, 64);
    sides_meet(&side, &side);
    for (int i = 0; i < 3; i++)
        counters[i] = counter_open(&side);
    /* Receive and send wait for counter 0 and advance counter 1, which sets counter 2. */
    work.counter = counters[0];
    work.target = counters[1];
    work.operation = tagged(OFP_TRECV, side.peer, 1, in, sizeof(in), 5);
    work.operation.endpoint = ofp_endpoint_id(side.endpoint);
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), 0);
    work.operation.op = OFP_TSEND;
    work.operation.offset = (uint64_t)(uintptr_t)out;
    work.operation.context = 6;
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), 0);
    work = (struct ofp_deferred_work){
        .kind = OFP_WORK_COUNTER_SET, .counter = counters[1], .threshold = 2, .target = counters[2], .value = 40};
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), 0);
    work.kind = OFP_WORK_COUNTER_ADD;
    work.value = 2;
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), 0);
    assert_int_equal(ofp_counter_add(counters[0], 1), 0);
    reach(counters[2], 42);
    assert_int_equal(value_of(counters[1]), 2);
    assert_memory_equal(in, out, sizeof(in));
    assert_int_equal(next_completion(&side, NULL).context + next_completion(&side, NULL).context, 11);
    assert_int_equal(ofp_work_cancel(side.domain, id), -ENOENT);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ofp_counter_close(counters[i]), 0);
    side_close(&side);
}

static void test_work_triggers_work(void **state)
{
    (void)state;
    chain(false);
    chain(true);
}

static void test_a_full_transmit_queue_only_delays(void **state)
{
    enum { SENDS = 40 };
    struct side side;
    struct ofp_counter *counter, *done;
    struct ofp_deferred_work work = {.threshold = 1};
    struct ofp_operation receive;
    uint64_t id;
    char in[SENDS], out[1] = {'x'};

    (void)state;
    side_open(&side, false, OFP_PROGRESS_MANUAL, 64);
    sides_meet(&side, &side);
    ((struct ofpi_endpoint *)side.endpoint)->tx_size = 1;
    counter = counter_open(&side);
    done = counter_open(&side);
    work.counter = counter;
    work.target = done;
    for (int i = 0; i < SENDS; i++) {
        receive = tagged(OFP_TRECV, side.peer, 1, &in[i], 1, 0);
        assert_int_equal(ofp_post(side.endpoint, &receive, 1), 1);
        work.operation = tagged(OFP_TSEND, side.peer, 1, out, 1, 0);
        work.operation.flags = OFP_MATCH_COMPLETE;
        work.operation.endpoint = ofp_endpoint_id(side.endpoint);
        assert_int_equal(ofp_work_queue(side.domain, &work, &id), 0);
    }
    assert_int_equal(ofp_counter_add(counter, 1), 0);
    reach(done, SENDS);
    assert_int_equal(ofp_counter_close(done), 0);
    assert_int_equal(ofp_counter_close(counter), 0);
    side_close(&side);
}

enum end { CANCEL, CANCEL_CONTEXT, FLUSH, CLOSE_COUNTER, CLOSE_ENDPOINT };

static void end_before_start(bool offloads_matching, enum end end)
{
    struct side side;
    struct ofp_counter *counter, *done;
    struct ofp_deferred_work work = {.threshold = 1};
    struct ofp_completion row;
    uint64_t id, errors;
    char in[8];

    side_open(&side, offloads_matching, OFP_PROGRESS_MANUAL, 64);
    sides_meet(&side, &side);
    counter = counter_open(&side);
    done = counter_open(&side);
    work.counter = counter;
    work.target = done;
    work.operation = tagged(OFP_TRECV, side.peer, 1, in, sizeof(in), 5);
    work.operation.endpoint = ofp_endpoint_id(side.endpoint);
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), 0);
    if (end == CANCEL)
        assert_int_equal(ofp_work_cancel(side.domain, id), 0);
    else if (end == CANCEL_CONTEXT)
        assert_int_equal(ofp_cancel(side.endpoint, 5), 0);
    else if (end == FLUSH)
        assert_int_equal(ofp_work_flush(side.domain), 1);
    else if (end == CLOSE_COUNTER)
        assert_int_equal(ofp_counter_close(counter), 0);
    else
        assert_int_equal(ofp_endpoint_close(side.endpoint, 0), 0);
    assert_int_equal(ofp_cq_read(side.cq, &row, 1), 1);
    assert_int_equal(row.context, 5);
    assert_int_equal(row.error, ECANCELED);
    assert_int_equal(ofp_counter_read_error(done, &errors), 0);
    assert_int_equal(errors, 1);
    assert_int_equal(ofp_work_cancel(side.domain, id), -ENOENT);
    if (end != CLOSE_COUNTER)
        assert_int_equal(ofp_counter_close(counter), 0);
    assert_int_equal(ofp_counter_close(done), 0);
    if (end != CLOSE_ENDPOINT)
        assert_int_equal(ofp_endpoint_close(side.endpoint, 0), 0);
    assert_int_equal(ofp_av_close(side.av), 0);
    assert_int_equal(ofp_cq_close(side.cq), 0);
    assert_int_equal(ofp_domain_close(side.domain), 0);
}

static void test_ends_before_the_start(void **state)
{
    (void)state;
    for (enum end end = CANCEL; end <= CLOSE_ENDPOINT; end++) {
        end_before_start(false, end);
        end_before_start(true, end);
    }
}

static void under_way(bool offloads_matching)
{
    struct side side;
    struct ofp_counter *counter, *done;
    struct ofp_deferred_work work = {0};
    struct ofp_completion row;
    uint64_t id;
    char in[8];

    side_open(&side, offloads_matching, OFP_PROGRESS_MANUAL, 64);
    sides_meet(&side, &side);
    counter = counter_open(&side);
    done = counter_open(&side);
    work.counter = counter;
    work.target = done;
    work.operation = tagged(OFP_TRECV, side.peer, 1, in, sizeof(in), 5);
    work.operation.endpoint = ofp_endpoint_id(side.endpoint);
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), 0);
    assert_int_equal(ofp_work_cancel(side.domain, id), -ENOENT);
    /* The counters may go; the operation stays, and can be cancelled by the context that its poster knows. */
    assert_int_equal(ofp_counter_close(done), 0);
    assert_int_equal(ofp_counter_close(counter), 0);
    assert_int_equal(ofp_cancel(side.endpoint, 5), 0);
    assert_int_equal(ofp_cq_read(side.cq, &row, 1), 1);
    assert_int_equal(row.context, 5);
    assert_int_equal(row.error, ECANCELED);
    side_close(&side);
}

static void test_under_way(void **state)
{
    (void)state;
    under_way(false);
    under_way(true);
}

static void test_refusals(void **state)
{
    struct side side;
    struct ofp_counter *counter;
    struct ofp_operation op;
    struct ofp_deferred_work work = {0};
    struct ofp_completion row;
    uint64_t id;
    char buffer[8];

    (void)state;
    side_open(&side, false, OFP_PROGRESS_MANUAL, 64);
    sides_meet(&side, &side);
    counter = counter_open(&side);
    op = tagged(OFP_TRECV, side.peer, 1, buffer, sizeof(buffer), 5);
    op.flags = OFP_PEEK;
    assert_int_equal(ofp_post_after(side.endpoint, &op, 1, counter, 1), -EINVAL);
    op.flags = 0;
    op.op = 99;
    assert_int_equal(ofp_post_after(side.endpoint, &op, 1, counter, 1), -EINVAL);
    op.op = OFP_TSEND;
    assert_int_equal(ofp_post_after(side.endpoint, &op, 1, NULL, 1), -EINVAL);
    work.operation = op;
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), -EINVAL);
    work.counter = counter;
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), -ENOENT);
    work.kind = OFP_WORK_COUNTER_ADD;
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), -EINVAL);
    /* What is found wrong only at the start is an error completion. */
    op.peer = 77;
    assert_int_equal(ofp_post_after(side.endpoint, &op, 1, counter, 1), 1);
    assert_int_equal(ofp_cq_read(side.cq, &row, 1), 0);
    assert_int_equal(ofp_counter_add(counter, 1), 0);
    assert_int_equal(ofp_cq_read(side.cq, &row, 1), 1);
    assert_int_equal(row.context, 5);
    assert_int_equal(row.error, OFP_EADDRNOTAVAIL);
    assert_int_equal(ofp_counter_close(counter), 0);
    side_close(&side);
}

/* ------------------------------------------------------------------------------------------------------- reductions */

static struct ofp_deferred_work reduction(struct ofp_counter *counter, struct ofp_counter *done, void *target,
                                          const void *source, uint64_t length)
{
    return (struct ofp_deferred_work){
        .kind = OFP_WORK_REDUCE,
        .counter = counter,
        .threshold = 1,
        .target = done,
        .operation = {.atomic_op = OFP_ATOMIC_SUM,
                      .datatype = OFP_INT32,
                      .offset = (uint64_t)(uintptr_t)source,
                      .length = length,
                      .result_offset = (uint64_t)(uintptr_t)target},
    };
}

static void test_reduces_at_the_threshold(void **state)
{
    enum { COUNT = 1000 };
    static int32_t target[COUNT], source[COUNT];
    struct side side;
    struct ofp_counter *counter, *done;
    struct ofp_deferred_work work;
    uint64_t id;

    (void)state;
    side_open(&side, false, OFP_PROGRESS_MANUAL, 64);
    counter = counter_open(&side);
    done = counter_open(&side);
    for (int32_t i = 0; i < COUNT; i++) {
        target[i] = i;
        source[i] = 3 * i;
    }
    work = reduction(counter, done, target, source, sizeof(target));
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), 0);
    /* Chained: onto itself, when the first is done. */
    work = reduction(done, NULL, target, target, sizeof(target));
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), 0);
    ofp_domain_progress(side.domain);
    assert_int_equal(target[5], 5);
    assert_int_equal(ofp_counter_add(counter, 1), 0);
    assert_int_equal(value_of(done), 1);
    for (int32_t i = 0; i < COUNT; i++)
        assert_int_equal(target[i], 8 * i);
    assert_int_equal(ofp_work_cancel(side.domain, id), -ENOENT);
    assert_int_equal(ofp_counter_close(done), 0);
    assert_int_equal(ofp_counter_close(counter), 0);
    side_close(&side);
}

static void test_a_reduction_that_ends_otherwise(void **state)
{
    struct side side;
    struct ofp_counter *counter, *done;
    struct ofp_deferred_work work;
    int32_t target = 1, source = 2;
    uint64_t id, errors;

    (void)state;
    side_open(&side, false, OFP_PROGRESS_MANUAL, 64);
    counter = counter_open(&side);
    done = counter_open(&side);
    work = reduction(counter, done, &target, &source, 4);
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), 0);
    assert_int_equal(ofp_work_cancel(side.domain, id), 0);
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), 0);
    assert_int_equal(ofp_work_flush(side.domain), 1);
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), 0);
    assert_int_equal(ofp_counter_close(counter), 0);
    assert_int_equal(ofp_counter_read_error(done, &errors), 0);
    assert_int_equal(errors, 3);
    /* The counter that it tells may go before. */
    counter = counter_open(&side);
    work.counter = counter;
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), 0);
    assert_int_equal(ofp_counter_close(done), 0);
    assert_int_equal(target, 1);
    assert_int_equal(ofp_counter_add(counter, 1), 0);
    assert_int_equal(target, 3);
    assert_int_equal(ofp_counter_close(counter), 0);
    side_close(&side);
}

/* The same checks at the start as at the call: the memory may have gone. */
static void test_a_region_that_is_closed_before_the_start(void **state)
{
    struct side side;
    struct ofp_counter *counter, *done;
    struct ofp_deferred_work work;
    struct ofp_region_attr attr = {.access = OFP_ACCESS_READ | OFP_ACCESS_WRITE};
    struct ofp_region_handle region;
    int32_t target[2] = {1, 2}, source = 2;
    uint64_t id, errors;

    (void)state;
    side_open(&side, false, OFP_PROGRESS_MANUAL, 64);
    counter = counter_open(&side);
    done = counter_open(&side);
    attr.base = target;
    attr.length = sizeof(target);
    assert_int_equal(ofp_region_register(side.domain, &attr, &region), 0);
    work = reduction(counter, done, NULL, &source, 4);
    work.operation.result_region = region.id;
    work.operation.result_offset = 4;
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), 0);
    assert_int_equal(ofp_region_close(side.domain, region.id), 0);
    assert_int_equal(ofp_counter_add(counter, 1), 0);
    assert_int_equal(target[1], 2);
    assert_int_equal(ofp_counter_read_error(done, &errors), 0);
    assert_int_equal(errors, 1);
    assert_int_equal(ofp_counter_close(done), 0);
    assert_int_equal(ofp_counter_close(counter), 0);
    side_close(&side);
}

static void test_reductions_that_are_refused(void **state)
{
    struct side side;
    struct ofp_counter *counter;
    struct ofp_deferred_work work;
    int32_t memory[8] = {0};
    uint64_t id;

    (void)state;
    side_open(&side, false, OFP_PROGRESS_MANUAL, 64);
    counter = counter_open(&side);
    work = reduction(counter, NULL, &memory[0], &memory[4], 7);
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), -EINVAL);
    work = reduction(counter, NULL, &memory[0], &memory[1], 8);
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), -EINVAL);
    work = reduction(counter, NULL, NULL, &memory[4], 8);
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), -EFAULT);
    work = reduction(counter, NULL, &memory[0], &memory[4], 8);
    work.operation.datatype = 99;
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), -EOPNOTSUPP);
    work = reduction(counter, NULL, &memory[0], &memory[4], 8);
    work.operation.atomic_op = OFP_ATOMIC_CSWAP;
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), -EOPNOTSUPP);
    work = reduction(counter, NULL, &memory[0], &memory[4], 8);
    work.operation.region = 12345;
    assert_int_equal(ofp_work_queue(side.domain, &work, &id), -OFP_ENOREGION);
    assert_int_equal(ofp_counter_close(counter), 0);
    side_close(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thresholds_model),
        cmocka_unit_test(test_posted_in_order_at_the_threshold),
        cmocka_unit_test(test_work_triggers_work),
        cmocka_unit_test(test_a_full_transmit_queue_only_delays),
        cmocka_unit_test(test_ends_before_the_start),
        cmocka_unit_test(test_under_way),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_reduces_at_the_threshold),
        cmocka_unit_test(test_a_reduction_that_ends_otherwise),
        cmocka_unit_test(test_a_region_that_is_closed_before_the_start),
        cmocka_unit_test(test_reductions_that_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
