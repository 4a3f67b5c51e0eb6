/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message for which there is no memory waits. Nothing more comes from its sender, so a side that sleeps tries again by
 * itself. The linker leads malloc of core and provider here.
 */
#include "rdm_fixture.h"

#include <poll.h>

#include "progress/progress.h"

#define PATIENCE_MS 10000
#define LENGTH 120

/* Of memory for a payload; what the device needs for itself is smaller. */
static bool has_memory = true;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size) { return has_memory || size < LENGTH ? __real_malloc(size) : NULL; }

static struct side a, b;

/* Sleep as the helper thread does: without a deadline of its own. False: nothing has ended the sleep. */
static bool sleep_armed(struct side *side)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)side->domain;
    struct pollfd entry = {.fd = domain->reactor.epoll_fd, .events = POLLIN};

    assert_int_equal(ofpi_domain_enter(domain), 0);
    assert_true(ofpi_domain_arm(domain));
    ofpi_domain_leave(domain);
    return poll(&entry, 1, PATIENCE_MS) == 1;
}

static void exchange_message(struct ofp_operation send, struct ofp_operation receive)
{
    send.peer = a.peer;
    assert_int_equal(ofp_post(b.endpoint, &receive, 1), 1);
    assert_int_equal(ofp_post(a.endpoint, &send, 1), 1);
    assert_int_equal(next_completion(&a, &b).error, 0);
    assert_int_equal(next_completion(&b, &a).error, 0);
}

static void test_a_message_that_waits_for_memory(void **state)
{
    static uint8_t out[LENGTH], in[LENGTH];
    struct ofp_operation send = tagged(OFP_TSEND, 0, 7, out, LENGTH, 0);
    struct ofp_operation receive = tagged(OFP_TRECV, OFP_PEER_ANY, 7, in, LENGTH, 0);

    (void)state;
    rdm_side_open(&a, RDMFAKE_PACKETS, 0);
    rdm_side_open(&b, RDMFAKE_PACKETS, 0);
    sides_meet(&a, &b);
    exchange_message(send, receive);
    rdm_settle(&a, &b);
    send.peer = a.peer;
    memset(out, 42, sizeof(out));
    assert_int_equal(ofp_post(a.endpoint, &send, 1), 1);
    has_memory = false;
    ofp_domain_progress(b.domain);
    for (int i = 0; i < 3; i++) {
        assert_false(ofp_list_empty(&rdm_path_of(&b)->waiting));
        assert_true(sleep_armed(&b));
        ofp_domain_progress(b.domain);
    }
    has_memory = true;
    assert_true(sleep_armed(&b));
    ofp_domain_progress(b.domain);
    assert_true(ofp_list_empty(&rdm_path_of(&b)->waiting));
    assert_int_equal(ofp_post(b.endpoint, &receive, 1), 1);
    assert_int_equal(next_completion(&a, &b).error, 0);
    assert_int_equal(next_completion(&b, &a).error, 0);
    assert_memory_equal(in, out, sizeof(out));
    side_close(&a);
    side_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_message_that_waits_for_memory)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
