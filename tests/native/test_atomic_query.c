/* SPDX-License-Identifier: BSD-3-Clause */
#include "core_fixture.h"

static struct ofp_domain *domain_with(uint64_t caps)
{
    struct ofp_info info = fake_info(false);
    struct ofp_domain_attr attr = {0};
    struct ofp_domain *domain;
    char text[OFP_TEXT_MAX];

    info.caps = (info.caps & ~(uint64_t)OFP_CAP_ATOMIC) | caps;
    info.max_atomic_size = 1000;
    assert_int_equal(ofp_domain_open(fake_provider(), &info, &attr, &domain, text, sizeof(text)), 0);
    return domain;
}

static void test_the_longest_vector_is_the_infos(void **state)
{
    struct ofp_domain *domain = domain_with(OFP_CAP_ATOMIC);
    uint64_t count = 0;

    (void)state;
    assert_int_equal(ofp_atomic_query(domain, OFP_ATOMIC, OFP_ATOMIC_SUM, OFP_UINT8, &count), 0);
    assert_int_equal(count, 1000);
    assert_int_equal(ofp_atomic_query(domain, OFP_FETCH_ATOMIC, OFP_ATOMIC_READ, OFP_DOUBLE_COMPLEX, &count), 0);
    assert_int_equal(count, 62);
    assert_int_equal(ofp_atomic_query(domain, OFP_COMPARE_ATOMIC, OFP_ATOMIC_MSWAP, OFP_INT64, &count), 0);
    assert_int_equal(count, 125);
    assert_int_equal(ofp_domain_close(domain), 0);
}

static void test_what_there_is_not(void **state)
{
    struct ofp_domain *domain = domain_with(OFP_CAP_ATOMIC);
    uint64_t count = 3;

    (void)state;
    assert_int_equal(ofp_atomic_query(domain, OFP_ATOMIC, OFP_ATOMIC_READ, OFP_UINT8, &count), -EOPNOTSUPP);
    assert_int_equal(ofp_atomic_query(domain, OFP_ATOMIC, OFP_ATOMIC_BOR, OFP_FLOAT, &count), -EOPNOTSUPP);
    assert_int_equal(ofp_atomic_query(domain, OFP_WRITE, OFP_ATOMIC_SUM, OFP_UINT8, &count), -EOPNOTSUPP);
    assert_int_equal(ofp_atomic_query(domain, OFP_ATOMIC, OFP_ATOMIC_SUM, UINT32_MAX, &count), -EOPNOTSUPP);
    assert_int_equal(count, 3);
    assert_int_equal(ofp_domain_retire(domain), 0);
    assert_int_equal(ofp_atomic_query(domain, OFP_ATOMIC, OFP_ATOMIC_SUM, OFP_UINT8, &count), -ECANCELED);
    ofp_domain_free(domain);
}

static void test_without_the_capability_there_is_none(void **state)
{
    struct ofp_domain *domain = domain_with(0);
    uint64_t count;

    (void)state;
    assert_int_equal(ofp_atomic_query(domain, OFP_ATOMIC, OFP_ATOMIC_SUM, OFP_UINT8, &count), -EOPNOTSUPP);
    assert_int_equal(ofp_domain_close(domain), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_longest_vector_is_the_infos),
        cmocka_unit_test(test_what_there_is_not),
        cmocka_unit_test(test_without_the_capability_there_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
