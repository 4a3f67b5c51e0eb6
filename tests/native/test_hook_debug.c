/* SPDX-License-Identifier: BSD-3-Clause */
/* The hook `debug`: a child process breaks one contract after the other, and must end by it. */
#include "completion/complete.h"
#include "hook_fixture.h"
#include "match/lent.h"
#include "object/peer.h"
#include "ofipy/services.h"
#include "peer/peer_find.h"
#include "peer/peer_state.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs in a child, which the hook ends with these words on standard error. */
static void expect_end(void (*breach)(void), const char *words)
{
    char said[4096] = "";
    size_t length = 0;
    ssize_t got;
    int ends[2], status = 0;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        /* The handlers of the test's own framework would turn the end into a failure of the test. */
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        breach();
        _exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], said + length, sizeof(said) - 1 - length)) > 0)
        length += (size_t)got;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !strstr(said, words))
        fail_msg("status %#x, and \"%s\" is not in \"%s\"", (unsigned)status, words, said);
}

/* The core's own checks come first where they are compiled in (ofipy/check.h). */
#ifdef OFP_CHECKS
#define CHECKED(words) "it does not hold that ofpi_domain_is_held"
#else
#define CHECKED(words) words
#endif

static struct side side;

static struct ofpi_endpoint *opened(void)
{
    hooked_side_open(&side, "debug", false);
    return (struct ofpi_endpoint *)side.endpoint;
}

/* A receive that stays posted, as the object that owns it. */
static struct ofpi_hooked *posted(struct ofpi_endpoint *endpoint, uint64_t room)
{
    static char in[64];
    struct ofp_operation op = tagged(OFP_TRECV, OFP_PEER_ANY, 5, in, room, 1);
    struct ofpi_hooked *next;

    if (ofp_list_empty(&endpoint->hooks->free))
        post_one(&side, tagged(OFP_TRECV, OFP_PEER_ANY, 6, in, room, 1));
    next = OFP_CONTAINER_OF(endpoint->hooks->free.next, struct ofpi_hooked, node);
    post_one(&side, op);
    assert_true(next->live);
    return next;
}

static void end(struct ofpi_endpoint *endpoint, struct ofpi_hooked *hooked, struct ofp_completion completion)
{
    completion.context = (uint64_t)(uintptr_t)hooked;
    ofpi_lock_acquire(&endpoint->domain->lock);
    ofpi_endpoint_complete(&endpoint->base, OFPI_OWNED, &completion);
    ofpi_lock_release(&endpoint->domain->lock);
}

static const struct ofp_completion good = {
    .flags = OFP_COMPLETED_RECV | OFP_COMPLETED_TAGGED, .length = 8, .tag = 5, .source = 0};

static void ends_twice(void)
{
    struct ofpi_endpoint *endpoint = opened();
    struct ofpi_hooked *hooked = posted(endpoint, 64);

    end(endpoint, hooked, good);
    end(endpoint, hooked, good);
}

static void ends_without_the_lock(void)
{
    struct ofpi_endpoint *endpoint = opened();
    struct ofp_completion completion = good;

    completion.context = (uint64_t)(uintptr_t)posted(endpoint, 64);
    ofpi_endpoint_complete(&endpoint->base, OFPI_OWNED, &completion);
}

static void ends_beyond_its_room(void)
{
    struct ofpi_endpoint *endpoint = opened();
    struct ofp_completion completion = good;

    completion.length = 65;
    end(endpoint, posted(endpoint, 64), completion);
}

static void ends_with_another_tag(void)
{
    struct ofpi_endpoint *endpoint = opened();
    struct ofp_completion completion = good;

    completion.tag = 4;
    end(endpoint, posted(endpoint, 64), completion);
}

static void ends_as_a_send(void)
{
    struct ofpi_endpoint *endpoint = opened();
    struct ofp_completion completion = good;

    completion.flags = OFP_COMPLETED_SEND;
    end(endpoint, posted(endpoint, 64), completion);
}

static void ends_with_a_negative_error(void)
{
    struct ofpi_endpoint *endpoint = opened();
    struct ofp_completion completion = good;

    completion.error = -EIO;
    end(endpoint, posted(endpoint, 64), completion);
}

static void is_left_at_the_close(void)
{
    struct ofpi_endpoint *endpoint = opened();

    posted(endpoint, 64);
    ofpi_lock_acquire(&endpoint->domain->lock);
    ofpi_hooks_close(endpoint);
}

