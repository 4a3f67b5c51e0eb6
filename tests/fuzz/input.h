/* SPDX-License-Identifier: BSD-3-Clause */
/* What every target has: its input, byte by byte, and conditions that must hold whatever the input. */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct input {
    const uint8_t *data;
    size_t size;
};

/* What the input says next; zeros when it has ended. */
static inline uint8_t take(struct input *input)
{
    if (!input->size)
        return 0;
    input->size--;
    return *input->data++;
}

#define check(condition) ((condition) ? (void)0 : input_failed(#condition, __FILE__, __LINE__))

static inline void input_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "%s:%d: it does not hold that %s\n", file, line, condition);
    abort();
}

#endif
