/* SPDX-License-Identifier: BSD-3-Clause */
/* A cheap clock of the processor, accurate enough for intervals of some microseconds; 2 to 4 ticks are a nanosecond. */
#ifndef OFPI_TICKS_H
#define OFPI_TICKS_H

#include "base/clock.h"

static inline uint64_t ofpi_ticks_read(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#else
    return ofpi_clock_read() * 2;
#endif
}

#endif
