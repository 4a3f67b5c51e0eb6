/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Death and closing of a peer.
 *
 * With a provider built with OFP_SHM_KILL_STEPS a victim is killed at every step of the protocol in turn, in every role: its
 * partner's operations must end, its name be lost, and a bystander notice nothing.
 */
#include "shm.h"
#include "test_shm_fixture.h"

/* ------------------------------------------------------------------------------------------------- a killed process */

/* The victim has received one message and then dies; everything that its partner began ends in time. */
static void killed_process(struct shared *shared, uint32_t rank)
{
    static uint8_t buffer[300000];
    struct side side;
    uint32_t peer;
    uint64_t died;

    side_open(&side, shared, rank);
    meet_all(shared, 0);
    peer = insert_rank(&side, shared, !rank);
    if (rank == 0) {
        post(&side, tagged(OFP_TRECV, peer, 1, buffer, 8, 1));
        completion_of(&side, 1);
        raise(SIGKILL);
    }
    post(&side, tagged(OFP_TRECV, peer, 2, buffer, 8, 2));
    post(&side, tagged(OFP_TSEND, peer, 1, buffer, 8, 1));
    post(&side, tagged(OFP_TSEND, peer, 3, buffer, sizeof(buffer), 3));
    for (uint32_t done = 0; done < 3; done++) {
        struct ofp_completion row;

        died = now_ns();
        row = next_completion(&side);
        CHECK(now_ns() - died < SOON);
        CHECK_EQUAL(row.error, row.context == 1 ? 0 : OFP_EPEERLOST);
    }
    CHECK_EQUAL(link_count(&side), 0);
    /* Its name is free; nobody answers there. */
    post(&side, tagged(OFP_TSEND, peer, 4, buffer, 8, 4));
    CHECK_EQUAL(next_completion(&side).error, ECONNREFUSED);
    side_close(&side);
}

static void test_killed(void **state)
{
    static const int expected[] = {KILLED, 0};

    (void)state;
    run_processes(2, killed_process, expected);
    setenv("OFIPY_SHM_PIDFD", "no", 1);
    run_processes(2, killed_process, expected);
    unsetenv("OFIPY_SHM_PIDFD");
}

/* What a process sent before it died is received, unless the payload was still with it. */
static void last_words_process(struct shared *shared, uint32_t rank)
{
    static uint8_t buffer[100][5000];
    struct side side;
    uint32_t peer;

    side_open(&side, shared, rank);
    meet_all(shared, 0);
    peer = insert_rank(&side, shared, !rank);
    if (rank == 0) {
        for (uint32_t i = 0; i < 50; i++) {
            uint64_t length = i % 2 ? 5000 : 30;

            fill(buffer[i], length, i);
            post(&side, tagged(OFP_TSEND, peer, i, buffer[i], length, 1));
            completion_of(&side, 1);
        }
        raise(SIGKILL);
    }
    for (uint32_t i = 0; i < 51; i++)
        post(&side, tagged(OFP_TRECV, peer, i, buffer[i], 5000, i));
    for (uint32_t i = 0; i < 51; i++) {
        struct ofp_completion row = next_completion(&side);

        CHECK_EQUAL(row.error, row.context == 50 ? OFP_EPEERLOST : 0);
        if (row.context < 50)
            check_filled(buffer[row.context], row.context % 2 ? 5000 : 30, (uint32_t)row.context);
    }
    side_close(&side);
}

static void test_last_words(void **state)
{
    static const int expected[] = {KILLED, 0};

    (void)state;
    run_processes(2, last_words_process, expected);
}

/* ---------------------------------------------------------------------------------------------------------- closing */

/*
 * Sixteen, as many as the shorter ring has slots, or less: a slot may hold the question to a peer that was held up between
 * claiming a slot and publishing it. Then what found no room is cancelled.
 */
static uint32_t send_sixteen(struct side *side, uint32_t peer, uint8_t (*buffer)[300])
{
    for (uint32_t sent = 0; sent < 16; sent++) {
        struct ofp_completion row;

        fill(buffer[sent], 60, sent);
        post(side, tagged(OFP_TSEND, peer, sent, buffer[sent], 60, 1));
        if (ofp_cq_read(side->cq, &row, 1) == 1) {
            CHECK_EQUAL(row.error, 0);
            continue;
        }
        CHECK(sent >= 14);
        CHECK_EQUAL(ofp_cancel(side->endpoint, 1), 0);
        CHECK_EQUAL(next_completion(side).error, ECANCELED);
        return sent;
    }
    return 16;
}

