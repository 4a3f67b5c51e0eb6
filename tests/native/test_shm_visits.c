/* SPDX-License-Identifier: BSD-3-Clause */
/* The agreement between who reaches into a region of shared memory and who closes it. */
#include "test_shm_memory.h"

enum ending { LEAVES, DIES, STAYS };
static enum ending ending;
static bool closes_endpoint;

static void visiting_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    uint32_t id;
    uint64_t began, took;

    side_open(&side, shared, rank);
    allocate_key(&side, SIZE, MAPPED, &id);
    meet_all(shared, 0);
    if (rank == OWNER) {
        progress_until(&side, &shared->words[0], 1);
        began = now_ns();
        ofp_store_release(&shared->words[0], 2);
        if (closes_endpoint)
            endpoint_close(&side);
        CHECK_EQUAL(ofp_region_close(side.domain, id), 0);
        took = now_ns() - began;
        /* A visitor is waited for; one that is dead is not, and one that stays not for ever. */
        CHECK(ending != LEAVES || took >= SECONDS / 5);
        CHECK(ending == STAYS || closes_endpoint || took < SECONDS * 3 / 2);
        ofp_store_release(&shared->words[0], 3);
        if (!closes_endpoint)
            endpoint_close(&side);
        CHECK_EQUAL(ofp_domain_close(side.domain), 0);
    } else {
        uint32_t peer = insert_rank(&side, shared, OWNER);
        struct shm_target target;
        struct shm_link *link;

        map_what_there_is(&side, peer);
        link = link_to(&side, peer);
        CHECK(shm_table_find(shm_table_resolve(link), MAPPED, &target));
        CHECK(shm_visit_start(link, &target));
        ofp_store_release(&shared->words[0], 1);
        wait_until(&shared->words[0], 2);
        usleep(200000);
        if (ending == DIES)
            raise(SIGKILL);
        if (ending == STAYS)
            wait_until(&shared->words[0], 3);
        /* The region is closed, or about to be: what was moved does not count, and nobody enters any more. */
        CHECK(!shm_visit_end(link, &target) || closes_endpoint);
        CHECK(!shm_visit_start(link, &target));
        side_close_with(&side, &id, 1);
    }
}

static void test_closing_meets_a_visitor(void **state)
{
    static const int dies[] = {0, KILLED};

    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        closes_endpoint = kind;
        for (ending = LEAVES; ending <= STAYS; ending++)
            run_processes(2, visiting_process, ending == DIES ? dies : NULL);
    }
}

/* What a visitor remembers of the last region ends with it: another under the same key is another. */
static void renewing_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    uint8_t *memory;
    uint32_t ids[2];

    side_open(&side, shared, rank);
    memory = allocate_key(&side, SIZE, PLAIN, &ids[0]);
    ids[1] = register_key(&side, memory, SIZE, BOTH_WAYS, MAPPED);
    meet_all(shared, 0);
    if (rank == OWNER) {
        progress_until(&side, &shared->words[0], 1);
        CHECK_EQUAL(memory[0], 'a');
        CHECK_EQUAL(ofp_region_close(side.domain, ids[1]), 0);
        ofp_store_release(&shared->words[0], 2);
        progress_until(&side, &shared->words[0], 3);
        ids[1] = register_key(&side, memory + SIZE / 2, 8, BOTH_WAYS, MAPPED);
        ofp_store_release(&shared->words[0], 4);
        progress_until(&side, &shared->words[0], 5);
        CHECK_EQUAL(memory[0], 'a');
        CHECK_EQUAL(memory[SIZE / 2], 'c');
    } else {
        uint32_t peer = insert_rank(&side, shared, OWNER);
        struct ofp_operation beyond = remote(OFP_WRITE, peer, "d", 1, MAPPED, 1);

        map_what_there_is(&side, peer);
        finish_one(&side, remote(OFP_WRITE, peer, "a", 1, MAPPED, 1));
        ofp_store_release(&shared->words[0], 1);
        wait_until(&shared->words[0], 2);
        refuse(&side, remote(OFP_WRITE, peer, "b", 1, MAPPED, 1), OFP_ENOKEY);
        ofp_store_release(&shared->words[0], 3);
        wait_until(&shared->words[0], 4);
        finish_one(&side, remote(OFP_WRITE, peer, "c", 1, MAPPED, 1));
        beyond.remote_offset = 8;
        refuse(&side, beyond, ERANGE);
        ofp_store_release(&shared->words[0], 5);
    }
    meet_all_busy(&side, shared, 1);
    side_close_with(&side, ids, 2);
}

static void test_a_region_under_the_same_key(void **state)
{
    (void)state;
    run_processes(2, renewing_process, NULL);
}

static void wait_until_stopped(pid_t process)
{
    char path[40], state = 0;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)process);
    while (state != 'T') {
        FILE *file = fopen(path, "r");

        CHECK(file && fscanf(file, "%*d %*s %c", &state) == 1);
        fclose(file);
        usleep(1000);
    }
}

/*
 * A visitor that stops in the middle, for longer than its region is kept for it. The owner registers another under the same
 * key: there the atomic is not done once more, it is refused.
 */
#define HALF (SIZE / 2)
static void stopping_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    uint64_t fetched = 7;
    uint8_t *memory;
    uint32_t ids[2];

    side_open(&side, shared, rank);
    memory = allocate_key(&side, SIZE, PLAIN, &ids[0]);
    ids[1] = register_key(&side, memory, HALF, BOTH_WAYS, MAPPED);
    ofp_store_release(&shared->words[1 + rank], (uint32_t)getpid());
    meet_all(shared, 0);
    if (rank == OWNER) {
        pid_t visitor = (pid_t)ofp_load_acquire(&shared->words[1 + VISITOR]);

        progress_until(&side, &shared->words[0], 1);
        wait_until_stopped(visitor);
        CHECK_EQUAL(ofp_region_close(side.domain, ids[1]), 0);
        ids[1] = register_key(&side, memory + HALF, HALF, BOTH_WAYS, MAPPED);
        kill(visitor, SIGCONT);
        progress_until(&side, &shared->words[0], 2);
        CHECK_EQUAL(memory[0], 1);
        CHECK_EQUAL(memory[HALF], 0);
    } else {
        uint32_t peer = insert_rank(&side, shared, OWNER);

        map_what_there_is(&side, peer);
        setenv("OFIPY_SHM_STEP_SIGNAL", "19", 1); /* SIGSTOP */
        setenv("OFIPY_SHM_KILL_STEP", "visiting", 1);
        ofp_store_release(&shared->words[0], 1);
        refuse(&side, add_one(peer, MAPPED, &fetched), OFP_ENOKEY);
        unsetenv("OFIPY_SHM_KILL_STEP");
        unsetenv("OFIPY_SHM_STEP_SIGNAL");
        ofp_store_release(&shared->words[0], 2);
    }
    meet_all_busy(&side, shared, 1);
    side_close_with(&side, ids, 2);
}

static void test_an_atomic_is_not_done_again(void **state)
{
    (void)state;
    run_processes(2, stopping_process, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closing_meets_a_visitor),
        cmocka_unit_test(test_a_region_under_the_same_key),
        cmocka_unit_test(test_an_atomic_is_not_done_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
