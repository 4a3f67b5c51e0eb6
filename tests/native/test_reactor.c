/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/reactor.h"

enum { BELLS = 8 };

/* An eventfd with its watch; `fired` counts its callbacks. */
struct bell {
    struct ofp_watch watch;
    uint32_t events;
    int fired;
};

static struct ofpi_reactor reactor;
static struct bell bells[BELLS];

static void count(struct ofp_watch *watch, uint32_t events)
{
    struct bell *bell = OFP_CONTAINER_OF(watch, struct bell, watch);

    bell->fired++;
    bell->events = events;
}

static void ring(struct bell *bell)
{
    uint64_t one = 1;

    assert_int_equal(write(bell->watch.fd, &one, sizeof(one)), sizeof(one));
}

static int open_reactor(void **state)
{
    (void)state;
    assert_int_equal(ofpi_reactor_open(&reactor), 0);
    for (int i = 0; i < BELLS; i++) {
        bells[i] = (struct bell){.watch = {.events = EPOLLIN, .ready = count}};
        bells[i].watch.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        assert_true(bells[i].watch.fd >= 0);
        assert_int_equal(ofpi_reactor_add(&reactor, &bells[i].watch), 0);
    }
    return 0;
}

static int close_reactor(void **state)
{
    (void)state;
    for (int i = 0; i < BELLS; i++)
        close(bells[i].watch.fd);
    ofpi_reactor_close(&reactor);
    return 0;
}

static bool readable(int fd, int milliseconds)
{
    struct pollfd entry = {.fd = fd, .events = POLLIN};

    return poll(&entry, 1, milliseconds) == 1;
}

static void test_calls_those_that_are_ready(void **state)
{
    (void)state;
    assert_int_equal(ofpi_reactor_poll(&reactor), 0);
    assert_false(readable(reactor.epoll_fd, 0));
    ring(&bells[1]);
    ring(&bells[5]);
    assert_true(readable(reactor.epoll_fd, 0));
    assert_int_equal(ofpi_reactor_poll(&reactor), 2);
    for (int i = 0; i < BELLS; i++)
        assert_int_equal(bells[i].fired, i == 1 || i == 5);
    assert_int_equal(bells[1].events, EPOLLIN);
}

static void test_modify_changes_the_events(void **state)
{
    (void)state;
    bells[0].watch.events = EPOLLOUT;
    assert_int_equal(ofpi_reactor_update(&reactor, &bells[0].watch), 0);
    ring(&bells[0]);
    assert_int_equal(ofpi_reactor_poll(&reactor), 1);
    assert_int_equal(bells[0].events, EPOLLOUT);
}

static void test_second_add_is_refused(void **state)
{
    (void)state;
    assert_int_equal(ofpi_reactor_add(&reactor, &bells[0].watch), -EEXIST);
    assert_int_equal(reactor.watch_count, BELLS);
    ofpi_reactor_remove(&reactor, &bells[0].watch);
    ofpi_reactor_remove(&reactor, &bells[0].watch);
    assert_int_equal(reactor.watch_count, BELLS - 1);
}

static void remove_all(struct ofp_watch *watch, uint32_t events)
{
    count(watch, events);
    for (int i = 0; i < BELLS; i++)
        ofpi_reactor_remove(&reactor, &bells[i].watch);
}

/* Whichever comes first takes all out of the batch, itself included. */
static void test_removal_inside_a_callback(void **state)
{
    int fired = 0;

    (void)state;
    for (int i = 0; i < BELLS; i++) {
        bells[i].watch.ready = remove_all;
        ring(&bells[i]);
    }
    assert_int_equal(ofpi_reactor_poll(&reactor), 1);
    for (int i = 0; i < BELLS; i++)
        fired += bells[i].fired;
    assert_int_equal(fired, 1);
    assert_int_equal(reactor.watch_count, 0);
    assert_int_equal(ofpi_reactor_poll(&reactor), 0);
}

static void remove_and_add_next(struct ofp_watch *watch, uint32_t events)
{
    struct bell *bell = OFP_CONTAINER_OF(watch, struct bell, watch);
    struct bell *other = bell == &bells[0] ? &bells[1] : &bells[0];

    count(watch, events);
    ofpi_reactor_remove(&reactor, &other->watch);
    assert_int_equal(ofpi_reactor_add(&reactor, &other->watch), 0);
}

