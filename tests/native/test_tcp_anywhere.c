/* SPDX-License-Identifier: BSD-3-Clause */
/* Where endpoints listen: everywhere, at one address, or nowhere, when nobody asked for it. */
#define ofp_provider_entry entry_of_these_tests
#include "address/interface.h"
#include "identity_ear.h"
#include "test_tcp_keys.h"
#include "base/page.h"
#include "object/endpoint.h"
#include "peer/peer_find.h"
#undef ofp_provider_entry

#define KEY "the key of these tests"

/* ------------------------------------------------------------------- as an endpoint that is made of several opens them */

extern const struct ofp_provider *entry_of_tcp(const struct ofp_core *core) __asm__("ofp_provider_entry");

static const struct ofp_provider *original;
static bool if_asked;

static int open_if_asked(struct ofp_endpoint *endpoint, const char *service, char *text, size_t text_size)
{
    endpoint->listens_if_asked = if_asked;
    return original->endpoint_ops(endpoint->info)->open(endpoint, service, text, text_size);
}

static const struct ofp_endpoint_ops *endpoint_ops(const struct ofp_info *info)
{
    static struct ofp_endpoint_ops ops;

    ops = *original->endpoint_ops(info);
    ops.open = open_if_asked;
    return &ops;
}

const struct ofp_provider *entry_of_these_tests(const struct ofp_core *core)
{
    static struct ofp_provider ours;

    original = entry_of_tcp(core);
    ours = *original;
    ours.endpoint_ops = endpoint_ops;
    return &ours;
}

/* ------------------------------------------------------------------------------------------------------------ helpers */

static void open_at(struct side *side, const char *interface, const char *key, bool asks)
{
    setenv("OFIPY_INTERFACE", interface, 1);
    unsetenv("OFIPY_TCP_INTERFACE");
    if_asked = asks;
    side_open_with(side, key);
    if_asked = false;
}

static bool listens_at(struct side *side, const char *ip)
{
    union tcp_address address = address_of(side);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), result;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(tcp_address_get_port(&address))};

    inet_pton(AF_INET, ip, &to.sin_addr);
    result = connect(fd, (struct sockaddr *)&to, sizeof(to));
    close(fd);
    return result == 0;
}

/* Into the vector of `side`, as this and the other's port. */
static uint32_t insert_as(const char *ip, struct side *side, struct side *other)
{
    union tcp_address address = address_of(other);
    struct sockaddr_in near = {.sin_family = AF_INET, .sin_port = htons(tcp_address_get_port(&address))};
    uint32_t index;

    inet_pton(AF_INET, ip, &near.sin_addr);
    assert_int_equal(ofp_av_insert(side->av, &near, sizeof(near), &index), 0);
    return index;
}

/* ---------------------------------------------------------------------------------------------------------- where it is */

static void test_everywhere(void **state)
{
    struct side side;
    union tcp_address address, others[TCP_INTERFACES_MAX];
    size_t length;
    int count = 0, result;

    (void)state;
    open_at(&side, "any", NULL, false);
    address = address_of(&side);
    assert_false(tcp_address_is_any(&address));
    assert_true(tcp_address_get_port(&address));
    assert_true(listens_at(&side, "127.0.0.1"));
    assert_true(listens_at(&side, "127.0.0.2"));
    do {
        length = sizeof(others[count]);
        memset(&others[count], 0, sizeof(others[count]));
        result = side.endpoint->ops->name_also(side.endpoint, (uint32_t)count, &others[count], &length);
        if (result)
            break;
        assert_int_equal(length, tcp_address_get_length(&others[count]));
        assert_int_equal(tcp_address_get_port(&others[count]), tcp_address_get_port(&address));
        assert_false(tcp_address_is_loopback(&others[count]));
        assert_false(tcp_address_has_same_ip(&others[count], &address));
    } while (++count < TCP_INTERFACES_MAX);
    assert_int_equal(result, -ENOENT);
    length = 3;
    assert_int_equal(side.endpoint->ops->name_also(side.endpoint, 0, others, &length),
                     count ? -OFP_ETOOSMALL : -ENOENT);
    side_close(&side);
}

