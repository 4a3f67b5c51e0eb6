/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A caller over verbs that has proved its key and sends at once: its packet is here before the device has confirmed the
 * connection. The connection manager is played here.
 */
#include "verbs_key_fixture.h"

#include "ofipy/connect.h"
#include "progress/progress.h"

static bool is_proven(uint32_t caller)
{
    struct ofp_security security;

    assert_int_equal(ofp_peer_security(side.endpoint, caller, &security), 0);
    return security.proven;
}

static void test_a_caller_that_sends_before_the_connection_is_confirmed(void **state)
{
    struct verbs_rdm *rdm = ofpi_rdm_private_of(side.endpoint);
    struct verbs_path *path;
    struct verbs_facts facts;
    uint8_t proof[OFPI_PROOF_SIZE];

    (void)state;
    call_with_proof(&facts, OWN, OFPI_RDM_VERSION, true);
    assert_true(verbs_answer_decode(said.bytes, said.length, &facts, proof));
    path = OFP_CONTAINER_OF(rdm->paths.next, struct verbs_path, node);
    assert_int_equal(path->state, VERBS_PATH_ACCEPTED);
    assert_false(is_proven(path->base->peer->index));
    /* A packet does this when it arrives. */
    assert_int_equal(ofpi_domain_enter((struct ofpi_domain *)side.domain), 0);
    rdm->channel->user->confirmed(path->base);
    ofpi_domain_leave((struct ofpi_domain *)side.domain);
    assert_int_equal(path->state, VERBS_PATH_ACCEPTED);
    assert_true(is_proven(path->base->peer->index));
    tell((struct rdma_cm_event){.id = said.id, .event = RDMA_CM_EVENT_ESTABLISHED}, NULL, 0);
    assert_int_equal(path->state, VERBS_PATH_UP);
    assert_true(is_proven(path->base->peer->index));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_caller_that_sends_before_the_connection_is_confirmed, open_side,
                                        close_side),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
