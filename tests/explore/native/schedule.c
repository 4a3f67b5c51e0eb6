/* SPDX-License-Identifier: BSD-3-Clause */
#include "schedule.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 16
#define PLACES_MAX 1024 /* of a thread; a power of two */
#define TIMERS_MAX 64
#define CHANGES_MAX 3

#define START 1000000000000u /* ns: the clock at the begin of a run */
#define STEP_COST 20         /* ns: what a point takes */
#define CLOCK_COST 100
#define YIELD_COST 500
/* Points after which each thread has the same chance, so that what goes on for ever is a fault. */
#define FAIR_AFTER 30000
#define STEPS_MAX 300000

enum wait_kind { RUNS, WAITS_ADDRESS, WAITS_DESCRIPTORS, ENDED };

/* A function, and how often the thread has reached a point of it. */
struct place {
    const char *function; /* NULL: free */
    uint32_t count;
};

struct schedule_thread {
    char name[16];
    _Atomic uint32_t go; /* 1: it runs */
    enum wait_kind wait;
    const void *address;
    struct pollfd *entries;
    nfds_t entry_count;
    uint64_t deadline;
    uint64_t withheld_until; /* the strategy lets it not run before */
    uint32_t priority;
    bool woken;
    bool has_handle;
    pthread_t handle;
    struct place places[PLACES_MAX];
};

struct timer {
    int fd; /* -1: free */
    uint64_t deadline;
};

struct schedule_board *schedule_board;

static struct schedule_thread threads[THREADS_MAX];
static uint32_t thread_count, current;
static __thread struct schedule_thread *self;
static bool is_on;
static uint64_t now, start;
static struct timer timers[TIMERS_MAX];
static uint32_t timer_count;
static uint64_t world;         /* what the program draws, and the kernel's chance */
static long (*raw)(long, ...); /* libc's syscall: no point */

/* What the run's strategy has drawn. */
static struct {
    enum schedule_strategy kind;
    uint64_t random;
    uint32_t change_count, low; /* `low`: the priority that the next demoted thread gets */
    uint64_t changes[CHANGES_MAX];
    uint32_t one_in;       /* SCHEDULE_CHANCE: of so many points one */
    uint64_t withhold_at;  /* the point at which the running thread is withheld; never: 0 */
    uint64_t withhold_for; /* ns */
    bool is_withheld;      /* it was */
} plan;

/* ----------------------------------------------------------------------------------------------------------- chance */

