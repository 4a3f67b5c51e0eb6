/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting, waking and requests: threads that sleep, descriptors that become readable, the helper thread, fork. */
#include "progress/progress.h"
#include "request_fixture.h"

#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct side a, b;

static int open_auto(void **state)
{
    (void)state;
    side_open(&a, false, OFP_PROGRESS_AUTO, 64);
    side_open(&b, false, OFP_PROGRESS_AUTO, 64);
    sides_meet(&a, &b);
    return 0;
}

static int open_manual(void **state)
{
    (void)state;
    side_open(&a, false, OFP_PROGRESS_MANUAL, 64);
    side_open(&b, false, OFP_PROGRESS_MANUAL, 64);
    sides_meet(&a, &b);
    return 0;
}

static int close_both(void **state)
{
    (void)state;
    side_close(&a);
    side_close(&b);
    return 0;
}

static int wait_request(ofp_request_t request)
{
    int result;

    while ((result = ofp_request_wait(request, -1)) == 0 || result == -EINTR)
        ;
    return result;
}

static void *echo(void *argument)
{
    uint64_t rounds = *(uint64_t *)argument;

    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t value = 0;
        ofp_request_t receive = request_trecv(b.endpoint, &value, sizeof(value), OFP_PEER_ANY, 1);
        ofp_request_t send;

        if (receive <= 0 || wait_request(receive) != 1)
            return (void *)1;
        ofp_request_abandon(receive, false);
        value++;
        send = request_tsend(b.endpoint, &value, sizeof(value), b.peer, 2);
        if (send < 0 || (send > 0 && wait_request(send) != 1))
            return (void *)1;
        if (send > 0)
            ofp_request_abandon(send, false);
    }
    return NULL;
}

static void test_two_threads_exchange(void **state)
{
    uint64_t rounds = 2000;
    pthread_t thread;
    void *result;

    (void)state;
    pthread_create(&thread, NULL, echo, &rounds);
    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t answer = 0;
        ofp_request_t receive = request_trecv(a.endpoint, &answer, sizeof(answer), a.peer, 2);
        ofp_request_t send = request_tsend(a.endpoint, &i, sizeof(i), a.peer, 1);

        assert_true(receive > 0);
        assert_true(send >= 0);
        if (send > 0) {
            assert_int_equal(wait_request(send), 1);
            ofp_request_abandon(send, false);
        }
        assert_int_equal(wait_request(receive), 1);
        assert_int_equal(answer, i + 1);
        assert_int_equal(request_take(receive, 0).length, 8);
        ofp_request_abandon(receive, false);
    }
    pthread_join(thread, &result);
    assert_null(result);
}

struct waiter {
    uint64_t tag, value;
    int result;
};

static void *wait_for_tag(void *argument)
{
    struct waiter *waiter = argument;
    ofp_request_t request = request_trecv(b.endpoint, &waiter->value, 8, OFP_PEER_ANY, waiter->tag);

    waiter->result = request > 0 ? wait_request(request) : (int)request;
    if (request > 0)
        ofp_request_abandon(request, false);
    return NULL;
}

/* One of them leads, the others follow; each message must wake the right one. */
static void test_many_threads_wait_on_one_domain(void **state)
{
    enum { THREADS = 6 };
    pthread_t threads[THREADS];
    struct waiter waiters[THREADS];

    (void)state;
    for (uint64_t i = 0; i < THREADS; i++) {
        waiters[i] = (struct waiter){.tag = 100 + i};
        pthread_create(&threads[i], NULL, wait_for_tag, &waiters[i]);
    }
    for (uint64_t i = 0; i < THREADS; i++) {
        struct ofp_operation send = tagged(OFP_TSEND, a.peer, 100 + i, &i, 8, 0);

        send.flags = OFP_INJECT;
        assert_int_equal(ofp_post(a.endpoint, &send, 1), 1);
        ofp_domain_progress(a.domain);
    }
    for (uint64_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(waiters[i].result, 1);
        assert_int_equal(waiters[i].value, i);
    }
}

/* A call waits a second at most: who gets nothing by then was not woken. */
static bool is_done_in_time(ofp_request_t request) { return request > 0 && request_take(request, -1).error == 0; }

static void *answer_tag(void *argument)
{
    uint64_t tag = *(uint64_t *)argument, value;

    for (int i = 0; i < 200; i++) {
        struct ofp_operation back = tagged(OFP_TSEND, b.peer, tag + 100, &value, 8, 0);

        back.flags = OFP_INJECT;
        if (!is_done_in_time(request_trecv(b.endpoint, &value, 8, OFP_PEER_ANY, tag)) ||
            ofp_post(b.endpoint, &back, 1) != 1)
            return argument;
    }
    return NULL;
}

