/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of users is private, and memory of arenas and bounce buffers is a memfd, as in the provider shm.
 *
 * The peer executes one task after the other. The caller stores a task and raises `ordered`; the peer raises `done`
 * with the same number. Both spin. So the memory that a task has written is in the cache of the peer's core when the
 * caller copies.
 */
#include "scenarios.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "ways.h"

/* As in the provider shm: the size of a bounce buffer, and the bytes that are in flight at most. */
#define FRAGMENT ((size_t)16 << 10)
#define BUFFERS 16u
#define WARM 3
/* Polls between two yields of the core. */
#define POLLS 1000
#define CLOCKS 500
#define CLOCK_ROWS 20

enum task { TASK_WRITE, TASK_READ, TASK_PUSH, TASK_END };

/* What happens around the copy of one scenario. */
struct scenario {
    const char *name;
    bool to_arena;      /* the target is in an arena of the peer; otherwise the source is */
    bool peer_writes;   /* the peer writes the source before the copy */
    bool caller_writes; /* the caller does */
    bool peer_reads;    /* the peer reads the target after the copy */
    bool caller_reads;  /* the caller does */
    /* The pipeline: the peer copies into bounce buffers, and the caller copies from them at the same time. */
    bool fragments;
    bool way_in, way_out; /* which of the two copies goes the measured way; the other one is memcpy */
    bool zeros;           /* the source contains zeros only */
};

static const struct scenario scenarios[] = {
    {"fragment", .fragments = true, .way_in = true, .way_out = true, .caller_reads = true},
    {"fragment-in", .fragments = true, .way_in = true, .caller_reads = true},
    {"fragment-out", .fragments = true, .way_out = true, .caller_reads = true},
    {"mapped-written", .peer_writes = true, .caller_reads = true},
    {"mapped-idle", .caller_reads = true},
    {"write-read", .to_arena = true, .caller_writes = true, .peer_reads = true},
    {"write-idle", .to_arena = true},
    {"write-zeros", .to_arena = true, .zeros = true},
};

/* One number on a cache line of its own. */
struct counter {
    _Alignas(64) _Atomic uint32_t value;
};

struct copies {
    struct counter ordered, done;            /* tasks */
    struct counter published, busy[BUFFERS]; /* fragments of the pipeline; 1: the buffer is not free */
    struct counter slots[BUFFERS];           /* the buffer of a fragment; as many are in flight at most */
    _Alignas(64) pthread_t thread;
    enum task task; /* with what follows: written by the caller before it raises `ordered` */
    int way;
    size_t bytes;
    char *memory;       /* what the task reads or writes */
    uint64_t value;     /* what it writes */
    double nanoseconds; /* what it took; written by the peer before it raises `done` */
    double clock_cost;  /* nanoseconds of one reading of the clock */
    size_t limit;
    int there;
    char *user, *peer_user, *arena, *bounce;
};

const char *copies_way_name(int way) { return way < way_count ? ways[way].name : NULL; }

const char *copies_scenario_name(int scenario)
{
    return (size_t)scenario < sizeof(scenarios) / sizeof(scenarios[0]) ? scenarios[scenario].name : NULL;
}

int copies_is_supported(int way) { return ways[way].is_supported(); }

void copies_copy(int way, void *to, const void *from, size_t length) { ways[way].copy(to, from, length); }

