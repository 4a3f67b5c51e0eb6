/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of libc that lock, wait, read a clock or move bytes, for threads that are scheduled: each is a point, and waits are
 * the scheduler's. The program's own functions stand before libc's. Other threads' calls go to libc.
 *
 * A mutex is libc's: a thread that does not get it waits until another one has released it. Condition variables and futexes
 * are addresses to wait at, and a timerfd is an eventfd that virtual time writes.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "schedule.h"

#define CALLER __builtin_return_address(0)
#define SECOND 1000000000u

/* libc's function of this name, in `real`. */
#define FIND_REAL(name)                                                                                                \
    static __typeof__(&name) real;                                                                                     \
    if (!real)                                                                                                         \
    real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* A call that is a point and nothing else. */
#define POINT(result, name, parameters, arguments)                                                                     \
    result name parameters                                                                                             \
    {                                                                                                                  \
        FIND_REAL(name);                                                                                               \
        schedule_point(#name, NULL, 0, CALLER);                                                                        \
        return real arguments;                                                                                         \
    }

POINT(ssize_t, write, (int fd, const void *buffer, size_t length), (fd, buffer, length))
POINT(ssize_t, send, (int fd, const void *buffer, size_t length, int flags), (fd, buffer, length, flags))
POINT(ssize_t, recv, (int fd, void *buffer, size_t length, int flags), (fd, buffer, length, flags))
POINT(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
POINT(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
POINT(ssize_t, readv, (int fd, const struct iovec *segments, int count), (fd, segments, count))
POINT(ssize_t, writev, (int fd, const struct iovec *segments, int count), (fd, segments, count))
POINT(int, connect, (int fd, const struct sockaddr *address, socklen_t length), (fd, address, length))
POINT(int, accept4, (int fd, struct sockaddr *address, socklen_t *length, int flags), (fd, address, length, flags))
POINT(int, shutdown, (int fd, int how), (fd, how))
POINT(int, epoll_ctl, (int fd, int operation, int target, struct epoll_event *event), (fd, operation, target, event))
POINT(ssize_t, process_vm_readv,
      (pid_t pid, const struct iovec *local, unsigned long local_count, const struct iovec *remote,
       unsigned long remote_count, unsigned long flags),
      (pid, local, local_count, remote, remote_count, flags))
POINT(ssize_t, process_vm_writev,
      (pid_t pid, const struct iovec *local, unsigned long local_count, const struct iovec *remote,
       unsigned long remote_count, unsigned long flags),
      (pid, local, local_count, remote, remote_count, flags))

ssize_t read(int fd, void *buffer, size_t length)
{
    FIND_REAL(read);

    schedule_point("read", NULL, 0, CALLER);
    return real(fd, buffer, length);
}

/* --------------------------------------------------------------------------------------------------------------- locks */

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    FIND_REAL(pthread_mutex_lock);
    int result;

    if (!schedule_is_on())
        return real(mutex);
    schedule_point("pthread_mutex_lock", NULL, 0, CALLER);
    schedule_note_wanted(mutex, "pthread_mutex_lock");
    while ((result = pthread_mutex_trylock(mutex)) == EBUSY)
        schedule_wait("pthread_mutex_lock", CALLER, mutex, SCHEDULE_NEVER);
    schedule_note_acquired(mutex);
    return result;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    FIND_REAL(pthread_mutex_unlock);
    int result = real(mutex);

    if (schedule_is_on()) {
        schedule_note_released(mutex);
        schedule_wake(mutex, UINT32_MAX);
        schedule_point("pthread_mutex_unlock", NULL, 0, CALLER);
    }
    return result;
}

static int wait_for_condition(pthread_cond_t *condition, pthread_mutex_t *mutex, uint64_t deadline, const void *caller)
{
    bool woken;

    /* No point between the release of the mutex and the wait: they are one. */
    schedule_point("pthread_cond_wait", NULL, 0, caller);
    ((int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock"))(mutex);
    schedule_note_released(mutex);
    schedule_wake(mutex, UINT32_MAX);
    woken = schedule_wait("pthread_cond_wait", caller, condition, deadline);
    pthread_mutex_lock(mutex);
    return woken ? 0 : ETIMEDOUT;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    FIND_REAL(pthread_cond_wait);

    return schedule_is_on() ? wait_for_condition(condition, mutex, SCHEDULE_NEVER, CALLER) : real(condition, mutex);
}

int pthread_cond_signal(pthread_cond_t *condition)
{
    FIND_REAL(pthread_cond_signal);

    if (!schedule_is_on())
        return real(condition);
    schedule_wake(condition, 1);
    schedule_point("pthread_cond_signal", NULL, 0, CALLER);
    return 0;
}

int pthread_cond_broadcast(pthread_cond_t *condition)
{
    FIND_REAL(pthread_cond_broadcast);

    if (!schedule_is_on())
        return real(condition);
    schedule_wake(condition, UINT32_MAX);
    schedule_point("pthread_cond_broadcast", NULL, 0, CALLER);
    return 0;
}

static uint64_t duration_of(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * SECOND + (uint64_t)time->tv_nsec;
}

/* Of the system calls that have no function of libc's, futex alone is the scheduler's. */
static long call_futex(uint32_t *word, int what, uint32_t value, const struct timespec *timeout, const void *caller)
{
    switch (what & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
        schedule_point("futex_wait", NULL, 0, caller);
        if (*(volatile uint32_t *)word != value) {
            errno = EAGAIN;
            return -1;
        }
        if (schedule_wait("futex_wait", caller, word,
                          timeout ? schedule_deadline(duration_of(timeout)) : SCHEDULE_NEVER))
            return 0;
        errno = ETIMEDOUT;
        return -1;
    case FUTEX_WAKE:
        value = schedule_wake(word, value);
        schedule_point("futex_wake", NULL, 0, caller);
        return value;
    default:
        schedule_fail("the scheduler does not know futex operation %d", what);
    }
}

long syscall(long number, ...)
{
    FIND_REAL(syscall);
    const void *caller = CALLER;
    long argument[6];
    va_list rest;

    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        argument[i] = va_arg(rest, long);
    va_end(rest);
    if (number == SYS_futex && schedule_is_on())
        return call_futex((uint32_t *)argument[0], (int)argument[1], (uint32_t)argument[2],
                          (const struct timespec *)argument[3], caller);
    return real(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}

/* --------------------------------------------------------------------------------------------------------------- waits */

static int wait_for_descriptors(const char *function, const void *caller, struct pollfd *entries, nfds_t count,
                                uint64_t deadline)
{
    FIND_REAL(poll);

    schedule_wait_descriptors(function, caller, entries, count, deadline);
    return real(entries, count, 0);
}

int poll(struct pollfd *entries, nfds_t count, int timeout)
{
    FIND_REAL(poll);

    if (!schedule_is_on())
        return real(entries, count, timeout);
    if (timeout != 0)
        return wait_for_descriptors("poll", CALLER, entries, count,
                                    timeout < 0 ? SCHEDULE_NEVER : schedule_deadline((uint64_t)timeout * 1000000));
    schedule_point("poll", NULL, 0, CALLER);
    return real(entries, count, 0);
}

int ppoll(struct pollfd *entries, nfds_t count, const struct timespec *timeout, const sigset_t *signals)
{
    FIND_REAL(ppoll);

    if (!schedule_is_on())
        return real(entries, count, timeout, signals);
    return wait_for_descriptors("ppoll", CALLER, entries, count,
                                timeout ? schedule_deadline(duration_of(timeout)) : SCHEDULE_NEVER);
}

int epoll_wait(int fd, struct epoll_event *events, int count, int timeout)
{
    struct pollfd entry = {.fd = fd, .events = POLLIN};
    FIND_REAL(epoll_wait);

    if (!schedule_is_on())
        return real(fd, events, count, timeout);
    if (timeout != 0)
        schedule_wait_descriptors("epoll_wait", CALLER, &entry, 1,
                                  timeout < 0 ? SCHEDULE_NEVER : schedule_deadline((uint64_t)timeout * 1000000));
    else
        schedule_point("epoll_wait", NULL, 0, CALLER);
    return real(fd, events, count, 0);
}

int nanosleep(const struct timespec *duration, struct timespec *rest)
{
    FIND_REAL(nanosleep);

    if (!schedule_is_on())
        return real(duration, rest);
    schedule_wait("nanosleep", CALLER, NULL, schedule_deadline(duration_of(duration)));
    return 0;
}

int sched_yield(void)
{
    FIND_REAL(sched_yield);

    if (!schedule_is_on())
        return real();
    schedule_yield("sched_yield", NULL, 0, CALLER);
    return 0;
}

/* ---------------------------------------------------------------------------------------------------- clocks and chance */

int clock_gettime(clockid_t clock, struct timespec *time)
{
    FIND_REAL(clock_gettime);
    uint64_t now;

    if (!schedule_is_on())
        return real(clock, time);
    now = schedule_read_clock();
    *time = (struct timespec){(time_t)(now / SECOND), (long)(now % SECOND)};
    return 0;
}

int timerfd_create(clockid_t clock, int flags)
{
    FIND_REAL(timerfd_create);
    int fd;

    if (!schedule_is_on())
        return real(clock, flags);
    fd = eventfd(0, (flags & TFD_NONBLOCK ? EFD_NONBLOCK : 0) | (flags & TFD_CLOEXEC ? EFD_CLOEXEC : 0));
    if (fd >= 0)
        schedule_set_timer(fd, SCHEDULE_NEVER);
    return fd;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *setting, struct itimerspec *before)
{
    FIND_REAL(timerfd_settime);
    uint64_t value = duration_of(&setting->it_value);

    if (!schedule_is_timer(fd))
        return real(fd, flags, setting, before);
    if (before || duration_of(&setting->it_interval))
        schedule_fail("the scheduler knows timers that expire once alone");
    schedule_point("timerfd_settime", NULL, 0, CALLER);
    schedule_drain_timer(fd);
    if (!value)
        schedule_set_timer(fd, SCHEDULE_NEVER);
    else
        schedule_set_timer(fd, flags & TFD_TIMER_ABSTIME ? value : schedule_deadline(value));
    return 0;
}

int close(int fd)
{
    FIND_REAL(close);

    schedule_forget_timer(fd);
    schedule_point("close", NULL, 0, CALLER);
    return real(fd);
}

ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
    FIND_REAL(getrandom);

    if (!schedule_is_on())
        return real(buffer, length, flags);
    for (size_t i = 0; i < length; i++)
        ((uint8_t *)buffer)[i] = (uint8_t)schedule_draw(256);
    return (ssize_t)length;
}

/* ------------------------------------------------------------------------------------------------------------- threads */

struct start {
    void *(*function)(void *argument);
    void *argument;
    struct schedule_thread *thread;
};

static void *run_thread(void *argument)
{
    struct start start = *(struct start *)argument;
    void *result;

    free(argument);
    schedule_enter_thread(start.thread);
    result = start.function(start.argument);
    schedule_leave_thread(start.thread);
    return result;
}

int pthread_create(pthread_t *handle, const pthread_attr_t *attributes, void *(*function)(void *), void *argument)
{
    FIND_REAL(pthread_create);
    struct start *start;
    int result;

    if (!schedule_is_on())
        return real(handle, attributes, function, argument);
    start = malloc(sizeof(*start));
    if (!start)
        return EAGAIN;
    *start = (struct start){function, argument, schedule_add_thread()};
    result = real(handle, attributes, run_thread, start);
    if (result)
        schedule_fail("the scheduler cannot make a thread: %s", strerror(result));
    schedule_set_handle(start->thread, *handle);
    schedule_point("pthread_create", NULL, 0, CALLER);
    return 0;
}

int pthread_join(pthread_t handle, void **result)
{
    struct schedule_thread *thread = schedule_is_on() ? schedule_find_thread(handle) : NULL;
    FIND_REAL(pthread_join);

    if (thread)
        schedule_await_thread(thread, CALLER);
    return real(handle, result);
}

int pthread_setname_np(pthread_t handle, const char *name)
{
    struct schedule_thread *thread = schedule_is_on() ? schedule_find_thread(handle) : NULL;
    FIND_REAL(pthread_setname_np);

    if (thread)
        schedule_name_thread(thread, name);
    return real(handle, name);
}
