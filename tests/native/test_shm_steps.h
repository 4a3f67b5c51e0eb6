/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A victim that is killed at every step of the protocol in turn, its partner, and a bystander: part of test_shm_death.c, for
 * builds of the provider with OFP_SHM_KILL_STEPS.
 */
#ifndef TEST_SHM_STEPS_H
#define TEST_SHM_STEPS_H

#include "shm.h"
#include "test_shm_fixture.h"

enum { VICTIM, PARTNER, BYSTANDER };

/* What the words of the shared page say. */
enum { ALL_DONE, VICTIM_MAY_ACT, VICTIM_PROCESS, VICTIM_LISTENS };

/* More than one piece. */
#define LARGEST (SHM_PIECE + 100001)
static const uint64_t lengths[] = {8, 96, 5000, 300000, LARGEST - 1, LARGEST};
#define MESSAGES 6
#define FIRST_RECEIVE 100
#define FIRST_SEND 200
#define FIRST_REMOTE 300
#define BYSTANDER_RECEIVE 1000
#define BYSTANDER_SEND 1001

static bool victim_calls; /* otherwise its partner calls it */

struct memory {
    uint8_t *out, *in;
    uint8_t *mapped, *plain, *scratch; /* what the other side reads and writes, and what comes back from there */
    uint32_t regions[3];
};
#define MAPPED_KEY 1
#define PLAIN_KEY 2

/* The last of the lengths is sent from memory of the domain. */
static struct memory memory_of(struct side *side)
{
    struct ofp_region_attr mapped = {.length = LARGEST, .access = BOTH_WAYS, .has_key = 1, .key = MAPPED_KEY};
    struct ofp_region_attr plain = {.length = 300000, .access = BOTH_WAYS, .has_key = 1, .key = PLAIN_KEY};
    struct memory memory = {.in = malloc(MESSAGES * LARGEST), .plain = malloc(300000), .scratch = malloc(300008)};
    struct ofp_region_handle handle;
    char text[OFP_TEXT_MAX];
    void *base;

    CHECK_EQUAL(region_allocate(side->domain, LARGEST, OFP_ACCESS_SEND, &memory.regions[0], &base, text), 0);
    memory.out = base;
    CHECK_EQUAL(ofp_region_allocate(side->domain, &mapped, &handle, text, sizeof(text)), 0);
    memory.regions[1] = handle.id;
    memory.mapped = handle.base;
    plain.base = memory.plain;
    CHECK_EQUAL(ofp_region_register(side->domain, &plain, &handle), 0);
    memory.regions[2] = handle.id;
    return memory;
}

static void memory_free(struct side *side, const struct memory *memory)
{
    for (uint32_t i = 0; i < 3; i++)
        CHECK_EQUAL(ofp_region_close(side->domain, memory->regions[i]), 0);
    free(memory->in);
    free(memory->plain);
    free(memory->scratch);
}

/* Every way to the memory of the other side: mapped at once and in pieces, with a notice, attached or asked for, and atomics. */
#define REMOTES 5
static void post_remotes(struct side *side, uint32_t peer, const struct memory *memory, const uint8_t *out)
{
    struct ofp_operation write = remote(OFP_WRITE, peer, out, 8, MAPPED_KEY, FIRST_REMOTE);
    struct ofp_operation fetch = remote(OFP_FETCH_ATOMIC, peer, out, 8, MAPPED_KEY, FIRST_REMOTE + 4);

    write.flags = OFP_REMOTE_CQ_DATA;
    fetch.atomic_op = OFP_ATOMIC_SUM;
    fetch.datatype = OFP_UINT64;
    fetch.result_offset = (uint64_t)(uintptr_t)(memory->scratch + 300000);
    post(side, write);
    post(side, remote(OFP_WRITE, peer, out, LARGEST, MAPPED_KEY, FIRST_REMOTE + 1));
    post(side, remote(OFP_READ, peer, memory->scratch, 300000, PLAIN_KEY, FIRST_REMOTE + 2));
    post(side, remote(OFP_WRITE, peer, out, 100000, PLAIN_KEY, FIRST_REMOTE + 3));
    post(side, fetch);
}

static void post_all(struct side *side, uint32_t peer, struct memory memory, uint8_t *private_out)
{
    for (uint32_t i = 0; i < MESSAGES; i++)
        post(side, tagged(OFP_TRECV, peer, i, memory.in + i * LARGEST, lengths[i], FIRST_RECEIVE + i));
    for (uint32_t i = 0; i < MESSAGES; i++)
        post(side, tagged(OFP_TSEND, peer, i, i == 5 ? memory.out : private_out, lengths[i], FIRST_SEND + i));
    post_remotes(side, peer, &memory, private_out);
}

/* What the other side wrote beside data of its own is no operation of ours. */
static struct ofp_completion own_completion(struct side *side)
{
    struct ofp_completion row;

