/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls of ofipy's C: each is a step. Stands before libc's by LD_PRELOAD. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "steps.h"

#define HALF_A_SECOND 500000000

static struct step_answer reach_call(const char *function, const void *caller)
{
    if (step_is_wanted(STEP_SYSTEM, caller))
        return step_reach(STEP_SYSTEM, function, caller);
    return (struct step_answer){STEP_PASS, 0};
}

/* libc's function of this name, in `real`. */
#define FIND_REAL(name)                                                                                                \
    static __typeof__(&name) real;                                                                                     \
    if (!real)                                                                                                         \
    real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* A function that only fails or not. */
#define STEP_PLAIN(result, name, parameters, arguments)                                                                \
    STEP_EXPORT result name parameters                                                                                 \
    {                                                                                                                  \
        struct step_answer answer = reach_call(#name, STEP_CALLER);                                                    \
        FIND_REAL(name);                                                                                               \
        if (answer.action == STEP_FAIL) {                                                                              \
            errno = (int)answer.value;                                                                                 \
            return (result) - 1;                                                                                       \
        }                                                                                                              \
        return real arguments;                                                                                         \
    }

/*
 * The kernel reports space for output after every EAGAIN, even if the socket holds nothing. To set the size of the buffer
 * reports it, too.
 */
static ssize_t fail_to_move(int fd, int error)
{
    int size;
    socklen_t length = sizeof(size);

    if (error == EAGAIN && syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_SNDBUF, &size, &length) == 0) {
        size /= 2; /* the kernel doubles it */
        syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDBUF, &size, length);
    }
    errno = error;
    return -1;
}

/* A function that moves `length` bytes, or fewer. */
#define STEP_BYTES(name, parameters, length, arguments)                                                                \
    STEP_EXPORT ssize_t name parameters                                                                                \
    {                                                                                                                  \
        struct step_answer answer = reach_call(#name, STEP_CALLER);                                                    \
        FIND_REAL(name);                                                                                               \
        if (answer.action == STEP_FAIL)                                                                                \
            return fail_to_move(fd, (int)answer.value);                                                                \
        if (answer.action == STEP_SHORT && (length) > 1)                                                               \
            (length) = ((length) + 1) / 2;                                                                             \
        return real arguments;                                                                                         \
    }

STEP_PLAIN(int, socket, (int domain, int type, int protocol), (domain, type, protocol))
STEP_PLAIN(int, bind, (int fd, const struct sockaddr *address, socklen_t length), (fd, address, length))
STEP_PLAIN(int, listen, (int fd, int backlog), (fd, backlog))
STEP_PLAIN(int, connect, (int fd, const struct sockaddr *address, socklen_t length), (fd, address, length))
STEP_PLAIN(int, accept, (int fd, struct sockaddr *address, socklen_t *length), (fd, address, length))
STEP_PLAIN(int, accept4, (int fd, struct sockaddr *address, socklen_t *length, int flags), (fd, address, length, flags))
STEP_PLAIN(int, getsockname, (int fd, struct sockaddr *address, socklen_t *length), (fd, address, length))
STEP_PLAIN(int, getpeername, (int fd, struct sockaddr *address, socklen_t *length), (fd, address, length))
STEP_PLAIN(int, getsockopt, (int fd, int level, int option, void *value, socklen_t *length),
           (fd, level, option, value, length))
STEP_PLAIN(int, setsockopt, (int fd, int level, int option, const void *value, socklen_t length),
           (fd, level, option, value, length))
STEP_PLAIN(int, epoll_create1, (int flags), (flags))
STEP_PLAIN(int, epoll_ctl, (int fd, int operation, int target, struct epoll_event *event),
           (fd, operation, target, event))
STEP_PLAIN(int, eventfd, (unsigned int value, int flags), (value, flags))
STEP_PLAIN(int, timerfd_create, (int clock, int flags), (clock, flags))
STEP_PLAIN(int, memfd_create, (const char *name, unsigned int flags), (name, flags))
STEP_PLAIN(int, ftruncate, (int fd, off_t length), (fd, length))
STEP_PLAIN(int, fallocate, (int fd, int mode, off_t offset, off_t length), (fd, mode, offset, length))
STEP_PLAIN(void *, mmap, (void *address, size_t length, int protection, int flags, int fd, off_t offset),
           (address, length, protection, flags, fd, offset))
STEP_PLAIN(ssize_t, read, (int fd, void *buffer, size_t length), (fd, buffer, length))
STEP_PLAIN(ssize_t, write, (int fd, const void *buffer, size_t length), (fd, buffer, length))

STEP_BYTES(send, (int fd, const void *buffer, size_t length, int flags), length, (fd, buffer, length, flags))
STEP_BYTES(recv, (int fd, void *buffer, size_t length, int flags), length, (fd, buffer, length, flags))

/* The first segment alone, and half of that: what a short call moves. */
static int shorten_segments(const struct iovec *segments, int count, struct iovec *first)
{
    *first = segments[0];
    if (count > 0 && first->iov_len > 1)
        first->iov_len = (first->iov_len + 1) / 2;
    return count > 0;
}

#define STEP_SEGMENTS(name)                                                                                            \
    STEP_EXPORT ssize_t name(int fd, const struct iovec *segments, int count)                                          \
    {                                                                                                                  \
        struct step_answer answer = reach_call(#name, STEP_CALLER);                                                    \
        struct iovec first;                                                                                            \
        FIND_REAL(name);                                                                                               \
        if (answer.action == STEP_FAIL)                                                                                \
            return fail_to_move(fd, (int)answer.value);                                                                \
        if (answer.action == STEP_SHORT)                                                                               \
            return real(fd, &first, shorten_segments(segments, count, &first));                                        \
        return real(fd, segments, count);                                                                              \
    }

STEP_SEGMENTS(readv)
STEP_SEGMENTS(writev)

STEP_EXPORT ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    struct step_answer answer = reach_call("sendmsg", STEP_CALLER);
    struct msghdr shorter = *message;
    struct iovec first;
    FIND_REAL(sendmsg);

    if (answer.action == STEP_FAIL)
        return fail_to_move(fd, (int)answer.value);
    if (answer.action == STEP_SHORT && message->msg_iovlen) {
        shorter.msg_iovlen = (size_t)shorten_segments(message->msg_iov, 1, &first);
        shorter.msg_iov = &first;
    }
    return real(fd, &shorter, flags);
}

STEP_EXPORT ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count,
                                     const struct iovec *remote, unsigned long remote_count, unsigned long flags)
{
    struct step_answer answer = reach_call("process_vm_readv", STEP_CALLER);
    struct iovec first;
    FIND_REAL(process_vm_readv);

    if (answer.action == STEP_FAIL) {
        errno = (int)answer.value;
        return -1;
    }
    /* The kernel may stop between two pages. */
    if (answer.action == STEP_SHORT && local_count && local[0].iov_len > 4096) {
        first = (struct iovec){local[0].iov_base, 4096};
        return real(pid, &first, 1, remote, remote_count, flags);
    }
    return real(pid, local, local_count, remote, remote_count, flags);
}

