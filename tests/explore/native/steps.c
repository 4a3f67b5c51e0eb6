/* SPDX-License-Identifier: BSD-3-Clause */
#include "steps.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define STEPS_MAX 262144
#define FUNCTIONS_MAX 1024
#define NAME_MAX_LENGTH 48
#define THREADS_MAX 16
#define RANGES_MAX 32
#define BLOCKS_MAX 65536

struct step {
    const void *caller;
    uint32_t function; /* its place in the board's table */
    uint32_t kind, thread, occurrence, action;
};

/* A fault: at the step of this name, and at so many `more` that follow in the same function and thread. */
struct fault {
    char function[NAME_MAX_LENGTH];
    uint32_t kind, thread, occurrence, action, more;
    int64_t value;
};

/* A function, and how often each thread has reached it. */
struct function {
    char name[NAME_MAX_LENGTH];
    uint32_t count[THREADS_MAX];
};

/*
 * Shared by the process that forks the runs and the run. Threads of the run write: entries of `steps` are claimed by
 * `count`, functions are guarded by `guard`. The other process reads when the run has ended.
 */
struct board {
    _Atomic uint32_t count, happened;
    uint32_t kinds;        /* mask of enum step_kind */
    uint32_t endless_naps; /* sleeps of half a second and more do not end by themselves */
    uint32_t function_count;
    struct fault fault;
    sem_t fork_wanted, fork_done;
    struct function functions[FUNCTIONS_MAX];
    struct step steps[STEPS_MAX];
};

static struct board *board;
static _Atomic bool armed;
static atomic_flag guard = ATOMIC_FLAG_INIT;
static _Atomic uint32_t thread_count;
static __thread uint32_t thread_number; /* from 1; 0: none yet */
static __thread bool inside;
static uintptr_t ranges[RANGES_MAX][2];
static uint32_t range_count;
static void (*interrupt)(void);

/* Blocks of ofipy's C that are not freed: an open table by address. Guarded by `guard`. */
static struct {
    void *block;
    const void *caller;
} blocks[BLOCKS_MAX];

static void lock(void)
{
    while (atomic_flag_test_and_set_explicit(&guard, memory_order_acquire))
        ;
}

static void unlock(void) { atomic_flag_clear_explicit(&guard, memory_order_release); }

/* --------------------------------------------------------------------------------------------------- ofipy's code */

static int add_range(struct dl_phdr_info *info, size_t size, void *unused)
{
    const char *name = info->dlpi_name;

    (void)size, (void)unused;
    if (!strstr(name, "/ofipy/") && !strstr(name, "fake_provider/"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum && range_count < RANGES_MAX; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];

        if (header->p_type == PT_LOAD && header->p_flags & PF_X) {
            ranges[range_count][0] = info->dlpi_addr + header->p_vaddr;
            ranges[range_count++][1] = info->dlpi_addr + header->p_vaddr + header->p_memsz;
        }
    }
    return 0;
}

bool step_is_ours(const void *caller)
{
    uintptr_t address = (uintptr_t)caller;

    for (uint32_t i = 0; i < range_count; i++) {
        if (address >= ranges[i][0] && address < ranges[i][1])
            return true;
    }
    return false;
}

bool step_is_wanted(enum step_kind kind, const void *caller)
{
    return atomic_load_explicit(&armed, memory_order_relaxed) && !inside && board->kinds & kind && step_is_ours(caller);
}

/* ----------------------------------------------------------------------------------------------------------- steps */

/* Count one more occurrence of the step's function in its thread. */
static void count_step(struct step *step, const char *name)
{
    uint32_t place = 0;

    lock();
    while (place < board->function_count && strncmp(board->functions[place].name, name, NAME_MAX_LENGTH - 1) != 0)
        place++;
    if (place == board->function_count && place < FUNCTIONS_MAX - 1)
        strncpy(board->functions[board->function_count++].name, name, NAME_MAX_LENGTH - 1);
    step->function = place;
    step->occurrence = ++board->functions[place].count[step->thread];
    unlock();
}

static bool is_at_fault(const struct step *step)
{
    const struct fault *fault = &board->fault;

    return fault->action && fault->kind == step->kind && fault->thread == step->thread &&
           step->occurrence >= fault->occurrence && step->occurrence - fault->occurrence <= fault->more &&
           strcmp(fault->function, board->functions[step->function].name) == 0;
}

static void sleep_ms(int64_t duration)
{
    struct timespec pause = {.tv_sec = duration / 1000, .tv_nsec = duration % 1000 * 1000000};

    while (nanosleep(&pause, &pause) != 0 && errno == EINTR)
        ;
}

/* Have another thread fork while this one is here with all its locks; it may be waiting for one of them. */
static void wait_for_fork(int64_t duration)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += duration * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    sem_post(&board->fork_wanted);
    while (sem_timedwait(&board->fork_done, &until) != 0 && errno == EINTR)
        ;
}

static void act(const struct fault *fault)
{
    int error = errno;

    switch (fault->action) {
    case STEP_DIE:
        kill(getpid(), SIGKILL);
        break;
    case STEP_LATE:
        sleep_ms(fault->value);
        break;
    case STEP_INTERRUPT:
        interrupt();
        break;
    case STEP_FORK:
        wait_for_fork(fault->value);
        break;
    default:
        break;
    }
    errno = error;
}