static void test_at_one_address(void **state)
{
    struct side side;
    union tcp_address ignored;
    size_t length = sizeof(ignored);

    (void)state;
    open_at(&side, "127.0.0.1", NULL, true);
    assert_true(listens_at(&side, "127.0.0.1"));
    assert_false(listens_at(&side, "127.0.0.2"));
    assert_false(side.endpoint->connects_only);
    assert_int_equal(side.endpoint->ops->name_also(side.endpoint, 0, &ignored, &length), -ENOENT);
    side_close(&side);
}

static void test_nobody_asked(void **state)
{
    struct side side, with_key;

    (void)state;
    open_at(&side, "", NULL, true);
    assert_true(side.endpoint->connects_only);
    assert_false(listens_at(&side, "127.0.0.1"));
    side_close(&side);
    /* A key asks for all. */
    open_at(&with_key, "", KEY, true);
    assert_false(with_key.endpoint->connects_only);
    assert_true(listens_at(&with_key, "127.0.0.1"));
    side_close(&with_key);
    /* And whoever opened tcp by its name did. */
    open_at(&side, "", NULL, false);
    assert_false(side.endpoint->connects_only);
    side_close(&side);
}

static void test_a_node_asks(void **state)
{
    struct ofp_info info;
    char text[OFP_TEXT_MAX];
    static const struct {
        const char *node;
        bool near, nearer;
    } nodes[] = {{"127.0.0.2", false, true}, {"0.0.0.0", true, true}};

    (void)state;
    unsetenv("OFIPY_TCP_INTERFACE");
    unsetenv("OFIPY_INTERFACE");
    for (unsigned i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        struct side side;
        struct ofp_info infos[64];
        int count = ofp_provider_getinfo(fake_provider(), infos, 64, text, sizeof(text)), result = -1;

        for (int k = 0; k < count && result != 0; k++) {
            info = infos[k];
            if (info.ep_types == OFP_EP_RDM)
                result = ofp_provider_at_node(fake_provider(), &info, nodes[i].node, text, sizeof(text));
        }
        assert_int_equal(result, 0);
        if_asked = true;
        side_open_info(&side, &info, OFP_PROGRESS_MANUAL, 0);
        if_asked = false;
        assert_false(side.endpoint->connects_only);
        assert_int_equal(listens_at(&side, "127.0.0.1"), nodes[i].near);
        assert_int_equal(listens_at(&side, "127.0.0.2"), nodes[i].nearer);
        side_close(&side);
    }
}

/* Its port is a name that it keeps, if nobody has it. */
static void test_the_port_of_who_does_not_listen(void **state)
{
    struct side a, b;
    union tcp_address address, other;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in taken = {.sin_family = AF_INET};

    (void)state;
    open_at(&a, "", NULL, true);
    open_at(&b, "", NULL, true);
    address = address_of(&a);
    other = address_of(&b);
    assert_int_not_equal(tcp_address_get_port(&address), tcp_address_get_port(&other));
    taken.sin_port = htons(tcp_address_get_port(&address));
    assert_int_equal(bind(fd, (struct sockaddr *)&taken, sizeof(taken)), -1);
    assert_int_equal(errno, EADDRINUSE);
    close(fd);
    side_close(&a);
    side_close(&b);
}

/* --------------------------------------------------------------------------------------------------------- who calls */

