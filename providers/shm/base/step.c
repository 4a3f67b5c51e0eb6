/* SPDX-License-Identifier: BSD-3-Clause */
/* In the test build a process can be killed or stopped at a chosen step. Empty in other builds. */
#include "base/step.h"

#ifdef OFP_SHM_KILL_STEPS
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const shm_step_names[SHM_STEP_COUNT] = {
#define SHM_STEP_NAME(name) #name,
    SHM_STEPS(SHM_STEP_NAME)
#undef SHM_STEP_NAME
};

void shm_step_handle(enum shm_step step)
{
    static long passes_left; /* tests drive the endpoint from one thread */
    const char *wanted = getenv("OFIPY_SHM_KILL_STEP");
    size_t length = strlen(shm_step_names[step]);

    if (!wanted || strncmp(wanted, shm_step_names[step], length) != 0)
        return;
    if (wanted[length] != 0 && wanted[length] != ':')
        return;
    if (!passes_left)
        passes_left = wanted[length] ? atol(wanted + length + 1) : 1;
    if (--passes_left == 0) {
        const char *number = getenv("OFIPY_SHM_STEP_SIGNAL");

        kill(getpid(), number ? atoi(number) : SIGKILL);
    }
}
#else
/* ISO C requires a declaration in every file. */
typedef int shm_step_unused;
#endif
