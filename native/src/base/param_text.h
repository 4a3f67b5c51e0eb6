/* SPDX-License-Identifier: BSD-3-Clause */
/* Parse and format the values of parameters and of hooks' options. Stateless; callable from any thread. */
#ifndef OFPI_PARAM_TEXT_H
#define OFPI_PARAM_TEXT_H

#include "ofipy/provider.h"

/* The number that represents 1 in an OFP_PARAM_FRACTION. */
#define OFPI_FRACTION_ONE 1000000000

/*
 * Parse a text into a number: 0 or 1 (bool), 2 (always), bytes, nanoseconds, or billionths (fraction); 0 for a string,
 * where every text is valid. False: it is malformed, or out of the declared range.
 */
bool ofpi_param_parse(const struct ofp_param *declaration, const char *text, int64_t *result);
/* Describe the valid values for users: "1 to 16m", "yes or no"; empty if every text is valid. */
void ofpi_param_describe_range(const struct ofp_param *declaration, char *text, size_t size);
const char *ofpi_param_describe_type(const struct ofp_param *declaration);

#endif
