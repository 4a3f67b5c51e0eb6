/* SPDX-License-Identifier: BSD-3-Clause */
/* The second half of memory_model.h: the effect of an operation, the order S, and the search. */
#ifndef MEMORY_SEARCH_H
#define MEMORY_SEARCH_H

static bool model_is_ordered(uint8_t order) { return order == memory_order_seq_cst; }
static bool model_acquires(uint8_t order)
{
    return order == memory_order_acquire || order == memory_order_acq_rel || model_is_ordered(order);
}
static bool model_releases(uint8_t order)
{
    return order == memory_order_release || order == memory_order_acq_rel || model_is_ordered(order);
}

/* The place of a store in its location's modification order. */
static int model_place(const struct model_state *state, int location, uint8_t store)
{
    for (int i = 0; i < state->length[location]; i++)
        if (state->order[location][i] == store)
            return i;
    return -1;
}

static void model_learn(const struct model_state *state, struct model_view *view, const struct model_view *other)
{
    for (int i = 0; i < model_location_count; i++)
        if (view->seen[i] != other->seen[i] &&
            model_place(state, i, other->seen[i]) > model_place(state, i, view->seen[i]))
            view->seen[i] = other->seen[i];
    for (int i = 0; i < MODEL_THREADS; i++)
        if (other->clock[i] > view->clock[i])
            view->clock[i] = other->clock[i];
}

/* ------------------------------------------------------------------------------------------------------- the order S */

__extension__ typedef unsigned __int128 model_set; /* of ordered events */

static bool model_happens_before(const struct model_event *a, const struct model_event *b)
{
    return a->thread == b->thread ? a->index < b->index : b->before.clock[a->thread] >= a->index;
}

/*
 * Strongly happens before: the other thread did something after `a` that happens before `b`. That something is the
 * release itself only for fences.
 */
static bool model_strongly_before(const struct model_event *a, const struct model_event *b)
{
    return a->thread == b->thread ? a->index < b->index : b->before.clock[a->thread] > a->index;
}

static bool model_is_fence(const struct model_event *event) { return event->location == MODEL_LOCATIONS; }

/* Reads-from, modification order, reads-before and their closure order the accesses of a location by this rank. */
static int model_rank(const struct model_state *state, const struct model_event *event)
{
    return model_is_fence(event) ? 0 : 2 * model_place(state, event->location, event->store) + event->reads_only;
}

static void model_add_edges(const struct model_state *state, model_set *into, const uint8_t *nodes, int count, int a,
                            int b)
{
    const struct model_event *first = &state->events[a], *second = &state->events[b];

    for (int i = 0; i < count; i++) {
        const struct model_event *source = &state->events[nodes[i]];

        if (nodes[i] != a && !(model_is_fence(source) && model_happens_before(source, first)))
            continue;
        for (int j = 0; j < count; j++) {
            const struct model_event *target = &state->events[nodes[j]];

            if (nodes[j] == b || (model_is_fence(target) && model_happens_before(second, target)))
                into[j] |= (model_set)1 << i;
        }
    }
}

/* Whether a total order of the sequentially consistent operations exists. */
static bool model_has_order(const struct model_state *state)
{
    model_set into[128] = {0}, left;
    uint8_t nodes[128];
    int count = 0, ranks[MODEL_EVENTS];
    bool changed = true;

    for (int i = 0; i < state->event_count; i++)
        ranks[i] = model_rank(state, &state->events[i]);
    for (int i = 0; i < state->event_count; i++)
        if (state->events[i].ordered) {
            assert_true(count < 127);
            nodes[count++] = (uint8_t)i;
        }
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++)
            if (i != j && model_strongly_before(&state->events[nodes[i]], &state->events[nodes[j]]))
                into[j] |= (model_set)1 << i;
    for (int a = 0; a < state->event_count; a++)
        for (int b = 0; b < state->event_count; b++)
            if (state->events[a].location == state->events[b].location && ranks[a] < ranks[b])
                model_add_edges(state, into, nodes, count, a, b);
    for (left = ((model_set)1 << count) - 1; left && changed;) {
        changed = false;
        for (int i = 0; i < count; i++)
            if (left >> i & 1 && !(into[i] & left)) {
                left &= ~((model_set)1 << i);
                changed = true;
            }
    }
    return !left;
}

