/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that are not read, since the core has no room or the peer reads no answers, and the end of their peers. */
#include <dirent.h>

#include "test_tcp_fixture.h"

#define LIMIT "100000"
#define LONG 60000 /* one fits, two do not */

static int setup(void **state)
{
    struct side *side = malloc(sizeof(*side));

    if (!side)
        return -1;
    setenv("OFIPY_UNEXPECTED_SIZE", LIMIT, 1);
    setenv("OFIPY_ANNOUNCEMENTS", "4", 1);
    tcp_side_open(side);
    unsetenv("OFIPY_UNEXPECTED_SIZE");
    unsetenv("OFIPY_ANNOUNCEMENTS");
    *state = side;
    return 0;
}

static int teardown(void **state)
{
    struct side *side = *state;

    serves(side);
    side_close(side);
    free(side);
    return 0;
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

static struct ofp_endpoint_statistics statistics_of(struct side *side)
{
    struct ofp_endpoint_statistics statistics;

    assert_int_equal(ofp_endpoint_statistics(side->endpoint, &statistics), 0);
    return statistics;
}

static void until_lost(struct side *side, uint64_t count)
{
    uint64_t deadline = ofpi_clock_read() + 2 * PATIENCE;

    while (statistics_of(side).peers_lost < count) {
        ofp_domain_progress(side->domain);
        assert_true(ofpi_clock_read() < deadline);
    }
}

static void raw_tagged(struct side *side, int fd, uint64_t tag)
{
    static const char payload[LONG] = "payload";

    raw_send(fd, (struct tcp_header){.op = TCP_TAG, .tag = tag, .payload = LONG}, payload, LONG);
    for (int i = 0; i < 20; i++)
        ofp_domain_progress(side->domain);
}

/* Many rounds before it: a connection that is busy is not watched by epoll. */
static int stalled(struct side *side, bool busy)
{
    int fd = raw_meet(side);
    char byte = 'x', room;

    for (int i = 0; busy && i < 500; i++) {
        post(side, tagged(OFP_TRECV, OFP_PEER_ANY, 9, &room, 1, 9));
        raw_send(fd, (struct tcp_header){.op = TCP_TAG, .tag = 9, .payload = 1}, &byte, 1);
        assert_int_equal(next_completion(side, NULL).error, 0);
    }
    raw_tagged(side, fd, 1);
    raw_tagged(side, fd, 2);
    assert_int_equal(statistics_of(side).unexpected_messages, 1);
    return fd;
}

static void hang_up(int fd, bool broken)
{
    struct linger linger = {.l_onoff = 1};

    if (broken)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    close(fd);
}

/* Its end is noticed, its descriptor is free; what was kept before can be received. */
static void test_the_peer_of_a_stalled_connection_ends(void **state)
{
    struct side *side = *state;
    static char room[LONG];

    for (int way = 0; way < 4; way++) {
        int before = descriptors();
        int fd = stalled(side, way & 1);

        hang_up(fd, way & 2);
        until_lost(side, (uint64_t)way + 1);
        ofp_domain_progress(side->domain);
        assert_int_equal(descriptors(), before);
        post(side, tagged(OFP_TRECV, OFP_PEER_ANY, 1, room, LONG, 1));
        assert_int_equal(next_completion(side, NULL).length, LONG);
        assert_int_equal(statistics_of(side).unexpected_messages, 0);
    }
}

/* Who hangs up has not taken back what it sent: a program that receives loses nothing. */
static void test_what_is_received_in_time_is_not_lost(void **state)
{
    struct side *side = *state;
    static char room[LONG];
    int fd = stalled(side, false);

    raw_tagged(side, fd, 3);
    hang_up(fd, false);
    for (uint64_t tag = 1; tag <= 3; tag++) {
        uint64_t until = ofpi_clock_read() + 600 * TCP_MILLISECOND;

        while (ofpi_clock_read() < until)
            ofp_domain_progress(side->domain);
        post(side, tagged(OFP_TRECV, OFP_PEER_ANY, tag, room, LONG, tag));
        assert_int_equal(next_completion(side, NULL).error, 0);
        assert_string_equal(room, "payload");
    }
    until_lost(side, 1);
}

/* While nobody looks at it either. */
static void test_a_program_that_sleeps_hears_of_it(void **state)
{
    struct side *side = *state;
    struct ofp_completion row;
    uint64_t deadline = ofpi_clock_read() + 2 * PATIENCE;
    bool expired;
    int fd = stalled(side, true);

    hang_up(fd, false);
    while (statistics_of(side).peers_lost == 0) {
        ofp_cq_wait(side->cq, &row, 1, 1, 100 * TCP_MILLISECOND, &expired);
        assert_true(ofpi_clock_read() < deadline);
    }
}

/* Announcements until they find no space in the socket: whatever follows, the end too, waits for the other side to read. */
static void fill_socket(struct side *side, int fd)
{
    struct tcp_header header = {.op = TCP_ANNOUNCE, .tag = 1, .length = LONG};
    uint8_t bytes[TCP_HEADER_MAX];
    size_t size = tcp_header_encode(&header, 0, false, bytes), at = 0;

    raw_send(fd, (struct tcp_header){.op = TCP_HELLO}, NULL, 0);
    for (int quiet = 0; quiet < 1000; quiet++) {
        ssize_t sent = send(fd, bytes + at, size - at, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (sent > 0) {
            at = (at + (size_t)sent) % size;
            quiet = 0;
        }
        ofp_domain_progress(side->domain);
    }
    assert_int_equal(statistics_of(side).announced_messages, 4);
}

/* The kernel of a process that has died repeats what found no space for half a minute. That is not waited for. */
static void test_an_end_that_finds_no_space_is_noticed(void **state)
{
    struct side *side = *state;
    int before = descriptors();
    int fd = raw_meet_extended(side);

    fill_socket(side, fd);
    hang_up(fd, false);
    until_lost(side, 1);
    ofp_domain_progress(side->domain);
    assert_int_equal(descriptors(), before);
}

/* A peer that lives is asked too: credit of no bytes, which changes nothing for it. */
static void test_a_peer_that_lives_is_asked_each_second(void **state)
{
    struct side *side = *state;
    int fd = raw_meet_extended(side);
    uint8_t bytes[TCP_HEADER_BASE + 8];

    fill_socket(side, fd);
    for (int i = 0; i < 2; i++) {
        struct tcp_header asked;

        assert_true(raw_read(side, fd, bytes, sizeof(bytes)));
        assert_null(tcp_header_decode(bytes, false, true, &asked));
        assert_int_equal(asked.op, TCP_CREDIT);
        assert_int_equal(asked.words[0], 0);
    }
    assert_int_equal(statistics_of(side).peers_lost, 0);
    close(fd);
    until_lost(side, 1);
}

/* It asks for more than it reads, and goes. A message of its that is half here holds nothing up then. */
static void test_a_peer_that_reads_no_answers_ends(void **state)
{
    struct side *side = *state;
    static char memory[1 << 16];
    struct ofp_region_attr attr = {.base = memory, .length = sizeof(memory), .access = OFP_ACCESS_REMOTE_READ};
    struct ofp_region_handle region;
    struct tcp_header header = {.op = TCP_READ_REQ, .remote_count = 1};
    uint8_t bytes[TCP_HEADER_MAX];
    size_t size;
    int before = descriptors();

    assert_int_equal(ofp_region_register(side->domain, &attr, &region), 0);
    header.remote[0] = (struct ofp_remote_segment){region.remote_base, sizeof(memory), region.key};
    size = tcp_header_encode(&header, 0, false, bytes);
    for (int way = 0; way < 2; way++) {
        int fd = raw_meet(side);

        for (int quiet = 0; quiet < 1000; quiet++) {
            if (send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size)
                quiet = 0;
            ofp_domain_progress(side->domain);
        }
        hang_up(fd, way);
        until_lost(side, (uint64_t)way + 1);
        ofp_domain_progress(side->domain);
        assert_int_equal(descriptors(), before);
    }
    assert_int_equal(ofp_region_close(side->domain, region.id), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_peer_of_a_stalled_connection_ends, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_received_in_time_is_not_lost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_program_that_sleeps_hears_of_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_end_that_finds_no_space_is_noticed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_peer_that_lives_is_asked_each_second, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_peer_that_reads_no_answers_ends, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
