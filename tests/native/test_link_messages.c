/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations, receives and regions of one endpoint over two providers: each provider sees its own, the core one of all. */
#include "link_fixture.h"

static uint32_t peers[2]; /* that are reached by near, and by far */

static int open_met(void **state)
{
    open_endpoint(state);
    near.post_result = far.post_result = OFP_POST_PENDING;
    peers[0] = insert(nobody, somebody, "n", NULL);
    peers[1] = insert(nobody, other, NULL, "f");
    for (int i = 0; i < 2; i++)
        send_to(peers[i], (uint64_t)i);
    lock();
    ofp_peer_up(near.called);
    ofp_peer_up(far.called);
    unlock();
    ofp_domain_progress(fixture.domain);
    return 0;
}

static struct ofp_message message_of(struct ofp_peer *inner, uint64_t tag, uint64_t length)
{
    return (struct ofp_message){
        .peer = inner, .source = inner->index, .channel = OFP_CHANNEL_TAGGED, .tag = tag, .length = length};
}

static void post_receive(uint32_t source, uint64_t tag, void *room, uint64_t size, uint64_t context)
{
    struct ofp_operation op = {.op = OFP_TRECV,
                               .peer = source,
                               .tag = tag,
                               .offset = (uint64_t)(uintptr_t)room,
                               .length = size,
                               .context = context};

    assert_int_equal(ofp_post(fixture.endpoint, &op, 1), 1);
}

static void arrive(uint32_t device, uint64_t tag, const char *payload)
{
    struct ofp_peer *inner = inner_of(peers[device], device);
    struct ofp_message message = message_of(inner, tag, strlen(payload));

    lock();
    assert_int_equal(ofp_message_arrived(inner->endpoint, &message, payload), 0);
    unlock();
}

static void announce(uint32_t device, uint64_t tag, uint64_t length)
{
    struct ofp_peer *inner = inner_of(peers[device], device);
    struct ofp_message message = message_of(inner, tag, length);

    message.provider_data[0] = 100 + device;
    lock();
    assert_int_equal(ofp_message_announced(inner->endpoint, &message), 0);
    unlock();
}

/* ---------------------------------------------------------------------------------------------------------- operations */

static void test_a_pending_belongs_to_the_way_that_has_it(void **state)
{
    (void)state;
    lock();
    assert_ptr_equal(near.pending->endpoint, &link_inner_find(fixture.endpoint, 0)->base);
    assert_ptr_equal(near.pending->peer, inner_of(peers[0], 0));
    assert_ptr_equal(ofp_pending_find(inner_of(peers[0], 0), near.pending->id), near.pending);
    assert_null(ofp_pending_find(inner_of(peers[0], 1), near.pending->id));
    assert_null(ofp_pending_find(inner_of(peers[1], 1), near.pending->id));
    ofp_transfer_complete(far.pending, 0, 0);
    ofp_transfer_complete(near.pending, EIO, 0);
    unlock();
    assert_int_equal(completion().context, 1);
    assert_int_equal(completion().error, EIO);
}

static void test_the_loss_of_one_peer_leaves_the_other(void **state)
{
    (void)state;
    lock();
    ofp_peer_lost(far.called, OFP_EPEERLOST, true, NULL);
    unlock();
    assert_int_equal(completion().context, 1);
    nothing_completed();
    lock();
    ofp_transfer_complete(near.pending, 0, 0);
    unlock();
    assert_int_equal(completion().error, 0);
}

/* ------------------------------------------------------------------------------------------------------------ receives */

static void test_messages_of_any_source_come_in_the_order_of_arrival(void **state)
{
    char room[4];

    (void)state;
    for (int i = 0; i < 6; i++)
        arrive((uint32_t)i & 1, 5, i & 1 ? "odd" : "even");
    for (int i = 0; i < 6; i++) {
        struct ofp_completion row;

        post_receive(OFP_PEER_ANY, 5, room, sizeof(room), 9);
        row = completion();
        assert_int_equal(row.source, peers[i & 1]);
        assert_int_equal(row.endpoint, ofp_endpoint_id(fixture.endpoint));
        assert_memory_equal(room, i & 1 ? "odd" : "even", row.length);
    }
}