STEP_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                               void *argument)
{
    struct step_answer answer = reach_call("pthread_create", STEP_CALLER);
    FIND_REAL(pthread_create);

    return answer.action == STEP_FAIL ? (int)answer.value : real(thread, attributes, start, argument);
}

/* A step with the lock held, where a fork finds it so. */
STEP_EXPORT int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    FIND_REAL(pthread_mutex_unlock);

    reach_call("pthread_mutex_unlock", STEP_CALLER);
    return real(mutex);
}

STEP_EXPORT int open(const char *path, int flags, ...)
{
    struct step_answer answer = reach_call("open", STEP_CALLER);
    va_list rest;
    mode_t mode;
    FIND_REAL(open);

    va_start(rest, flags);
    mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (answer.action == STEP_FAIL) {
        errno = (int)answer.value;
        return -1;
    }
    return real(path, flags, mode);
}

/* ---------------------------------------------------------------------------------------------------------- sleeping */

/*
 * The core sleeps for a second at most, and then looks again. A wake-up that was lost would cost that second and nothing
 * else. So where a scenario has no timeouts of its own, such a sleep lasts until it is woken: a lost wake-up is a hang.
 */
static bool is_nap(const struct timespec *time)
{
    return time && step_naps_are_endless() && time->tv_sec * 1000000000LL + time->tv_nsec >= HALF_A_SECOND;
}

STEP_EXPORT int ppoll(struct pollfd *entries, nfds_t count, const struct timespec *timeout, const sigset_t *signals)
{
    const void *caller = STEP_CALLER;
    struct step_answer answer = reach_call("ppoll", caller);
    FIND_REAL(ppoll);

    if (answer.action == STEP_FAIL) {
        errno = (int)answer.value;
        return -1;
    }
    return real(entries, count, step_is_ours(caller) && is_nap(timeout) ? NULL : timeout, signals);
}

/* pidfd_open and futex. */
STEP_EXPORT long syscall(long number, ...)
{
    const void *caller = STEP_CALLER;
    const char *name = number == SYS_pidfd_open ? "pidfd_open" : "futex";
    struct step_answer answer = {STEP_PASS, 0};
    long argument[6];
    va_list rest;
    FIND_REAL(syscall);

    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        argument[i] = va_arg(rest, long);
    va_end(rest);
    if ((number == SYS_pidfd_open || number == SYS_futex) && step_is_ours(caller)) {
        answer = reach_call(name, caller);
        if (number == SYS_futex && is_nap((const struct timespec *)argument[3]))
            argument[3] = 0;
    }
    if (answer.action == STEP_FAIL) {
        errno = (int)answer.value;
        return -1;
    }
    return real(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}
