/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"

enum { OBJECTS = 1000 };

struct object {
    uint64_t value;
    char tail[50];
};

static struct ofpi_pool pool;

static int open_pool(void **state)
{
    (void)state;
    ofpi_pool_init(&pool, sizeof(struct object));
    return 0;
}

static int close_pool(void **state)
{
    (void)state;
    ofpi_pool_close(&pool);
    return 0;
}

static void test_addresses_stay_while_the_pool_grows(void **state)
{
    struct object *objects[OBJECTS];
    uint64_t ids[OBJECTS];

    (void)state;
    for (uint64_t i = 0; i < OBJECTS; i++) {
        objects[i] = ofpi_pool_allocate(&pool, &ids[i]);
        assert_non_null(objects[i]);
        assert_int_not_equal(ids[i], 0);
        assert_int_equal((uintptr_t)objects[i] % 16, 0);
        objects[i]->value = i;
    }
    assert_int_equal(ofpi_pool_count_live(&pool), OBJECTS);
    for (uint64_t i = 0; i < OBJECTS; i++) {
        assert_ptr_equal(ofpi_pool_find(&pool, ids[i]), objects[i]);
        assert_int_equal(objects[i]->value, i);
    }
}

static void test_objects_come_zeroed(void **state)
{
    static const struct object zero;
    uint64_t id;
    struct object *object = ofpi_pool_allocate(&pool, &id);

    (void)state;
    memset(object, 0xff, sizeof(*object));
    ofpi_pool_free(&pool, id);
    object = ofpi_pool_allocate(&pool, &id);
    assert_memory_equal(object, &zero, sizeof(zero));
}

static void test_stale_and_invented_ids_are_found_out(void **state)
{
    uint64_t id, again;
    struct object *object = ofpi_pool_allocate(&pool, &id);

    (void)state;
    ofpi_pool_free(&pool, id);
    assert_null(ofpi_pool_find(&pool, id));
    assert_ptr_equal(ofpi_pool_allocate(&pool, &again), object);
    assert_int_not_equal(id, again);
    assert_null(ofpi_pool_find(&pool, id));
    assert_non_null(ofpi_pool_find(&pool, again));
    assert_null(ofpi_pool_find(&pool, 0));
    assert_null(ofpi_pool_find(&pool, UINT64_MAX));
    assert_null(ofpi_pool_find(&pool, again + 1));
    assert_null(ofpi_pool_find(&pool, again + ((uint64_t)1 << 32)));
    ofpi_pool_free(&pool, id);
    assert_int_equal(ofpi_pool_count_live(&pool), 1);
}

static void test_empty_pool_has_no_objects(void **state)
{
    uint32_t cursor = 0;

    (void)state;
    assert_null(ofpi_pool_find(&pool, (uint64_t)1 << 32 | 1));
    assert_null(ofpi_pool_find_next(&pool, &cursor));
    ofpi_pool_free(&pool, 1);
    assert_int_equal(ofpi_pool_count_live(&pool), 0);
}

static void test_no_allocation_once_warm(void **state)
{
    uint64_t ids[OBJECTS];
    uint32_t chunks;

    (void)state;
    for (int i = 0; i < OBJECTS; i++)
        ofpi_pool_allocate(&pool, &ids[i]);
    chunks = pool.chunk_count;
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < OBJECTS; i++)
            ofpi_pool_free(&pool, ids[i]);
        for (int i = 0; i < OBJECTS; i++)
            assert_non_null(ofpi_pool_allocate(&pool, &ids[i]));
    }
    assert_int_equal(pool.chunk_count, chunks);
}

static void test_visits_every_live_object_once(void **state)
{
    uint64_t ids[OBJECTS], sum = 0, expected = 0;
    struct object *object;
    uint32_t cursor = 0;

    (void)state;
    for (uint64_t i = 0; i < OBJECTS; i++)
        ((struct object *)ofpi_pool_allocate(&pool, &ids[i]))->value = i * i + 1;
    for (uint64_t i = 0; i < OBJECTS; i++) {
        if (i % 3 == 0)
            ofpi_pool_free(&pool, ids[i]);
        else
            expected += i * i + 1;
    }
    while ((object = ofpi_pool_find_next(&pool, &cursor)))
        sum += object->value;
    assert_int_equal(sum, expected);
}

/* Against a plain array, in an order that the seed fixes. */
static void test_random_use_against_a_model(void **state)
{
    uint64_t ids[OBJECTS] = {0};
    struct object *objects[OBJECTS];
    unsigned seed = 1;
    uint32_t live = 0;

    (void)state;
    for (int step = 0; step < 20000; step++) {
        int place = rand_r(&seed) % OBJECTS;

        if (ids[place]) {
            assert_ptr_equal(ofpi_pool_find(&pool, ids[place]), objects[place]);
            assert_int_equal(objects[place]->value, (uint64_t)place);
            ofpi_pool_free(&pool, ids[place]);
            ids[place] = 0;
            live--;
        } else {
            objects[place] = ofpi_pool_allocate(&pool, &ids[place]);
            objects[place]->value = (uint64_t)place;
            live++;
        }
        assert_int_equal(ofpi_pool_count_live(&pool), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_addresses_stay_while_the_pool_grows, open_pool, close_pool),
        cmocka_unit_test_setup_teardown(test_objects_come_zeroed, open_pool, close_pool),
        cmocka_unit_test_setup_teardown(test_stale_and_invented_ids_are_found_out, open_pool, close_pool),
        cmocka_unit_test_setup_teardown(test_empty_pool_has_no_objects, open_pool, close_pool),
        cmocka_unit_test_setup_teardown(test_no_allocation_once_warm, open_pool, close_pool),
        cmocka_unit_test_setup_teardown(test_visits_every_live_object_once, open_pool, close_pool),
        cmocka_unit_test_setup_teardown(test_random_use_against_a_model, open_pool, close_pool),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
