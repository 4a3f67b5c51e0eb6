/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of parameters. A value is that of the environment variable OFIPY_<NAME>, else that of ofp_param_set, else the
 * default. If a value of the environment is malformed or out of range, a warning with its name and range is logged, and
 * the default applies. Any thread; has its own lock.
 */
#ifndef OFPI_PARAM_H
#define OFPI_PARAM_H

#include "ofipy/provider.h"

/* The first parameter whose default is out of range, in a list that a NULL name ends; NULL: all are valid. */
const char *ofpi_param_find_misdeclared(const struct ofp_param *params);
void ofpi_param_register(const struct ofp_param *params); /* a list as above; may be registered again */
const char *ofpi_param_get_string(const char *name);
uint64_t ofpi_param_get_size(const char *name); /* "64k", "1m", "2g"; powers of 1024 */
int64_t ofpi_param_get_int(const char *name);
bool ofpi_param_get_bool(const char *name);

#endif
