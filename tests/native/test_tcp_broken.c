/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Servers that do not answer, or wrongly, peers that do not read, and peers that come back again and again: operations end in time,
 * the log says why, nothing piles up, and others are served.
 */
#include <dirent.h>

#include "test_tcp_fixture.h"

#define MILLISECOND UINT64_C(1000000)

static int setup(void **state)
{
    struct side *side = malloc(sizeof(*side));

    if (!side)
        return -1;
    setenv("OFIPY_CONNECT_TIMEOUT", "1", 1);
    tcp_side_open(side);
    unsetenv("OFIPY_CONNECT_TIMEOUT");
    *state = side;
    return 0;
}

static int setup_stock(void **state)
{
    int result;

    setenv("OFIPY_TCP_EXTENSION", "no", 1);
    result = setup(state);
    unsetenv("OFIPY_TCP_EXTENSION");
    return result;
}

static int teardown(void **state)
{
    struct side *side = *state;

    serves(side);
    side_close(side);
    free(side);
    return 0;
}

/* --------------------------------------------------------------------------------------------------------- the log */

static void forget_log(void)
{
    char provider[32], text[OFP_TEXT_MAX];
    int level;

    while (ofp_log_next(&level, provider, sizeof(provider), text, sizeof(text)))
        ;
}

/* It names the peer, and says this. */
static void log_says(const char *peer, const char *what)
{
    char provider[32], text[OFP_TEXT_MAX], all[4096] = "";
    int level;

    while (ofp_log_next(&level, provider, sizeof(provider), text, sizeof(text))) {
        if (level >= OFP_LOG_WARNING && strstr(text, peer) && strstr(text, what))
            return;
        strncat(all, text, sizeof(all) - strlen(all) - 1);
    }
    fail_msg("no word of '%s' from %s in: %s", what, peer, all);
}

/* ------------------------------------------------------------------------------------------------------- servers */

struct server {
    int fd;
    uint32_t peer;
    char name[32];
};

static struct server server_open(struct side *side, int backlog)
{
    struct server server = {.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof(address);

    assert_int_equal(bind(server.fd, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(server.fd, backlog), 0);
    assert_int_equal(getsockname(server.fd, (struct sockaddr *)&address, &length), 0);
    assert_int_equal(ofp_av_insert(side->av, &address, length, &server.peer), 0);
    snprintf(server.name, sizeof(server.name), "127.0.0.1:%u", ntohs(address.sin_port));
    return server;
}

/* Somebody connects: take the request, and say this in answer. */
static int server_answer(struct side *side, const struct server *server, const void *bytes, size_t length)
{
    uint8_t request[TCP_CONTROL_SIZE + TCP_RDM_SIZE];
    int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC);

    assert_true(fd >= 0);
    assert_true(raw_read(side, fd, request, sizeof(request)));
    if (length)
        raw_write(fd, bytes, length);
    return fd;
}

static void fill(const struct server *server, int *fds, int count)
{
    struct sockaddr_in address;
    socklen_t length = sizeof(address);

    assert_int_equal(getsockname(server->fd, (struct sockaddr *)&address, &length), 0);
    for (int i = 0; i < count; i++) {
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_true(connect(fds[i], (struct sockaddr *)&address, length) == 0 || errno == EINPROGRESS);
    }
}

/* One takes connections and says nothing, one begins an answer, one does not even take connections. */
static void test_servers_that_do_not_answer(void **state)
{
    struct side *side = *state;
    struct server servers[] = {server_open(side, 8), server_open(side, 8), server_open(side, 0)};
    uint64_t started = ofpi_clock_read();
    int fd, waiting[4];

    fill(&servers[2], waiting, 4);
    forget_log();
    for (unsigned i = 0; i < 3; i++)
        post(side, tagged(OFP_TSEND, servers[i].peer, 1, "x", 1, i));
    fd = server_answer(side, &servers[1], "\3\1\0\10\0\0\0\0\0\0\0", 11);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(next_completion(side, NULL).error, ETIMEDOUT);
        assert_in_range(ofpi_clock_read() - started, 900 * MILLISECOND, 4000 * MILLISECOND);
    }
    for (unsigned i = 0; i < 3; i++)
        log_says(servers[i].name, "did not answer within 1 s (OFIPY_CONNECT_TIMEOUT)");
    close(fd);
    for (unsigned i = 0; i < 3; i++)
        close(servers[i].fd);
    for (unsigned i = 0; i < 4; i++)
        close(waiting[i]);
}

