/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting threads: spin for a bounded time, then sleep.
 *
 * One of the sleeping threads is the leader: it has armed the endpoints and sleeps on the domain's descriptor. The
 * others, the followers, sleep on a futex. A thread that completes an operation wakes all of them. Each checks its own
 * condition, and sleeps again if it is false. A leader that leaves wakes the followers, so that one of them becomes the
 * leader.
 */
#include "progress/wait.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/param.h"
#include "base/reactor.h"
#include "object/domain.h"
#include "progress/helper.h"
#include "progress/levels.h"
#include "progress/progress.h"

#define SECOND 1000000000ull
/* Between two polls of a transport without a descriptor. */
#define NAP_NS 50000
/* Polls between two reads of the clock while spinning. */
#define POLLS_PER_LOOK 8
/* Polls before the first read of the clock. */
#define FIRST_POLLS 64
/* The longest spin, in SPIN_TIMEs, and how many short sleeps lie between two trials of it. */
#define LONGEST_SPINS 5
#define SLEEPS_PER_TRIAL 16

/*
 * Do not empty the descriptor while the leader sleeps on it: another thread would consume the wake-up before the leader
 * runs.
 */
static void handle_notification(struct ofp_watch *watch, uint32_t events)
{
    const struct ofpi_domain *domain = OFP_CONTAINER_OF(watch, struct ofpi_domain, notify_watch);
    uint64_t ignored;

    (void)events;
    if (domain->leader)
        return;
    while (read(watch->fd, &ignored, sizeof(ignored)) > 0)
        ;
}

int ofpi_wait_open(struct ofpi_domain *domain)
{
    int result;

    domain->spin_limit_ns = ofpi_param_get_size("SPIN_TIME") * 1000;
    domain->spin_ns = domain->spin_limit_ns;
    domain->notify_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (domain->notify_fd < 0)
        return -errno;
    domain->notify_watch = (struct ofp_watch){.fd = domain->notify_fd, .events = EPOLLIN, .ready = handle_notification};
    result = ofpi_reactor_add(&domain->reactor, &domain->notify_watch);
    if (result)
        close(domain->notify_fd);
    return result;
}

void ofpi_wait_close(struct ofpi_domain *domain)
{
    ofpi_reactor_remove(&domain->reactor, &domain->notify_watch);
    close(domain->notify_fd);
}

