/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * After fork the child has the parent's memory but none of its threads, and shares its descriptors: it can neither use
 * nor close a domain. The child advances a counter, which makes every call return -OFP_EFORKED.
 */
#include "object/fork.h"

#include <pthread.h>

#include "atomic/atomic.h"
#include "base/page.h"

uint64_t ofpi_fork_generation;

static void process_forked(void)
{
    ofpi_fork_generation++;
    ofpi_atomic_forked();
    ofpi_pages_forked();
}

static void register_fork_handler(void) { pthread_atfork(NULL, NULL, process_forked); }

void ofpi_fork_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, register_fork_handler);
}
