/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log is a ring of records. When it is full, it drops the oldest record and counts it. Any thread; has its own
 * lock.
 */
#ifndef OFPI_LOG_H
#define OFPI_LOG_H

#include "ofipy/provider.h"

void ofpi_log_write(enum ofp_log_level level, const char *provider, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
