/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects that own operations, before the application and before each other, over both kinds of the fake's endpoints. */
#include "completion/complete.h"
#include "completion/request_slots.h"
#include "object/endpoint.h"
#include "object/owner.h"
#include "object/peer.h"
#include "operation/post.h"
#include "operation/resolve.h"
#include "peer/peer_find.h"
#include "peer/pending.h"
#include "progress/progress.h"
#include "request_fixture.h"

struct object {
    struct ofpi_owner owner;
    uint32_t finished;
    bool keeps;
    struct ofp_completion kept;
    uint64_t kept_flags;
};

static void finish(struct ofpi_owner *owner, struct ofp_endpoint *endpoint, uint64_t op_flags,
                   struct ofp_completion *completion)
{
    struct object *object = OFP_CONTAINER_OF(owner, struct object, owner);

    assert_ptr_equal((void *)(uintptr_t)completion->context, owner);
    assert_int_equal(op_flags & OFPI_OWNER_BITS, OFPI_OWNED);
    object->finished++;
    if (object->keeps) {
        object->kept = *completion;
        object->kept_flags = op_flags;
        return;
    }
    ofpi_owner_deliver(owner, endpoint, op_flags, completion);
}

/* Post with `count` objects before the operation's owner, the last outermost. */
static int post_owned(struct side *side, struct ofp_operation op, struct object *objects, int count)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)side->endpoint;
    int result;

    assert_int_equal(ofpi_endpoint_enter(endpoint), 0);
    for (int i = 0; i < count; i++) {
        objects[i].owner.finish = finish;
        ofpi_owner_enter(&objects[i].owner, &op);
    }
    result = ofpi_endpoint_post(endpoint, &op);
    ofpi_domain_leave(endpoint->domain);
    return result;
}

static void side_open_to_itself(struct side *side, bool offloads_matching)
{
    side_open(side, offloads_matching, OFP_PROGRESS_MANUAL, 64);
    sides_meet(side, side);
}

static void send_bytes(struct side *side, const char *bytes, uint64_t length)
{
    struct ofp_operation op = tagged(OFP_TSEND, side->peer, 1, bytes, length, 0);

    op.flags = OFP_INJECT;
    assert_int_equal(ofp_post(side->endpoint, &op, 1), 1);
}

static void pass_on(bool offloads_matching)
{
    struct side side;
    struct object objects[2] = {0};
    struct ofp_endpoint_statistics statistics;
    char in[4];

    side_open_to_itself(&side, offloads_matching);
    assert_int_equal(post_owned(&side, tagged(OFP_TRECV, side.peer, 1, in, sizeof(in), 5), objects, 2), 0);
    send_bytes(&side, "abc", 4);
    assert_int_equal(next_completion(&side, NULL).context, 5);
    assert_int_equal(objects[0].finished, 1);
    assert_int_equal(objects[1].finished, 1);
    assert_string_equal(in, "abc");
    assert_int_equal(ofp_endpoint_statistics(side.endpoint, &statistics), 0);
    assert_int_equal(statistics.receives, 1);
    side_close(&side);
}

static void test_the_innermost_owner_gets_the_completion(void **state)
{
    (void)state;
    pass_on(false);
    pass_on(true);
}

static void test_a_request_behind_an_object(void **state)
{
    struct side side;
    struct object object = {0};
    struct ofp_operation op;
    struct ofpi_endpoint *endpoint;
    struct ofp_request *request;
    char in[4];

    (void)state;
    side_open_to_itself(&side, false);
    endpoint = (struct ofpi_endpoint *)side.endpoint;
    request = ofpi_request_allocate(endpoint);
    op = tagged(OFP_TRECV, side.peer, 1, in, sizeof(in), (uint64_t)(uintptr_t)request);
    op.flags = OFPI_REQUEST;
    assert_int_equal(post_owned(&side, op, &object, 1), 0);
    assert_int_equal(ofp_request_cancel(ofpi_handle_of_request(request)), 0);
    assert_int_equal(object.finished, 1);
    assert_int_equal(request_take(ofpi_handle_of_request(request), -1).error, ECANCELED);
    side_close(&side);
}

static void test_an_object_keeps_and_passes_on_later(void **state)
{
    struct side side;
    struct object object = {.keeps = true};
    struct ofp_completion row;
    char in[4];

    (void)state;
    side_open_to_itself(&side, false);
    assert_int_equal(post_owned(&side, tagged(OFP_TRECV, side.peer, 1, in, sizeof(in), 5), &object, 1), 0);
    send_bytes(&side, "abc", 4);
    while (!object.finished)
        ofp_domain_progress(side.domain);
    assert_int_equal(ofp_cq_read(side.cq, &row, 1), 0);
    assert_int_equal(ofpi_domain_enter((struct ofpi_domain *)side.domain), 0);
    ofpi_owner_deliver(&object.owner, side.endpoint, object.kept_flags, &object.kept);
    ofpi_domain_leave((struct ofpi_domain *)side.domain);
    assert_int_equal(ofp_cq_read(side.cq, &row, 1), 1);
    assert_int_equal(row.context, 5);
    assert_int_equal(row.length, 4);
    side_close(&side);
}

