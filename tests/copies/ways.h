/* SPDX-License-Identifier: BSD-3-Clause */
/* The ways of copying that tests.copies compares. */
#ifndef COPIES_WAYS_H
#define COPIES_WAYS_H

#include <stdbool.h>
#include <stddef.h>

struct way {
    const char *name;
    bool (*is_supported)(void); /* whether this processor has the instructions */
    void (*copy)(void *to, const void *from, size_t length);
};

/* The first is memcpy, to which the others are compared. */
extern const struct way ways[];
extern const int way_count;

#endif