/* One leads, the other polls beside it and must not empty what wakes the leader. */
static void test_two_threads_of_a_domain_answer_in_turn(void **state)
{
    uint64_t tags[2] = {100, 101}, value;
    pthread_t threads[2];
    void *failed;

    (void)state;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, answer_tag, &tags[i]);
    for (int round = 0; round < 400; round++) {
        struct ofp_operation send = tagged(OFP_TSEND, a.peer, tags[round % 2], &value, 8, 0);

        send.flags = OFP_INJECT;
        assert_int_equal(ofp_post(a.endpoint, &send, 1), 1);
        assert_true(is_done_in_time(request_trecv(a.endpoint, &value, 8, OFP_PEER_ANY, tags[round % 2] + 100)));
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

static void wait_until_somebody_sleeps(struct ofp_domain *handle)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    uint64_t deadline = ofpi_clock_read() + 5000000000ull;
    bool sleeps = false;

    while (!sleeps) {
        ofpi_lock_acquire(&domain->lock);
        sleeps = domain->leader;
        ofpi_lock_release(&domain->lock);
        assert_true(ofpi_clock_read() < deadline);
        sched_yield();
    }
}

/* A second one that waits, and goes before it would sleep, leaves the first what wakes it. */
static void test_a_short_wait_leaves_the_sleeper_its_wake_up(void **state)
{
    struct waiter waiter = {.tag = 100};
    struct ofp_operation send;
    uint64_t value = 0, began;
    pthread_t thread;

    (void)state;
    for (uint64_t round = 0; round < 5; round++) {
        ofp_request_t request = request_trecv(b.endpoint, &value, 8, OFP_PEER_ANY, 101);

        assert_true(request > 0);
        pthread_create(&thread, NULL, wait_for_tag, &waiter);
        wait_until_somebody_sleeps(b.domain);
        assert_int_equal(ofp_request_wait(request, 5000), 0);
        began = ofpi_clock_read();
        for (uint64_t tag = 100; tag <= 101; tag++) {
            send = tagged(OFP_TSEND, a.peer, tag, &round, 8, 0);
            send.flags = OFP_INJECT;
            assert_int_equal(ofp_post(a.endpoint, &send, 1), 1);
            ofp_domain_progress(a.domain);
            if (tag == 100)
                pthread_join(thread, NULL);
        }
        /* By itself a sleeper looks again after a second. */
        assert_true(ofpi_clock_read() - began < 500000000ull);
        assert_int_equal(waiter.result, 1);
        assert_int_equal(wait_request(request), 1);
        ofp_request_abandon(request, false);
    }
}

static void test_time_out_leaves_the_operation_running(void **state)
{
    uint64_t value = 0, sent = 5;
    ofp_request_t request = request_trecv(b.endpoint, &value, 8, OFP_PEER_ANY, 3);

    (void)state;
    assert_true(request > 0);
    assert_int_equal(ofp_request_wait(request, 2000000), 0);
    assert_int_equal(request_tsend(a.endpoint, &sent, 8, a.peer, 3), 0);
    ofp_domain_progress(a.domain);
    assert_int_equal(wait_request(request), 1);
    assert_int_equal(value, 5);
    ofp_request_abandon(request, false);
}

static void test_descriptor_becomes_readable(void **state)
{
    uint64_t value = 0, sent = 6;
    struct ofp_operation receive = tagged(OFP_TRECV, OFP_PEER_ANY, 3, &value, 8, 9);
    struct pollfd entry = {.fd = ofp_cq_fileno(b.cq), .events = POLLIN};
    struct ofp_completion row;

    (void)state;
    assert_int_equal(ofp_post(b.endpoint, &receive, 1), 1);
    assert_int_equal(ofp_cq_read(b.cq, &row, 1), 0);
    assert_int_equal(ofp_cq_arm(b.cq), 1);
    assert_int_equal(request_tsend(a.endpoint, &sent, 8, a.peer, 3), 0);
    ofp_domain_progress(a.domain);
    assert_int_equal(poll(&entry, 1, 5000), 1);
    row = next_completion(&b, &a);
    assert_int_equal(row.context, 9);
    assert_int_equal(ofp_cq_arm(b.cq), 1);
    assert_int_equal(poll(&entry, 1, 0), 0);
}

static int questions;

static int read_a_part(struct ofp_endpoint *endpoint)
{
    (void)endpoint;
    return 1;
}

static void note_expiry(struct ofp_timer *timer, uint64_t now)
{
    (void)timer;
    (void)now;
}