/* False: the new event leaves no such order. */
static bool model_record(struct model_state *state, int thread, uint8_t location, uint8_t store, bool reads_only,
                         uint8_t order, const struct model_view *before)
{
    if (!model_is_ordered(order) && !model_program->fences)
        return true;
    assert_true(state->event_count < MODEL_EVENTS);
    state->events[state->event_count++] = (struct model_event){.thread = (uint8_t)thread,
                                                               .index = state->threads[thread].view.clock[thread],
                                                               .location = location,
                                                               .store = store,
                                                               .reads_only = reads_only,
                                                               .ordered = model_is_ordered(order),
                                                               .before = *before};
    return model_has_order(state);
}

/* ---------------------------------------------------------------------------------------------- effects of operations */

static uint8_t model_insert(struct model_state *state, int thread, uint8_t location, int place, uint64_t value,
                            const struct model_view *view)
{
    uint8_t *order = state->order[location], id = state->store_count++;

    assert_true(id < MODEL_STORES);
    memmove(order + place + 1, order + place, (size_t)(state->length[location] - place));
    order[place] = id;
    state->length[location]++;
    state->stores[id] = (struct model_store){
        .value = value, .view = *view, .thread = (uint8_t)thread, .index = state->threads[thread].view.clock[thread]};
    state->threads[thread].view.seen[location] = id;
    state->stores[id].view.seen[location] = id;
    return id;
}

static bool model_writes(const struct model_operation *operation, uint64_t value)
{
    return operation->kind != MODEL_LOAD && operation->kind != MODEL_AWAIT &&
           !(operation->kind == MODEL_IF && value != operation->expected);
}

static uint64_t model_compute(const struct model_operation *operation, uint64_t value)
{
    switch ((enum model_kind)operation->kind) {
    case MODEL_OR:
        return value | operation->value;
    case MODEL_AND:
        return value & operation->value;
    case MODEL_ADD:
        return value + operation->value;
    default:
        return operation->value;
    }
}

static void model_finish(struct model_thread *thread, uint64_t result, uint64_t identity)
{
    assert_true(thread->count < MODEL_LOG);
    thread->log[thread->count++] = result;
    thread->hash = (thread->hash ^ (result * 31 + identity + 1)) * UINT64_C(0x9e3779b97f4a7c15);
    thread->hash ^= thread->hash >> 29;
    thread->next.kind = MODEL_NONE;
}

static bool model_fence(struct model_state *state, int index)
{
    struct model_thread *thread = &state->threads[index];
    uint8_t order = thread->next.order;

    if (model_acquires(order))
        model_learn(state, &thread->view, &thread->acquirable);
    if (model_releases(order))
        thread->released = thread->view;
    model_finish(thread, 0, 0);
    return !model_is_ordered(order) || model_record(state, index, MODEL_LOCATIONS, 0, false, order, &thread->view);
}

/* A plain store at a place of the modification order. False: the execution does not exist. */
static bool model_store(struct model_state *state, int index, int place)
{
    struct model_thread *thread = &state->threads[index];
    struct model_operation operation = thread->next;
    struct model_view before = thread->view;
    uint8_t id, location = operation.location;

    if (place <= model_place(state, location, thread->view.seen[location]) ||
        state->stores[state->order[location][place - 1]].followed)
        return false;
    id = model_insert(state, index, location, place, operation.value,
                      model_releases(operation.order) ? &thread->view : &thread->released);
    model_finish(thread, 0, 0);
    return model_record(state, index, location, id, false, operation.order, &before);
}

/* A load or a read-modify-write of the store at a place. */
static bool model_load(struct model_state *state, int index, int place)
{
    struct model_thread *thread = &state->threads[index];
    struct model_operation operation = thread->next;
    struct model_view before = thread->view, message;
    uint8_t location = operation.location, id = state->order[location][place];
    struct model_store *store = &state->stores[id];
    bool writes = model_writes(&operation, store->value);
    uint8_t order = operation.kind == MODEL_IF && !writes ? operation.failure : operation.order;
    uint64_t identity = (uint64_t)store->thread << 8 | store->index;

    if (place < model_place(state, location, thread->view.seen[location]) || (writes && store->followed) ||
        (operation.kind == MODEL_AWAIT && store->value == operation.expected))
        return false;
    message = store->view;
    thread->view.seen[location] = id;
    model_learn(state, model_acquires(order) ? &thread->view : &thread->acquirable, &message);
    if (writes) {
        model_learn(state, &message, model_releases(order) ? &thread->view : &thread->released);
        store->followed = true;
        id = model_insert(state, index, location, place + 1, model_compute(&operation, store->value), &message);
    }
    model_finish(thread, store->value, identity);
    return model_record(state, index, location, id, !writes, order, &before);
}

