/* SPDX-License-Identifier: BSD-3-Clause */
#include "schedule.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "schedule_thread.h"

#define TIMERS_MAX 64

#define START 1000000000000u /* ns: the clock at the begin of a run */
#define STEP_COST 20         /* ns: what a point takes */
#define CLOCK_COST 100
#define YIELD_COST 500
/* While a thread is withheld: who waits for it spins through seconds, and shall not need a million points. */
#define LONG_YIELD_COST 200000
/* Of points; those while a thread is withheld do not count: who has to wait for it may look 5,000 times in a second. */
#define STEPS_MAX 300000

struct timer {
    int fd; /* -1: free */
    uint64_t deadline;
};

struct schedule_board *schedule_board;

struct schedule_thread schedule_threads[THREADS_MAX];
uint32_t schedule_thread_count, schedule_current;
uint64_t schedule_now;
bool schedule_is_write;

static uint64_t counted_steps; /* towards STEPS_MAX */
static __thread struct schedule_thread *self;
static bool is_on;
static uint64_t start;
static struct timer timers[TIMERS_MAX];
static uint32_t timer_count;
static long (*raw)(long, ...); /* libc's syscall: no point */

/* -------------------------------------------------------------------------------------------------------------- story */

static struct place *find_place(struct schedule_thread *thread, const char *function)
{
    uint32_t hash = schedule_hash(function);

    for (uint32_t i = 0; i < PLACES_MAX; i++) {
        struct place *place = &thread->places[(hash + i) % PLACES_MAX];

        if (!place->function)
            place->function = function;
        if (place->function == function || strcmp(place->function, function) == 0)
            return place;
    }
    return &thread->places[0];
}

static void record_event(const char *function, const char *file, uint32_t line, const void *caller)
{
    struct schedule_event *event = &schedule_board->events[schedule_board->event_count++ % SCHEDULE_STORY];
    uint64_t digest = schedule_board->digest;

    memcpy(event->thread, self->name, sizeof(event->thread));
    event->function = function;
    event->file = file;
    event->line = line;
    event->caller = caller;
    event->at = schedule_now - start;
    digest = (digest ^ (uint64_t)(self - schedule_threads)) * 1099511628211u;
    for (const char *c = function; *c; c++)
        digest = (digest ^ (uint8_t)*c) * 1099511628211u;
    schedule_board->digest = digest;
}

_Noreturn void schedule_fail(const char *format, ...)
{
    va_list arguments;

    if (!schedule_board->verdict[0]) {
        va_start(arguments, format);
        vsnprintf(schedule_board->verdict, SCHEDULE_VERDICT, format, arguments);
        va_end(arguments);
    }
    schedule_board->virtual_ns = schedule_now - start;
    _exit(0);
}

/* ---------------------------------------------------------------------------------------------------------------- time */