static double read_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* A round of polling. It yields now and then: on a busy machine the other thread may not run. */
static void pause_poll(uint32_t polls)
{
    if (polls % POLLS == 0)
        sched_yield();
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void wait_until(_Atomic uint32_t *value, uint32_t wanted)
{
    for (uint32_t polls = 1; atomic_load_explicit(value, memory_order_acquire) != wanted; polls++)
        pause_poll(polls);
}

static void write_memory(char *memory, size_t bytes, uint64_t value)
{
    uint64_t *words = (uint64_t *)(void *)memory;

    for (size_t i = 0; i < bytes / sizeof(*words); i++)
        words[i] = value + i;
}

/* The nanoseconds since then, without those of one reading of the clock. That may have taken less time than it did before. */
static double measure_since(const struct copies *copies, double start)
{
    double passed = read_clock() - start - copies->clock_cost;

    return passed > 0 ? passed : 0;
}

/* The nanoseconds of one reading, in the quickest of some rows: another process may have interrupted the other rows. */
static double measure_clock(void)
{
    double least = 0;

    for (uint32_t row = 0; row < CLOCK_ROWS; row++) {
        double start = read_clock(), end = start;

        for (uint32_t i = 0; i < CLOCKS; i++)
            end = read_clock();
        if (row == 0 || (end - start) / CLOCKS < least)
            least = (end - start) / CLOCKS;
    }
    return least;
}

/* The nanoseconds that it takes. */
static double read_memory(const struct copies *copies, const char *memory, size_t bytes)
{
    const uint64_t *words = (const uint64_t *)(const void *)memory;
    double start = read_clock();
    uint64_t sum = 0;

    for (size_t i = 0; i < bytes / sizeof(*words); i++)
        sum += words[i];
    /* The compiler must not omit the loop. */
    __asm__ volatile("" : : "r"(sum) : "memory");
    return measure_since(copies, start);
}

/* ---------------------------------------------------------------------------------------------------- the pipeline */

static size_t cut_fragment(size_t left) { return left < FRAGMENT ? left : FRAGMENT; }

/* The lowest free buffer, as in the provider: it was used last. */
static uint32_t find_free_buffer(struct copies *copies)
{
    for (uint32_t polls = 1;; polls++) {
        for (uint32_t i = 0; i < BUFFERS; i++)
            if (!atomic_load_explicit(&copies->busy[i].value, memory_order_acquire))
                return i;
        pause_poll(polls);
    }
}

static void push_fragments(struct copies *copies, int way, size_t bytes)
{
    uint32_t number = atomic_load_explicit(&copies->published.value, memory_order_relaxed);

    for (size_t offset = 0; offset < bytes; offset += FRAGMENT) {
        uint32_t buffer = find_free_buffer(copies);

        ways[way].copy(copies->bounce + buffer * FRAGMENT, copies->peer_user + offset, cut_fragment(bytes - offset));
        atomic_store_explicit(&copies->busy[buffer].value, 1, memory_order_relaxed);
        atomic_store_explicit(&copies->slots[number % BUFFERS].value, buffer, memory_order_relaxed);
        atomic_store_explicit(&copies->published.value, ++number, memory_order_release);
    }
}

static void pull_fragments(struct copies *copies, int way, size_t bytes, uint32_t number)
{
    for (size_t offset = 0; offset < bytes; offset += FRAGMENT, number++) {
        uint32_t buffer;

        for (uint32_t polls = 1; atomic_load_explicit(&copies->published.value, memory_order_acquire) == number;
             polls++)
            pause_poll(polls);
        buffer = atomic_load_explicit(&copies->slots[number % BUFFERS].value, memory_order_relaxed);
        ways[way].copy(copies->user + offset, copies->bounce + buffer * FRAGMENT, cut_fragment(bytes - offset));
        atomic_store_explicit(&copies->busy[buffer].value, 0, memory_order_release);
    }
}

/* -------------------------------------------------------------------------------------------------------- the peer */

static void execute_task(struct copies *copies)
{
    if (copies->task == TASK_WRITE)
        write_memory(copies->memory, copies->bytes, copies->value);
    else if (copies->task == TASK_READ)
        copies->nanoseconds = read_memory(copies, copies->memory, copies->bytes);
    else if (copies->task == TASK_PUSH)
        push_fragments(copies, copies->way, copies->bytes);
}

static int pin_thread(int core)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(core, &set);
    return sched_setaffinity(0, sizeof(set), &set) == 0 ? 0 : errno;
}

static void *run_peer(void *argument)
{
    struct copies *copies = argument;

    if (pin_thread(copies->there) != 0)
        abort();
    for (uint32_t number = 1;; number++) {
        wait_until(&copies->ordered.value, number);
        execute_task(copies);
        atomic_store_explicit(&copies->done.value, number, memory_order_release);
        if (copies->task == TASK_END)
            return NULL;
    }
}

static void order_task(struct copies *copies, enum task task, char *memory, size_t bytes)
{
    copies->task = task;
    copies->memory = memory;
    copies->bytes = bytes;
    atomic_fetch_add_explicit(&copies->ordered.value, 1, memory_order_release);
}

static void await_task(struct copies *copies)
{
    wait_until(&copies->done.value, atomic_load_explicit(&copies->ordered.value, memory_order_relaxed));
}

/* ------------------------------------------------------------------------------------------------------ the caller */

