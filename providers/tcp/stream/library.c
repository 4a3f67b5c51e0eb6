/* SPDX-License-Identifier: BSD-3-Clause */
#include "stream/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#define LIBSSL "libssl.so.3"

struct tcp_library tcp_library;

pthread_mutex_t tcp_library_lock = PTHREAD_MUTEX_INITIALIZER;
static bool loaded;

#define BIND(result, name, parameters)                                                                                 \
    tcp_library.name = (__typeof__(tcp_library.name))(uintptr_t)dlsym(library, #name);                                 \
    if (!tcp_library.name)                                                                                             \
        return #name;

/* Bind every symbol; return the name of one that is missing. dlsym finds libcrypto's, too: libssl depends on it. */
static const char *bind_library_calls(void *library)
{
    TCP_TLS_CALLS(BIND)
    return NULL;
}

static int load_library(char *text, size_t text_size)
{
    void *library = dlopen(LIBSSL, RTLD_NOW | RTLD_LOCAL);
    const char *lacking;

    if (!library) {
        snprintf(text, text_size,
                 "encryption needs OpenSSL 3: install libssl3 (Debian, Ubuntu) or openssl-libs (Fedora, RHEL), or set "
                 "OFIPY_ENCRYPTION=off (%s)",
                 dlerror());
        return -ENODEV;
    }
    lacking = bind_library_calls(library);
    if (!lacking && tcp_library.OPENSSL_init_ssl(TLS_INIT_NO_ATEXIT | TLS_INIT_LOAD_STRINGS, NULL) != 1)
        lacking = "a working OPENSSL_init_ssl";
    if (!lacking)
        return 0;
    snprintf(text, text_size, "%s lacks %s: install OpenSSL 3.0 or newer, or set OFIPY_ENCRYPTION=off", LIBSSL,
             lacking);
    dlclose(library);
    return -ENODEV;
}

int tcp_library_load(char *text, size_t text_size)
{
    int error;

    pthread_mutex_lock(&tcp_library_lock);
    error = loaded ? 0 : load_library(text, text_size);
    loaded = !error;
    pthread_mutex_unlock(&tcp_library_lock);
    return error;
}