STEP_EXPORT struct step_answer step_reach(enum step_kind kind, const char *function, const void *caller)
{
    struct step_answer answer = {STEP_PASS, 0};
    struct step step = {.caller = caller, .kind = kind};
    uint32_t place;

    if (!atomic_load_explicit(&armed, memory_order_relaxed) || !(board->kinds & kind) || inside)
        return answer;
    inside = true;
    if (!thread_number)
        thread_number = atomic_fetch_add(&thread_count, 1) + 1;
    step.thread = (thread_number - 1) % THREADS_MAX;
    count_step(&step, function);
    if (is_at_fault(&step)) {
        answer = (struct step_answer){board->fault.action, board->fault.value};
        step.action = board->fault.action;
        atomic_fetch_add(&board->happened, 1);
    }
    place = atomic_fetch_add(&board->count, 1);
    if (place < STEPS_MAX)
        board->steps[place] = step;
    if (answer.action)
        act(&board->fault);
    inside = false;
    return answer;
}

/* ------------------------------------------------------------------------------------------------ memory that is left */

void step_block_add(void *block, const void *caller)
{
    lock();
    for (uint32_t i = 0, place = (uint32_t)((uintptr_t)block >> 4) % BLOCKS_MAX; i < BLOCKS_MAX; i++) {
        if (!blocks[place].block || blocks[place].block == (void *)1) {
            blocks[place].block = block;
            blocks[place].caller = caller;
            break;
        }
        place = (place + 1) % BLOCKS_MAX;
    }
    unlock();
}

void step_block_remove(void *block)
{
    if (!range_count || !block)
        return;
    lock();
    for (uint32_t i = 0, place = (uint32_t)((uintptr_t)block >> 4) % BLOCKS_MAX; i < BLOCKS_MAX; i++) {
        if (!blocks[place].block)
            break;
        if (blocks[place].block == block) {
            blocks[place].block = (void *)1;
            break;
        }
        place = (place + 1) % BLOCKS_MAX;
    }
    unlock();
}

/* Callers of blocks that are not freed, at most `max`; returns how many there are. */
STEP_EXPORT uint32_t step_blocks_list(const void **callers, uint32_t max)
{
    uint32_t count = 0;

    lock();
    for (uint32_t i = 0; i < BLOCKS_MAX; i++) {
        if ((uintptr_t)blocks[i].block > 1) {
            if (count < max)
                callers[count] = blocks[i].caller;
            count++;
        }
    }
    unlock();
    return count;
}

/* -------------------------------------------------------------------------------------------------------- from Python */

/* Create the board, once, before the first run. Returns 0, or -1 with errno. */
STEP_EXPORT int step_board_create(void)
{
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return -1;
    sem_init(&board->fork_wanted, 1, 0);
    sem_init(&board->fork_done, 1, 0);
    interrupt = (void (*)(void))dlsym(RTLD_DEFAULT, "PyErr_SetInterrupt");
    return 0;
}

/* Before a run is forked: what it records, and its fault. */
STEP_EXPORT void step_board_set(uint32_t kinds, uint32_t endless_naps, uint32_t kind, const char *function,
                                uint32_t thread, uint32_t occurrence, uint32_t action, int64_t value, uint32_t more)
{
    struct fault fault = {.kind = kind, .thread = thread, .occurrence = occurrence, .action = action, .more = more};

    fault.value = value;
    strncpy(fault.function, function, NAME_MAX_LENGTH - 1);
    board->fault = fault;
    board->kinds = kinds;
    board->endless_naps = endless_naps;
    memset(board->functions, 0, sizeof(board->functions));
    board->function_count = 0;
    atomic_store(&board->count, 0);
    atomic_store(&board->happened, 0);
    while (sem_trywait(&board->fork_wanted) == 0 || sem_trywait(&board->fork_done) == 0)
        ;
}

/* In the run. The calling thread is the first one. */
STEP_EXPORT void step_arm(void)
{
    if (!range_count)
        dl_iterate_phdr(add_range, NULL);
    if (!thread_number)
        thread_number = atomic_fetch_add(&thread_count, 1) + 1;
    atomic_store(&armed, true);
}

STEP_EXPORT void step_disarm(void) { atomic_store(&armed, false); }
STEP_EXPORT uint32_t step_count(void) { return atomic_load(&board->count); }
STEP_EXPORT uint32_t step_happened(void) { return atomic_load(&board->happened); }
STEP_EXPORT const struct step *step_list(void) { return board->steps; }
STEP_EXPORT const struct function *step_functions(void) { return board->functions; }
STEP_EXPORT uint32_t step_function_count(void) { return board->function_count; }
STEP_EXPORT void step_fork_await(void)
{
    while (sem_wait(&board->fork_wanted) != 0 && errno == EINTR)
        ;
}
STEP_EXPORT void step_fork_finish(void) { sem_post(&board->fork_done); }
/* Let step_fork_await return although no step wanted a fork. */
STEP_EXPORT void step_fork_release(void) { sem_post(&board->fork_wanted); }
/* A step of the caller's own, for Python: returns the action. */
STEP_EXPORT uint32_t step_reach_named(uint32_t kind, const char *function)
{
    return step_reach((enum step_kind)kind, function, NULL).action;
}

bool step_naps_are_endless(void) { return atomic_load_explicit(&armed, memory_order_relaxed) && board->endless_naps; }
