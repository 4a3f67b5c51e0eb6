/* SPDX-License-Identifier: BSD-3-Clause */
/* Which endpoint the other side is, as segments say; those of builds before this do not. And when the core hears of a peer. */
#include "identity_ear.h"
#include "link/link.h"
#include "object/domain.h"
#include "shm.h"

static void sides_open(struct side *a, struct side *b)
{
    side_open(a, false, OFP_PROGRESS_MANUAL, 0);
    side_open(b, false, OFP_PROGRESS_MANUAL, 0);
    listen_to(a, &ears[0]);
    listen_to(b, &ears[1]);
    sides_meet(a, b);
}

static void test_each_hears_who_the_other_is(void **state)
{
    struct side a, b;

    (void)state;
    sides_open(&a, &b);
    each_hears_who_the_other_is(&a, &b);
    side_close(&a);
    side_close(&b);
}

static void test_another_than_is_meant(void **state)
{
    struct side a, b;

    (void)state;
    sides_open(&a, &b);
    another_than_is_meant(&a, &b);
    side_close(&a);
    side_close(&b);
}

/* As its segment looks. */
static void forget_identity(struct side *side)
{
    struct shm_endpoint *endpoint = shm_endpoint_of(side->endpoint);

    memset(endpoint->segment.identity, 0, SHM_IDENTITY_SIZE);
    memset(endpoint->segment.header->identity, 0, SHM_IDENTITY_SIZE);
}

static void test_a_build_before_identities(void **state)
{
    struct side a, b;
    char reason[OFP_TEXT_MAX];

    (void)state;
    sides_open(&a, &b);
    forget_identity(&a);
    assert_int_equal(talk(&a, &b, reason), 0);
    assert_int_equal(ears[1].calls, 0);
    assert_int_equal(ears[0].answers, 1);
    side_close(&a);
    side_close(&b);
    sides_open(&a, &b);
    forget_identity(&b);
    assert_int_equal(talk(&a, &b, reason), 0);
    assert_int_equal(ears[1].calls, 1);
    assert_int_equal(ears[0].answers, 0);
    side_close(&a);
    side_close(&b);
}

static void show_identity(struct side *side, const uint8_t *identity)
{
    struct shm_endpoint *endpoint = shm_endpoint_of(side->endpoint);

    memcpy(endpoint->segment.identity, identity, SHM_IDENTITY_SIZE);
    memcpy(endpoint->segment.header->identity, identity, SHM_IDENTITY_SIZE);
}

/* Who shows an endpoint that endpoint's own identity is not that endpoint, whichever of both connects. */
static void test_a_peer_that_says_it_is_us(void **state)
{
    struct side a, b;
    char reason[OFP_TEXT_MAX];

    (void)state;
    sides_open(&a, &b);
    forget_warnings();
    show_identity(&b, a.endpoint->identity);
    assert_int_equal(talk(&b, &a, reason), EPROTO);
    expect_warning("it is this endpoint itself");
    assert_int_equal(talk(&a, &b, reason), ECONNREFUSED);
    assert_non_null(strstr(reason, "who answered says that it is this endpoint itself"));
    assert_int_equal(ears[0].calls + ears[0].answers, 0);
    forget_warnings();
    side_close(&a);
    side_close(&b);
}

/* ------------------------------------------------------------------------------------------------ before its messages */

static enum ofp_peer_state heard_while;

static int message_arrived(struct ofp_endpoint *endpoint, const struct ofp_message *message, const void *payload)
{
    heard_while = message->peer->state;
    return ofpi_services.message_arrived(endpoint, message, payload);
}

/* The link by which the peer was accepted; NULL: none was yet. */
static struct shm_link *accepted_link(struct side *side)
{
    struct shm_endpoint *endpoint = shm_endpoint_of(side->endpoint);

    for (uint32_t i = 1; i < endpoint->link_capacity; i++)
        if (endpoint->links[i] && endpoint->links[i]->met.state == OFPI_MEET_ACCEPTED)
            return endpoint->links[i];
    return NULL;
}

/* The peer sends as soon as it is accepted, and is known to be gone before we have seen that it was. */
static void test_who_sends_and_goes_was_up(void **state)
{
    uint64_t number = 7, room = 0;
    struct ofp_operation receive, send;
    struct shm_link *link;
    struct side a, b;

    (void)state;
    sides_open(&a, &b);
    ears[1].services.message_arrived = message_arrived;
    heard_while = OFP_PEER_UNUSED;
    receive = tagged(OFP_TRECV, OFP_PEER_ANY, 1, &room, sizeof(room), 2);
    send = tagged(OFP_TSEND, a.peer, 1, &number, sizeof(number), 1);
    assert_int_equal(ofp_post(b.endpoint, &receive, 1), 1);
    assert_int_equal(ofp_post(a.endpoint, &send, 1), 1);
    while (!(link = accepted_link(&b))) {
        ofp_domain_progress(a.domain);
        ofp_domain_progress(b.domain);
    }
    assert_int_equal(next_completion(&a, NULL).error, 0);
    ofpi_lock_acquire(&((struct ofpi_domain *)b.domain)->lock);
    shm_link_mark_ended(link, SHM_END_CLOSED);
    ofpi_lock_release(&((struct ofpi_domain *)b.domain)->lock);
    assert_int_equal(next_completion(&b, NULL).error, 0);
    assert_int_equal(room, 7);
    assert_int_equal(heard_while, OFP_PEER_UP);
    forget_warnings();
    side_close(&a);
    side_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_hears_who_the_other_is), cmocka_unit_test(test_another_than_is_meant),
        cmocka_unit_test(test_a_build_before_identities),   cmocka_unit_test(test_a_peer_that_says_it_is_us),
        cmocka_unit_test(test_who_sends_and_goes_was_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
