/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocations of ofipy's C: each is a step, and what is not freed is listed. Stands before libc's by LD_PRELOAD. */
#include <errno.h>
#include <stdlib.h>

#include "steps.h"

/* glibc's own names of what stands here. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);

static bool must_fail(const char *function, const void *caller)
{
    if (!step_is_wanted(STEP_MEMORY, caller) || step_reach(STEP_MEMORY, function, caller).action != STEP_FAIL)
        return false;
    errno = ENOMEM;
    return true;
}

static void *list_block(void *block, const void *caller)
{
    if (block && step_is_ours(caller))
        step_block_add(block, caller);
    return block;
}

STEP_EXPORT void *malloc(size_t size)
{
    const void *caller = STEP_CALLER;

    return must_fail("malloc", caller) ? NULL : list_block(__libc_malloc(size), caller);
}

STEP_EXPORT void *calloc(size_t count, size_t size)
{
    const void *caller = STEP_CALLER;

    return must_fail("calloc", caller) ? NULL : list_block(__libc_calloc(count, size), caller);
}

STEP_EXPORT void *realloc(void *block, size_t size)
{
    const void *caller = STEP_CALLER;
    void *result;

    if (must_fail("realloc", caller))
        return NULL;
    /* Off the list first: another thread may get the old address as soon as it is free. */
    step_block_remove(block);
    result = __libc_realloc(block, size);
    list_block(result || !size ? result : block, caller);
    return result;
}

STEP_EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    const void *caller = STEP_CALLER;

    return must_fail("aligned_alloc", caller) ? NULL : list_block(__libc_memalign(alignment, size), caller);
}

STEP_EXPORT int posix_memalign(void **result, size_t alignment, size_t size)
{
    const void *caller = STEP_CALLER;
    void *block = must_fail("posix_memalign", caller) ? NULL : list_block(__libc_memalign(alignment, size), caller);

    if (!block)
        return ENOMEM;
    *result = block;
    return 0;
}

STEP_EXPORT void free(void *block)
{
    step_block_remove(block);
    __libc_free(block);
}