static void test_wrong_answers(void **state)
{
    static const struct {
        uint8_t place, value;
        size_t length; /* that is said; the rest is silence, and the end */
        int error;
        const char *why;
    } answers[] = {
        {0, 2, 40, EPROTO, "broke the protocol: a control message of another version than 3"},
        {0, 'H', 40, EPROTO, "broke the protocol: a control message of another version than 3"},
        {1, 9, 40, EPROTO, "broke the protocol: a control message that cannot be"},
        {2, 2, 40, EPROTO, "broke the protocol: a control message that cannot be"},
        {1, TCP_CONNREQ, 40, ECONNREFUSED, "the peer speaks another protocol over tcp"},
        {3, 24, 56, ECONNREFUSED, "the peer speaks another protocol over tcp"},
        {0, 3, 39, ECONNREFUSED, "the peer ended the connection before it answered"},
        {0, 3, 0, ECONNREFUSED, "the peer ended the connection before it answered"},
    };
    struct side *side = *state;

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct server server = server_open(side, 8);
        struct tcp_control control = {.type = TCP_CONNRESP, .private_size = TCP_RDM_SIZE};
        uint8_t bytes[64] = {0};
        int fd;

        forget_log();
        tcp_control_encode(&control, bytes);
        bytes[answers[i].place] = answers[i].value;
        post(side, tagged(OFP_TSEND, server.peer, 1, "x", 1, 1));
        fd = server_answer(side, &server, bytes, answers[i].length);
        close(server.fd);
        shutdown(fd, SHUT_WR);
        assert_int_equal(next_completion(side, NULL).error, answers[i].error);
        if (answers[i].error == EPROTO)
            log_says(server.name, answers[i].why);
        else
            log_says("", answers[i].why);
        close(fd);
    }
}

/* ---------------------------------------------------------------------------------------------------------- reasons */

/* What breaks the protocol ends what waits for that peer, and the log says who did what. */
static void test_the_log_says_why(void **state)
{
    static const struct {
        struct tcp_header header;
        uint8_t place, value;
        const char *why;
    } wrong[] = {
        {{.op = TCP_MSG}, 1, 200, "an unknown operation"},
        {{.op = TCP_TAG}, 6, 17, "a header of impossible length"},
        {{.op = TCP_TAG}, 6, 32, "a header that is not as long as its contents"},
        {{.op = TCP_TAG}, 15, 0xff, "an impossible size"},
        {{.op = TCP_READ_RSP, .payload = 9}, 0, 3, "an answer to no read"},
        {{.op = TCP_DATA, .op_data = 9}, 0, 3, "the payload of a rendezvous that was not cleared"},
        {{.op = TCP_READ_REQ, .remote_count = 1, .remote = {{0, 8, 99}}}, 0, 3, "a key that no region has"},
    };
    struct side *side = *state;
    uint32_t peer = raw_peer(side);
    static char room[16];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        uint8_t bytes[TCP_HEADER_MAX] = {0};
        int fd = raw_meet(side);
        struct ofp_completion row;

        tcp_header_encode(&wrong[i].header, 0, false, bytes);
        forget_log();
        /* Its acknowledgement never comes. */
        post(side, (struct ofp_operation){.op = OFP_WRITE,
                                          .peer = peer,
                                          .flags = OFP_DELIVERY_COMPLETE,
                                          .offset = (uint64_t)(uintptr_t)room,
                                          .length = sizeof(room),
                                          .context = i});
        bytes[wrong[i].place] = wrong[i].value;
        raw_write(fd, bytes, sizeof(bytes));
        row = next_completion(side, NULL);
        assert_int_equal(row.context, i);
        assert_int_equal(row.error, EPROTO);
        raw_is_dropped(side, fd);
        log_says("127.0.0.1:1234 broke the protocol", wrong[i].why);
    }
}

/* -------------------------------------------------------------------------------------------------------- pile-ups */

static uint64_t completions(struct side *side)
{
    struct ofp_completion rows[64];
    int64_t count = ofp_cq_read(side->cq, rows, 64);

    assert_true(count >= 0);
    return (uint64_t)count;
}

