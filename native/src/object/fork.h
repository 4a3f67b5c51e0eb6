/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_FORK_H
#define OFPI_FORK_H

#include <stdint.h>

/* Number of forks since the library was loaded, as this process sees it. */
extern uint64_t ofpi_fork_generation;
void ofpi_fork_watch(void);

#endif
