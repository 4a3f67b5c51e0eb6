/* SPDX-License-Identifier: BSD-3-Clause */
/* What the sockets of connections are set to. */
#include "stream/socket.h"
#include "test_tcp_fixture.h"

#include <string.h>

static void congestion_control(int fd, char name[TCP_CONGESTION_CONTROL_MAX])
{
    socklen_t length = TCP_CONGESTION_CONTROL_MAX;

    memset(name, 0, TCP_CONGESTION_CONTROL_MAX);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length), 0);
}

/* What a connection from `own` to `peer` is set to, and what this system sets it to by itself. */
static void options(const char *own, const char *peer, const char *parameter, char set[TCP_CONGESTION_CONTROL_MAX],
                    char unset[TCP_CONGESTION_CONTROL_MAX])
{
    struct tcp_domain domain = {.user_timeout_ms = 30000};
    struct tcp_endpoint endpoint = {.domain = &domain, .address.v4 = {.sin_family = AF_INET}};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(peer)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    endpoint.address.v4.sin_addr.s_addr = inet_addr(own);
    strcpy(domain.congestion_control, parameter);
    congestion_control(fd, unset);
    tcp_socket_set_options(&endpoint, fd);
    tcp_socket_set_congestion_control(&endpoint, fd, &address, sizeof(address));
    congestion_control(fd, set);
    close(fd);
}

static void test_no_pacing_within_the_host(void **state)
{
    char set[TCP_CONGESTION_CONTROL_MAX], unset[TCP_CONGESTION_CONTROL_MAX];

    (void)state;
    options("127.0.0.1", "127.0.0.1", "", set, unset);
    assert_string_equal(set, "reno");
    options("192.0.2.1", "192.0.2.1", "", set, unset);
    assert_string_equal(set, "reno");
    options("192.0.2.1", "192.0.2.2", "", set, unset);
    assert_string_equal(set, unset);
}

static void test_the_parameter_is_for_all(void **state)
{
    char set[TCP_CONGESTION_CONTROL_MAX], unset[TCP_CONGESTION_CONTROL_MAX], other[TCP_CONGESTION_CONTROL_MAX];

    (void)state;
    options("192.0.2.1", "192.0.2.2", "reno", set, unset);
    assert_string_equal(set, "reno");
    options("127.0.0.1", "127.0.0.1", unset, other, unset);
    assert_string_equal(other, unset);
}

static void test_connections_have_the_options(void **state)
{
    struct side side;
    char name[TCP_CONGESTION_CONTROL_MAX];
    int raw, fd, keep_alive = 0;
    socklen_t length = sizeof(keep_alive);

    (void)state;
    tcp_side_open(&side);
    raw = raw_meet(&side);
    fd = OFP_CONTAINER_OF(tcp_endpoint_of(side.endpoint)->connections.next, struct tcp_connection, node)->stream.fd;
    congestion_control(fd, name);
    assert_string_equal(name, "reno");
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &keep_alive, &length), 0);
    assert_int_equal(keep_alive, 1);
    close(raw);
    side_close(&side);
}

static void test_an_unknown_name_is_an_error(void **state)
{
    static const char *const wrong[] = {"nobody's", "a name of more than fifteen bytes"};
    struct ofp_info info = fake_info(false);
    struct ofp_domain_attr attr = {0};
    struct ofp_domain *domain;
    char text[OFP_TEXT_MAX];

    (void)state;
    for (int i = 0; i < 2; i++) {
        setenv("OFIPY_TCP_CONGESTION_CONTROL", wrong[i], 1);
        assert_int_equal(ofp_domain_open(fake_provider(), &info, &attr, &domain, text, sizeof(text)), -EINVAL);
        assert_non_null(strstr(text, wrong[i]));
    }
    unsetenv("OFIPY_TCP_CONGESTION_CONTROL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_pacing_within_the_host),
        cmocka_unit_test(test_the_parameter_is_for_all),
        cmocka_unit_test(test_connections_have_the_options),
        cmocka_unit_test(test_an_unknown_name_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
