/* SPDX-License-Identifier: BSD-3-Clause */
/* Providers that were built with the header of another minor version. */
#include "core_fixture.h"
#include "provider/provider_tables.h"

struct table {
    uint32_t size;
    int first, second;
};

static void test_what_a_table_lacks_is_zero(void **state)
{
    static const struct table given = {.size = offsetof(struct table, second), .first = 1, .second = 2};
    const struct table *whole = ofpi_table_convert(&given, given.size, sizeof(given));

    (void)state;
    assert_int_equal(whole->first, 1);
    assert_int_equal(whole->second, 0);
    assert_ptr_equal(whole, ofpi_table_convert(&given, given.size, sizeof(given)));
    assert_ptr_equal(&given, ofpi_table_convert(&given, sizeof(given), sizeof(given)));
    assert_null(ofpi_table_convert(NULL, 0, sizeof(given)));
}

static struct ofp_provider base, other;
static struct ofp_domain_ops domain_ops;
static int32_t info_step;

static const struct ofp_provider *other_entry(const struct ofp_core *core)
{
    base = *ofp_provider_entry(core);
    other = base;
    other.name = "other";
    domain_ops = *base.domain_ops;
    domain_ops.size = offsetof(struct ofp_domain_ops, memory_allocate);
    domain_ops.memory_allocate = (int (*)(struct ofp_domain *, struct ofp_region *, char *, size_t))(uintptr_t)1;
    other.domain_ops = &domain_ops;
    other.size = offsetof(struct ofp_provider, passive_ops);
    return &other;
}

static void test_an_earlier_provider_is_loaded(void **state)
{
    struct ofp_provider *provider;
    char text[OFP_TEXT_MAX];

    (void)state;
    assert_int_equal(ofpi_provider_register(other_entry, &provider, text, sizeof(text)), 0);
    assert_ptr_not_equal(provider, &other);
    assert_null(provider->passive_ops);
    assert_null(provider->domain_ops->memory_allocate);
    assert_int_equal(provider->domain_ops->domain_size, domain_ops.domain_size);
}

static int getinfo(struct ofp_info *infos, int max, char *text, size_t text_size)
{
    (void)text;
    (void)text_size;
    for (int i = 0; i < max; i++)
        *(uint64_t *)((char *)infos + i * info_step) = (uint64_t)i + 1;
    return max;
}

static void test_infos_of_other_lengths(void **state)
{
    static const int32_t steps[] = {8, 64, sizeof(struct ofp_info), sizeof(struct ofp_info) + 64};
    struct ofp_provider provider = {.getinfo = getinfo};
    char text[OFP_TEXT_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct ofp_info infos[3] = {0};

        info_step = steps[i];
        provider.info_size = (uint32_t)info_step;
        assert_int_equal(ofpi_provider_infos_get(&provider, infos, 3, text, sizeof(text)), 3);
        for (int j = 0; j < 3; j++)
            assert_int_equal(*(uint64_t *)&infos[j], j + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_table_lacks_is_zero),
        cmocka_unit_test(test_an_earlier_provider_is_loaded),
        cmocka_unit_test(test_infos_of_other_lengths),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
