/* SPDX-License-Identifier: BSD-3-Clause */
/* fork() beside threads that hold a lock of the whole process, or call what takes it: the child opens anew. */
#include "core_fixture.h"

#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/param.h"
#include "base/process_lock.h"
#include "base/reason.h"
#include "ofipy/ofp.h"

enum { PATIENCE = 60, FORKS = 30, THREADS = 2 };

/* ---------------------------------------------------------------------------------------------------------- the child */

static void pass_message(void)
{
    struct side side = {0};
    char sent[] = "to itself", received[sizeof(sent)] = "";
    struct ofp_operation posts[2];

    side_open(&side, false, OFP_PROGRESS_MANUAL, 16);
    sides_meet(&side, &side);
    posts[0] = tagged(OFP_TRECV, side.peer, 1, received, sizeof(received), 1);
    posts[1] = tagged(OFP_TSEND, side.peer, 1, sent, sizeof(sent), 2);
    assert_int_equal(ofp_post(side.endpoint, posts, 2), 2);
    next_completion(&side, NULL);
    next_completion(&side, NULL);
    assert_string_equal(received, sent);
    side_close(&side);
}

static bool all_are_free(void)
{
    pthread_mutex_t *lock;

    for (unsigned place = 0; (lock = ofpi_process_lock_at(place)); place++) {
        if (pthread_mutex_trylock(lock) != 0)
            return false;
        pthread_mutex_unlock(lock);
    }
    return true;
}

/* A child that hangs is ended. */
static void expect_good_end(pid_t child)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    uint64_t deadline = ofpi_clock_read() + (uint64_t)PATIENCE * 1000000000;
    int status = -1;

    while (waitpid(child, &status, WNOHANG) == 0) {
        if (ofpi_clock_read() > deadline) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            fail_msg("the child hangs");
        }
        nanosleep(&moment, NULL);
    }
    assert_int_equal(status, 0);
}

static void fork_and_use(void)
{
    pid_t child = fork();

    if (child == 0) {
        if (!all_are_free())
            _exit(2);
        pass_message();
        _exit(0);
    }
    expect_good_end(child);
}

/* ------------------------------------------------------------------------------------------------------ one lock each */

static sem_t taken, begun, over;
static bool tells; /* only in the test that waits for it */

/* Registered last, so it runs before the core's. */
static void fork_begins(void)
{
    if (tells)
        sem_post(&begun);
}

/* Lets go once fork waits for this lock: it holds the one before then. */
static void *hold_until_fork_waits(void *place_of_lock)
{
    unsigned place = *(unsigned *)place_of_lock;
    pthread_mutex_t *lock = ofpi_process_lock_at(place), *before = place ? ofpi_process_lock_at(place - 1) : NULL;

    pthread_mutex_lock(lock);
    sem_post(&taken);
    sem_wait(&begun);
    while (before && pthread_mutex_trylock(before) == 0) {
        pthread_mutex_unlock(before);
        sched_yield();
    }
    pthread_mutex_unlock(lock);
    sem_post(&over);
    return NULL;
}

static void test_fork_waits_for_each_lock(void **state)
{
    unsigned count = 0;

    (void)state;
    fake_provider();
    pass_message(); /* whatever is registered late */
    tells = true;
    for (; ofpi_process_lock_at(count); count++) {
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, hold_until_fork_waits, &count), 0);
        pthread_detach(thread); /* the child cannot join it */
        sem_wait(&taken);
        fork_and_use();
        sem_wait(&over);
    }
    tells = false;
    /* The hooks of the tree have two besides. */
    assert_true(count >= OFPI_LOCK_COUNT + 2);
    assert_true(all_are_free());
}

/* ---------------------------------------------------------------------------------------------------- calls that take it */

static _Atomic bool stop;

static void *call_everything(void *unused)
{
    char provider[32], text[OFP_TEXT_MAX];
    int level;

    while (!ofp_load_relaxed(&stop)) {
        pass_message();
        ofpi_log_write(OFP_LOG_WARNING, "test", "a record");
        ofp_log_next(&level, provider, sizeof(provider), text, sizeof(text));
        ofp_reason(ofpi_reason_store("it was so; do that"), text, sizeof(text));
        ofpi_param_get_string("CONNECT_TIMEOUT");
        ofp_hooks_check("trace;profile", text, sizeof(text));
    }
    return unused;
}

static void test_fork_beside_threads_that_open_and_close(void **state)
{
    pthread_t threads[THREADS];

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_everything, NULL), 0);
    for (int i = 0; i < FORKS; i++)
        fork_and_use();
    ofp_store_relaxed(&stop, true);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* --------------------------------------------------------------------------------------------------- registering twice */

enum { NEW_LOCKS = 32 };

static pthread_mutex_t new_locks[NEW_LOCKS];
static _Atomic uint32_t arrivals;

/* The threads come to each lock within a few instructions of each other. */
static void *register_new_locks(void *unused)
{
    for (uint32_t i = 0; i < NEW_LOCKS; i++) {
        ofp_fetch_add(&arrivals, 1);
        while (ofp_load_relaxed(&arrivals) < (i + 1) * THREADS)
            ;
        ofpi_process_lock_register(&new_locks[i]);
    }
    return unused;
}

static unsigned times_listed(const pthread_mutex_t *lock)
{
    const pthread_mutex_t *listed;
    unsigned times = 0;

    for (unsigned place = 0; (listed = ofpi_process_lock_at(place)); place++)
        times += listed == lock;
    return times;
}

/* As threads do that load a hook at the same time. A lock that were listed twice would have fork wait for itself. */
static void test_threads_register_a_lock_once(void **state)
{
    pthread_t threads[THREADS];

    (void)state;
    for (int i = 0; i < NEW_LOCKS; i++)
        pthread_mutex_init(&new_locks[i], NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, register_new_locks, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < NEW_LOCKS; i++)
        assert_int_equal(times_listed(&new_locks[i]), 1);
    fork_and_use();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork_waits_for_each_lock),
        cmocka_unit_test(test_fork_beside_threads_that_open_and_close),
        cmocka_unit_test(test_threads_register_a_lock_once),
    };

    sem_init(&taken, 0, 0);
    sem_init(&begun, 0, 0);
    sem_init(&over, 0, 0);
    pthread_atfork(fork_begins, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
