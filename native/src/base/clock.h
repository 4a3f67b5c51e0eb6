/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_CLOCK_H
#define OFPI_CLOCK_H

#include <stdint.h>

uint64_t ofpi_clock_read(void); /* CLOCK_MONOTONIC, ns */

#endif
