/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An explorer of C11's memory model. A test includes this file before any header that uses atomics, so that the
 * project's macros reach the explorer with the memory orders that stand in ofipy/atomics.h.
 *
 * A state is an execution graph: the operations of each thread, the store that each load read, and the modification order
 * of each location. A load may read every store that coherence allows, and a store may take every place in the modification
 * order that coherence allows. Happens-before is kept in views: the latest store known of each location, and a clock. The
 * sequentially consistent operations need a total order S that agrees with them (C++20, [atomics.order]); a graph without one is dropped.
 * A release sequence continues by read-modify-writes only, as C++20 says (C11 allows more, so this model is weaker).
 * Left out: executions in which a load reads a store that depends on it or is later in its thread (load buffering).
 *
 * A thread is a function of the values that it reads. To continue it, the explorer calls it again with the values so far,
 * and leaves it by longjmp at its next operation. So a state is plain memory, and the search copies it. A graph that was
 * reached before is not searched again, whatever the order of its steps; graphs are told apart by a hash of 64 bits.
 */
#ifndef MEMORY_MODEL_H
#define MEMORY_MODEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODEL_THREADS 5
#define MODEL_LOCATIONS 8
#define MODEL_STORES 200 /* of all locations */
#define MODEL_LOG 160    /* operations of a thread */
#define MODEL_EVENTS 140
#define MODEL_SITES 32
#define MODEL_CELLS 16 /* memory that is not atomic */

enum model_kind {
    MODEL_NONE,
    MODEL_LOAD,
    MODEL_STORE,
    MODEL_SWAP,
    MODEL_IF,
    MODEL_OR,
    MODEL_AND,
    MODEL_ADD,
    MODEL_FENCE,
    MODEL_AWAIT,
    MODEL_READ,
    MODEL_WRITE
};

/* The latest store known of each location, and of each thread the operations known. */
struct model_view {
    uint8_t seen[MODEL_LOCATIONS];
    uint8_t clock[MODEL_THREADS];
};

struct model_store {
    uint64_t value;
    struct model_view view; /* what a load-acquire of it learns */
    uint8_t thread, index;
    bool followed; /* a read-modify-write read it: nothing comes between the two */
};

struct model_operation {
    uint8_t kind, location, order, failure;
    uint64_t value, expected;
};

/* An atomic access or a fence that S may order. */
struct model_event {
    uint8_t thread, index, location, store; /* fence: MODEL_LOCATIONS */
    bool reads_only, ordered;
    struct model_view before;
};

struct model_thread {
    struct model_operation next;
    struct model_view view, released, acquirable; /* now; at the last release fence; of relaxed loads */
    uint64_t log[MODEL_LOG];
    uint64_t hash;
    uint8_t count;
};

struct model_state {
    struct model_thread threads[MODEL_THREADS];
    struct model_store stores[MODEL_STORES];
    uint8_t order[MODEL_LOCATIONS][MODEL_STORES]; /* modification order */
    uint8_t length[MODEL_LOCATIONS];
    uint8_t store_count, event_count;
    struct model_event events[MODEL_EVENTS];
    uint64_t cell[MODEL_CELLS];
    uint8_t writer[MODEL_CELLS], written[MODEL_CELLS], read[MODEL_CELLS][MODEL_THREADS];
};

/* One use of an atomic macro in the code under test. `order` may be made weaker by a test. */
struct model_site {
    const char *function, *file;
    int line;
    uint8_t kind, order, weaker;
    bool weakened;
};

struct model_program {
    void (*threads[MODEL_THREADS])(void); /* thread 0 runs first, alone */
    const char *(*end)(void);             /* NULL: a fine end. Uses model_result and model_final */
    bool may_block;
    bool fences; /* it has some: all accesses take part in S through them */
};

static struct model_site model_sites[MODEL_SITES];
static int model_site_count;
static const void *model_addresses[MODEL_LOCATIONS];
static int model_location_count;
static const struct model_program *model_program;
static struct model_state *model_now;
static struct model_thread *model_self;
static int model_self_index;
static uint8_t model_replayed;
static jmp_buf model_leave;
static const char *model_fault;
static uint64_t model_results[MODEL_THREADS][8];
static uint64_t model_graphs, model_ends;

static void model_fail(const char *what)
{
    if (!model_fault)
        model_fault = what;
}

/* -------------------------------------------------------------------------------------------- what a thread executes */

/* The result of the thread's next operation, or leave the thread until the explorer has chosen one. */
static uint64_t model_call(struct model_operation operation)
{
    if (model_replayed < model_self->count)
        return model_self->log[model_replayed++];
    model_self->next = operation;
    longjmp(model_leave, 1);
}