/* The deadline by which the sleeper would wake up was chosen before there was the timer. */
static void test_a_timer_that_is_started_later_wakes_a_sleeper(void **state)
{
    struct ofp_timer timer = {.deadline = ofpi_clock_read() + 20000000, .expired = note_expiry};
    struct pollfd entry = {.fd = ofp_cq_fileno(b.cq), .events = POLLIN};

    (void)state;
    assert_int_equal(ofp_cq_arm(b.cq), 1);
    assert_int_equal(ofpi_domain_enter((struct ofpi_domain *)b.domain), 0);
    ofpi_core.timer_start(b.domain, &timer);
    ofpi_domain_leave((struct ofpi_domain *)b.domain);
    assert_int_equal(poll(&entry, 1, 5000), 1);
    ofp_domain_progress(b.domain);
    assert_int_equal(timer.position, 0);
}

static bool count_question(struct ofp_endpoint *endpoint)
{
    (void)endpoint;
    questions++;
    return true;
}

/* A call of progress that has read something may have left more, of which no descriptor tells a second time. */
static void test_endpoints_that_had_work_are_asked_before_the_next_sleep(void **state)
{
    const struct ofp_endpoint_ops *before = b.endpoint->ops;
    struct ofp_endpoint_ops ops = *before;
    struct ofpi_domain *domain = (struct ofpi_domain *)b.domain;

    (void)state;
    questions = 0;
    ops.arm = count_question;
    b.endpoint->ops = &ops;
    assert_int_equal(ofp_cq_arm(b.cq), 1);
    assert_int_equal(questions, 1);
    ops.progress = read_a_part;
    assert_int_equal(ofpi_domain_enter(domain), 0);
    ofpi_domain_progress(domain, false);
    assert_true(ofpi_domain_arm(domain));
    assert_int_equal(questions, 2);
    b.endpoint->ops = before;
    ofpi_domain_disarm(domain);
    ofpi_domain_leave(domain);
}

static void test_notified_request_is_listed(void **state)
{
    uint64_t value = 0, sent = 6;
    ofp_request_t request = request_trecv(b.endpoint, &value, 8, OFP_PEER_ANY, 3), listed = 0;
    struct pollfd entry = {.fd = ofp_cq_fileno(b.cq), .events = POLLIN};

    (void)state;
    assert_int_equal(ofp_request_notify(request, false), 0);
    assert_int_equal(ofp_cq_arm(b.cq), 1);
    assert_int_equal(request_tsend(a.endpoint, &sent, 8, a.peer, 3), 0);
    ofp_domain_progress(a.domain);
    assert_int_equal(poll(&entry, 1, 5000), 1);
    while (ofp_cq_finished(b.cq, &listed, 1) == 0)
        ;
    assert_int_equal(listed, request);
    assert_int_equal(ofp_request_notify(request, false), 1);
    ofp_request_abandon(request, false);
}

static void *signal_queue(void *argument) { return (void *)(intptr_t)ofp_cq_signal(argument); }

static void test_signal_wakes_a_waiter(void **state)
{
    struct ofp_completion row;
    pthread_t thread;
    bool expired;
    int64_t result;

    (void)state;
    pthread_create(&thread, NULL, signal_queue, b.cq);
    do
        result = ofp_cq_wait(b.cq, &row, 1, 1, -1, &expired);
    while (result == 0);
    assert_int_equal(result, -ECANCELED);
    pthread_join(thread, NULL);
}

static void test_prepared_operations(void **state)
{
    uint64_t value = 0, sent = 1;
    struct ofp_operation send = tagged(OFP_TSEND, a.peer, 4, &sent, 8, 0);
    struct ofp_operation receive = tagged(OFP_TRECV, OFP_PEER_ANY, 4, &value, 8, 0);
    ofp_request_t ping = ofp_prepare(a.endpoint, &send), pong = ofp_prepare(b.endpoint, &receive);

    (void)state;
    assert_true(ping > 0 && pong > 0);
    for (sent = 1; sent < 50; sent++) {
        assert_int_equal(ofp_start(pong, 0, -1), 0);
        assert_int_equal(ofp_start(pong, 0, -1), -EBUSY);
        assert_int_equal(ofp_start(ping, 0, -1), 0);
        assert_int_equal(wait_request(ping), 1);
        ofp_domain_progress(a.domain);
        assert_int_equal(wait_request(pong), 1);
        assert_int_equal(value, sent);
    }
    ofp_request_abandon(ping, false);
    ofp_request_abandon(pong, false);
}