/* It takes our connection, and reads nothing: posts are told to wait, and end with it. */
static void does_not_read(struct side *side, int fd)
{
    static char payload[1000];
    uint32_t peer = raw_peer(side);
    struct ofp_operation op = tagged(OFP_TSEND, peer, 1, payload, sizeof(payload), 1);
    uint64_t posted = 0, ended = 0, deadline = ofpi_clock_read() + PATIENCE;
    struct ofp_endpoint_statistics statistics;

    while (ofp_post(side->endpoint, &op, 1) == 1) {
        posted++;
        ended += completions(side);
        assert_true(posted < 200000);
    }
    assert_int_equal(ofp_endpoint_statistics(side->endpoint, &statistics), 0);
    assert_true(posted - ended <= 4096 && statistics.pending + statistics.backlog <= 4096);
    close(fd);
    while (ended < posted) {
        ended += completions(side);
        assert_true(ofpi_clock_read() < deadline);
    }
    ofp_domain_progress(side->domain);
    assert_int_equal(completions(side), 0);
    assert_int_equal(ended, posted);
}

static void test_a_stock_peer_that_does_not_read(void **state)
{
    struct side *side = *state;
    int fd = raw_meet(side);

    does_not_read(side, fd);
}

/* Of ofipy's own, and never gives credit: everything is announced, and nothing is asked for. */
static void test_a_peer_that_does_not_ask(void **state)
{
    struct side *side = *state;
    int fd = raw_meet_extended(side);

    raw_send(fd, (struct tcp_header){.op = TCP_HELLO}, NULL, 0);
    does_not_read(side, fd);
}

static int descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* One address, always another process: each takes the place of the one before. */
static void test_a_flood_of_returning_peers(void **state)
{
    struct side *side = *state;
    int fds[300], before = descriptors();
    struct ofp_endpoint_statistics statistics;
    uint64_t deadline = ofpi_clock_read() + PATIENCE;
    char byte;

    for (unsigned i = 0; i < 300; i++) {
        struct tcp_control control;
        struct tcp_rdm rdm;

        fds[i] = raw_meet_as(side, RAW_PORT, 1000 + i, 0, &control, &rdm);
        assert_int_equal(control.type, TCP_CONNRESP);
        raw_send(fds[i], (struct tcp_header){.op = TCP_TAG, .tag = 5, .payload = 100}, "cut", 3);
    }
    /* Ours, and theirs: one of each is left. */
    while (descriptors() > before + 301) {
        ofp_domain_progress(side->domain);
        assert_true(ofpi_clock_read() < deadline);
    }
    for (unsigned i = 0; i < 300; i++) {
        bool open_still = recv(fds[i], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;

        assert_int_equal(open_still, i == 299);
        close(fds[i]);
    }
    assert_int_equal(ofp_av_count(side->av), 1);
    assert_int_equal(ofp_endpoint_statistics(side->endpoint, &statistics), 0);
    assert_true(statistics.unexpected_bytes <= 100);
}

/* ---------------------------------------------------------------------------------------------------- failed writes */

/* The errno with which the next write fails; 0: it succeeds. */
static int write_error;

ssize_t __real_send(int fd, const void *bytes, size_t length, int flags);
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);

static bool write_fails(void)
{
    if (!write_error)
        return false;
    errno = write_error;
    write_error = 0;
    return true;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t length, int flags)
{
    return write_fails() ? -1 : __real_send(fd, bytes, length, flags);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
    return write_fails() ? -1 : __real_sendmsg(fd, message, flags);
}

/* The kernel has no memory for a message, but the socket can still be read: what has arrived is received, then all ends. */
static void test_a_write_fails_on_a_whole_socket(void **state)
{
    static char bytes[100000];
    struct side *side = *state;

    for (size_t length = 8; length <= sizeof(bytes); length = length == 8 ? sizeof(bytes) : 2 * length) {
        int fd = raw_meet(side);
        uint32_t peer = raw_peer(side);
        struct ofp_completion row;
        char in[4] = "";

        raw_send(fd, (struct tcp_header){.op = TCP_TAG, .tag = 5, .payload = 4}, "said", 4);
        write_error = ENOBUFS;
        post(side, tagged(OFP_TSEND, peer, 1, bytes, length, 1));
        post(side, tagged(OFP_TRECV, peer, 5, in, sizeof(in), 2));
        for (int i = 0; i < 2; i++) {
            row = next_completion(side, NULL);
            /* A short message is copied, so its send has ended before. */
            assert_int_equal(row.error, row.tag == 5 || length == 8 ? 0 : OFP_EPEERLOST);
        }
        assert_memory_equal(in, "said", 4);
        assert_int_equal(write_error, 0);
        raw_is_dropped(side, fd);
        close(fd);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_servers_that_do_not_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_log_says_why, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_stock_peer_that_does_not_read, setup_stock, teardown),
        cmocka_unit_test_setup_teardown(test_a_peer_that_does_not_ask, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_flood_of_returning_peers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_write_fails_on_a_whole_socket, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