static uint8_t model_locate(const volatile void *address)
{
    for (int i = 0; i < model_location_count; i++)
        if (model_addresses[i] == (const void *)(uintptr_t)address)
            return (uint8_t)i;
    assert_true(model_location_count < MODEL_LOCATIONS);
    model_addresses[model_location_count] = (const void *)(uintptr_t)address;
    return (uint8_t)model_location_count++;
}

static uint8_t model_order_at(int *site, const char *file, const char *function, int line, enum model_kind kind,
                              memory_order order)
{
    if (!*site) {
        assert_true(model_site_count + 1 < MODEL_SITES);
        *site = ++model_site_count;
        model_sites[*site] = (struct model_site){
            .function = function, .file = file, .line = line, .kind = (uint8_t)kind, .order = (uint8_t)order};
    }
    return model_sites[*site].weakened ? model_sites[*site].weaker : (uint8_t)order;
}

static uint64_t model_access(const volatile void *object, enum model_kind kind, uint64_t value, uint8_t order)
{
    return model_call((struct model_operation){
        .kind = (uint8_t)kind, .location = model_locate(object), .value = value, .order = order});
}

static inline bool model_replace(const volatile void *object, uint64_t *expected, uint64_t desired, uint8_t order,
                                 uint8_t failure)
{
    uint64_t wanted = *expected;

    *expected = model_call((struct model_operation){.kind = MODEL_IF,
                                                    .location = model_locate(object),
                                                    .expected = wanted,
                                                    .value = desired,
                                                    .order = order,
                                                    .failure = failure});
    return *expected == wanted;
}

#define MODEL_ORDER(kind, order)                                                                                       \
    __extension__({                                                                                                    \
        static int model_site;                                                                                         \
        model_order_at(&model_site, __FILE__, __func__, __LINE__, kind, order);                                        \
    })
#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_compare_exchange_strong_explicit
#undef atomic_fetch_or_explicit
#undef atomic_fetch_and_explicit
#undef atomic_fetch_add_explicit
#undef atomic_thread_fence
#define atomic_load_explicit(object, order) model_access(object, MODEL_LOAD, 0, MODEL_ORDER(MODEL_LOAD, order))
#define atomic_store_explicit(object, value, order)                                                                    \
    ((void)model_access(object, MODEL_STORE, value, MODEL_ORDER(MODEL_STORE, order)))
#define atomic_exchange_explicit(object, value, order)                                                                 \
    model_access(object, MODEL_SWAP, value, MODEL_ORDER(MODEL_SWAP, order))
#define atomic_fetch_or_explicit(object, value, order)                                                                 \
    model_access(object, MODEL_OR, value, MODEL_ORDER(MODEL_OR, order))
#define atomic_fetch_and_explicit(object, value, order)                                                                \
    model_access(object, MODEL_AND, value, MODEL_ORDER(MODEL_AND, order))
#define atomic_fetch_add_explicit(object, value, order)                                                                \
    model_access(object, MODEL_ADD, value, MODEL_ORDER(MODEL_ADD, order))
#define atomic_compare_exchange_strong_explicit(object, expected, desired, order, failure)                             \
    model_replace(object, expected, desired, MODEL_ORDER(MODEL_IF, order), MODEL_ORDER(MODEL_LOAD, failure))
#define atomic_thread_fence(strength)                                                                                  \
    ((void)model_call((struct model_operation){.kind = MODEL_FENCE, .order = MODEL_ORDER(MODEL_FENCE, strength)}))

/* Wait until the location has another value than `value`; relaxed. Returns it. */
static inline uint64_t model_await(const volatile void *object, uint64_t value)
{
    return model_call((struct model_operation){
        .kind = MODEL_AWAIT, .location = model_locate(object), .expected = value, .order = memory_order_relaxed});
}

static inline uint64_t model_read(unsigned cell)
{
    return model_call((struct model_operation){.kind = MODEL_READ, .location = (uint8_t)cell});
}

static inline void model_write(unsigned cell, uint64_t value)
{
    model_call((struct model_operation){.kind = MODEL_WRITE, .location = (uint8_t)cell, .value = value});
}

/* A result of the thread, for the check at the end. */
static inline void model_result(unsigned which, uint64_t value) { model_results[model_self_index][which] = value; }

/* The last value of a location, for the check at the end. */
static inline uint64_t model_final(const volatile void *object)
{
    uint8_t location = model_locate(object);

    return model_now->stores[model_now->order[location][model_now->length[location] - 1]].value;
}

#include "memory_search.h"

#endif