    do
        row = next_completion(side);
    while (row.flags & OFP_COMPLETED_REMOTE_WRITE);
    return row;
}

static void victim(struct side *side, struct shared *shared)
{
    struct memory memory = memory_of(side);
    uint8_t *private_out = malloc(LARGEST);
    uint32_t peer = insert_rank(side, shared, PARTNER);

    fill(memory.out, LARGEST, 3);
    fill(private_out, LARGEST, 3);
    if (!victim_calls) {
        post(side, tagged(OFP_TRECV, peer, 77, memory.in, 1, 77));
        ofp_store_release(&shared->words[VICTIM_LISTENS], 1);
        completion_of(side, 77);
    }
    post_all(side, peer, memory, private_out);
    for (uint32_t done = 0; done < 2 * MESSAGES + REMOTES; done++)
        CHECK_EQUAL(own_completion(side).error, 0);
    /* Once more: the arenas are mapped by now. */
    post_all(side, peer, memory, private_out);
    for (uint32_t done = 0; done < 2 * MESSAGES + REMOTES; done++)
        CHECK_EQUAL(own_completion(side).error, 0);
    endpoint_close(side);
    /* The step was not on this way; the parent learns it from the status. */
    _exit(0);
}

struct tally {
    bool done[BYSTANDER_SEND + 1];
    uint32_t left;
};

static void note(struct tally *tally, const struct ofp_completion *row, const struct memory *memory)
{
    if (row->flags & OFP_COMPLETED_REMOTE_WRITE)
        return;
    CHECK(row->context <= BYSTANDER_SEND && !tally->done[row->context]);
    tally->done[row->context] = true;
    tally->left--;
    if (row->context >= BYSTANDER_RECEIVE) {
        CHECK_EQUAL(row->error, 0);
        return;
    }
    if (row->error && row->error != OFP_EPEERLOST && row->error != ECONNREFUSED && row->error != ECANCELED &&
        row->error != EFAULT) {
        fprintf(stderr, "process %d: operation %u ended with error %d\n", getpid(), (unsigned)row->context, row->error);
        abort();
    }
    if (!row->error && row->context >= FIRST_RECEIVE && row->context < FIRST_RECEIVE + MESSAGES) {
        uint64_t i = row->context - FIRST_RECEIVE;

        /* The victim fills its own alike. */
        CHECK(memcmp(memory->in + i * LARGEST, memory->out, lengths[i]) == 0);
    }
}

/* One exchange with the bystander, in which completions of the others come in between. */
static void with_bystander(struct side *side, uint32_t bystander, struct tally *tally, const struct memory *memory,
                           uint64_t length, uint8_t *scratch)
{
    tally->done[BYSTANDER_RECEIVE] = tally->done[BYSTANDER_SEND] = false;
    tally->left += 2;
    post(side, tagged(OFP_TRECV, bystander, 5, scratch, length, BYSTANDER_RECEIVE));
    post(side, tagged(OFP_TSEND, bystander, 5, scratch + length, length, BYSTANDER_SEND));
    while (!tally->done[BYSTANDER_RECEIVE] || !tally->done[BYSTANDER_SEND]) {
        struct ofp_completion row = next_completion(side);

        note(tally, &row, memory);
    }
}

static void finish_with_victim(struct side *side, struct tally *tally, const struct memory *memory, pid_t victim)
{
    uint64_t patience = now_ns() + SOON;

    while (tally->left) {
        struct ofp_completion row;
        bool expired;

        if (ofp_cq_wait(side->cq, &row, 1, 1, 100000000, &expired) == 1) {
            note(tally, &row, memory);
            continue;
        }
        /* Only receives from a victim that died before it was ever met may be left. */
        if (link_count(side) == 1)
            for (uint32_t i = 0; i < MESSAGES; i++)
                if (!tally->done[FIRST_RECEIVE + i])
                    ofp_cancel(side->endpoint, FIRST_RECEIVE + i);
        /* It has all the time it wants to get to its step; its death is noticed soon. */
        if (kill(victim, 0) == 0)
            patience = now_ns() + SOON;
        CHECK(now_ns() < patience);
    }
}

static bool is_alive(struct shared *shared)
{
    return kill((pid_t)ofp_load_acquire(&shared->words[VICTIM_PROCESS]), 0) == 0;
}

