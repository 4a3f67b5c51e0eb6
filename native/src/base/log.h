/* SPDX-License-Identifier: BSD-3-Clause */
/* Any thread; own lock; a ring of records that drops the oldest and counts what it dropped. */
#ifndef OFPI_LOG_H
#define OFPI_LOG_H

#include "ofipy/provider.h"

void ofpi_log_write(enum ofp_log_level level, const char *provider, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