/* Announced by one, matched at once or later, moved by the same one. */
static void moved(uint32_t device, struct scripted *provider, char *room)
{
    struct ofp_peer *inner = inner_of(peers[device], device);
    struct ofp_receive *receive = provider->receive;
    struct ofp_completion row;

    assert_non_null(receive);
    assert_ptr_equal(receive->endpoint, inner->endpoint);
    assert_ptr_equal(receive->message.peer, inner);
    assert_int_equal(receive->message.provider_data[0], 100 + device);
    lock();
    assert_ptr_equal(ofp_receive_find(inner, receive->id), receive);
    assert_null(ofp_receive_find(inner_of(peers[device], !device), receive->id));
    assert_null(ofp_receive_find(inner_of(peers[!device], device), receive->id));
    ofp_receive_write(receive, 0, "payload", 7);
    assert_ptr_equal(receive->endpoint, inner->endpoint);
    ofp_receive_complete(receive, 0, 0);
    unlock();
    row = completion();
    assert_int_equal(row.error, 0);
    assert_int_equal(row.source, peers[device]);
    assert_memory_equal(room, "payload", 7);
}

static void test_an_announced_message_is_moved_by_who_announced_it(void **state)
{
    char near_room[8] = "", far_room[8] = "";

    (void)state;
    post_receive(OFP_PEER_ANY, 5, near_room, sizeof(near_room), 9);
    announce(0, 5, 7);
    announce(1, 5, 7);
    post_receive(peers[1], 5, far_room, sizeof(far_room), 9);
    moved(1, &far, far_room);
    moved(0, &near, near_room);
}

static void test_a_stream_goes_into_the_receive(void **state)
{
    struct ofp_peer *inner = inner_of(peers[1], 1);
    struct ofp_message message = message_of(inner, 5, 7);
    struct ofp_receive *receive;
    char room[8] = "";

    (void)state;
    post_receive(peers[1], 5, room, sizeof(room), 9);
    lock();
    assert_int_equal(ofp_message_begin(inner->endpoint, &message, 0, &receive), 0);
    assert_ptr_equal(receive->message.peer, inner);
    ofp_receive_write(receive, 0, "payload", 7);
    ofp_receive_complete(receive, 0, 0);
    unlock();
    assert_int_equal(completion().length, 7);
    assert_string_equal(room, "payload");
}

/* A peer that sends by one way and is written to by the other: the loss of what it uses is its own loss. */
static void test_what_came_by_a_lost_way_ends_with_the_peer(void **state)
{
    uint32_t both = insert(nobody, (const uint8_t[16]){1}, "nb", "fb");
    struct ofp_peer *calls = inner_of(both, 1);
    struct ofp_message message;
    char room[8];
    struct ofp_completion row;

    (void)state;
    near.post_result = OFP_POST_DONE;
    send_to(both, 1);
    lock();
    ofp_peer_up(near.called);
    ofp_peer_connecting(calls);
    ofp_peer_up(calls);
    unlock();
    ofp_domain_progress(fixture.domain);
    assert_int_equal(completion().context, 1);
    post_receive(both, 5, room, sizeof(room), 9);
    message = message_of(calls, 5, 7);
    lock();
    assert_int_equal(ofp_message_announced(calls->endpoint, &message), 0);
    message.tag = 7; /* nobody waits for that one */
    assert_int_equal(ofp_message_announced(calls->endpoint, &message), 0);
    ofp_peer_lost(calls, ECONNRESET, false, NULL);
    unlock();
    row = completion();
    assert_int_equal(row.context, 9);
    assert_int_equal(row.error, ECONNRESET);
    assert_int_equal(near.called->state, OFP_PEER_LOST);
    post_receive(both, 7, room, sizeof(room), 11);
    nothing_completed();
    assert_int_equal(ofp_cancel(fixture.endpoint, 11), 0);
    assert_int_equal(completion().error, ECANCELED);
}

/* ------------------------------------------------------------------------------------------------------------- regions */