static void fire_timers(void)
{
    uint64_t one = 1;

    for (uint32_t i = 0; i < timer_count; i++) {
        if (timers[i].fd < 0 || timers[i].deadline > schedule_now)
            continue;
        timers[i].deadline = SCHEDULE_NEVER;
        if (raw(SYS_write, timers[i].fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
            schedule_fail("the scheduler cannot write a timer: %s", strerror(errno));
    }
}

uint64_t schedule_read_clock(void)
{
    if (schedule_is_on())
        schedule_now += CLOCK_COST;
    return schedule_now;
}

uint64_t schedule_deadline(uint64_t duration)
{
    return duration > SCHEDULE_NEVER - schedule_now ? SCHEDULE_NEVER : schedule_now + duration;
}

static struct timer *find_timer(int fd)
{
    for (uint32_t i = 0; i < timer_count; i++)
        if (timers[i].fd == fd)
            return &timers[i];
    return NULL;
}

bool schedule_is_timer(int fd) { return fd >= 0 && find_timer(fd); }

void schedule_set_timer(int fd, uint64_t deadline)
{
    struct timer *timer = find_timer(fd);

    if (!timer)
        timer = find_timer(-1);
    if (!timer) {
        if (timer_count == TIMERS_MAX)
            schedule_fail("the scheduler has no more timers");
        timer = &timers[timer_count++];
    }
    *timer = (struct timer){fd, deadline};
}

void schedule_drain_timer(int fd)
{
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    uint64_t ignored;

    while (raw(SYS_ppoll, &entry, 1, &(struct timespec){0}, NULL, 8) > 0 &&
           raw(SYS_read, fd, &ignored, sizeof(ignored)) > 0)
        ;
}

void schedule_forget_timer(int fd)
{
    struct timer *timer = fd >= 0 ? find_timer(fd) : NULL;

    if (timer)
        timer->fd = -1;
}

/* ------------------------------------------------------------------------------------------------------ who can run */

bool schedule_can_run(struct schedule_thread *thread)
{
    if (thread->wait == ENDED || thread->withheld_until > schedule_now)
        return false;
    if (thread->wait == RUNS || thread->deadline <= schedule_now)
        return true;
    /* Raw: without a timeout it is no wait. */
    return thread->wait == WAITS_DESCRIPTORS &&
           raw(SYS_ppoll, thread->entries, thread->entry_count, &(struct timespec){0}, NULL, 8) > 0;
}

/* The next moment at which a thread can run by time alone. */
static uint64_t find_next_moment(void)
{
    uint64_t next = SCHEDULE_NEVER;

    for (uint32_t i = 0; i < timer_count; i++)
        if (timers[i].fd >= 0 && timers[i].deadline < next)
            next = timers[i].deadline;
    for (uint32_t i = 0; i < schedule_thread_count; i++) {
        const struct schedule_thread *thread = &schedule_threads[i];

        if (thread->wait == ENDED)
            continue;
        /* A withheld thread may find what it waits for by then. */
        if (thread->withheld_until > schedule_now && thread->withheld_until < next)
            next = thread->withheld_until;
        if (thread->wait != RUNS && thread->deadline > schedule_now && thread->deadline < next)
            next = thread->deadline;
    }
    return next;
}

static void describe_waits(char *text, size_t size)
{
    size_t used = 0;

    for (uint32_t i = 0; i < schedule_thread_count && used < size; i++) {
        struct schedule_thread *thread = &schedule_threads[i];

        if (thread->wait == WAITS_ADDRESS || thread->wait == WAITS_DESCRIPTORS)
            used += (size_t)snprintf(text + used, size - used, "%s%s waits", used ? ", " : "", thread->name);
    }
}

/*
 * Whether a thread can run after all: the kernel may deliver late, as over TCP. So a verdict that no thread can run comes
 * after a real wait alone. It lasts as long as on a busy machine a delivery may.
 */
static bool is_delivered_late(void)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    /* A run that follows a trace was judged before, and shortening a trace takes many: it waits for less time. */
    int patience = schedule_board->given_count ? 15 : 100;

    for (int i = 0; i < patience; i++) {
        for (uint32_t j = 0; j < schedule_thread_count; j++)
            if (schedule_can_run(&schedule_threads[j]))
                return true;
        raw(SYS_nanosleep, &pause, NULL);
    }
    return false;
}

/* No thread can run: go on to the next moment at which one can. */
static void pass_time(void)
{
    uint64_t next = find_next_moment();
    char text[256] = "";

    if ((next == SCHEDULE_NEVER || next - start > schedule_board->budget_ns) && is_delivered_late())
        return;
    describe_waits(text, sizeof(text));
    if (next == SCHEDULE_NEVER)
        schedule_fail("deadlock: no thread can run, and none has a deadline: %s", text);
    schedule_now = next;
    fire_timers();
    if (schedule_now - start > schedule_board->budget_ns)
        schedule_fail("late: no thread can run before %llu.%06llu ms, and the budget is %llu ms: %s",
                      (unsigned long long)((schedule_now - start) / 1000000),
                      (unsigned long long)((schedule_now - start) % 1000000),
                      (unsigned long long)(schedule_board->budget_ns / 1000000), text);
}

/* ----------------------------------------------------------------------------------------------------------- switching */

static void sleep_until_go(struct schedule_thread *thread)
{
    while (!atomic_load_explicit(&thread->go, memory_order_acquire))
        raw(SYS_futex, &thread->go, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static void hand_over(struct schedule_thread *next)
{
    schedule_current = (uint32_t)(next - schedule_threads);
    atomic_store_explicit(&next->go, 1, memory_order_release);
    raw(SYS_futex, &next->go, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void run_next(const char *function, const char *file, uint32_t line, const void *caller, bool yields)
{
    struct place *place = find_place(self, function);
    struct schedule_thread *next;
    uint32_t occurrence = ++place->count;
    bool is_withheld = schedule_now < schedule_withheld_end();

    record_event(function, file, line, caller);
    schedule_now += !yields ? STEP_COST : is_withheld ? LONG_YIELD_COST : YIELD_COST;
    fire_timers();
    schedule_board->steps++;
    counted_steps += !is_withheld;
    if (counted_steps > STEPS_MAX)
        schedule_fail("livelock: %u points, and the program has not ended", STEPS_MAX);
    while (!(next = schedule_choose(self, function, occurrence, yields)))
        pass_time();
    schedule_is_write = false;
    if (next == self)
        return;
    if (self->wait != ENDED)
        atomic_store_explicit(&self->go, 0, memory_order_relaxed);
    hand_over(next);
    if (self->wait != ENDED)
        sleep_until_go(self);
}

const char *schedule_get_name(void) { return self->name; }

bool schedule_is_on(void) { return is_on && self; }

void schedule_note_write(void) { schedule_is_write = schedule_is_on(); }

void schedule_point(const char *function, const char *file, uint32_t line, const void *caller)
{
    int error = errno;

    if (schedule_is_on())
        run_next(function, file, line, caller, false);
    errno = error;
}

void schedule_yield(const char *function, const char *file, uint32_t line, const void *caller)
{
    int error = errno;

    if (schedule_is_on())
        run_next(function, file, line, caller, true);
    errno = error;
}

bool schedule_wait(const char *function, const void *caller, const void *address, uint64_t deadline)
{
    self->wait = WAITS_ADDRESS;
    self->address = address;
    self->deadline = deadline;
    self->woken = false;
    run_next(function, NULL, 0, caller, false);
    self->wait = RUNS;
    return self->woken;
}

uint32_t schedule_wake(const void *address, uint32_t count)
{
    uint32_t woken = 0;

    for (uint32_t i = 0; i < schedule_thread_count && woken < count; i++) {
        if (schedule_threads[i].wait == WAITS_ADDRESS && schedule_threads[i].address == address &&
            !schedule_threads[i].woken) {
            schedule_threads[i].woken = true;
            schedule_threads[i].wait = RUNS;
            woken++;
        }
    }
    return woken;
}

void schedule_wait_descriptors(const char *function, const void *caller, struct pollfd *entries, nfds_t count,
                               uint64_t deadline)
{
    self->wait = WAITS_DESCRIPTORS;
    self->entries = entries;
    self->entry_count = count;
    self->deadline = deadline;
    run_next(function, NULL, 0, caller, false);
    self->wait = RUNS;
}

/* ------------------------------------------------------------------------------------------------------------- threads */

static const char *next_name;

void schedule_name_next(const char *name) { next_name = name; }

void schedule_name_thread(struct schedule_thread *thread, const char *name)
{
    uint32_t number = 1;
    char text[16];

    snprintf(text, sizeof(text), "%s", name);
    while (schedule_find_by_name(text))
        snprintf(text, sizeof(text), "%.11s %u", name, ++number);
    memcpy(thread->name, text, sizeof(text));
}

struct schedule_thread *schedule_add_thread(void)
{
    struct schedule_thread *thread = &schedule_threads[schedule_thread_count];

    if (schedule_thread_count == THREADS_MAX)
        schedule_fail("the scheduler has no more threads");
    snprintf(thread->name, sizeof(thread->name), "T%u", schedule_thread_count);
    if (next_name)
        schedule_name_thread(thread, next_name);
    next_name = NULL;
    thread->priority = THREADS_MAX + schedule_draw_priority();
    schedule_thread_count++;
    return thread;
}

void schedule_set_handle(struct schedule_thread *thread, pthread_t handle)
{
    thread->handle = handle;
    thread->has_handle = true;
}

struct schedule_thread *schedule_find_thread(pthread_t handle)
{
    for (uint32_t i = 0; i < schedule_thread_count; i++)
        if (schedule_threads[i].has_handle && pthread_equal(schedule_threads[i].handle, handle))
            return &schedule_threads[i];
    return NULL;
}

void schedule_enter_thread(struct schedule_thread *thread)
{
    self = thread;
    sleep_until_go(thread);
}

void schedule_leave_thread(struct schedule_thread *thread)
{
    thread->wait = ENDED;
    schedule_wake(thread, UINT32_MAX);
    run_next("end of thread", NULL, 0, NULL, false);
    self = NULL;
}

void schedule_await_thread(struct schedule_thread *thread, const void *caller)
{
    while (thread->wait != ENDED)
        schedule_wait("pthread_join", caller, thread, SCHEDULE_NEVER);
    /* libc uses the handle again. */
    thread->has_handle = false;
}

void schedule_begin(uint64_t seed, uint64_t budget)
{
    raw = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    start = schedule_now = START;
    schedule_board->budget_ns = budget;
    schedule_draw_plan(seed);
    self = schedule_add_thread();
    memcpy(self->name, "main", 5);
    self->go = 1;
    is_on = true;
}

void schedule_end(void)
{
    for (uint32_t i = 1; i < schedule_thread_count; i++)
        if (schedule_threads[i].wait != ENDED)
            schedule_fail("thread %s is left", schedule_threads[i].name);
    schedule_board->virtual_ns = schedule_now - start;
    is_on = false;
}
