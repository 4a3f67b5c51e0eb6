/* SPDX-License-Identifier: BSD-3-Clause */
/* Which endpoint the other side is, as segments say; those of builds before this do not. */
#include "identity_ear.h"
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_hears_who_the_other_is),
        cmocka_unit_test(test_another_than_is_meant),
        cmocka_unit_test(test_a_build_before_identities),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