static void test_unknown_size_is_set_aside_and_claimed(void **state)
{
    char out[300], in[300];
    struct ofp_operation hold = tagged(OFP_TRECV, OFP_PEER_ANY, 8, NULL, 0, 0);
    struct ofp_completion completion;
    ofp_request_t request, other;

    (void)state;
    memset(out, 'h', sizeof(out));
    hold.flags = OFP_HOLD | OFP_CLAIM;
    request = request_start(b.endpoint, &hold);
    assert_true(request > 0);
    assert_int_equal(request_tsend(a.endpoint, out, sizeof(out), a.peer, 8), 0);
    ofp_domain_progress(a.domain);
    assert_int_equal(wait_request(request), 1);
    assert_int_equal(request_take(request, 0).length, sizeof(out));
    assert_int_equal(ofp_request_unclaim(request), 0);
    ofp_request_abandon(request, false);
    /* Back in its place: another receive of unknown size finds it. */
    other = request_start(b.endpoint, &hold);
    assert_int_equal(wait_request(other), 1);
    assert_int_equal(ofp_request_claim(other, OFP_REGION_PROCESS, (uint64_t)(uintptr_t)in, sizeof(in), &completion), 1);
    assert_int_equal(completion.length, sizeof(out));
    assert_memory_equal(in, out, sizeof(out));
    assert_int_equal(ofp_request_accept(other, false), 0);
    assert_int_equal(ofp_request_finished(other), -ESTALE);
}

/* The helper of b answers while no thread of the application calls into b. */
static void test_helper_makes_progress(void **state)
{
    static char out[1 << 20], in[1 << 20];
    ofp_request_t receive = request_trecv(b.endpoint, in, sizeof(in), OFP_PEER_ANY, 5);
    ofp_request_t send = request_tsend(a.endpoint, out, sizeof(out), a.peer, 5);

    (void)state;
    assert_true(receive > 0 && send > 0);
    assert_int_equal(wait_request(send), 1); /* announced: only the receiver's progress ends it */
    while (!ofp_request_finished(receive))
        usleep(100);
    ofp_request_abandon(send, false);
    ofp_request_abandon(receive, false);
}

static double cpu_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void test_idle_wait_uses_no_cpu(void **state)
{
    uint64_t value;
    ofp_request_t request = request_trecv(b.endpoint, &value, 8, OFP_PEER_ANY, 3);
    double before;

    (void)state;
    ofp_request_wait(request, 20000000);
    before = cpu_seconds();
    assert_int_equal(ofp_request_wait(request, 900000000), 0);
    assert_true(cpu_seconds() - before < 0.02);
    assert_int_equal(ofp_request_cancel(request), 0);
    assert_int_equal(ofp_request_finished(request), 2);
    ofp_request_abandon(request, false);
}

static void test_fork_leaves_dead_objects(void **state)
{
    struct ofp_operation receive = tagged(OFP_TRECV, OFP_PEER_ANY, 1, NULL, 0, 1);
    int status;
    pid_t child = fork();

    (void)state;
    if (child == 0)
        _exit(ofp_post(a.endpoint, &receive, 1) == -OFP_EFORKED && ofp_endpoint_close(a.endpoint, 0) == -OFP_EFORKED
                  ? 0
                  : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

#define WITH(open, test) {#test " " #open, test, open, close_both, NULL}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(open_auto, test_two_threads_exchange),
        WITH(open_manual, test_two_threads_exchange),
        WITH(open_auto, test_many_threads_wait_on_one_domain),
        WITH(open_manual, test_many_threads_wait_on_one_domain),
        WITH(open_auto, test_two_threads_of_a_domain_answer_in_turn),
        WITH(open_manual, test_two_threads_of_a_domain_answer_in_turn),
        WITH(open_manual, test_a_short_wait_leaves_the_sleeper_its_wake_up),
        WITH(open_manual, test_time_out_leaves_the_operation_running),
        WITH(open_auto, test_descriptor_becomes_readable),
        WITH(open_manual, test_descriptor_becomes_readable),
        WITH(open_manual, test_endpoints_that_had_work_are_asked_before_the_next_sleep),
        WITH(open_manual, test_a_timer_that_is_started_later_wakes_a_sleeper),
        WITH(open_auto, test_notified_request_is_listed),
        WITH(open_manual, test_notified_request_is_listed),
        WITH(open_manual, test_signal_wakes_a_waiter),
        WITH(open_manual, test_prepared_operations),
        WITH(open_manual, test_unknown_size_is_set_aside_and_claimed),
        WITH(open_auto, test_helper_makes_progress),
        WITH(open_auto, test_idle_wait_uses_no_cpu),
        WITH(open_manual, test_idle_wait_uses_no_cpu),
        WITH(open_manual, test_fork_leaves_dead_objects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
