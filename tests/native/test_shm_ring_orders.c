/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The real ring.h under C11's memory model: claims, publications, frees, the tail hint, and the sleep handshake. Each message
 * is taken once, in its sender's order, without a data race; no wake-up is lost; the hint is never seen ahead. Every memory
 * order is then weakened in turn, and the search must find a fault, unless the table below says why none is needed.
 */
#include "memory_model.h"

#include "memory/ring.h"

#define MESSAGES_MAX 8

static struct shm_header header;
static struct shm_slot slots[4];
static struct shm_ring ring = {.header = &header, .slots = slots};
static _Atomic uint64_t event; /* the eventfd, without the order that the kernel gives it */
static uint64_t start;         /* position */
static uint64_t count;         /* messages of a sender */
static uint64_t prologue;      /* messages that were sent and taken before the senders begin */
static bool audits;            /* the reader compares the hint with the slots, as repair.c does */

static bool sleeps; /* the reader; otherwise it waits for its slot */

enum result { SENT, WRONG };
enum thread { FIRST, READER, SENDER_A, SENDER_B };

static unsigned cell_of(const struct shm_slot *slot) { return (unsigned)(slot - slots); }

static bool send(uint32_t owner, uint64_t number)
{
    uint64_t state, status;
    struct shm_slot *slot = shm_ring_claim(&ring, owner, &state);

    if (!slot)
        return false;
    model_write(cell_of(slot), number);
    status = shm_ring_publish(&ring, slot, state);
    if (status & SHM_SLEEPING && shm_ring_disarm(&ring))
        (void)atomic_fetch_add_explicit(&event, 1, memory_order_relaxed);
    return true;
}

static void prepare(void)
{
    shm_ring_init(&ring, start);
    for (uint64_t i = 0; i < prologue; i++) {
        send(1, 0);
        model_read(cell_of(shm_ring_find_slot(&ring, start + i)));
        shm_ring_free(&ring, start + i);
    }
}

static void send_all(uint32_t owner)
{
    uint64_t sent = 0;

    while (sent < count && send(owner, sent + 1))
        sent++;
    model_result(SENT, sent);
}
static void send_a(void) { send_all(SENDER_A); }
static void send_b(void) { send_all(SENDER_B); }

static bool is_hint_ahead(uint64_t head)
{
    uint64_t tail = ofp_load_acquire(&header.tail);

    return (int64_t)(tail - shm_ring_find_end(&ring, head)) > 0;
}

static void receive(void)
{
    uint64_t head = start + prologue, woken = 0, taken[4] = {0}, wrong = 0, state;
    bool audited = false; /* once: it is long */

    for (;;) {
        model_result(SENT, head - start - prologue);
        model_result(WRONG, wrong);
        state = shm_ring_peek(&ring, head);
        if (shm_ring_is_ready(&ring, head, state)) {
            uint64_t number = model_read(cell_of(shm_ring_find_slot(&ring, head)));
            uint32_t owner = shm_slot_owner_of(state) & 3;

            wrong |= number != ++taken[owner];
            shm_ring_free(&ring, head++);
            continue;
        }
        if (audits && !audited && is_hint_ahead(head))
            wrong |= 2;
        audited = true;
        model_result(WRONG, wrong);
        if (!sleeps) {
            model_await(&shm_ring_find_slot(&ring, head)->state, state);
            continue;
        }
        shm_ring_arm(&ring);
        if (!shm_ring_is_ready(&ring, head, shm_ring_peek_armed(&ring, head)))
            woken = model_await(&event, woken);
        shm_ring_disarm(&ring);
    }
}

static const char *verdict(void)
{
    if (model_results[READER][WRONG] & 2)
        return "the hint is ahead";
    if (model_results[READER][WRONG])
        return "a message is wrong or out of order";
    if (model_results[READER][SENT] != model_results[SENDER_A][SENT] + model_results[SENDER_B][SENT])
        return "a wake-up or a message is lost";
    return NULL;
}

struct configuration {
    uint32_t shift;
    uint64_t start, prologue, count;
    bool sleeps, audits, one_sender;
};

static const char *explore(const struct configuration *of, uint64_t graphs, uint64_t walks)
{
    struct model_program program = {
        .threads = {prepare, receive, send_a, of->one_sender ? NULL : send_b}, .end = verdict, .may_block = true};

    ring.shift = of->shift;
    start = of->start;
    prologue = of->prologue;
    count = of->count;
    sleeps = of->sleeps;
    audits = of->audits;
    return model_explore(&program, graphs, walks);
}

#define LAST_LAP (UINT64_C(0xffffffff)) /* the next lap is 0 in the 32 bits of the state */
static const struct configuration configurations[] = {
    {.shift = 0, .start = LAST_LAP, .count = 2, .one_sender = true, .sleeps = true},
    {.shift = 0, .start = 1, .count = 1},
    {.shift = 1, .start = 1, .count = 1},
    {.shift = 2, .start = 3, .count = 1, .audits = true},
    {.shift = 2, .start = 1, .count = 1, .audits = true, .one_sender = true},
    {.shift = 2, .start = 0, .prologue = 3, .count = 1},
    {.shift = 1, .start = 2, .count = 3, .one_sender = true},
    {.shift = 2, .start = 0, .count = 1, .one_sender = true, .sleeps = true},
};
static const struct configuration longer[] = {
    {.shift = 1, .count = 1, .sleeps = true}, {.shift = 1, .count = 2}, {.shift = 2, .count = 2, .sleeps = true}};