static uint64_t draw_from(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* The strategy draws from its own numbers, so that the program draws the same ones when a trace is followed. */
static uint64_t draw(void) { return draw_from(&plan.random); }

uint64_t schedule_draw(uint64_t limit) { return limit ? draw_from(&world) % limit : 0; }

/* Of which kind the run is, and where it preempts. The first runs of a program are so short that few points are enough. */
static void draw_plan(uint64_t seed)
{
    uint64_t kind, reach;

    plan.random = seed;
    world = ~seed;
    plan.low = THREADS_MAX;
    kind = draw() % 16;
    reach = UINT64_C(1) << (6 + draw() % 8);
    if (schedule_board->given_count) {
        plan.kind = SCHEDULE_TRACE;
        return;
    }
    plan.kind = kind < 12 ? SCHEDULE_PCT : kind < 15 ? SCHEDULE_CHANCE : SCHEDULE_DEFAULT;
    plan.change_count = (uint32_t)(draw() % (CHANGES_MAX + 1));
    for (uint32_t i = 0; i < plan.change_count; i++)
        plan.changes[i] = 1 + draw() % reach;
    plan.one_in = (uint32_t)(2u << draw() % 6);
    plan.withhold_at = draw() % 4 ? 0 : 1 + draw() % reach;
    plan.withhold_for = UINT64_C(1000000) << draw() % 13;
}

/* -------------------------------------------------------------------------------------------------------------- story */

static struct place *find_place(struct schedule_thread *thread, const char *function)
{
    uint32_t hash = 2166136261u;

    for (const char *c = function; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 16777619u;
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
    event->at = now - start;
    digest = (digest ^ (uint64_t)(self - threads)) * 1099511628211u;
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
    schedule_board->virtual_ns = now - start;
    _exit(0);
}

/* ---------------------------------------------------------------------------------------------------------------- time */

static void fire_timers(void)
{
    uint64_t one = 1;

    for (uint32_t i = 0; i < timer_count; i++) {
        if (timers[i].fd < 0 || timers[i].deadline > now)
            continue;
        timers[i].deadline = SCHEDULE_NEVER;
        if (raw(SYS_write, timers[i].fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
            schedule_fail("the scheduler cannot write a timer: %s", strerror(errno));
    }
}

uint64_t schedule_read_clock(void)
{
    if (schedule_is_on())
        now += CLOCK_COST;
    return now;
}

uint64_t schedule_deadline(uint64_t duration)
{
    return duration > SCHEDULE_NEVER - now ? SCHEDULE_NEVER : now + duration;
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

static bool can_run(struct schedule_thread *thread)
{
    if (thread->wait == ENDED || thread->withheld_until > now)
        return false;
    if (thread->wait == RUNS || thread->deadline <= now)
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
    for (uint32_t i = 0; i < thread_count; i++) {
        uint64_t at = threads[i].wait == RUNS ? 0 : threads[i].deadline;

        if (threads[i].wait == ENDED)
            continue;
        if (at < threads[i].withheld_until)
            at = threads[i].withheld_until;
        if (at > now && at < next)
            next = at;
    }
    return next;
}

static void describe_waits(char *text, size_t size)
{
    size_t used = 0;

    for (uint32_t i = 0; i < thread_count && used < size; i++) {
        struct schedule_thread *thread = &threads[i];

        if (thread->wait == WAITS_ADDRESS || thread->wait == WAITS_DESCRIPTORS)
            used += (size_t)snprintf(text + used, size - used, "%s%s waits", used ? ", " : "", thread->name);
    }
}

/* No thread can run: go on to the next moment at which one can. */
static void pass_time(void)
{
    uint64_t next = find_next_moment();
    char text[256] = "";

    describe_waits(text, sizeof(text));
    if (next == SCHEDULE_NEVER)
        schedule_fail("deadlock: no thread can run, and none has a deadline: %s", text);
    now = next;
    fire_timers();
    if (now - start > schedule_board->budget_ns)
        schedule_fail("late: no thread can run before %llu.%06llu ms, and the budget is %llu ms: %s",
                      (unsigned long long)((now - start) / 1000000), (unsigned long long)((now - start) % 1000000),
                      (unsigned long long)(schedule_board->budget_ns / 1000000), text);
}

/* ------------------------------------------------------------------------------------------------------------ choosing */

/* Without a decision: the running thread, unless it yields or cannot; then the next one. NULL: no thread can run. */
static struct schedule_thread *choose_default(bool yields)
{
    for (uint32_t i = yields ? 1 : 0; i < thread_count + (yields ? 1 : 0); i++) {
        struct schedule_thread *thread = &threads[(current + i) % thread_count];

        if (can_run(thread))
            return thread;
    }
    return NULL;
}

static struct schedule_thread *choose_by_priority(void)
{
    uint32_t tried = 0;

    for (uint32_t i = 0; i < thread_count; i++) {
        struct schedule_thread *best = NULL;

        for (uint32_t j = 0; j < thread_count; j++)
            if (!(tried & 1u << j) && (!best || threads[j].priority > best->priority))
                best = &threads[j];
        if (can_run(best))
            return best;
        tried |= 1u << (best - threads);
    }
    return NULL;
}

static struct schedule_thread *choose_by_chance(void)
{
    struct schedule_thread *able[THREADS_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < thread_count; i++)
        if (can_run(&threads[i]))
            able[count++] = &threads[i];
    return count ? able[draw() % count] : NULL;
}

static struct schedule_decision *find_given(const char *function, uint32_t occurrence)
{
    for (uint32_t i = 0; i < schedule_board->given_count; i++) {
        struct schedule_decision *given = &schedule_board->given[i];

        if (!given->used && given->occurrence == occurrence && strcmp(given->thread, self->name) == 0 &&
            strncmp(given->function, function, SCHEDULE_NAME - 1) == 0)
            return given;
    }
    return NULL;
}

static struct schedule_thread *find_by_name(const char *name)
{
    for (uint32_t i = 0; i < thread_count; i++)
        if (strcmp(threads[i].name, name) == 0)
            return &threads[i];
    return NULL;
}

/* A decision "withhold 4" is of the thread that has reached the place: it does not run for so many ms. */
static void withhold(struct schedule_thread *thread, uint64_t duration)
{
    thread->withheld_until = now + duration;
    /* What waits for this thread may take so much longer. */
    schedule_board->budget_ns += duration;
}

static void decide(const char *function, uint32_t occurrence, const char *next)
{
    struct schedule_decision *made = &schedule_board->decisions[schedule_board->decision_count];

    if (schedule_board->decision_count == SCHEDULE_DECISIONS)
        return;
    schedule_board->decision_count++;
    *made = (struct schedule_decision){.occurrence = occurrence, .used = 1};
    memcpy(made->thread, self->name, sizeof(made->thread));
    strncpy(made->function, function, SCHEDULE_NAME - 1);
    strncpy(made->next, next, sizeof(made->next) - 1);
}

static struct schedule_thread *follow_trace(const char *function, uint32_t occurrence, bool yields)
{
    struct schedule_decision *given = find_given(function, occurrence);
    struct schedule_thread *next;
    unsigned long long duration;

    if (given && sscanf(given->next, "withhold %llu", &duration) == 1) {
        given->used = 1;
        decide(function, occurrence, given->next);
        withhold(self, duration * 1000000);
        given = find_given(function, occurrence);
    }
    next = given ? find_by_name(given->next) : NULL;
    if (!next || !can_run(next))
        return choose_default(yields);
    given->used = 1;
    return next;
}

static bool is_change(uint64_t step)
{
    for (uint32_t i = 0; i < plan.change_count; i++)
        if (plan.changes[i] == step)
            return true;
    return false;
}

static void maybe_withhold(const char *function, uint32_t occurrence)
{
    char text[32];

    if (plan.is_withheld || !plan.withhold_at || schedule_board->steps < plan.withhold_at)
        return;
    plan.is_withheld = true;
    snprintf(text, sizeof(text), "withhold %llu", (unsigned long long)(plan.withhold_for / 1000000));
    decide(function, occurrence, text);
    withhold(self, plan.withhold_for);
}

static struct schedule_thread *choose(const char *function, uint32_t occurrence, bool yields)
{
    uint64_t step = schedule_board->steps;

    if (plan.kind == SCHEDULE_TRACE)
        return follow_trace(function, occurrence, yields);
    maybe_withhold(function, occurrence);
    if (plan.kind == SCHEDULE_DEFAULT)
        return choose_default(yields);
    if (step > FAIR_AFTER)
        return choose_by_chance();
    if (plan.kind == SCHEDULE_CHANCE)
        return draw() % plan.one_in && !yields ? choose_default(false) : choose_by_chance();
    if (yields || is_change(step))
        self->priority = plan.low ? --plan.low : 0;
    return choose_by_priority();
}

/* ----------------------------------------------------------------------------------------------------------- switching */

static void sleep_until_go(struct schedule_thread *thread)
{
    while (!atomic_load_explicit(&thread->go, memory_order_acquire))
        raw(SYS_futex, &thread->go, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static void hand_over(struct schedule_thread *next)
{
    current = (uint32_t)(next - threads);
    atomic_store_explicit(&next->go, 1, memory_order_release);
    raw(SYS_futex, &next->go, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void run_next(const char *function, const char *file, uint32_t line, const void *caller, bool yields)
{
    struct place *place = find_place(self, function);
    struct schedule_thread *next, *usual;
    uint32_t occurrence = ++place->count;

    record_event(function, file, line, caller);
    now += yields ? YIELD_COST : STEP_COST;
    fire_timers();
    if (++schedule_board->steps > STEPS_MAX)
        schedule_fail("livelock: %u points, and the program has not ended", STEPS_MAX);
    while (!(next = choose(function, occurrence, yields)))
        pass_time();
    usual = choose_default(yields);
    if (next != usual)
        decide(function, occurrence, next->name);
    if (next == self)
        return;
    if (self->wait != ENDED)
        atomic_store_explicit(&self->go, 0, memory_order_relaxed);
    hand_over(next);
    if (self->wait != ENDED)
        sleep_until_go(self);
}

bool schedule_is_on(void) { return is_on && self; }

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

    for (uint32_t i = 0; i < thread_count && woken < count; i++) {
        if (threads[i].wait == WAITS_ADDRESS && threads[i].address == address && !threads[i].woken) {
            threads[i].woken = true;
            threads[i].wait = RUNS;
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
    while (find_by_name(text))
        snprintf(text, sizeof(text), "%.11s %u", name, ++number);
    memcpy(thread->name, text, sizeof(text));
}

struct schedule_thread *schedule_add_thread(void)
{
    struct schedule_thread *thread = &threads[thread_count];

    if (thread_count == THREADS_MAX)
        schedule_fail("the scheduler has no more threads");
    snprintf(thread->name, sizeof(thread->name), "T%u", thread_count);
    if (next_name)
        schedule_name_thread(thread, next_name);
    next_name = NULL;
    thread->priority = THREADS_MAX + (uint32_t)(draw() % 1024);
    thread_count++;
    return thread;
}

void schedule_set_handle(struct schedule_thread *thread, pthread_t handle)
{
    thread->handle = handle;
    thread->has_handle = true;
}

struct schedule_thread *schedule_find_thread(pthread_t handle)
{
    for (uint32_t i = 0; i < thread_count; i++)
        if (threads[i].has_handle && pthread_equal(threads[i].handle, handle))
            return &threads[i];
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
    start = now = START;
    schedule_board->budget_ns = budget;
    draw_plan(seed);
    self = schedule_add_thread();
    memcpy(self->name, "main", 5);
    self->go = 1;
    is_on = true;
}

void schedule_end(void)
{
    for (uint32_t i = 1; i < thread_count; i++)
        if (threads[i].wait != ENDED)
            schedule_fail("thread %s is left", threads[i].name);
    schedule_board->virtual_ns = now - start;
    is_on = false;
}