/* It calls, and is answered; in the other direction there is an error at once that says what to set. */
static void test_who_does_not_listen_talks(void **state)
{
    struct side a, b;
    char reason[OFP_TEXT_MAX];

    (void)state;
    for (int everywhere = 0; everywhere < 2; everywhere++) {
        open_at(&a, "", NULL, true);
        open_at(&b, everywhere ? "any" : "127.0.0.1", NULL, true);
        listen_to(&a, &ears[0]);
        listen_to(&b, &ears[1]);
        sides_meet(&a, &b);
        a.peer = insert_as("127.0.0.1", &a, &b);
        b.peer = insert_as("127.0.0.1", &b, &a);
        assert_int_equal(talk(&a, &b, reason), 0);
        assert_true(ears[1].connects_only);
        assert_int_equal(talk(&b, &a, reason), 0);
        side_close(&a);
        while (((struct ofpi_endpoint *)b.endpoint)->counts->peers_up)
            ofp_domain_progress(b.domain);
        post(&b, tagged(OFP_TSEND, b.peer, 1, "x", 1, 1));
        {
            struct ofp_completion row = next_completion(&b, NULL);

            ofp_reason(row.provider_error, reason, sizeof(reason));
            assert_int_equal(row.error, EHOSTUNREACH);
            assert_non_null(strstr(reason, "OFIPY_INTERFACE"));
        }
        side_close(&b);
    }
}

/*
 * Both listen everywhere and know each other by addresses that are not alike; who calls is known by its identity, as an endpoint
 * that is made of several knows it. Calls cross, and one connection remains.
 */
static struct side *at_ears[2];

static struct ofp_peer *the_only_peer(struct ofp_endpoint *endpoint, const uint8_t *identity, bool connects_only,
                                      const void *address, size_t length)
{
    struct side *side = endpoint == at_ears[0]->endpoint ? at_ears[0] : at_ears[1];
    int error;

    (void)identity, (void)connects_only, (void)address, (void)length;
    return &ofpi_peer_get((struct ofpi_endpoint *)endpoint, side->peer, &error)->base;
}

static void cross(const char *key, int round)
{
    struct side a, b;
    uint8_t bytes[2] = {1, 2}, room[2] = {0};

    open_at(&a, "any", key, false);
    open_at(&b, "any", key, false);
    listen_to(&a, &ears[0]);
    listen_to(&b, &ears[1]);
    ears[0].services.peer_by_identity = ears[1].services.peer_by_identity = the_only_peer;
    at_ears[0] = &a;
    at_ears[1] = &b;
    sides_meet(&a, &b);
    /* Calls to 127.0.0.2 leave from 127.0.0.1: by these addresses each would be the larger one. */
    if (round & 1)
        a.peer = insert_as("127.0.0.2", &a, &b);
    if (round & 2)
        b.peer = insert_as("127.0.0.2", &b, &a);
    post(&a, tagged(OFP_TRECV, a.peer, 1, &room[0], 1, 2));
    post(&b, tagged(OFP_TRECV, b.peer, 1, &room[1], 1, 2));
    post(&a, tagged(OFP_TSEND, a.peer, 1, &bytes[0], 1, 1));
    for (int turn = 0; turn < round / 4; turn++)
        ofp_domain_progress((turn & 1 ? &a : &b)->domain);
    post(&b, tagged(OFP_TSEND, b.peer, 1, &bytes[1], 1, 1));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(next_completion(&a, &b).error, 0);
        assert_int_equal(next_completion(&b, &a).error, 0);
    }
    assert_int_equal(room[0], 2);
    assert_int_equal(room[1], 1);
    assert_int_equal(((struct ofpi_endpoint *)a.endpoint)->counts->peers_lost, 0);
    assert_int_equal(((struct ofpi_endpoint *)b.endpoint)->counts->peers_lost, 0);
    side_close(&a);
    side_close(&b);
}

static void test_calls_that_cross(void **state)
{
    (void)state;
    for (int round = 0; round < 64; round++)
        cross(NULL, round);
}

static void test_calls_that_cross_with_a_key(void **state)
{
    (void)state;
    for (int round = 0; round < 96; round++)
        cross(KEY, round);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everywhere),
        cmocka_unit_test(test_at_one_address),
        cmocka_unit_test(test_nobody_asked),
        cmocka_unit_test(test_a_node_asks),
        cmocka_unit_test(test_the_port_of_who_does_not_listen),
        cmocka_unit_test(test_who_does_not_listen_talks),
        cmocka_unit_test(test_calls_that_cross),
        cmocka_unit_test(test_calls_that_cross_with_a_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