static void model_touch(struct model_state *state, int index)
{
    struct model_thread *thread = &state->threads[index];
    struct model_operation operation = thread->next;
    unsigned cell = operation.location;

    assert_true(cell < MODEL_CELLS);
    if (state->written[cell] > thread->view.clock[state->writer[cell]])
        model_fail("a data race with a write");
    if (operation.kind == MODEL_WRITE) {
        for (int i = 0; i < MODEL_THREADS; i++)
            if (i != index && state->read[cell][i] > thread->view.clock[i])
                model_fail("a data race with a read");
        state->writer[cell] = (uint8_t)index;
        state->written[cell] = thread->view.clock[index];
        state->cell[cell] = operation.value;
    } else {
        state->read[cell][index] = thread->view.clock[index];
    }
    model_finish(thread, state->cell[cell], 0);
}

/* ---------------------------------------------------------------------------------------------------------- the search */

/* Run a thread to its next atomic operation. */
static void model_advance(struct model_state *state, int index)
{
    struct model_thread *thread = &state->threads[index];

    do {
        model_now = state;
        model_self = thread;
        model_self_index = index;
        model_replayed = 0;
        thread->next.kind = MODEL_NONE;
        if (!setjmp(model_leave))
            model_program->threads[index]();
        if (thread->next.kind == MODEL_READ || thread->next.kind == MODEL_WRITE) {
            thread->view.clock[index]++;
            model_touch(state, index);
            thread->next.kind = MODEL_READ;
        }
    } while (thread->next.kind == MODEL_READ);
}

/* The number of choices that the thread's next operation may have. */
static int model_choices(const struct model_state *state, int index)
{
    const struct model_operation *next = &state->threads[index].next;

    if (next->kind == MODEL_NONE)
        return 0;
    return next->kind == MODEL_FENCE ? 1 : state->length[next->location] + (next->kind == MODEL_STORE);
}

/* The first of them that coherence allows. */
static int model_first_choice(const struct model_state *state, int index)
{
    const struct model_thread *thread = &state->threads[index];
    uint8_t location = thread->next.location;

    if (thread->next.kind == MODEL_NONE || thread->next.kind == MODEL_FENCE)
        return 0;
    return model_place(state, location, thread->view.seen[location]) + (thread->next.kind == MODEL_STORE);
}

static bool model_step(struct model_state *state, int index, int choice)
{
    struct model_thread *thread = &state->threads[index];
    bool exists;

    thread->view.clock[index]++;
    if (thread->next.kind == MODEL_FENCE)
        exists = model_fence(state, index);
    else if (thread->next.kind == MODEL_STORE)
        exists = model_store(state, index, choice);
    else
        exists = model_load(state, index, choice);
    if (exists)
        model_advance(state, index);
    return exists;
}

static uint64_t *model_visited;
static uint64_t model_visited_size, model_visited_count;

static bool model_remember(const struct model_state *state)
{
    uint64_t hash = 0, at;

    for (int i = 0; i < MODEL_THREADS; i++)
        hash = (hash ^ state->threads[i].hash ^ state->threads[i].count) * UINT64_C(0xff51afd7ed558ccd) + 1;
    for (int i = 0; i < model_location_count; i++)
        for (int j = 0; j < state->length[i]; j++) {
            const struct model_store *store = &state->stores[state->order[i][j]];

            hash = (hash ^ ((uint64_t)store->thread << 8 | store->index)) * UINT64_C(0xc4ceb9fe1a85ec53);
            hash ^= hash >> 31;
        }
    hash |= 1;
    for (at = hash * UINT64_C(0x9e3779b97f4a7c15) >> 20; model_visited[at % model_visited_size]; at++)
        if (model_visited[at % model_visited_size] == hash)
            return false;
    model_visited[at % model_visited_size] = hash;
    model_visited_count++;
    return true;
}