/* What was sent before an orderly close arrives; then the peer is lost. With a ring too short for the farewell. */
static void closing_process(struct shared *shared, uint32_t rank)
{
    static uint8_t buffer[64][300];
    struct side side;
    uint32_t peer, sent;

    side_open(&side, shared, rank);
    meet_all(shared, 0);
    peer = insert_rank(&side, shared, !rank);
    if (rank == 0) {
        /* Meet first: the ring takes as many as it has slots. */
        post(&side, tagged(OFP_TRECV, peer, 100, buffer[0], 1, 1));
        completion_of(&side, 1);
        sent = send_sixteen(&side, peer, buffer);
        side_close(&side);
        ofp_store_release(&shared->words[1], sent);
        ofp_store_release(&shared->words[0], 1);
        return;
    }
    for (uint32_t i = 0; i < 17; i++)
        post(&side, tagged(OFP_TRECV, peer, i, buffer[i], 60, i));
    post(&side, tagged(OFP_TSEND, peer, 100, "x", 1, 100));
    completion_of(&side, 100);
    /* No progress until it is gone: the ring is full, and stays so. */
    wait_until(&shared->words[0], 1);
    sent = ofp_load_acquire(&shared->words[1]);
    for (uint32_t i = 0; i < 17; i++) {
        struct ofp_completion row = next_completion(&side);

        CHECK_EQUAL(row.error, row.context >= sent ? OFP_EPEERLOST : 0);
        if (row.context < sent)
            check_filled(buffer[row.context], 60, (uint32_t)row.context);
    }
    CHECK_EQUAL(link_count(&side), 0);
    side_close(&side);
}

static void test_closing_with_a_full_ring(void **state)
{
    (void)state;
    setenv("OFIPY_SHM_RING_SIZE", "16", 1);
    run_processes(2, closing_process, NULL);
    unsetenv("OFIPY_SHM_RING_SIZE");
}

static void test_closing(void **state)
{
    (void)state;
    run_processes(2, closing_process, NULL);
}

/*
 * The service is opened again and again by the same process: each time another incarnation, which is met anew. A message may
 * still go to the one before, as to a process that just died, so it is sent until one is received.
 */
static void again_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    uint64_t word = 0;

    if (rank == 1)
        side_open(&side, shared, rank);
    meet_all(shared, 0);
    for (uint32_t life = 0; life < 20; life++) {
        struct ofp_completion row;
        uint32_t peer;

        if (rank == 0) {
            side_open(&side, shared, rank);
            peer = insert_rank(&side, shared, 1);
            post(&side, tagged(OFP_TRECV, life % 2 ? peer : OFP_PEER_ANY, life, &word, 8, 1));
            completion_of(&side, 1);
            CHECK_EQUAL(word, life);
            side_close(&side);
            ofp_store_release(&shared->words[0], life + 1);
            continue;
        }
        peer = insert_rank(&side, shared, 0);
        word = life;
        while (ofp_load_acquire(&shared->words[0]) == life) {
            post(&side, tagged(OFP_TSEND, peer, life, &word, 8, 1));
            row = next_completion(&side);
            CHECK(!row.error || row.error == OFP_EPEERLOST || row.error == ECONNREFUSED);
        }
    }
    if (rank == 1)
        side_close(&side);
}

static void test_opened_again(void **state)
{
    (void)state;
    run_processes(2, again_process, NULL);
}

/* An address that leaves the vector is left by both sides, and may be met again. */
static void removed_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    uint64_t word = 0;

    side_open(&side, shared, rank);
    meet_all(shared, 0);
    for (uint32_t life = 0; life < 20; life++) {
        if (rank == 1) {
            post(&side, tagged(OFP_TRECV, OFP_PEER_ANY, life, &word, 8, 1));
            completion_of(&side, 1);
            CHECK_EQUAL(word, life);
        } else {
            uint32_t peer = insert_rank(&side, shared, 1);

            word = life;
            post(&side, tagged(OFP_TSEND, peer, life, &word, 8, 1));
            completion_of(&side, 1);
            CHECK_EQUAL(ofp_av_remove(side.av, peer), 0);
        }
    }
    meet_all_busy(&side, shared, 1);
    if (rank == 0)
        for (uint64_t until = now_ns() + PATIENCE; link_count(&side) && now_ns() < until;)
            ofp_domain_progress(side.domain);
    if (rank == 0)
        CHECK_EQUAL(link_count(&side), 0);
    ofp_store_release(&shared->words[rank], 1);
    progress_until(&side, &shared->words[!rank], 1);
    side_close(&side);
}

static void test_removed_address(void **state)
{
    (void)state;
    run_processes(2, removed_process, NULL);
}

#ifdef OFP_SHM_KILL_STEPS
#include "test_shm_steps.h"
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_last_words),
        cmocka_unit_test(test_closing),
        cmocka_unit_test(test_closing_with_a_full_ring),
        cmocka_unit_test(test_opened_again),
        cmocka_unit_test(test_removed_address),
#ifdef OFP_SHM_KILL_STEPS
        cmocka_unit_test(test_killed_at_every_step),
#endif
    };

    cmocka_set_test_filter(getenv("TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