static void wake_followers(struct ofpi_domain *domain)
{
    /* The lock is held: a follower reads the generation with the lock held too, so it misses no wake-up. */
    ofp_store_relaxed(&domain->generation, ofp_load_relaxed(&domain->generation) + 1);
    syscall(SYS_futex, &domain->generation, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

void ofpi_domain_wake(struct ofpi_domain *domain)
{
    uint64_t one = 1;

    /* One write is enough for each sleep of the leader. */
    if (domain->leader && !domain->leader_notified)
        domain->leader_notified = write(domain->notify_fd, &one, sizeof(one)) == sizeof(one);
    if (domain->followers)
        wake_followers(domain);
}

/* ------------------------------------------------------------------------------------------------------- sleeping */

static int sleep_as_follower(struct ofpi_domain *domain, uint64_t deadline)
{
    /*
     * Read with the lock held: a wake-up between the release of the lock and the sleep changes the generation, and the
     * kernel does not sleep then.
     */
    uint32_t seen = ofp_load_relaxed(&domain->generation);
    uint64_t now = ofpi_clock_read();
    struct timespec left = {0};
    int result;

    if (now >= deadline)
        return 0;
    left.tv_sec = (time_t)((deadline - now) / SECOND);
    left.tv_nsec = (long)((deadline - now) % SECOND);
    domain->followers++;
    /* Leave, not only release: leaving arms again for the leader what this thread's polls have disarmed. */
    ofpi_domain_leave(domain);
    result = (int)syscall(SYS_futex, &domain->generation, FUTEX_WAIT_PRIVATE, seen, &left, NULL, 0) ? errno : 0;
    ofpi_lock_acquire(&domain->lock);
    domain->followers--;
    return result == EINTR ? -EINTR : 0;
}

static int poll_descriptor(int fd, uint64_t deadline)
{
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    uint64_t now = ofpi_clock_read();
    struct timespec left = {0};

    if (deadline > now) {
        left.tv_sec = (time_t)((deadline - now) / SECOND);
        left.tv_nsec = (long)((deadline - now) % SECOND);
    }
    return ppoll(&entry, 1, &left, NULL) < 0 && errno == EINTR ? -EINTR : 0;
}

/*
 * How long to spin. Spinning pays if the event occurs before a sleep and its wake-up would be over. On a virtual
 * machine a wake-up can take longer than SPIN_TIME, so a spin that succeeded late may last longer the next time. Each
 * spin that ended in a sleep halves the time, so that on a machine with more processes than cores no process spins for
 * long.
 *
 * If two peers both sleep, each waits for the other's wake-up, which always takes longer than a spin. So after some
 * short sleeps a thread tries the longest spin; if it succeeds, both peers spin from then on. After every other wake-up
 * a thread spins for at least SPIN_TIME: a peer may send the wake-up shortly before the event.
 */
static void update_spin_after_spin(struct ofpi_domain *domain, uint64_t spun)
{
    uint64_t wanted = spun * 2;

    if (wanted < domain->spin_limit_ns)
        wanted = domain->spin_limit_ns;
    domain->spin_ns = wanted < LONGEST_SPINS * domain->spin_limit_ns ? wanted : LONGEST_SPINS * domain->spin_limit_ns;
}

static void update_spin_after_sleep(struct ofpi_domain *domain, uint64_t slept)
{
    if (slept < 2 * LONGEST_SPINS * domain->spin_limit_ns && ++domain->short_sleeps % SLEEPS_PER_TRIAL == 0)
        domain->spin_ns = LONGEST_SPINS * domain->spin_limit_ns;
    else if (domain->spin_ns < domain->spin_limit_ns)
        domain->spin_ns = domain->spin_limit_ns;
}

static void sleep_without_descriptor(struct ofpi_domain *domain)
{
    struct timespec pause = {.tv_nsec = NAP_NS};

    ofpi_lock_release(&domain->lock);
    nanosleep(&pause, NULL);
    ofpi_lock_acquire(&domain->lock);
}

static int sleep_as_leader(struct ofpi_domain *domain, ofpi_condition *condition, const void *argument,
                           uint64_t deadline)
{
    uint64_t slept_at;
    int result;

    OFPI_CHECK(ofpi_domain_is_held(domain) && !domain->leader);
    if (!ofpi_domain_arm(domain)) {
        /* Handle events. If there are none and the transport has no descriptor, sleep for a short time. */
        if (ofpi_domain_progress(domain, true) == 0 && !domain->info.wait_fd)
            sleep_without_descriptor(domain);
        return 0;
    }
    /* Arming an endpoint sends its batched operations, whose completion may make the condition true. */
    if (condition(argument)) {
        ofpi_domain_disarm(domain);
        return 0;
    }
    ofpi_domain_levels_write(domain);
    slept_at = ofpi_clock_read();
    domain->leader = true;
    domain->leader_notified = false;
    domain->sleeps++;
    ofpi_lock_release(&domain->lock);
    result = poll_descriptor(domain->reactor.epoll_fd, deadline);
    ofpi_lock_acquire(&domain->lock);
    domain->leader = false;
    domain->wakeups++;
    update_spin_after_sleep(domain, ofpi_clock_read() - slept_at);
    ofpi_domain_disarm(domain);
    ofpi_domain_progress(domain, true);
    return result;
}

/* ------------------------------------------------------------------------------------------------------- spinning */

/*
 * One poll, which adds its events to `events`. True: the condition is true. Releases the lock for a moment if another
 * thread wants it.
 */
static inline bool poll_condition(struct ofpi_domain *domain, ofpi_condition *condition, const void *argument,
                                  int *events)
{
    *events += ofpi_domain_progress(domain, false);
    if (condition(argument))
        return true;
    if (__builtin_expect(ofpi_lock_wanted(&domain->lock), 0)) {
        /* Without the yield this thread would usually acquire the lock again before the other one runs. */
        ofpi_lock_release(&domain->lock);
        sched_yield();
        ofpi_lock_acquire(&domain->lock);
        return condition(argument);
    }
    ofp_spin_pause();
    return false;
}

/*
 * Spin until `quiet` ns have passed without an event, at most until the deadline. Parts of a long message are events: a
 * receiver that slept between them would cost its sender a system call to wake it. `began`: when the spin began, or when
 * it had its last event.
 */
static bool spin_on_condition(struct ofpi_domain *domain, ofpi_condition *condition, const void *argument,
                              uint64_t quiet, uint64_t deadline, uint64_t *began)
{
    uint64_t now;

    do {
        int events = 0;

        for (int poll = 0; poll < POLLS_PER_LOOK; poll++)
            if (poll_condition(domain, condition, argument, &events))
                return true;
        now = ofpi_clock_read();
        if (events)
            *began = now;
    } while (now - *began < quiet && now < deadline);
    return false;
}

static int wait_until(struct ofpi_domain *domain, ofpi_condition *condition, const void *argument, uint64_t deadline)
{
    for (;;) {
        uint64_t now = ofpi_clock_read(), began = now;
        bool brief;
        int result;

        if (now >= deadline)
            return 0;
        brief = deadline - now <= domain->spin_limit_ns;
        if (spin_on_condition(domain, condition, argument, domain->spin_ns, deadline, &began)) {
            update_spin_after_spin(domain, ofpi_clock_read() - began);
            return 1;
        }
        /* Spinning did not pay. After a few such waits the time is 0. */
        domain->spin_ns /= 2;
        /* A time-out that is shorter than a spin is not worth a sleep. */
        if (brief)
            return 0;
        result = domain->leader ? sleep_as_follower(domain, deadline)
                                : sleep_as_leader(domain, condition, argument, deadline);
        if (condition(argument))
            return 1;
        if (result)
            return result;
    }
}

/*
 * Disarm while this thread polls, so that peers send no wake-ups; but not while another thread sleeps. Wake the helper
 * too, so that it does not sleep on the descriptor.
 */
static void disarm_for_spin(struct ofpi_domain *domain)
{
    if (domain->endpoints_armed && !domain->armed_queues && !domain->leader)
        ofpi_domain_disarm(domain);
    ofpi_helper_wake(domain);
}

bool ofpi_domain_spin(struct ofpi_domain *domain, ofpi_condition *condition, const void *argument, uint64_t duration)
{
    bool result = condition(argument);
    int events = 0;

    if (result)
        return true;
    disarm_for_spin(domain);
    domain->waiting++;
    if (duration) {
        uint64_t began = ofpi_clock_read();

        result = spin_on_condition(domain, condition, argument, duration, began + duration, &began);
    } else {
        result = poll_condition(domain, condition, argument, &events);
    }
    domain->waiting--;
    return result;
}

static int wait_counted(struct ofpi_domain *domain, ofpi_condition *condition, const void *argument, int64_t timeout,
                        bool *expired)
{
    /* Return after one second at most: Python runs its signal handlers between two calls. */
    bool own = timeout >= 0 && (uint64_t)timeout <= SECOND;
    int result, events = 0;

    *expired = false;
    if (condition(argument))
        return 1;
    ofpi_domain_progress(domain, timeout == 0);
    if (condition(argument))
        return 1;
    *expired = timeout == 0;
    if (timeout == 0)
        return 0;
    disarm_for_spin(domain);
    /* Do not read the clock during the first polls: the answer of a fast peer may arrive sooner. */
    if (domain->spin_ns)
        for (int poll = 0; poll < FIRST_POLLS; poll++)
            if (poll_condition(domain, condition, argument, &events))
                return 1;
    result = wait_until(domain, condition, argument, ofpi_clock_read() + (own ? (uint64_t)timeout : SECOND));
    *expired = result == 0 && own;
    /* One of the followers must become the leader and sleep on the descriptor. */
    if (!domain->leader && domain->followers)
        wake_followers(domain);
    /* No thread sleeps on the descriptor now: wake the helper, which parked while one did. */
    if (__builtin_expect(!domain->leader && domain->helper_state == OFPI_HELPER_PARKED, 0))
        ofpi_helper_wake(domain);
    return result;
}

int ofpi_domain_wait(struct ofpi_domain *domain, ofpi_condition *condition, const void *argument, int64_t timeout,
                     bool *expired)
{
    int result;

    /* A thread that closes the domain waits until these threads have left. */
    domain->waiting++;
    result = wait_counted(domain, condition, argument, timeout, expired);
    domain->waiting--;
    return result;
}

void ofpi_wait_for_leavers(struct ofpi_domain *domain, const uint32_t *threads)
{
    /* To read the state that the caller has set, the waiters need a wake-up, and the lock. */
    while (*threads) {
        ofpi_domain_wake(domain);
        ofpi_lock_release(&domain->lock);
        sched_yield();
        ofpi_lock_acquire(&domain->lock);
    }
}