static void model_end(struct model_state *state)
{
    const char *fault;
    bool blocked = false;

    for (int i = 0; i < MODEL_THREADS; i++) {
        if (!model_program->threads[i])
            continue;
        blocked = blocked || state->threads[i].next.kind != MODEL_NONE;
        model_advance(state, i); /* for its results */
    }
    model_ends++;
    if (blocked && !model_program->may_block)
        model_fail("a thread waits for ever");
    fault = model_program->end ? model_program->end() : NULL;
    if (fault)
        model_fail(fault);
}

static bool model_full; /* the table of graphs is full: the search is not complete */

static void model_search(const struct model_state *state)
{
    struct model_state next;
    bool moved = false;

    if (model_visited_count > model_visited_size / 4 * 3) {
        model_full = true;
        return;
    }
    model_graphs++;
    for (int i = 0; i < MODEL_THREADS; i++)
        for (int choice = model_choices(state, i), first = model_first_choice(state, i);
             choice-- > first && !model_fault;) {
            next = *state;
            if (!model_step(&next, i, choice))
                continue;
            moved = true;
            if (model_remember(&next))
                model_search(&next);
        }
    if (!moved && !model_fault) {
        next = *state;
        model_end(&next);
    }
}

static uint64_t model_random = 1;

static uint64_t model_draw(uint64_t below)
{
    model_random ^= model_random << 13;
    model_random ^= model_random >> 7;
    model_random ^= model_random << 17;
    return model_random % below;
}

/* One step by chance: of a thread and a choice, or of the next ones that can be. */
static bool model_stroll(struct model_state *state)
{
    int thread = (int)model_draw(MODEL_THREADS);

    for (int i = 0; i < MODEL_THREADS; i++) {
        int index = (thread + i) % MODEL_THREADS, first = model_first_choice(state, index);
        int choices = model_choices(state, index) - first;
        uint64_t drawn = choices > 0 ? model_draw((uint64_t)choices) : 0;

        for (int j = 0; j < choices; j++) {
            struct model_state next = *state;

            if (!model_step(&next, index, first + (int)((drawn + (uint64_t)j) % (uint64_t)choices)))
                continue;
            *state = next;
            model_graphs++;
            return true;
        }
    }
    return false;
}

/* Every location begins with 0; thread 0 runs to its end before the others begin, and they know what it did. */
static void model_begin(struct model_state *state, const struct model_program *program)
{
    memset(state, 0, sizeof(*state));
    model_program = program;
    memset(model_results, 0, sizeof(model_results));
    for (int i = 0; i < MODEL_LOCATIONS; i++) {
        state->order[i][0] = state->store_count++;
        state->length[i] = 1;
        for (int j = 0; j < MODEL_THREADS; j++)
            state->threads[j].view.seen[i] = state->threads[j].released.seen[i] = state->threads[j].acquirable.seen[i] =
                state->order[i][0];
        memcpy(state->stores[i].view.seen, state->threads[0].view.seen, sizeof(state->threads[0].view.seen));
    }
    for (int i = 0; i < MODEL_LOCATIONS; i++)
        memcpy(state->stores[i].view.seen, state->threads[0].view.seen, sizeof(state->threads[0].view.seen));
    if (program->threads[0]) {
        model_advance(state, 0);
        while (state->threads[0].next.kind != MODEL_NONE)
            assert_true(model_step(state, 0, model_choices(state, 0) - 1));
    }
    for (int i = 1; i < MODEL_THREADS; i++) {
        state->threads[i].view = state->threads[i].released = state->threads[i].acquirable = state->threads[0].view;
        if (program->threads[i])
            model_advance(state, i);
    }
    state->event_count = 0;
}

/*
 * Search all executions, or `walks` by chance. NULL: none has a fault. `graphs`: a bound on the graphs, a power of two;
 * model_full says that it was reached.
 */
static inline const char *model_explore(const struct model_program *program, uint64_t graphs, uint64_t walks)
{
    struct model_state start;

    model_fault = NULL;
    model_full = false;
    model_graphs = model_ends = model_visited_count = 0;
    model_begin(&start, program);
    if (!walks) {
        model_visited_size = graphs * 2;
        model_visited = calloc(model_visited_size, sizeof(*model_visited));
        assert_non_null(model_visited);
        model_search(&start);
        free(model_visited);
    }
    for (uint64_t i = 0; i < walks && !model_fault; i++) {
        struct model_state state = start;

        while (!model_fault && model_stroll(&state))
            ;
        if (!model_fault)
            model_end(&state);
    }
    return model_fault;
}

#endif
