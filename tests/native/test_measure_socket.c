/* SPDX-License-Identifier: BSD-3-Clause */
/* The loops over a bare socket: what they move, and that a broken connection ends them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ofipy/measure.h"

#define LENGTH 300000 /* more than a socket holds, so that both sides meet its end */
#define COUNT 9

typedef int64_t loop_fn(const struct ofp_measure_socket_attr *attr);

struct side {
    loop_fn *loop;
    struct ofp_measure_socket_attr attr;
    uint64_t nanoseconds[COUNT];
    int64_t result;
};

static char out[2][LENGTH], in[2][LENGTH];

static int open_sides(void **state)
{
    static struct side sides[2];
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds))
        return -1;
    for (int i = 0; i < 2; i++) {
        memset(out[i], i + 1, LENGTH);
        memset(in[i], 0, LENGTH);
        sides[i] = (struct side){.attr = {.fd = fds[i],
                                          .first = i == 0,
                                          .send_buffer = out[i],
                                          .receive_buffer = in[i],
                                          .length = LENGTH,
                                          .iterations = COUNT}};
    }
    *state = sides;
    return 0;
}

static int close_sides(void **state)
{
    struct side *sides = *state;

    close(sides[0].attr.fd);
    close(sides[1].attr.fd);
    return 0;
}

static void *run(void *argument)
{
    struct side *side = argument;

    side->result = side->loop(&side->attr);
    return NULL;
}

static void run_both(struct side *sides, loop_fn *loop)
{
    pthread_t second;

    sides[0].loop = sides[1].loop = loop;
    assert_int_equal(pthread_create(&second, NULL, run, &sides[1]), 0);
    run(&sides[0]);
    pthread_join(second, NULL);
    assert_true(sides[0].result > 0);
    assert_true(sides[1].result > 0);
}

static void test_pingpong(void **state)
{
    struct side *sides = *state;

    sides[0].attr.nanoseconds = sides[0].nanoseconds;
    run_both(sides, ofp_measure_socket_pingpong);
    assert_memory_equal(in[0], out[1], LENGTH);
    assert_memory_equal(in[1], out[0], LENGTH);
    for (int i = 0; i < COUNT; i++)
        assert_true(sides[0].nanoseconds[i] > 0);
}

static void test_stream(void **state)
{
    struct side *sides = *state;
    char rest;

    run_both(sides, ofp_measure_socket_stream);
    assert_memory_equal(in[1], out[0], LENGTH);
    assert_int_equal(recv(sides[0].attr.fd, &rest, 1, 0), -1);
    assert_int_equal(recv(sides[1].attr.fd, &rest, 1, 0), -1);
}

static void test_broken_connection(void **state)
{
    struct side *sides = *state;

    shutdown(sides[1].attr.fd, SHUT_RDWR);
    assert_int_equal(ofp_measure_socket_stream(&sides[0].attr), -EPIPE);
    assert_int_equal(ofp_measure_socket_pingpong(&sides[0].attr), -EPIPE);
    sides[0].attr.first = false;
    assert_int_equal(ofp_measure_socket_stream(&sides[0].attr), -ECONNRESET);
    assert_int_equal(ofp_measure_socket_pingpong(&sides[0].attr), -ECONNRESET);
}

static void test_empty_messages_are_refused(void **state)
{
    struct side *sides = *state;

    sides[0].attr.length = 0;
    assert_int_equal(ofp_measure_socket_stream(&sides[0].attr), -EINVAL);
    assert_int_equal(ofp_measure_socket_pingpong(&sides[0].attr), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pingpong, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_stream, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_broken_connection, open_sides, close_sides),
        cmocka_unit_test_setup_teardown(test_empty_messages_are_refused, open_sides, close_sides),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
