/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer with several addresses: in which order they are tried, and which is taken. */
#include "address/order.h"
#include "connection/race.h"
#include "identity_ear.h"
#include "peer/peer_find.h"
#include "test_tcp_keys.h"

/* ------------------------------------------------------------------------------------------------------------- order */

static union tcp_address parse(const char *ip)
{
    union tcp_address address = {.any.sa_family = strchr(ip, ':') ? AF_INET6 : AF_INET};
    size_t length;

    assert_int_equal(inet_pton(address.any.sa_family, ip, (void *)(uintptr_t)tcp_address_get_ip(&address, &length)), 1);
    return address;
}

#define MOST 5

static void test_order(void **state)
{
    static const struct {
        const char *own[MOST];
        uint8_t prefixes[MOST];
        const char *addresses[MOST], *order[MOST];
    } cases[] = {
        /* In a network of ours, however late it is named. */
        {{"10.1.0.7", "192.168.5.2"}, {16, 24}, {"10.9.0.1", "192.168.5.9"}, {"192.168.5.9", "10.9.0.1"}},
        /* The longest common prefix. */
        {{"10.1.0.7"}, {24}, {"192.168.5.9", "10.9.0.1", "10.1.3.1"}, {"10.1.3.1", "10.9.0.1", "192.168.5.9"}},
        /* Equals as the peer names them; of another family last. */
        {{"10.1.0.7"}, {24}, {"2001:db8::1", "172.20.0.1", "172.20.0.2"}, {"172.20.0.1", "172.20.0.2", "2001:db8::1"}},
        {{"10.1.0.7", "2001:db8::7"}, {24, 64}, {"192.0.2.1", "2001:db8::1"}, {"2001:db8::1", "192.0.2.1"}},
        /* A bridge for containers is on this host as well, and not the peer. */
        {{"10.1.0.7", "172.17.0.1"}, {24, 16}, {"172.17.0.1", "192.0.2.1"}, {"192.0.2.1"}},
        /* On this host all are ours. */
        {{"10.1.0.7", "172.17.0.1"}, {24, 16}, {"172.17.0.1", "10.1.0.7"}, {"172.17.0.1", "10.1.0.7"}},
        {{NULL}, {0}, {"192.0.2.1", "192.0.2.2"}, {"192.0.2.1", "192.0.2.2"}},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tcp_interface own[MOST] = {0};
        union tcp_address addresses[MOST];
        uint32_t order[MOST], count = 0, kept, expected = 0;
        int own_count = 0;

        for (; own_count < MOST && cases[i].own[own_count]; own_count++) {
            own[own_count].address = parse(cases[i].own[own_count]);
            own[own_count].prefix = cases[i].prefixes[own_count];
        }
        for (; count < MOST && cases[i].addresses[count]; count++)
            addresses[count] = parse(cases[i].addresses[count]);
        kept = tcp_addresses_sort(addresses, count, own, own_count, order);
        for (; expected < MOST && cases[i].order[expected]; expected++)
            assert_string_equal(cases[i].addresses[order[expected]], cases[i].order[expected]);
        assert_int_equal(kept, expected);
    }
}

/* -------------------------------------------------------------------------------------------------------------- race */

/* In the place of a vector that knows several addresses of one peer. */
static void gets_also(struct side *side, const union tcp_address *addresses, struct ofp_other_address *others,
                      uint32_t count)
{
    struct ofp_peer *peer;
    int error;

    peer = &ofpi_peer_get((struct ofpi_endpoint *)side->endpoint, side->peer, &error)->base;
    for (uint32_t i = 0; i < count; i++)
        others[i] = (struct ofp_other_address){&addresses[i], tcp_address_get_length(&addresses[i])};
    peer->others = others;
    peer->other_count = count;
}

static union tcp_address at(const char *ip, uint16_t port)
{
    union tcp_address address = parse(ip);

    tcp_address_set_port(&address, port);
    return address;
}

static uint32_t insert(struct side *side, const union tcp_address *address)
{
    uint32_t index;

    assert_int_equal(ofp_av_insert(side->av, address, tcp_address_get_length(address), &index), 0);
    return index;
}

/* Who is connected to there hears nothing, and connects neither. */
static int silent_at(union tcp_address *address, int clients[64])
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = sizeof(*address);

    *address = at("127.0.0.1", 0);
    assert_int_equal(bind(fd, &address->any, sizeof(address->v4)), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, &address->any, &length), 0);
    for (int i = 0; i < 64; i++) {
        clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        connect(clients[i], &address->any, sizeof(address->v4));
    }
    usleep(20000);
    return fd;
}

