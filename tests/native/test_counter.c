/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters through the public calls, over both kinds of the fake provider's endpoints. */
#include "core_fixture.h"

#include <poll.h>
#include <sched.h>

#include "completion/completion_queue.h"
#include "completion/counter.h"

static struct ofp_counter *counter_open(struct ofp_domain *domain, uint32_t events)
{
    struct ofp_counter_attr attr = {.events = events};
    struct ofp_counter *counter;

    assert_int_equal(ofp_counter_open(domain, &attr, &counter), 0);
    return counter;
}

static uint64_t value_of(struct ofp_counter *counter)
{
    uint64_t value = UINT64_MAX;

    assert_int_equal(ofp_counter_read(counter, &value), 0);
    return value;
}

static uint64_t errors_of(struct ofp_counter *counter)
{
    uint64_t value = UINT64_MAX;

    assert_int_equal(ofp_counter_read_error(counter, &value), 0);
    return value;
}

/* A second endpoint of the side's domain with counters, which is its own peer. */
struct counted {
    struct side side;
    struct ofp_counter *sends, *bytes;
    struct ofp_endpoint *endpoint;
    uint32_t me;
};

static void counted_open(struct counted *counted, bool offloads_matching, uint32_t selective)
{
    struct ofp_endpoint_attr attr = {.selective_completion = selective};
    char text[OFP_TEXT_MAX], address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);

    side_open(&counted->side, offloads_matching, OFP_PROGRESS_MANUAL, 64);
    counted->sends = counter_open(counted->side.domain, OFP_COUNTER_COMPLETIONS);
    counted->bytes = counter_open(counted->side.domain, OFP_COUNTER_BYTES);
    attr.tx_cq = attr.rx_cq = counted->side.cq;
    attr.av = counted->side.av;
    attr.counters[OFP_COUNTER_SEND] = counted->sends;
    attr.counters[OFP_COUNTER_RECV] = counted->bytes;
    assert_int_equal(ofp_endpoint_open(counted->side.domain, &attr, &counted->endpoint, text, sizeof(text)), 0);
    assert_int_equal(ofp_endpoint_address(counted->endpoint, address, &length), 0);
    assert_int_equal(ofp_av_insert(counted->side.av, address, length, &counted->me), 0);
}

static void counted_close(struct counted *counted)
{
    assert_int_equal(ofp_endpoint_close(counted->endpoint, 1000000000), 0);
    assert_int_equal(ofp_counter_close(counted->sends), 0);
    assert_int_equal(ofp_counter_close(counted->bytes), 0);
    side_close(&counted->side);
}

static void reach(struct ofp_counter *counter, uint64_t threshold)
{
    bool expired;

    assert_int_equal(ofp_counter_wait(counter, threshold, 0, 5000000000, &expired), 1);
}

static void count_transfers(bool offloads_matching, uint32_t selective)
{
    struct counted counted;
    struct ofp_completion row;
    char in[16], out[10] = "counted";
    struct ofp_operation receives[2], sends[2];

    counted_open(&counted, offloads_matching, selective);
    for (int i = 0; i < 2; i++) {
        receives[i] = tagged(OFP_TRECV, counted.me, 1, in, sizeof(in), 0);
        sends[i] = tagged(OFP_TSEND, counted.me, 1, out, sizeof(out), 0);
        sends[i].flags = OFP_INJECT;
    }
    assert_int_equal(ofp_post(counted.endpoint, receives, 2), 2);
    assert_int_equal(ofp_post(counted.endpoint, sends, 2), 2);
    reach(counted.sends, 2);
    reach(counted.bytes, 20);
    assert_int_equal(value_of(counted.sends), 2);
    assert_int_equal(value_of(counted.bytes), 20);
    /* Injects write no entry, and on a selective endpoint receives do not either. */
    assert_int_equal(ofp_cq_read(counted.side.cq, &row, 1), selective ? 0 : 1);
    assert_int_equal(errors_of(counted.sends), 0);
    counted_close(&counted);
}

