/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/random.h"

#include <sys/random.h>

#include "base/core.h"

uint64_t shm_random_read(void)
{
    uint64_t number = 0;

    /* getrandom never returns fewer than 8 bytes of a short request. Without a random source use the clock. */
    if (getrandom(&number, sizeof(number), 0) != sizeof(number))
        number = shm_core->now();
    return number ? number : 1;
}
