/* SPDX-License-Identifier: BSD-3-Clause */
/* Every allocation on the way of tcp's endpoints that encrypt fails once; those of OpenSSL are its own. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int set_up(void);
#define PREPARE set_up
#include "no_memory.h"

#include "objects.h"
#include "stream/library.h"

static char path[] = "/tmp/ofipy-test-XXXXXX";

static void remove_key(void) { unlink(path); }

/* A key, and encryption of every connection. 77: this machine has no OpenSSL. */
static int set_up(void)
{
    char reason[OFP_TEXT_MAX];
    int fd;

    if (tcp_library_load(reason, sizeof(reason)) != 0) {
        fprintf(stderr, "%s\n", reason);
        return 77;
    }
    fd = mkstemp(path);
    if (fd < 0 || atexit(remove_key) != 0 || write(fd, path, sizeof(path)) != sizeof(path))
        return 1;
    close(fd);
    setenv("OFIPY_TCP_INTERFACE", "lo", 1);
    setenv("OFIPY_AUTH_KEY_FILE", path, 1);
    setenv("OFIPY_ENCRYPTION", "required", 1);
    return 0;
}