static void test_every_operation_counts(void **state)
{
    (void)state;
    count_transfers(false, 0);
    count_transfers(false, OFP_SELECTIVE_TRANSMIT | OFP_SELECTIVE_RECEIVE);
    count_transfers(true, 0);
    count_transfers(true, OFP_SELECTIVE_TRANSMIT | OFP_SELECTIVE_RECEIVE);
}

static void test_errors_count_apart(void **state)
{
    (void)state;
    for (int offloads = 0; offloads < 2; offloads++) {
        struct counted counted;
        struct ofp_operation receive;
        bool expired;
        char in[16];

        counted_open(&counted, offloads, 0);
        receive = tagged(OFP_TRECV, counted.me, 1, in, sizeof(in), 7);
        assert_int_equal(ofp_post(counted.endpoint, &receive, 1), 1);
        assert_int_equal(ofp_cancel(counted.endpoint, 7), 0);
        assert_int_equal(ofp_counter_wait(counted.bytes, 1, 0, 5000000000, &expired), 2);
        assert_int_equal(value_of(counted.bytes), 0);
        assert_int_equal(errors_of(counted.bytes), 1);
        /* The caller knows that error: it ends no further wait. */
        assert_int_equal(ofp_counter_wait(counted.bytes, 1, 1, 1000000, &expired), 0);
        assert_true(expired);
        counted_close(&counted);
    }
}

static void test_looking_is_not_counted(void **state)
{
    struct counted counted;
    struct ofp_operation peek;

    (void)state;
    counted_open(&counted, false, 0);
    peek = tagged(OFP_TRECV, counted.me, 1, NULL, 0, 9);
    peek.flags = OFP_PEEK;
    assert_int_equal(ofp_post(counted.endpoint, &peek, 1), 1);
    assert_int_equal(next_completion(&counted.side, NULL).error, ENOMSG);
    assert_int_equal(errors_of(counted.bytes), 0);
    counted_close(&counted);
}

static void test_values_are_the_users_too(void **state)
{
    struct side side;
    struct ofp_counter *counter;
    struct ofp_counter_attr wrong = {.events = 2};

    (void)state;
    side_open(&side, false, OFP_PROGRESS_MANUAL, 64);
    assert_int_equal(ofp_counter_open(side.domain, &wrong, &counter), -EINVAL);
    counter = counter_open(side.domain, OFP_COUNTER_COMPLETIONS);
    assert_int_equal(ofp_counter_set(counter, 5), 0);
    assert_int_equal(ofp_counter_add(counter, 3), 0);
    assert_int_equal(value_of(counter), 8);
    assert_int_equal(ofp_counter_set_error(counter, 4), 0);
    assert_int_equal(ofp_counter_add_error(counter, 2), 0);
    assert_int_equal(errors_of(counter), 6);
    assert_int_equal(ofp_domain_close(side.domain), -EBUSY);
    assert_int_equal(ofp_counter_close(counter), 0);
    side_close(&side);
}

