/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * OFP_CHECK(condition) states an invariant of the code: a relation between fields, a lock that is held, the state before a
 * transition. Builds with a sanitizer define OFP_CHECKS (meson.build); there a condition that is false writes its text and
 * place to stderr and aborts. Other builds compile the condition for its types only and never evaluate it, so it must have no
 * side effects. Do not use it for what an application, a peer or a device may do wrong: return an error for those.
 */
#ifndef OFIPY_CHECK_H
#define OFIPY_CHECK_H

#ifdef OFP_CHECKS

#include <stdio.h>
#include <stdlib.h>

static inline void ofp_condition_check(int is_true, const char *condition, const char *file, int line)
{
    if (__builtin_expect(is_true, 1))
        return;
    fprintf(stderr, "%s:%d: it does not hold that %s\n", file, line, condition);
    abort();
}

#define OFP_CHECK(condition) ofp_condition_check(!!(condition), #condition, __FILE__, __LINE__)

#else

#define OFP_CHECK(condition) ((void)sizeof(!(condition)))

#endif

#endif
