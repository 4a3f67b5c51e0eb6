/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One bit per descriptor, without a lock, since a fork may interrupt another thread at any point. The bit is set after
 * the descriptor is opened, and cleared before it is closed. So a child may keep a copy, but never closes a descriptor
 * that is not the provider's.
 */
#include "stream/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ofipy/atomics.h"

/* The usual hard limit of a process. A child keeps the descriptors beyond it. */
#define DESCRIPTORS (1 << 20)

static _Atomic uint64_t open_descriptors[DESCRIPTORS / 64];

int tcp_descriptor_register(int fd)
{
    if (fd >= 0 && fd < DESCRIPTORS)
        ofp_set_bits(&open_descriptors[fd / 64], UINT64_C(1) << fd % 64);
    return fd;
}

void tcp_descriptor_close(int fd)
{
    if (fd >= 0 && fd < DESCRIPTORS)
        ofp_clear_bits(&open_descriptors[fd / 64], UINT64_C(1) << fd % 64);
    close(fd);
}

int tcp_descriptors_probe_shortage(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return errno == EMFILE || errno == ENFILE ? errno : 0;
    close(fd);
    return 0;
}

void tcp_error_describe(int error, char *text, size_t text_size)
{
    struct rlimit limit = {0};

    if (error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0)
        snprintf(text, text_size, "%s: ulimit -n lets this process have %llu; close some, or raise it", strerror(error),
                 (unsigned long long)limit.rlim_cur);
    else
        snprintf(text, text_size, "%s%s", strerror(error),
                 error == ENFILE ? ": fs.file-max bounds those of all processes; close some, or raise it" : "");
}

/* Runs in the child of a fork, which has one thread. Only async-signal-safe calls are allowed. */
static void close_inherited_descriptors(void)
{
    for (int word = 0; word < DESCRIPTORS / 64; word++) {
        uint64_t bits = ofp_load_relaxed(&open_descriptors[word]);

        if (!bits)
            continue;
        ofp_store_relaxed(&open_descriptors[word], 0);
        for (int bit = 0; bits; bit++, bits >>= 1)
            if (bits & 1)
                close(word * 64 + bit);
    }
}

static void register_fork_handler(void) { pthread_atfork(NULL, NULL, close_inherited_descriptors); }

void tcp_descriptors_watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, register_fork_handler);
}