static void partner(struct side *side, struct shared *shared)
{
    struct memory memory = memory_of(side);
    uint8_t *private_out = malloc(LARGEST), *scratch = calloc(2, 20000);
    uint32_t peer = insert_rank(side, shared, VICTIM), bystander = insert_rank(side, shared, BYSTANDER);
    struct tally tally = {.left = 0};

    fill(memory.out, LARGEST, 3);
    fill(private_out, LARGEST, 3);
    /* The link to the bystander is there before the victim acts. */
    with_bystander(side, bystander, &tally, &memory, 8, scratch);
    ofp_store_release(&shared->words[VICTIM_MAY_ACT], 1);
    if (victim_calls) {
        /* Until it has, or is dead (and reaped) without having got that far. */
        while (link_count(side) == 1 && is_alive(shared))
            ofp_domain_progress(side->domain);
    } else {
        /* To get ready may take it longer than a call may: seconds, where memory is slow. */
        while (!ofp_load_acquire(&shared->words[VICTIM_LISTENS]) && is_alive(shared))
            usleep(100);
        post(side, tagged(OFP_TSEND, peer, 77, "x", 1, 77));
        tally.left++;
    }
    for (int round = 0; round < 2; round++) {
        memset(tally.done, 0, 400);
        tally.left += 2 * MESSAGES + REMOTES;
        post_all(side, peer, memory, private_out);
        for (uint32_t i = 0; i < 20; i++)
            with_bystander(side, bystander, &tally, &memory, i % 2 ? 20000 : 3000, scratch);
        finish_with_victim(side, &tally, &memory, (pid_t)ofp_load_acquire(&shared->words[VICTIM_PROCESS]));
    }
    for (uint64_t until = now_ns() + SOON; link_count(side) > 1;) {
        CHECK(now_ns() < until);
        ofp_domain_progress(side->domain);
    }
    /* The dead hold no buffers. */
    for (uint32_t i = 0; i < 200; i++)
        with_bystander(side, bystander, &tally, &memory, 3000, scratch);
    ofp_store_release(&shared->words[ALL_DONE], 1);
    free(private_out);
    free(scratch);
    endpoint_close(side);
    memory_free(side, &memory);
}

static void bystander(struct side *side, struct shared *shared)
{
    uint32_t peer = insert_rank(side, shared, PARTNER);
    uint8_t *in = malloc(20000), *out = malloc(20000);
    struct ofp_completion row;

    post(side, tagged(OFP_TRECV, peer, 5, in, 20000, 1));
    while (!ofp_load_acquire(&shared->words[ALL_DONE])) {
        ofp_domain_progress(side->domain);
        if (ofp_cq_read(side->cq, &row, 1) != 1)
            continue;
        /* The partner closes when it has said so. */
        CHECK(!row.error || ofp_load_acquire(&shared->words[ALL_DONE]));
        if (row.error || row.context != 1)
            continue;
        post(side, tagged(OFP_TSEND, peer, 5, out, row.length, 2));
        post(side, tagged(OFP_TRECV, peer, 5, in, 20000, 1));
    }
    free(in);
    free(out);
}

static void step_process(struct shared *shared, uint32_t rank)
{
    uint32_t descriptors = open_descriptors();
    struct side side;

    if (rank == VICTIM)
        ofp_store_release(&shared->words[VICTIM_PROCESS], (uint32_t)getpid());
    else
        unsetenv("OFIPY_SHM_KILL_STEP");
    side_open(&side, shared, rank);
    meet_all(shared, 0);
    switch (rank) {
    case VICTIM:
        wait_until(&shared->words[VICTIM_MAY_ACT], 1);
        victim(&side, shared);
        break;
    case PARTNER:
        partner(&side, shared);
        break;
    default:
        bystander(&side, shared);
        endpoint_close(&side);
        break;
    }
    CHECK_EQUAL(ofp_domain_close(side.domain), 0);
    print_log();
    /* The statistics page of the process stays open. */
    CHECK_EQUAL(open_descriptors(), descriptors + 1);
}

/* Returns whether the victim was killed. */
static bool run_step(const char *step, unsigned pass)
{
    static const int killed[] = {KILLED, 0, 0};
    char value[64];

    snprintf(value, sizeof(value), "%s:%u", step, pass);
    setenv("OFIPY_SHM_KILL_STEP", value, 1);
    return run_processes_first(3, step_process, killed);
}

static void test_killed_at_every_step(void **state)
{
    (void)state;
    /* So long a partner asks for a victim that died before it was met: less than SOON. */
    setenv("OFIPY_CONNECT_TIMEOUT", "2", 1);
    for (int step = 0; step < SHM_STEP_COUNT; step++) {
        uint32_t kills = 0;

        for (unsigned variant = 0; variant < 5; variant++) {
            victim_calls = variant & 1;
            setenv("OFIPY_SHM_ATTACH", variant & 2 ? "no" : "yes", 1);
            /* The last one in the middle of what the others began. */
            kills += run_step(shm_step_names[step], variant == 4 ? 5 : 1);
        }
        if (!kills)
            fail_msg("no process passes step %s", shm_step_names[step]);
    }
    unsetenv("OFIPY_SHM_ATTACH");
    unsetenv("OFIPY_SHM_KILL_STEP");
    unsetenv("OFIPY_CONNECT_TIMEOUT");
}

#endif