static void run_task(struct copies *copies, enum task task, char *memory, size_t bytes)
{
    order_task(copies, task, memory, bytes);
    await_task(copies);
}

/* The nanoseconds of one message through the pipeline, from the request to the last byte. */
static double measure_pipeline(struct copies *copies, const struct scenario *scenario, int way, size_t bytes)
{
    uint32_t number = atomic_load_explicit(&copies->published.value, memory_order_relaxed);
    double start;

    run_task(copies, TASK_READ, copies->peer_user, bytes);
    copies->way = scenario->way_in ? way : 0;
    start = read_clock();
    order_task(copies, TASK_PUSH, NULL, bytes);
    pull_fragments(copies, scenario->way_out ? way : 0, bytes, number);
    start = measure_since(copies, start);
    await_task(copies);
    return start;
}

static double measure_copy(struct copies *copies, const struct scenario *scenario, int way, size_t bytes)
{
    char *to = scenario->to_arena ? copies->arena : copies->user;
    char *from = scenario->to_arena ? copies->user : copies->arena;
    double start;

    copies->value++;
    if (scenario->peer_writes)
        run_task(copies, TASK_WRITE, from, bytes);
    if (scenario->caller_writes)
        write_memory(from, bytes, copies->value);
    start = read_clock();
    ways[way].copy(to, from, bytes);
    return measure_since(copies, start);
}

int copies_measure(struct copies *copies, int index, int way, size_t bytes, int count, double *copied, double *read)
{
    const struct scenario *scenario = &scenarios[index];
    char *to = scenario->to_arena ? copies->arena : copies->user;
    char *from = scenario->fragments ? copies->peer_user : scenario->to_arena ? copies->user : copies->arena;

    write_memory(from, bytes, copies->value++);
    if (scenario->zeros)
        memset(from, 0, bytes);
    memset(to, UINT8_MAX, bytes);
    for (int i = -WARM; i < count; i++) {
        double *place = &copied[i < 0 ? 0 : i], *after = &read[i < 0 ? 0 : i];

        *place = scenario->fragments ? measure_pipeline(copies, scenario, way, bytes)
                                     : measure_copy(copies, scenario, way, bytes);
        *after = 0;
        if (scenario->caller_reads)
            *after = read_memory(copies, to, bytes);
        if (scenario->peer_reads) {
            run_task(copies, TASK_READ, to, bytes);
            *after = copies->nanoseconds;
        }
    }
    return memcmp(to, from, bytes) == 0 ? 0 : EILSEQ;
}

/* ---------------------------------------------------------------------------------------------------- open and close */

/* NULL: errno. The pages are backed, so that no copy includes a page fault. */
static char *map_memory(size_t bytes, bool shared)
{
    int fd = shared ? memfd_create("copies", MFD_CLOEXEC) : -1;
    void *memory;

    if (shared && (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)) {
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
    if (shared)
        close(fd);
    if (memory == MAP_FAILED)
        return NULL;
    return memset(memory, 1, bytes);
}

static void unmap_memory(char *memory, size_t bytes)
{
    if (memory)
        munmap(memory, bytes);
}

static void free_copies(struct copies *copies)
{
    unmap_memory(copies->user, copies->limit);
    unmap_memory(copies->peer_user, copies->limit);
    unmap_memory(copies->arena, copies->limit);
    unmap_memory(copies->bounce, FRAGMENT * BUFFERS);
    free(copies);
}

struct copies *copies_open(int here, int there, size_t bytes)
{
    struct copies *copies = aligned_alloc(64, sizeof(*copies));
    int error;

    if (!copies)
        return NULL;
    memset(copies, 0, sizeof(*copies));
    copies->limit = bytes;
    copies->there = there;
    copies->clock_cost = measure_clock();
    copies->user = map_memory(bytes, false);
    copies->peer_user = map_memory(bytes, false);
    copies->arena = map_memory(bytes, true);
    copies->bounce = map_memory(FRAGMENT * BUFFERS, true);
    error = copies->user && copies->peer_user && copies->arena && copies->bounce ? pin_thread(here) : ENOMEM;
    if (!error)
        error = pthread_create(&copies->thread, NULL, run_peer, copies);
    if (error) {
        free_copies(copies);
        errno = error;
        return NULL;
    }
    return copies;
}

void copies_close(struct copies *copies)
{
    run_task(copies, TASK_END, NULL, 0);
    pthread_join(copies->thread, NULL);
    free_copies(copies);
}
