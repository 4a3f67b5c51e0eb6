/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/draw.h"

#include <sys/random.h>

#include "base/core.h"

uint64_t shm_draw(void)
{
    uint64_t drawn = 0;

    /* So few bytes are never cut short; without a source of them the clock will do. */
    if (getrandom(&drawn, sizeof(drawn), 0) != sizeof(drawn))
        drawn = shm_core->now();
    return drawn ? drawn : 1;
}