static void test_classes(void **state)
{
    static const struct {
        uint64_t flags;
        enum ofp_counter_class class;
    } cases[] = {
        {OFP_COMPLETED_SEND | OFP_COMPLETED_TAGGED, OFP_COUNTER_SEND},
        {OFP_COMPLETED_RECV | OFP_COMPLETED_MSG, OFP_COUNTER_RECV},
        {OFP_COMPLETED_READ | OFP_COMPLETED_RMA, OFP_COUNTER_READ},
        {OFP_COMPLETED_WRITE | OFP_COMPLETED_RMA, OFP_COUNTER_WRITE},
        {OFP_COMPLETED_ATOMIC | OFP_COMPLETED_READ, OFP_COUNTER_READ},
        {OFP_COMPLETED_ATOMIC | OFP_COMPLETED_WRITE, OFP_COUNTER_WRITE},
        {OFP_COMPLETED_REMOTE_READ | OFP_COMPLETED_RMA, OFP_COUNTER_REMOTE_READ},
        {OFP_COMPLETED_REMOTE_WRITE | OFP_COMPLETED_RMA | OFP_COMPLETED_REMOTE_CQ_DATA, OFP_COUNTER_REMOTE_WRITE},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ofpi_endpoint endpoint = {0};
        struct ofp_counter counters[OFP_COUNTER_CLASSES] = {0};
        struct ofp_counter *pointers[OFP_COUNTER_CLASSES];

        ofpi_counters_bind(&endpoint, (struct ofp_counter *[OFP_COUNTER_CLASSES]){0});
        ofpi_counters_count(&endpoint, cases[i].flags, 3, 0);
        for (int class = 0; class < OFP_COUNTER_CLASSES; class++)
            pointers[class] = &counters[class];
        for (int class = 0; class < OFP_COUNTER_CLASSES; class++)
            ofp_list_init(&counters[class].thresholds);
        ofpi_counters_bind(&endpoint, pointers);
        ofpi_counters_count(&endpoint, cases[i].flags, 3, 0);
        ofpi_counters_count(&endpoint, cases[i].flags, 3, ECANCELED);
        for (enum ofp_counter_class class = 0; class < OFP_COUNTER_CLASSES; class++) {
            assert_int_equal(counters[class].value, class == cases[i].class);
            assert_int_equal(counters[class].errors, class == cases[i].class);
        }
    }
}

struct waiter {
    struct ofp_counter *counter;
    uint64_t threshold;
    int result;
    pthread_t thread;
};

static void *wait_long(void *argument)
{
    struct waiter *waiter = argument;
    uint64_t deadline = ofpi_clock_read() + 20000000000ull;
    bool expired;

    do
        waiter->result = ofp_counter_wait(waiter->counter, waiter->threshold, 0, 20000000000, &expired);
    while (waiter->result == 0 && ofpi_clock_read() < deadline);
    return NULL;
}

static void waiters_start(struct waiter *waiters, int count, struct ofp_counter *counter, uint64_t threshold)
{
    uint32_t waiting = 0;

    for (int i = 0; i < count; i++) {
        waiters[i] = (struct waiter){.counter = counter, .threshold = threshold};
        assert_int_equal(pthread_create(&waiters[i].thread, NULL, wait_long, &waiters[i]), 0);
    }
    while (waiting != (uint32_t)count) {
        sched_yield();
        ofpi_lock_acquire(&counter->domain->lock);
        waiting = counter->waiting;
        ofpi_lock_release(&counter->domain->lock);
    }
}

static void waiters_join(struct waiter *waiters, int count, int result)
{
    for (int i = 0; i < count; i++) {
        pthread_join(waiters[i].thread, NULL);
        assert_int_equal(waiters[i].result, result);
    }
}

static void test_every_change_wakes_every_thread(void **state)
{
    struct side side;
    struct ofp_counter *counter;
    struct waiter waiters[3];

    (void)state;
    side_open(&side, false, OFP_PROGRESS_MANUAL, 64);
    counter = counter_open(side.domain, OFP_COUNTER_COMPLETIONS);
    waiters_start(waiters, 3, counter, 2);
    assert_int_equal(ofp_counter_add(counter, 1), 0);
    assert_int_equal(ofp_counter_add(counter, 1), 0);
    waiters_join(waiters, 3, 1);
    waiters_start(waiters, 3, counter, 9);
    assert_int_equal(ofp_counter_add_error(counter, 1), 0);
    waiters_join(waiters, 3, 2);
    assert_int_equal(ofp_counter_set_error(counter, 0), 0);
    waiters_start(waiters, 3, counter, 9);
    assert_int_equal(ofp_counter_retire(counter), 0);
    waiters_join(waiters, 3, -ECANCELED);
    assert_int_equal(ofp_counter_add(counter, 1), -ECANCELED);
    assert_int_equal(ofp_counter_retire(counter), -ECANCELED);
    ofp_counter_free(counter);
    side_close(&side);
}

static bool is_readable(int fd)
{
    struct pollfd entry = {.fd = fd, .events = POLLIN};

    return poll(&entry, 1, 0) == 1;
}

