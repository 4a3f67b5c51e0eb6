/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions of an endpoint over several ways, one of whose devices makes keys of its own: what travels, and what becomes of it. */
#include "link_fixture.h"

#include "link/link_keys.h"

enum { NEAR, FAR };

static char memory[64];
static uint8_t ways[OFP_REGION_WAYS_MAX];
static uint32_t peer;

static int open_there(void **state)
{
    open_endpoint(state);
    peer = neighbour();
    far.device_key = 42;
    return 0;
}

static struct ofp_region_handle register_memory(const uint64_t *key)
{
    struct ofp_region_attr attr = {.base = memory,
                                   .length = sizeof(memory),
                                   .access = OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE,
                                   .has_key = key != NULL,
                                   .key = key ? *key : 0};
    struct ofp_region_handle region;

    assert_int_equal(ofp_region_register(fixture.domain, &attr, &region), 0);
    assert_true(region.has_ways);
    return region;
}

static size_t ways_of(const struct ofp_region_handle *region)
{
    size_t length = sizeof(ways);

    assert_int_equal(ofp_region_ways(fixture.domain, region->id, ways, &length), 0);
    return length;
}

static bool find(uint32_t device, uint64_t key, struct ofp_remote_segment *there)
{
    struct ofp_remote_segment remote = {.offset = 8, .length = 16, .key = key};
    bool found;

    lock();
    found = ofp_remote_at_device(inner_of(peer, device), &remote, there);
    unlock();
    return found;
}

static void test_the_device_s_key_travels_beside_the_core_s(void **state)
{
    struct ofp_region_handle region = register_memory(NULL);
    struct ofp_remote_segment there;
    size_t length = ways_of(&region);

    (void)state;
    /* The core's is what it has drawn, and peers count from 0. */
    assert_int_not_equal(region.key, 42);
    assert_int_equal(region.remote_base, 0);
    assert_int_equal(length, 1 + strlen("far") + 16);
    assert_false(find(FAR, region.key, &there));
    assert_int_equal(ofp_remote_ways_learn(region.key, ways, length), 0);
    assert_true(find(FAR, region.key, &there));
    assert_int_equal(there.key, 42);
    assert_int_equal(there.offset, DEVICE_BASE + 8);
    assert_int_equal(there.length, 16);
    assert_false(find(NEAR, region.key, &there));
    assert_false(find(FAR, region.key + 1, &there));
    ofp_remote_ways_forget(region.key);
    assert_false(find(FAR, region.key, &there));
    assert_int_equal(ofp_region_close(fixture.domain, region.id), 0);
    length = sizeof(ways);
    assert_int_equal(ofp_region_ways(fixture.domain, region.id, ways, &length), -OFP_ENOREGION);
}

static void test_peers_that_ask_the_core_name_its_key(void **state)
{
    struct ofp_region_handle region = register_memory(NULL);
    struct ofp_remote_access access = {0};

    (void)state;
    lock();
    for (uint32_t i = NEAR; i <= FAR; i++) {
        struct ofp_endpoint *inner = &link_inner_find(fixture.endpoint, i)->base;

        assert_int_equal(ofp_remote_access(inner, region.key, 8, 8, OFP_ACCESS_REMOTE_READ, &access), 0);
        assert_ptr_equal(access.memory, memory + 8);
        ofpi_core.remote_release(&access);
    }
    unlock();
    assert_int_equal(ofp_region_close(fixture.domain, region.id), 0);
}

/* Others may have chosen the same one for other memory. */
static void test_a_chosen_key_is_the_core_s_alone(void **state)
{
    const uint64_t key = 5;
    struct ofp_region_handle region = register_memory(&key);

    (void)state;
    assert_int_equal(region.key, 5);
    assert_int_equal(ways_of(&region), 0);
    assert_int_equal(ofp_region_close(fixture.domain, region.id), 0);
}

static void test_a_device_that_refuses_leaves_the_region_to_the_others(void **state)
{
    struct ofp_region_handle region;

    (void)state;
    far.register_result = -ENOMEM;
    region = register_memory(NULL);
    assert_int_equal(ways_of(&region), 0);
    lock();
    for (uint32_t i = 0; i < OFP_DEVICE_LIMIT; i++) {
        const struct ofp_region *seen = ofpi_core.region_by_id(fixture.domain, region.id);

        assert_int_equal(seen->device[i].key, i < LINK_DEVICE(FAR) ? region.key : 0);
        assert_int_equal(seen->device[i].remote_base, 0);
    }
    unlock();
    assert_int_equal(ofp_region_close(fixture.domain, region.id), 0);
    assert_int_equal(far.withdrawals, 0);
}