static void cancel(bool offloads_matching)
{
    struct side side;
    struct object objects[2] = {0};
    struct ofp_completion row;
    char in[4];

    side_open_to_itself(&side, offloads_matching);
    assert_int_equal(post_owned(&side, tagged(OFP_TRECV, side.peer, 1, in, sizeof(in), 5), objects, 2), 0);
    assert_int_equal(ofp_cancel(side.endpoint, (uint64_t)(uintptr_t)&objects[1].owner), -ENOENT);
    assert_int_equal(ofp_cancel(side.endpoint, 5), 0);
    row = next_completion(&side, NULL);
    assert_int_equal(row.context, 5);
    assert_int_equal(row.error, ECANCELED);
    side_close(&side);
}

static void test_cancelled_by_the_innermost_context(void **state)
{
    (void)state;
    cancel(false);
    cancel(true);
}

/* Keep an operation as one that the transport has no room for. */
static void keep_for_later(struct ofpi_endpoint *endpoint, struct ofp_operation op, struct object *object)
{
    struct ofpi_resolved resolved;
    struct ofpi_peer *peer;
    int error;

    assert_int_equal(ofpi_endpoint_enter(endpoint), 0);
    object->owner.finish = finish;
    ofpi_owner_enter(&object->owner, &op);
    peer = ofpi_peer_get(endpoint, op.peer, &error);
    assert_int_equal(ofpi_operation_resolve(endpoint, &op, &resolved), 0);
    assert_int_equal(ofpi_backlog_append(peer, &resolved.transfer), 0);
    ofpi_domain_leave(endpoint->domain);
}

static void test_cancelled_in_the_backlog(void **state)
{
    struct side side;
    struct object object = {0};

    (void)state;
    side_open_to_itself(&side, false);
    keep_for_later((struct ofpi_endpoint *)side.endpoint, tagged(OFP_TSEND, side.peer, 1, "abc", 4, 5), &object);
    assert_int_equal(ofp_cancel(side.endpoint, 5), 0);
    assert_int_equal(object.finished, 1);
    assert_int_equal(next_completion(&side, NULL).error, ECANCELED);
    side_close(&side);
}

/* The object of the operation that claimed is gone when the message is received. */
static void set_aside(bool offloads_matching, uint64_t flags)
{
    struct side side;
    struct object claims = {0}, receives = {0};
    struct ofp_operation op;
    char in[4] = "";

    side_open_to_itself(&side, offloads_matching);
    send_bytes(&side, "abc", 4);
    ofp_domain_progress(side.domain);
    op = tagged(OFP_TRECV, side.peer, 1, NULL, 0, 5);
    op.flags = flags;
    assert_int_equal(post_owned(&side, op, &claims, 1), 0);
    assert_int_equal(next_completion(&side, NULL).flags & OFP_COMPLETED_CLAIM, OFP_COMPLETED_CLAIM);
    memset(&claims, 0xee, sizeof(claims));
    op = tagged(OFP_TRECV, side.peer, 1, in, sizeof(in), 5);
    op.flags = OFP_CLAIM;
    assert_int_equal(post_owned(&side, op, &receives, 1), 0);
    assert_int_equal(next_completion(&side, NULL).context, 5);
    assert_int_equal(receives.finished, 1);
    assert_string_equal(in, "abc");
    side_close(&side);
}

static void test_set_aside_under_the_innermost_context(void **state)
{
    (void)state;
    set_aside(false, OFP_PEEK | OFP_CLAIM);
    set_aside(false, OFP_HOLD | OFP_CLAIM);
    set_aside(true, OFP_HOLD | OFP_CLAIM);
}

static void multi_receive(bool offloads_matching)
{
    struct side side;
    struct object object = {0};
    struct ofp_operation op;
    static char in[4096];

    side_open_to_itself(&side, offloads_matching);
    op = tagged(OFP_TRECV, side.peer, 1, in, sizeof(in), 5);
    op.flags = OFP_MULTI_RECV;
    assert_int_equal(post_owned(&side, op, &object, 1), 0);
    for (uint32_t i = 1; i <= 3; i++) {
        send_bytes(&side, "abc", 4);
        assert_int_equal(next_completion(&side, NULL).context, 5);
        assert_int_equal(object.finished, i);
    }
    assert_int_equal(ofp_cancel(side.endpoint, 5), 0);
    assert_int_equal(next_completion(&side, NULL).flags & OFP_COMPLETED_MULTI_RECV, OFP_COMPLETED_MULTI_RECV);
    assert_int_equal(object.finished, 4);
    side_close(&side);
}

static void test_a_multi_receive_buffer_ends_once_a_message(void **state)
{
    (void)state;
    multi_receive(false);
    multi_receive(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_innermost_owner_gets_the_completion),
        cmocka_unit_test(test_a_request_behind_an_object),
        cmocka_unit_test(test_an_object_keeps_and_passes_on_later),
        cmocka_unit_test(test_cancelled_by_the_innermost_context),
        cmocka_unit_test(test_cancelled_in_the_backlog),
        cmocka_unit_test(test_set_aside_under_the_innermost_context),
        cmocka_unit_test(test_a_multi_receive_buffer_ends_once_a_message),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
