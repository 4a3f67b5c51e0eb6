/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the core takes for granted, looked at in the builds that are tested: sanitizer builds define OFPI_CHECKS (meson.build),
 * all others compile a check for its types alone. A condition has no effects. What the other side of an interface may do
 * wrong is no such thing: that is an error, with a name.
 */
#ifndef OFPI_CHECK_H
#define OFPI_CHECK_H

#ifdef OFPI_CHECKS

#include <stdio.h>
#include <stdlib.h>

static inline void ofpi_check(int holds, const char *condition, const char *file, int line)
{
    if (__builtin_expect(holds, 1))
        return;
    fprintf(stderr, "%s:%d: it does not hold that %s\n", file, line, condition);
    abort();
}

#define OFPI_CHECK(condition) ofpi_check(!!(condition), #condition, __FILE__, __LINE__)

#else

#define OFPI_CHECK(condition) ((void)sizeof(!(condition)))

#endif

#endif