/* Of some that refuse, or say nothing, the one is found where the peer is; and found gone when it is. */
static void reach(bool silent, const char *key)
{
    struct side a, b;
    union tcp_address first, others[2];
    struct ofp_other_address list[2];
    char reason[OFP_TEXT_MAX];
    int clients[64], fd = -1, error;
    uint64_t begin;
    uint8_t in;

    open_with(&a, key);
    open_with(&b, key);
    listen_to(&a, &ears[0]);
    listen_to(&b, &ears[1]);
    others[1] = address_of(&b);
    others[0] = at("127.0.0.1", 9);
    first = at("127.0.0.1", 10);
    if (silent)
        fd = silent_at(&first, clients);
    a.peer = insert(&a, &first);
    gets_also(&a, others, list, 2);
    begin = ofpi_clock_read();
    assert_int_equal(talk(&a, &b, reason), 0);
    assert_in_range(ofpi_clock_read() - begin, silent ? TCP_RACE_PAUSE : 0, 4 * TCP_RACE_PAUSE);
    assert_int_equal(ears[0].answers, 1);
    assert_memory_equal(ears[0].answered_by, b.endpoint->identity, OFP_IDENTITY_SIZE);
    /* What is at the other addresses says nothing about it. */
    assert_int_equal(tcp_peer_of(&ofpi_peer_get((struct ofpi_endpoint *)a.endpoint, a.peer, &error)->base)->reached, 2);
    post(&a, tagged(OFP_TRECV, a.peer, 5, &in, 1, 9));
    side_close(&b);
    assert_int_equal(next_completion(&a, NULL).error, OFP_EPEERLOST);
    if (silent) {
        for (int i = 0; i < 64; i++)
            close(clients[i]);
        close(fd);
    }
    side_close(&a);
}

static void test_refusals(void **state)
{
    (void)state;
    reach(false, NULL);
    reach(false, "the key of these tests");
}

static void test_silence(void **state)
{
    (void)state;
    reach(true, NULL);
}

/* Somebody else is at the nearest: the next one counts. */
static const uint8_t *meant;

static int only_who_is_meant(struct ofp_peer *peer, const uint8_t *identity, char *text, size_t text_size)
{
    (void)peer;
    snprintf(text, text_size, "somebody else has its address");
    return memcmp(identity, meant, OFP_IDENTITY_SIZE) ? -ECONNREFUSED : 0;
}

static void test_somebody_else(void **state)
{
    struct side a, b, other;
    union tcp_address first, others[1];
    struct ofp_other_address list[1];
    char reason[OFP_TEXT_MAX];
    static const uint8_t nobody[OFP_IDENTITY_SIZE];

    (void)state;
    for (int keyed = 0; keyed < 2; keyed++) {
        const char *key = keyed ? "the key of these tests" : NULL;
        uint64_t deadline = ofpi_clock_read() + PATIENCE;

        open_with(&a, key);
        open_with(&b, key);
        open_with(&other, key);
        listen_to(&a, &ears[0]);
        ears[0].services.peer_identified = only_who_is_meant;
        first = address_of(&other);
        others[0] = address_of(&b);
        a.peer = insert(&a, &first);
        gets_also(&a, others, list, 1);
        meant = b.endpoint->identity;
        {
            uint8_t in = 0, out = 1;
            struct ofp_completion row;

            post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 1, &in, 1, 2));
            post(&a, tagged(OFP_TSEND, a.peer, 1, &out, 1, 1));
            while (ofp_cq_read(a.cq, &row, 1) != 1) {
                ofp_domain_progress(other.domain);
                ofp_domain_progress(b.domain);
                assert_true(ofpi_clock_read() < deadline);
            }
            assert_int_equal(row.error, 0);
            assert_int_equal(next_completion(&b, &a).error, 0);
            assert_int_equal(in, 1);
        }
        side_close(&b);
        side_close(&a);
        /* Where nobody is meant there is an end. */
        open_with(&a, key);
        listen_to(&a, &ears[0]);
        ears[0].services.peer_identified = only_who_is_meant;
        a.peer = insert(&a, &first);
        others[0] = first;
        gets_also(&a, others, list, 1);
        meant = nobody;
        assert_int_equal(talk(&a, &other, reason), ECONNREFUSED);
        assert_non_null(strstr(reason, "somebody else"));
        side_close(&a);
        side_close(&other);
    }
}

static void test_nobody_anywhere(void **state)
{
    struct side a, b;
    union tcp_address first = at("127.0.0.1", 10), others[2] = {at("127.0.0.2", 10), at("127.0.0.1", 9)};
    struct ofp_other_address list[2];
    char reason[OFP_TEXT_MAX];

    (void)state;
    open_with(&a, NULL);
    open_with(&b, NULL);
    a.peer = insert(&a, &first);
    gets_also(&a, others, list, 2);
    assert_int_equal(talk(&a, &b, reason), ECONNREFUSED);
    assert_non_null(strstr(reason, "2 other addresses"));
    side_close(&a);
    side_close(&b);
}

/* Closed in the middle: no descriptor is left. */
static void test_a_close_in_the_middle(void **state)
{
    struct side a;
    union tcp_address first, others[1];
    struct ofp_other_address list[1];
    int clients[64], fd = silent_at(&first, clients), before = dup(fd), after;
    uint8_t out = 1;

    (void)state;
    close(before);
    open_with(&a, NULL);
    others[0] = first;
    a.peer = insert(&a, &first);
    gets_also(&a, others, list, 1);
    post(&a, tagged(OFP_TSEND, a.peer, 1, &out, 1, 1));
    for (uint64_t until = ofpi_clock_read() + 2 * TCP_RACE_PAUSE; ofpi_clock_read() < until;)
        ofp_domain_progress(a.domain);
    side_close(&a);
    after = dup(fd);
    assert_int_equal(after, before);
    close(after);
    for (int i = 0; i < 64; i++)
        close(clients[i]);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),           cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_silence),         cmocka_unit_test(test_somebody_else),
        cmocka_unit_test(test_nobody_anywhere), cmocka_unit_test(test_a_close_in_the_middle),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