static const struct configuration two_laps = {.shift = 2, .count = 4, .sleeps = true};
#define CONFIGURATIONS (sizeof(configurations) / sizeof(configurations[0]))

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text ? strtoull(text, NULL, 0) : otherwise;
}

static void test_ring_is_right_in_every_execution(void **state)
{
    (void)state;
    for (size_t i = 0; i < CONFIGURATIONS; i++) {
        const char *fault = explore(&configurations[i], 1 << 20, 0);

        printf("configuration %zu: %llu graphs, %llu ends%s%s\n", i, (unsigned long long)model_graphs,
               (unsigned long long)model_ends, model_full ? ", not complete" : "", fault ? fault : "");
        if (fault)
            fail_msg("%s", fault);
        assert_false(model_full);
    }
}

/* Not searched to their end: bounded by graphs. */
static void test_longer_executions(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(longer) / sizeof(longer[0]); i++) {
        const char *fault = explore(&longer[i], number_from("OFIPY_TEST_GRAPHS", 1 << 14), 0);

        printf("longer configuration %zu: %llu graphs%s\n", i, (unsigned long long)model_graphs,
               model_full ? ", not complete" : "");
        if (fault)
            fail_msg("%s", fault);
    }
}

static void test_two_laps_by_chance(void **state)
{
    uint64_t walks = number_from("OFIPY_TEST_STEPS", 500);
    const char *fault;

    (void)state;
    model_random = number_from("OFIPY_TEST_SEED", 1);
    fault = explore(&two_laps, 0, walks);
    printf("two laps: %llu ends, %llu steps\n", (unsigned long long)model_ends, (unsigned long long)model_graphs);
    if (fault)
        fail_msg("%s", fault);
}

/* ------------------------------------------------------------------------------------------------------ weaker orders */

/* Orders that no execution here needs. */
static const struct {
    const char *function;
    enum model_kind kind;
    memory_order weaker;
    const char *reason;
} spare[] = {
    {"shm_ring_disarm", MODEL_AND, memory_order_acq_rel, "not needed: only one call may clear the bit"},
    {"shm_ring_disarm", MODEL_AND, memory_order_relaxed, "not needed: only one call may clear the bit"},
};

static const char *find_reason(const struct model_site *site)
{
    for (size_t i = 0; i < sizeof(spare) / sizeof(spare[0]); i++)
        if (!strcmp(spare[i].function, site->function) && spare[i].kind == site->kind &&
            spare[i].weaker == site->weaker)
            return spare[i].reason;
    return NULL;
}

/* The orders just below one: two of them for acquire and release together. */
static size_t list_weaker(const struct model_site *site, memory_order *weaker)
{
    bool loads = site->kind == MODEL_LOAD, stores = site->kind == MODEL_STORE;

    switch ((memory_order)site->order) {
    case memory_order_seq_cst:
        weaker[0] = loads ? memory_order_acquire : stores ? memory_order_release : memory_order_acq_rel;
        weaker[1] = memory_order_relaxed;
        return 2;
    case memory_order_acq_rel:
        weaker[0] = memory_order_acquire;
        weaker[1] = memory_order_release;
        return 2;
    case memory_order_relaxed:
        return 0;
    default:
        weaker[0] = memory_order_relaxed;
        return 1;
    }
}

static const char *find_fault(void)
{
    const char *fault = NULL;

    for (size_t i = 0; i < CONFIGURATIONS && !fault; i++)
        fault = explore(&configurations[i], 1 << 18, 0);
    return fault ? fault : explore(&two_laps, 0, 100);
}

static void test_weaker_orders_are_found(void **state)
{
    static const char *const names[] = {"relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"};
    unsigned tried = 0, unexplained = 0;

    (void)state;
    for (int i = 1; i <= model_site_count; i++) {
        struct model_site *site = &model_sites[i];
        memory_order weaker[2];
        size_t count_of = strstr(site->file, "ring.h") ? list_weaker(site, weaker) : 0;

        for (size_t j = 0; j < count_of; j++, tried++) {
            const char *fault, *reason;

            site->weaker = (uint8_t)weaker[j];
            site->weakened = true;
            fault = find_fault();
            site->weakened = false;
            reason = find_reason(site);
            printf("%s, line %d: %s to %s: %s\n", site->function, site->line, names[site->order], names[weaker[j]],
                   fault    ? fault
                   : reason ? reason
                            : "NO FAULT");
            fflush(stdout);
            unexplained += !fault == !reason;
        }
    }
    assert_true(tried > 12);
    assert_int_equal(unexplained, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring_is_right_in_every_execution),
        cmocka_unit_test(test_longer_executions),
        cmocka_unit_test(test_two_laps_by_chance),
        cmocka_unit_test(test_weaker_orders_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
