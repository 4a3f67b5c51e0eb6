/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Any thread; own lock. Value: environment OFIPY_<NAME>, else ofp_param_set, else the default. A value of the environment
 * that is malformed or out of range logs a warning that names it and the range, and the default holds.
 */
#ifndef OFPI_PARAM_H
#define OFPI_PARAM_H

#include "ofipy/provider.h"

/* Of a list ended by a NULL name: the first whose default is not in its range, NULL when all are right. */
const char *ofpi_param_find_misdeclared(const struct ofp_param *params);
void ofpi_param_register(const struct ofp_param *params); /* likewise; twice is harmless */
const char *ofpi_param_get_string(const char *name);
uint64_t ofpi_param_get_size(const char *name); /* "64k", "1m", "2g"; powers of 1024 */
int64_t ofpi_param_get_int(const char *name);
bool ofpi_param_get_bool(const char *name);

#endif
