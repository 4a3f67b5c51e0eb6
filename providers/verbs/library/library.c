/* SPDX-License-Identifier: BSD-3-Clause */
#include "library/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "ofipy/types.h"

#define IBVERBS "libibverbs.so.1"
#define RDMACM "librdmacm.so.1"

struct verbs_calls verbs_calls;
__typeof__(ibv_reg_dmabuf_mr) *verbs_reg_dmabuf_mr;

pthread_mutex_t verbs_library_lock = PTHREAD_MUTEX_INITIALIZER;
static bool loaded;

/* From rdma-core 35 on; NULL: missing. Returns whether the kernel copies pinned pages for a child of fork. */
static __typeof__(ibv_is_fork_initialized) *is_fork_initialized;

/* Bind one symbol; return its name if the library lacks it. dlsym finds the newest version of a symbol. */
#define BIND(name, function)                                                                                           \
    verbs_calls.name = (__typeof__(function) *)(uintptr_t)dlsym(library, #function);                                   \
    if (!verbs_calls.name)                                                                                             \
        return #function;

static const char *bind_ibverbs_calls(void *library)
{
    VERBS_IBVERBS_CALLS(BIND)
    verbs_reg_dmabuf_mr = (__typeof__(verbs_reg_dmabuf_mr))(uintptr_t)dlsym(library, "ibv_reg_dmabuf_mr");
    is_fork_initialized = (__typeof__(is_fork_initialized))(uintptr_t)dlsym(library, "ibv_is_fork_initialized");
    return NULL;
}

static const char *bind_rdmacm_calls(void *library)
{
    VERBS_RDMACM_CALLS(BIND)
    return NULL;
}

static void *open_library(const char *name, char *text, size_t text_size)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

    if (!library)
        snprintf(text, text_size,
                 "%s is not found (%s): install libibverbs1, librdmacm1 and ibverbs-providers (Debian, Ubuntu), or "
                 "libibverbs and librdmacm (Fedora, RHEL)",
                 name, dlerror());
    return library;
}

/* Load one library and bind all symbols used of it. */
static void *load_library(const char *name, const char *(*bind_calls)(void *library), char *text, size_t text_size)
{
    void *library = open_library(name, text, text_size);
    const char *lacking = library ? bind_calls(library) : NULL;

    if (!lacking)
        return library;
    snprintf(text, text_size, "%s has no %s: rdma-core 20 or newer is needed", name, lacking);
    return NULL;
}

static bool load_libraries(char *text, size_t text_size)
{
    if (!load_library(IBVERBS, bind_ibverbs_calls, text, text_size) ||
        !load_library(RDMACM, bind_rdmacm_calls, text, text_size))
        return false;
    /*
     * This comes before any memory is registered, so that a child of fork does not take pages of its parent. Once
     * enabled, the library hides registered pages from children, even on kernels that copy such pages themselves (5.12
     * and newer). A child that touches them then crashes, so it is enabled only where needed.
     */
    if (!is_fork_initialized || is_fork_initialized() != IBV_FORK_UNNEEDED)
        verbs_calls.fork_init();
    return true;
}

bool verbs_library_load(char *text, size_t text_size)
{
    pthread_mutex_lock(&verbs_library_lock);
    if (!loaded)
        loaded = load_libraries(text, text_size);
    pthread_mutex_unlock(&verbs_library_lock);
    return loaded;
}
