/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Identify the host, as far as shared memory and local sockets work: this boot of this kernel, and this network
 * namespace. Both are needed, because the inode of a network namespace alone is the same number on most machines.
 * OFIPY_HOST_ID, for tests, is hashed in addition, so that two ids are equal only if the real ids are equal too.
 */
#include "base/host.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/param.h"
#include "ofipy/ofp.h"

/* FNV-1a. */
static uint64_t compute_host_hash(uint64_t state, const void *bytes, size_t length)
{
    const unsigned char *byte = bytes;

    for (size_t i = 0; i < length; i++)
        state = (state ^ byte[i]) * UINT64_C(0x100000001b3);
    return state;
}

static int describe_unreadable(const char *path, int error, char *text, size_t text_size)
{
    snprintf(text, text_size, "it cannot be told which host this is: %s: %s", path, ofp_strerror(error));
    return -error;
}

int ofpi_host_id_read(const char *boot_path, const char *space_path, uint64_t *id, char *text, size_t text_size)
{
    char boot[64];
    struct stat space;
    uint64_t inode;
    ssize_t length;
    int fd = open(boot_path, O_RDONLY | O_CLOEXEC), error;

    if (fd < 0)
        return describe_unreadable(boot_path, errno, text, text_size);
    length = read(fd, boot, sizeof(boot));
    error = length < 0 ? errno : ENODATA;
    close(fd);
    if (length <= 0)
        return describe_unreadable(boot_path, error, text, text_size);
    if (stat(space_path, &space) != 0)
        return describe_unreadable(space_path, errno, text, text_size);
    inode = space.st_ino;
    *id =
        compute_host_hash(compute_host_hash(UINT64_C(0xcbf29ce484222325), boot, (size_t)length), &inode, sizeof(inode));
    return 0;
}

uint64_t ofpi_host_id_compute(uint64_t id, const char *setting)
{
    return compute_host_hash(id, setting, strlen(setting));
}

int ofp_host_id(uint64_t *id, char *text, size_t text_size)
{
    int result = ofpi_host_id_read("/proc/sys/kernel/random/boot_id", "/proc/self/ns/net", id, text, text_size);

    if (!result)
        *id = ofpi_host_id_compute(*id, ofpi_param_get_string("HOST_ID"));
    return result;
}
