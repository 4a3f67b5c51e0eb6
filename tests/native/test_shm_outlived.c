/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages in slots beyond the bound on unexpected payload, whose sender closes. */
#include "test_shm_fixture.h"

#define COUNT 20
#define LENGTH 90 /* in a slot, and more than lies in the core's entry */

/* They are the receiver's: they are there when the sender has gone. */
static void outlived_process(struct shared *shared, uint32_t rank)
{
    struct ofp_endpoint_statistics now = {0};
    struct side side;
    uint8_t buffer[LENGTH];
    char service[40];
    uint32_t peer;

    domain_open(&side);
    service_of(shared, rank, service);
    endpoint_open(&side, service, rank ? 1000 : 0);
    meet_all(shared, 0);
    peer = insert_rank(&side, shared, !rank);
    for (uint32_t i = 0; rank == 0 && i < COUNT; i++) {
        fill(buffer, LENGTH, i);
        post(&side, tagged(OFP_TSEND, peer, i, buffer, LENGTH, 1));
        CHECK_EQUAL(completion_of(&side, 1).error, 0);
    }
    while (rank == 1 && !now.peers_lost) {
        ofp_domain_progress(side.domain);
        CHECK_EQUAL(ofp_endpoint_statistics(side.endpoint, &now), 0);
    }
    CHECK(rank == 0 || now.announced_messages > COUNT / 2);
    for (uint32_t i = 0; rank == 1 && i < COUNT; i++) {
        post(&side, tagged(OFP_TRECV, OFP_PEER_ANY, i, buffer, LENGTH, 2));
        CHECK_EQUAL(completion_of(&side, 2).length, LENGTH);
        check_filled(buffer, LENGTH, i);
    }
    side_close(&side);
}

static void test_they_outlive_their_sender(void **state)
{
    (void)state;
    run_processes(2, outlived_process, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_they_outlive_their_sender)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
