/* SPDX-License-Identifier: BSD-3-Clause */
/* The request of a connected endpoint whose opening fails: its listener has it as before. */
#include "test_tcp_listener.h"

#include <sys/epoll.h>

static int refused; /* the next additions to an epoll descriptor that fail */

int __real_epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event);

int __wrap_epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event)
{
    if (operation != EPOLL_CTL_ADD || refused == 0)
        return __real_epoll_ctl(epoll_fd, operation, fd, event);
    refused--;
    errno = ENOMEM;
    return -1;
}

static void test_a_request_stays_with_its_listener(void **state)
{
    struct ofp_endpoint_attr attr;
    struct node server, client;
    struct ofp_passive *passive;
    struct ofp_endpoint *here, *there;
    struct ofp_event event;
    char text[OFP_TEXT_MAX];

    (void)state;
    nodes_open(&server, &client);
    passive = listener_open(&server, 0, true);
    there = endpoint_open(&client, 0);
    assert_int_equal(ask(there, passive, "please"), 0);
    event = expect_event(&server, OFP_EVENT_CONNREQ, 0, "please");
    attr = (struct ofp_endpoint_attr){.tx_cq = server.cq, .rx_cq = server.cq, .eq = server.eq, .request = event.handle};
    refused = 1;
    assert_int_equal(ofp_endpoint_open(server.domain, &attr, &here, text, sizeof(text)), -ENOMEM);
    assert_int_equal(refused, 0);
    here = endpoint_open(&server, event.handle);
    assert_int_equal(ofp_accept(here, "yes", 3), 0);
    expect_event(&server, OFP_EVENT_CONNECTED, 0, "");
    expect_event(&client, OFP_EVENT_CONNECTED, 0, "yes");
    assert_int_equal(ofp_endpoint_close(there, SECOND), 0);
    expect_event(&server, OFP_EVENT_SHUTDOWN, 0, "");
    assert_int_equal(ofp_endpoint_close(here, SECOND), 0);
    assert_int_equal(ofp_passive_close(passive), 0);
    node_close(&server);
    node_close(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_request_stays_with_its_listener)};

    setenv("OFIPY_TCP_INTERFACE", "lo", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
