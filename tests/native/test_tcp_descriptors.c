/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that have copies elsewhere: in forked children, and in processes that are being started. */
#include "test_tcp_fixture.h"

#include <fcntl.h>
#include <sys/wait.h>

static struct tcp_endpoint *endpoint_of(struct side *side) { return tcp_endpoint_of(side->endpoint); }

/* The end of the raw connection that is the endpoint's. */
static struct tcp_connection *only_connection(struct side *side)
{
    struct tcp_endpoint *endpoint = endpoint_of(side);

    assert_ptr_equal(endpoint->connections.next, endpoint->connections.previous);
    return OFP_CONTAINER_OF(endpoint->connections.next, struct tcp_connection, node);
}

static void expect_message(struct side *side, int fd)
{
    uint8_t byte = 0;

    post(side, tagged(OFP_TRECV, OFP_PEER_ANY, 5, &byte, 1, 1));
    raw_send(fd, (struct tcp_header){.op = TCP_TAG, .tag = 5, .payload = 1}, "x", 1);
    assert_int_equal(next_completion(side, NULL).error, 0);
    assert_int_equal(byte, 'x');
}

/* Exit status of a child that has nothing of its parent's, and uses endpoints of its own. */
static int child(const int *parents, int count, struct side *parent)
{
    struct ofp_operation send = tagged(OFP_TSEND, 0, 1, "x", 1, 1);
    struct side own;
    int fd;

    for (int i = 0; i < count; i++)
        if (fcntl(parents[i], F_GETFD) != -1)
            return 1;
    if (ofp_post(parent->endpoint, &send, 1) != -OFP_EFORKED)
        return 2;
    tcp_side_open(&own);
    fd = raw_meet(&own);
    expect_message(&own, fd);
    side_close(&own);
    return 0;
}

static void test_a_child_has_no_copies(void **state)
{
    struct side side;
    int raw, status, fds[3];
    pid_t pid;

    (void)state;
    tcp_side_open(&side);
    raw = raw_meet(&side);
    fds[0] = endpoint_of(&side)->listener;
    fds[1] = endpoint_of(&side)->poller->epoll_fd;
    fds[2] = only_connection(&side)->stream.fd;
    for (int i = 0; i < 3; i++)
        assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(child(fds, 3, &side));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    /* Nothing that the child did, or its end, has reached the peer. */
    expect_message(&side, raw);
    assert_int_equal(recv(raw, &status, 1, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    side_close(&side);
    close(raw);
}

/* As in the moment before a child has closed its copies: epoll must not tell of a connection that is no more. */
static void test_a_copy_outlives_the_connection(void **state)
{
    struct side side;
    int raw, copy;

    (void)state;
    tcp_side_open(&side);
    raw = raw_meet(&side);
    copy = dup(only_connection(&side)->stream.fd);
    raw_send(raw, (struct tcp_header){.op = TCP_HELLO}, NULL, 0);
    while (!ofp_list_empty(&endpoint_of(&side)->connections))
        ofp_domain_progress(side.domain);
    /* Its memory is somebody else's by now. */
    raw_write(raw, "still here", 10);
    for (int i = 0; i < 10; i++)
        ofp_domain_progress(side.domain);
    close(copy);
    close(raw);
    side_close(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_child_has_no_copies),
        cmocka_unit_test(test_a_copy_outlives_the_connection),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
