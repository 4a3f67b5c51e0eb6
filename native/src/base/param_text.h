/* SPDX-License-Identifier: BSD-3-Clause */
/* Parse and format the values of parameters and of hooks' options. Stateless; callable from any thread. */
#ifndef OFPI_PARAM_TEXT_H
#define OFPI_PARAM_TEXT_H

#include "ofipy/provider.h"

/* Of OFP_PARAM_FRACTION: the number that stands for 1. */
#define OFPI_FRACTION_ONE 1000000000

/*
 * The number that a text stands for: 0 or 1 of a truth value, bytes, nanoseconds, billionths; 0 of a string, which may be any.
 * False: it is malformed, or out of the declared range.
 */
bool ofpi_param_parse(const struct ofp_param *declaration, const char *text, int64_t *result);
/* The valid values as users read them: "1 to 16m", "yes or no"; empty if every text is valid. */
void ofpi_param_describe_range(const struct ofp_param *declaration, char *text, size_t size);
const char *ofpi_param_describe_type(const struct ofp_param *declaration);

#endif
