/* SPDX-License-Identifier: BSD-3-Clause */
/* Large messages by the pipeline: the messages of one sender leave one after the other. */
#include "test_shm_fixture.h"

enum { MESSAGES = 4, LENGTH = 2 << 20 };

/*
 * The receiver asks for all messages before the first fragment arrives. When the first message is whole, the last one has not begun: what
 * one call of progress reads (SHM_DRAIN fragments) and what the sender is ahead together are shorter than the two between.
 */
static void stream_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    uint8_t *buffers = malloc((size_t)MESSAGES * LENGTH);
    uint32_t peer;

    side_open(&side, shared, rank);
    meet_all(shared, 0);
    peer = insert_rank(&side, shared, !rank);
    memset(buffers, 0xee, (size_t)MESSAGES * LENGTH);
    if (rank == 0) {
        for (uint32_t i = 0; i < MESSAGES; i++) {
            fill(buffers + i * LENGTH, LENGTH, (int)i);
            post(&side, tagged(OFP_TSEND, peer, i, buffers + i * LENGTH, LENGTH, 1));
        }
        for (uint32_t i = 0; i < MESSAGES; i++)
            CHECK_EQUAL(next_completion(&side).error, 0);
    } else {
        for (uint32_t i = 0; i < MESSAGES; i++)
            post(&side, tagged(OFP_TRECV, peer, i, buffers + i * LENGTH, LENGTH, i));
        for (uint32_t i = 0; i < MESSAGES; i++) {
            const uint8_t *last = buffers + (MESSAGES - 1) * LENGTH;

            CHECK_EQUAL(next_completion(&side).context, i);
            check_filled(buffers + i * LENGTH, LENGTH, (int)i);
            for (uint32_t at = 0; i == 0 && at < LENGTH; at++)
                CHECK_EQUAL(last[at], 0xee);
        }
    }
    meet_all_busy(&side, shared, 1);
    side_close(&side);
    free(buffers);
}

static void messages_leave_one_after_the_other(void **state)
{
    (void)state;
    with_setting("OFIPY_SHM_ATTACH", "no", stream_process);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(messages_leave_one_after_the_other)};

    return cmocka_run_group_tests_name("shm push", tests, NULL, NULL);
}