static int close_region(struct ofp_region_handle *region)
{
    int result;

    while ((result = ofp_region_close(fixture.domain, region->id)) == -EBUSY)
        ofp_domain_progress(fixture.domain);
    return result;
}

static struct ofp_region_handle register_memory(char *memory, size_t size)
{
    struct ofp_region_attr attr = {
        .base = memory, .length = size, .access = OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE};
    struct ofp_region_handle region;

    assert_int_equal(ofp_region_register(fixture.domain, &attr, &region), 0);
    return region;
}

static void test_a_region_is_reached_by_one_key_over_both(void **state)
{
    static char memory[64];
    struct ofp_region_handle region = register_memory(memory, sizeof(memory));

    (void)state;
    near.withdraw_result = -EAGAIN;
    lock();
    for (uint32_t i = 0; i < 2; i++) {
        struct ofp_endpoint *inner = &link_inner_find(fixture.endpoint, i)->base;
        struct ofp_region *seen = ofpi_core.region_by_id(inner->domain, region.id);
        struct ofp_remote_access access = {0};

        assert_non_null(seen);
        assert_int_equal(ofp_region_device(inner->domain, seen)->key, region.key);
        assert_int_equal(ofp_remote_access(inner, region.key, 8, 8, OFP_ACCESS_REMOTE_READ, &access), 0);
        assert_ptr_equal(access.memory, memory + 8);
        ofpi_core.remote_release(&access);
    }
    unlock();
    assert_int_equal(close_region(&region), 0);
    /* Each was asked until it had let go, and not again. */
    assert_int_equal(near.withdrawals, 2);
    assert_int_equal(far.withdrawals, 1);
}

static void test_a_way_that_does_not_take_a_region_is_left_out(void **state)
{
    static char memory[64];
    struct ofp_region_handle region;

    (void)state;
    far.publish_result = -ENOSPC;
    region = register_memory(memory, sizeof(memory));
    assert_int_equal(close_region(&region), 0);
    assert_int_equal(near.withdrawals, 1);
    assert_int_equal(far.withdrawals, 0);
}

static void test_a_region_that_no_way_takes_is_refused(void **state)
{
    static char memory[64];
    struct ofp_region_attr attr = {.base = memory, .length = sizeof(memory), .access = OFP_ACCESS_REMOTE_READ};
    struct ofp_region_handle region;

    (void)state;
    near.publish_result = far.publish_result = -ENOSPC;
    assert_int_equal(ofp_region_register(fixture.domain, &attr, &region), -ENOSPC);
}

/* ------------------------------------------------------------------------------------------------------------- closing */

static void test_closing_cancels_what_is_under_way_on_both(void **state)
{
    static char room[2][8];
    uint32_t cancelled = 0;
    struct ofp_completion row;

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        post_receive(peers[i], 5, room[i], sizeof(room[i]), 9);
        announce(i, 5, 7);
        announce(i, 6, 7);
    }
    assert_int_equal(ofp_endpoint_close(fixture.endpoint, 0), 0);
    fixture.endpoint = NULL;
    while (ofp_cq_read(fixture.cq, &row, 1) == 1) {
        assert_int_equal(row.error, ECANCELED);
        cancelled++;
    }
    assert_int_equal(cancelled, 4);
    assert_int_equal(near.downs, 1);
    assert_int_equal(far.downs, 1);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, open_met, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_a_pending_belongs_to_the_way_that_has_it),
        WITH(test_the_loss_of_one_peer_leaves_the_other),
        WITH(test_messages_of_any_source_come_in_the_order_of_arrival),
        WITH(test_an_announced_message_is_moved_by_who_announced_it),
        WITH(test_a_stream_goes_into_the_receive),
        WITH(test_what_came_by_a_lost_way_ends_with_the_peer),
        WITH(test_a_region_is_reached_by_one_key_over_both),
        WITH(test_a_way_that_does_not_take_a_region_is_left_out),
        WITH(test_a_region_that_no_way_takes_is_refused),
        WITH(test_closing_cancels_what_is_under_way_on_both),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
