/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The helper thread of progress="auto": makes progress when no thread of the application does.
 *
 * WATCH   the application was active since the last check: check again after one to four milliseconds;
 * PARKED  a thread of the application has slept in a wait since the last check, and so polls the descriptor itself;
 * ARMED   no thread polls the descriptor: the helper arms the endpoints and sleeps on it.
 * ARMED lasts until the descriptor is readable or the application waits, PARKED until that wait ends.
 */
#include "progress/helper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/log.h"
#include "object/domain.h"
#include "object/endpoint.h"
#include "ofipy/ofp.h"
#include "progress/levels.h"
#include "progress/progress.h"

#define LOOK_MS 1
/* A check costs a polling thread two context switches and its caches: double the pause after each, up to this. */
#define LONGEST_LOOK_MS 4

void ofpi_helper_wake(struct ofpi_domain *domain)
{
    uint64_t one = 1;

    /* In WATCH the helper soon wakes by its time-out. */
    if (domain->helper_state != OFPI_HELPER_ARMED && domain->helper_state != OFPI_HELPER_PARKED)
        return;
    domain->helper_state = OFPI_HELPER_WATCH;
    if (write(domain->helper_fd, &one, sizeof(one)) < 0)
        ofpi_log_write(OFP_LOG_ERROR, "core", "cannot wake the helper thread: %s", ofp_strerror(errno));
}

/* True: the time-out has passed, and no descriptor is readable. */
static bool sleep_helper(const struct ofpi_domain *domain, enum ofpi_helper_state state, int watch_ms)
{
    struct pollfd entries[2] = {{.fd = domain->helper_fd, .events = POLLIN},
                                {.fd = domain->reactor.epoll_fd, .events = POLLIN}};
    uint64_t ignored;

    if (poll(entries, state == OFPI_HELPER_ARMED ? 2 : 1, state == OFPI_HELPER_WATCH ? watch_ms : -1) == 0)
        return true;
    if (entries[0].revents)
        while (read(domain->helper_fd, &ignored, sizeof(ignored)) > 0)
            ;
    return false;
}

void ofpi_progress_schedule(struct ofp_endpoint *endpoint)
{
    ofp_store_relaxed(&((struct ofpi_endpoint *)endpoint)->domain->look_wanted, true);
}

static bool is_progress_wanted(const struct ofpi_domain *domain) { return ofp_load_relaxed(&domain->look_wanted); }

/* Read without the lock: waiting for the lock would delay a thread that polls on the same core. */
static bool is_application_active(const struct ofpi_domain *domain, uint64_t *seen_progress)
{
    uint64_t progress = ofp_load_relaxed(&domain->progress_count);
    bool active = progress != *seen_progress;

    *seen_progress = progress;
    return active;
}

/* Decide, with the lock held, how to sleep next. */
static enum ofpi_helper_state choose_helper_state(struct ofpi_domain *domain, uint64_t *seen_progress,
                                                  uint64_t *seen_sleeps)
{
    bool active = is_application_active(domain, seen_progress);

    if (domain->leader) {
        /* Park only if the thread is still in the sleep of the last check: parking for short sleeps does not pay. */
        bool long_asleep = *seen_sleeps == domain->sleeps;

        *seen_sleeps = domain->sleeps;
        return long_asleep ? OFPI_HELPER_PARKED : OFPI_HELPER_WATCH;
    }
    *seen_sleeps = domain->sleeps;
    if (active && !is_progress_wanted(domain))
        return OFPI_HELPER_WATCH;
    ofp_store_relaxed(&domain->look_wanted, false);
    ofpi_domain_progress(domain, true);
    /* The helper's own round does not count as activity of the application. */
    *seen_progress = ofp_load_relaxed(&domain->progress_count);
    if (active || !ofpi_domain_arm(domain))
        return OFPI_HELPER_WATCH;
    ofpi_domain_levels_write(domain);
    return OFPI_HELPER_ARMED;
}

static void *run_helper(void *argument)
{
    struct ofpi_domain *domain = argument;
    uint64_t seen_progress = 0, seen_sleeps = UINT64_MAX;
    int watch_ms;

    ofpi_lock_acquire(&domain->lock);
    while (!domain->helper_stop) {
        enum ofpi_helper_state state = choose_helper_state(domain, &seen_progress, &seen_sleeps);

        domain->helper_state = state;
        ofpi_lock_release(&domain->lock);
        watch_ms = LOOK_MS;
        while (sleep_helper(domain, state, watch_ms) && !is_progress_wanted(domain) &&
               is_application_active(domain, &seen_progress))
            watch_ms = watch_ms * 2 < LONGEST_LOOK_MS ? watch_ms * 2 : LONGEST_LOOK_MS;
        ofpi_lock_acquire(&domain->lock);
        domain->helper_state = OFPI_HELPER_WATCH;
    }
    ofpi_lock_release(&domain->lock);
    return NULL;
}

static void format_limit(int resource, char *text, size_t size)
{
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};

    getrlimit(resource, &limit);
    if (limit.rlim_cur == RLIM_INFINITY)
        snprintf(text, size, "unlimited");
    else
        snprintf(text, size, "%llu", (unsigned long long)limit.rlim_cur);
}

/* The system reports EAGAIN if one of these limits is reached. A retry does not help then. */
static int describe_thread_error(int error, char *text, size_t text_size)
{
    char threads[24], memory[24];

    if (error != EAGAIN && error != ENOMEM) {
        snprintf(text, text_size, "cannot start the helper thread: %s", ofp_strerror(error));
        return -error;
    }
    format_limit(RLIMIT_NPROC, threads, sizeof(threads));
    format_limit(RLIMIT_AS, memory, sizeof(memory));
    snprintf(text, text_size,
             "cannot start the helper thread: a limit on threads (RLIMIT_NPROC %s, pids.max of the control group, "
             "kernel.threads-max) or on memory (RLIMIT_AS %s) is reached; progress \"manual\" needs no thread",
             threads, memory);
    return -ENOMEM;
}

int ofpi_helper_start(struct ofpi_domain *domain, char *text, size_t text_size)
{
    sigset_t all, before;
    int error;

    domain->helper_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (domain->helper_fd < 0) {
        error = errno;
        snprintf(text, text_size, "cannot make the helper thread's eventfd: %s", ofp_strerror(error));
        return -error;
    }
    /* Block all signals in the helper: the application's threads handle them. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    domain->helper_state = OFPI_HELPER_WATCH;
    error = pthread_create(&domain->helper, NULL, run_helper, domain);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        domain->helper_state = OFPI_HELPER_NONE;
        close(domain->helper_fd);
        return describe_thread_error(error, text, text_size);
    }
    /* The name that top and debuggers show. */
    pthread_setname_np(domain->helper, "ofipy-helper");
    return 0;
}

void ofpi_helper_stop(struct ofpi_domain *domain)
{
    uint64_t one = 1;

    if (domain->helper_state == OFPI_HELPER_NONE)
        return;
    ofpi_lock_acquire(&domain->lock);
    domain->helper_stop = true;
    if (write(domain->helper_fd, &one, sizeof(one)) < 0)
        ofpi_log_write(OFP_LOG_ERROR, "core", "cannot wake the helper thread: %s", ofp_strerror(errno));
    ofpi_lock_release(&domain->lock);
    pthread_join(domain->helper, NULL);
    domain->helper_state = OFPI_HELPER_NONE;
    close(domain->helper_fd);
}
