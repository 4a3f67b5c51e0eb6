/* SPDX-License-Identifier: BSD-3-Clause */
/* Large messages whose sender helps with fragments, and stops doing so, or never begins. */
#include "test_shm_fixture.h"

#define LENGTH (2u << 20)
#define ROUNDS 24

/* Word that counts the messages that the receiver has. */
#define RECEIVED 0

static bool has_attach(const struct side *side) { return shm_domain_of(side->domain)->attach; }

/* The sender makes `round` calls of progress behind its post, and no more until the receiver has it all. */
static void absent_process(struct shared *shared, uint32_t rank)
{
    static uint8_t buffer[LENGTH];
    struct side side;
    uint32_t peer;

    side_open(&side, shared, rank);
    meet_all(shared, 0);
    peer = insert_rank(&side, shared, !rank);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        if (rank == 0) {
            fill(buffer, LENGTH, round);
            post(&side, tagged(OFP_TSEND, peer, round, buffer, LENGTH, round + 1));
            for (uint32_t i = 0; i < round; i++)
                ofp_domain_progress(side.domain);
            /* The first one connects. */
            while (round == 0 && ofp_load_acquire(&shared->words[RECEIVED]) == 0)
                ofp_domain_progress(side.domain);
            if (has_attach(&side))
                wait_until(&shared->words[RECEIVED], round + 1);
            CHECK_EQUAL(completion_of(&side, round + 1).error, 0);
        } else {
            memset(buffer, 0, LENGTH);
            post(&side, tagged(OFP_TRECV, peer, round, buffer, LENGTH, round + 1));
            CHECK_EQUAL(completion_of(&side, round + 1).length, LENGTH);
            check_filled(buffer, LENGTH, round);
            atomic_fetch_add(&shared->words[RECEIVED], 1);
        }
    }
    /* What came too late has hurt nobody. */
    CHECK_EQUAL(link_count(&side), 1);
    meet_all(shared, 1);
    side_close(&side);
}

static void test_a_sender_that_stops_helping(void **state)
{
    (void)state;
    run_processes(2, absent_process, NULL);
    with_setting("OFIPY_SHM_BOUNCE_COUNT", "2", absent_process);
    with_setting("OFIPY_SHM_ATTACH", "no", absent_process);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_sender_that_stops_helping)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