static void test_the_descriptor_wakes(void **state)
{
    struct side side;
    struct ofp_counter *counter;
    int fd;

    (void)state;
    side_open(&side, false, OFP_PROGRESS_MANUAL, 64);
    counter = counter_open(side.domain, OFP_COUNTER_COMPLETIONS);
    fd = ofp_counter_fileno(counter);
    assert_true(fd >= 0);
    assert_int_equal(ofp_counter_arm(counter, 0, 0), 0);
    assert_int_equal(ofp_counter_arm(counter, 2, 0), 1);
    assert_false(is_readable(fd));
    assert_int_equal(ofp_counter_add(counter, 1), 0);
    assert_false(is_readable(fd));
    assert_int_equal(ofp_counter_add(counter, 1), 0);
    assert_true(is_readable(fd));
    assert_int_equal(ofp_counter_arm(counter, 2, 0), 0);
    assert_int_equal(ofp_counter_arm(counter, 3, 0), 1);
    assert_false(is_readable(fd));
    assert_int_equal(ofp_counter_add_error(counter, 1), 0);
    assert_true(is_readable(fd));
    assert_int_equal(ofp_counter_arm(counter, 3, 0), 0);
    assert_int_equal(ofp_counter_arm(counter, 3, 1), 1);
    /* Whoever armed it is awake when it reads. */
    assert_int_equal(ofp_counter_set(counter, 3), 0);
    assert_true(is_readable(fd));
    assert_int_equal(value_of(counter), 3);
    assert_false(is_readable(fd));
    assert_int_equal(ofp_counter_arm(counter, 4, 1), 1);
    assert_int_equal(ofp_counter_close(counter), 0);
    assert_int_equal(side.cq->domain->armed_queues, 0);
    side_close(&side);
}

/* Messages wake who sleeps on the counter of receives, who then makes progress. */
static void test_the_descriptor_wakes_for_work(void **state)
{
    (void)state;
    for (int offloads = 0; offloads < 2; offloads++) {
        struct counted counted;
        struct ofp_operation receive, send;
        char in[16], out[10] = "counted";
        int fd;

        counted_open(&counted, offloads, 0);
        receive = tagged(OFP_TRECV, counted.me, 1, in, sizeof(in), 0);
        send = tagged(OFP_TSEND, counted.me, 1, out, sizeof(out), 0);
        assert_int_equal(ofp_post(counted.endpoint, &receive, 1), 1);
        fd = ofp_counter_fileno(counted.bytes);
        assert_int_equal(ofp_counter_arm(counted.bytes, 10, 0), 1);
        assert_false(is_readable(fd));
        assert_int_equal(ofp_post(counted.endpoint, &send, 1), 1);
        assert_true(is_readable(fd));
        while (ofp_counter_arm(counted.bytes, 10, 0) == 1)
            assert_true(is_readable(fd));
        assert_int_equal(value_of(counted.bytes), 10);
        counted_close(&counted);
    }
}

static void test_a_bound_counter_stays(void **state)
{
    struct counted counted;
    struct side other;
    struct ofp_endpoint_attr attr = {0};
    struct ofp_endpoint *endpoint;
    char text[OFP_TEXT_MAX];

    (void)state;
    counted_open(&counted, false, 0);
    assert_int_equal(ofp_counter_close(counted.sends), -EBUSY);
    side_open(&other, false, OFP_PROGRESS_MANUAL, 64);
    attr.tx_cq = attr.rx_cq = other.cq;
    attr.av = other.av;
    attr.counters[OFP_COUNTER_SEND] = counted.sends;
    assert_int_equal(ofp_endpoint_open(other.domain, &attr, &endpoint, text, sizeof(text)), -EINVAL);
    side_close(&other);
    counted_close(&counted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_operation_counts),
        cmocka_unit_test(test_errors_count_apart),
        cmocka_unit_test(test_looking_is_not_counted),
        cmocka_unit_test(test_values_are_the_users_too),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_every_change_wakes_every_thread),
        cmocka_unit_test(test_the_descriptor_wakes),
        cmocka_unit_test(test_the_descriptor_wakes_for_work),
        cmocka_unit_test(test_a_bound_counter_stays),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
