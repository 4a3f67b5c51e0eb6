/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find libfabric. It is never linked: a program without libfabric runs without the bridge. Once loaded it stays loaded,
 * since its providers start threads and hooks that cannot be unloaded.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "bridge.h"

#define SONAME "libfabric.so.1"

/* The oldest version whose layouts abi.h describes; every library since then has the symbols used here. */
#define OLDEST LF_VERSION(1, 8)

pthread_mutex_t bridge_library_lock = PTHREAD_MUTEX_INITIALIZER;
static struct bridge_library library; /* filled in once, under the lock */
static bool loaded;

/* A function pointer from dlsym, which C cannot cast directly. The plain name is the newest version of a symbol. */
#define SYMBOL(handle, type, name) ((type *)(uintptr_t)dlsym(handle, name))

static bool bind_symbols(void *handle, const char *path, char *text, size_t text_size)
{
    lf_version_fn *version = SYMBOL(handle, lf_version_fn, "fi_version");

    library.getinfo = SYMBOL(handle, lf_getinfo_fn, "fi_getinfo");
    library.dupinfo = SYMBOL(handle, lf_dupinfo_fn, "fi_dupinfo");
    library.freeinfo = SYMBOL(handle, lf_freeinfo_fn, "fi_freeinfo");
    library.fabric = SYMBOL(handle, lf_fabric_fn, "fi_fabric");
    library.strerror = SYMBOL(handle, lf_strerror_fn, "fi_strerror");
    library.tostr_r = SYMBOL(handle, lf_tostr_r_fn, "fi_tostr_r");
    if (!version || !library.getinfo || !library.dupinfo || !library.freeinfo || !library.fabric || !library.strerror) {
        snprintf(text, text_size, "%s is not libfabric: it lacks functions of it", path);
        return false;
    }
    library.version = version();
    library.api = library.version < LF_NEWEST ? library.version : LF_NEWEST;
    if (library.version < OLDEST) {
        snprintf(text, text_size, "%s is libfabric %u.%u; 1.8 or newer is needed", path, library.version >> 16,
                 library.version & 0xffff);
        return false;
    }
    return true;
}

/* Load one candidate; on failure the reason is in `text`. */
static bool load_library(const char *path, char *text, size_t text_size)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!handle) {
        snprintf(text, text_size, "%s", dlerror());
        return false;
    }
    if (!bind_symbols(handle, path, text, text_size)) {
        dlclose(handle);
        return false;
    }
    bridge_core->log(OFP_LOG_INFO, BRIDGE_NAME, "libfabric %u.%u from %s", library.version >> 16,
                     library.version & 0xffff, path);
    return true;
}

static bool find_library(char *text, size_t text_size)
{
    const char *chosen = bridge_core->param_string("LIBFABRIC");
    const char *bundled = bridge_core->param_string("OFI_BUNDLED");
    char why[OFP_TEXT_MAX] = "";

    if (chosen && chosen[0]) {
        if (load_library(chosen, why, sizeof(why)))
            return true;
        snprintf(text, text_size, "OFIPY_LIBFABRIC cannot be loaded: %s", why);
        return false;
    }
    if (load_library(SONAME, why, sizeof(why)))
        return true;
    if (bundled && bundled[0] && load_library(bundled, why, sizeof(why)))
        return true;
    snprintf(text, text_size,
             "libfabric is not found (%s); install the package libfabric1 (Debian) or libfabric (Fedora), or pip "
             "install mpich, or set OFIPY_LIBFABRIC to the path of a libfabric.so.1",
             why);
    return false;
}

const struct bridge_library *bridge_library_get(char *text, size_t text_size)
{
    pthread_mutex_lock(&bridge_library_lock);
    if (!loaded)
        loaded = find_library(text, text_size);
    pthread_mutex_unlock(&bridge_library_lock);
    return loaded ? &library : NULL;
}

/* Provider errors of completions are errors of the system or the library, except a device's own. */
const char *bridge_error_describe(int provider_error)
{
    return loaded ? library.strerror(provider_error < 0 ? -provider_error : provider_error) : NULL;
}