/* A watch that comes back is a new one: its turn is the next poll. */
static void test_removed_and_added_again_waits_for_the_next_poll(void **state)
{
    (void)state;
    bells[0].watch.ready = bells[1].watch.ready = remove_and_add_next;
    ring(&bells[0]);
    ring(&bells[1]);
    assert_int_equal(ofpi_reactor_poll(&reactor), 1);
    assert_int_equal(bells[0].fired + bells[1].fired, 1);
}

static void test_deadline_makes_the_descriptor_readable(void **state)
{
    uint64_t soon = ofpi_clock_read() + 1000000;

    (void)state;
    ofpi_reactor_arm_deadline(&reactor, soon);
    assert_true(readable(reactor.epoll_fd, 5000));
    assert_true(ofpi_clock_read() >= soon);
    assert_int_equal(ofpi_reactor_poll(&reactor), 1);
    assert_int_equal(reactor.armed_deadline, UINT64_MAX);
    assert_false(readable(reactor.epoll_fd, 0));
}

static void test_deadline_in_the_past_and_none(void **state)
{
    (void)state;
    ofpi_reactor_arm_deadline(&reactor, 0);
    assert_true(readable(reactor.epoll_fd, 5000));
    ofpi_reactor_arm_deadline(&reactor, UINT64_MAX);
    assert_false(readable(reactor.epoll_fd, 0));
    /* Armed again after it expired: the same value must not be mistaken for unchanged. */
    ofpi_reactor_arm_deadline(&reactor, 1);
    assert_true(readable(reactor.epoll_fd, 5000));
    ofpi_reactor_poll(&reactor);
    ofpi_reactor_arm_deadline(&reactor, 1);
    assert_true(readable(reactor.epoll_fd, 5000));
}

static void test_nests_in_another_epoll(void **state)
{
    struct epoll_event event = {.events = EPOLLIN};
    int outer = epoll_create1(EPOLL_CLOEXEC);

    (void)state;
    assert_int_equal(epoll_ctl(outer, EPOLL_CTL_ADD, reactor.epoll_fd, &event), 0);
    assert_false(readable(outer, 0));
    ring(&bells[3]);
    assert_true(readable(outer, 0));
    close(outer);
}

static void test_more_ready_than_one_batch(void **state)
{
    enum { MANY = 100 };
    static struct bell many[MANY];
    int fired = 0;

    (void)state;
    for (int i = 0; i < MANY; i++) {
        many[i] = (struct bell){.watch = {.events = EPOLLIN, .ready = count}};
        many[i].watch.fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
        assert_int_equal(ofpi_reactor_add(&reactor, &many[i].watch), 0);
    }
    /* Level triggered and served in turn: a few rounds reach every one. */
    for (int round = 0; round < MANY; round++)
        ofpi_reactor_poll(&reactor);
    for (int i = 0; i < MANY; i++) {
        fired += many[i].fired > 0;
        ofpi_reactor_remove(&reactor, &many[i].watch);
        close(many[i].watch.fd);
    }
    assert_int_equal(fired, MANY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_calls_those_that_are_ready, open_reactor, close_reactor),
        cmocka_unit_test_setup_teardown(test_modify_changes_the_events, open_reactor, close_reactor),
        cmocka_unit_test_setup_teardown(test_second_add_is_refused, open_reactor, close_reactor),
        cmocka_unit_test_setup_teardown(test_removal_inside_a_callback, open_reactor, close_reactor),
        cmocka_unit_test_setup_teardown(test_removed_and_added_again_waits_for_the_next_poll, open_reactor,
                                        close_reactor),
        cmocka_unit_test_setup_teardown(test_deadline_makes_the_descriptor_readable, open_reactor, close_reactor),
        cmocka_unit_test_setup_teardown(test_deadline_in_the_past_and_none, open_reactor, close_reactor),
        cmocka_unit_test_setup_teardown(test_nests_in_another_epoll, open_reactor, close_reactor),
        cmocka_unit_test_setup_teardown(test_more_ready_than_one_batch, open_reactor, close_reactor),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