/* --------------------------------------------------------------------------------------------------------- the table */

static size_t entry(uint8_t *bytes, const char *provider, uint64_t key)
{
    return link_keys_write(bytes, provider, &(struct link_lane_key){key, key * 2});
}

static void test_many_are_found(void **state)
{
    struct link_lane_key way;
    uint8_t bytes[2 * LINK_LANE_KEY_MAX];
    size_t length;

    (void)state;
    for (uint64_t key = 0; key < 1000; key++) {
        length = entry(bytes, "one", key + 1);
        length += entry(bytes + length, "other", key + 2);
        assert_int_equal(link_keys_add(key << 56 | key, bytes, length), 0);
    }
    for (uint64_t key = 0; key < 1000; key++) {
        assert_true(link_keys_find(key << 56 | key, "other", &way));
        assert_int_equal(way.key, key + 2);
        assert_int_equal(way.remote_base, 2 * (key + 2));
        assert_false(link_keys_find(key << 56 | key, "on", &way));
        assert_false(link_keys_find(key << 56 | key, "ones", &way));
    }
    for (uint64_t key = 0; key < 1000; key++)
        link_keys_remove(key << 56 | key);
    assert_false(link_keys_find(0, "one", &way));
    link_keys_remove(0);
}

static void test_the_last_who_holds_it_forgets_it(void **state)
{
    struct link_lane_key way;
    uint8_t bytes[LINK_LANE_KEY_MAX];
    size_t length = entry(bytes, "one", 1);

    (void)state;
    assert_int_equal(link_keys_add(7, bytes, length), 0);
    assert_int_equal(link_keys_add(7, bytes, length), 0);
    link_keys_remove(7);
    assert_true(link_keys_find(7, "one", &way));
    link_keys_remove(7);
    assert_false(link_keys_find(7, "one", &way));
}

static void test_of_two_that_differ_none_is_believed(void **state)
{
    struct link_lane_key way;
    uint8_t bytes[LINK_LANE_KEY_MAX];

    (void)state;
    assert_int_equal(link_keys_add(7, bytes, entry(bytes, "one", 1)), 0);
    assert_int_equal(link_keys_add(7, bytes, entry(bytes, "one", 2)), 0);
    assert_false(link_keys_find(7, "one", &way));
    link_keys_remove(7);
    assert_false(link_keys_find(7, "one", &way));
    link_keys_remove(7);
    assert_int_equal(link_keys_add(7, bytes, entry(bytes, "one", 2)), 0);
    assert_true(link_keys_find(7, "one", &way));
    link_keys_remove(7);
}

static void test_what_is_no_name_is_refused(void **state)
{
    uint8_t bytes[(OFP_DEVICE_LIMIT + 1) * LINK_LANE_KEY_MAX] = {0};
    size_t length = entry(bytes, "one", 1), many = 0;

    (void)state;
    for (size_t cut = 0; cut < length; cut++)
        assert_int_equal(link_keys_add(7, bytes, cut), -EINVAL);
    for (size_t more = 1; more < length; more++)
        assert_int_equal(link_keys_add(7, bytes, length + more), -EINVAL);
    bytes[0] = 0;
    assert_int_equal(link_keys_add(7, bytes, length), -EINVAL);
    bytes[0] = 255;
    assert_int_equal(link_keys_add(7, bytes, length), -EINVAL);
    for (uint32_t i = 0; i <= OFP_DEVICE_LIMIT; i++)
        many += entry(bytes + many, "one", 1);
    assert_int_equal(link_keys_add(7, bytes, many), -EINVAL);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, open_there, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_the_device_s_key_travels_beside_the_core_s),
        WITH(test_peers_that_ask_the_core_name_its_key),
        WITH(test_a_chosen_key_is_the_core_s_alone),
        WITH(test_a_device_that_refuses_leaves_the_region_to_the_others),
        cmocka_unit_test(test_many_are_found),
        cmocka_unit_test(test_the_last_who_holds_it_forgets_it),
        cmocka_unit_test(test_of_two_that_differ_none_is_believed),
        cmocka_unit_test(test_what_is_no_name_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