static void a_peer_s_state_is_written_by_somebody_else(void)
{
    struct ofpi_endpoint *endpoint = opened();
    struct ofpi_peer *peer;

    request_tsend(side.endpoint, "x", 1, side.peer, 1);
    peer = ofpi_peer_find_at(endpoint, side.peer);
    peer->base.state = OFP_PEER_CONNECTING;
    ofpi_lock_acquire(&endpoint->domain->lock);
    ofpi_peer_established(&peer->base);
}

static void a_message_arrives_from_a_peer_that_is_not_up(void)
{
    struct ofpi_endpoint *endpoint = opened();
    struct ofp_message message = {0};
    int error;

    ofpi_lock_acquire(&endpoint->domain->lock);
    message.peer = &ofpi_peer_get(endpoint, side.peer, &error)->base;
    ofp_message_arrived(&endpoint->base, &message, NULL);
}

static void a_message_names_another_source(void)
{
    struct ofpi_endpoint *endpoint = opened();
    struct ofp_message message = {.source = 9};

    request_tsend(side.endpoint, "x", 1, side.peer, 1);
    ofpi_lock_acquire(&endpoint->domain->lock);
    message.peer = &ofpi_peer_find_at(endpoint, side.peer)->base;
    ofp_message_arrived(&endpoint->base, &message, NULL);
}

static void a_write_goes_past_the_end(void)
{
    struct ofpi_endpoint *endpoint = opened();
    char in[128], out[2] = {'x', 'y'};
    struct ofpi_inflight receive = {.base = {.endpoint = &endpoint->base, .length = 100},
                                    .receiver = {.memory = {in, sizeof(in)}}};

    ofpi_lock_acquire(&endpoint->domain->lock);
    ofp_receive_write(&receive.base, 98, out, 2);
    ofp_receive_write(&receive.base, 99, out, 2);
}

static void test_each_breach_ends_the_process(void **state)
{
    (void)state;
    expect_end(ends_twice, "it had ended before");
    expect_end(ends_without_the_lock, CHECKED("a completion without the domain's lock"));
    expect_end(ends_beyond_its_room, "64 bytes of room and ends with 65");
    expect_end(ends_with_another_tag, "of tag 0x5 ends with a message of tag 0x4");
    expect_end(ends_as_a_send, "which are another kind's");
    expect_end(ends_with_a_negative_error, CHECKED("the negative error -5"));
    expect_end(is_left_at_the_close, "2 operations have not ended");
    expect_end(a_peer_s_state_is_written_by_somebody_else, "peer 0 was up, and changes from connecting to up");
    expect_end(a_message_arrives_from_a_peer_that_is_not_up, "arrives while that is unused");
    expect_end(a_message_names_another_source, "says that it is of peer 9");
    expect_end(a_write_goes_past_the_end, "2 bytes at 99 of a receive of 100");
}

static void test_copies_are_overwritten_when_they_are_given_back(void **state)
{
    struct ofpi_endpoint *endpoint = opened();
    unsigned char copy[4] = {1, 2, 3, 4};

    (void)state;
    ofpi_lock_acquire(&endpoint->domain->lock);
    ofpi_hooks_released(endpoint, copy, 3);
    ofpi_lock_release(&endpoint->domain->lock);
    assert_int_equal(copy[0], 0xdb);
    assert_int_equal(copy[2], 0xdb);
    assert_int_equal(copy[3], 4);
    side_close(&side);
}

/* Whatever ends well ends so under it as well. */
static void go_well(bool offloads_matching)
{
    char in[64], out[64] = "well";
    struct ofp_operation op;

    hooked_side_open(&side, "debug;fault:nth=5;debug", offloads_matching);
    for (uint64_t i = 0; i < 40; i++) {
        op = tagged(OFP_TRECV, i % 2 ? side.peer : OFP_PEER_ANY, i, in, sizeof(in), 1);
        op.ignore = i % 3 ? 0 : 7;
        post_one(&side, op);
        post_one(&side, tagged(OFP_TSEND, side.peer, i, out, sizeof(out) - i, 2));
        ofp_domain_progress(side.domain);
    }
    side_close(&side);
}

static void test_what_keeps_the_contracts_goes_on(void **state)
{
    (void)state;
    go_well(false);
    go_well(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_breach_ends_the_process),
        cmocka_unit_test(test_copies_are_overwritten_when_they_are_given_back),
        cmocka_unit_test(test_what_keeps_the_contracts_goes_on),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
