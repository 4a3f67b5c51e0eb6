/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared memory and its limits. A memfd has no limit of its own: a process that fills one may exceed its memory cgroup
 * and be killed by the OOM killer. So before a large range is backed, its size is compared with what the cgroups of
 * this process and the machine have left.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory/memory.h"

/* Below this size the check, which reads a dozen files, costs more than it is worth. */
#define LARGE (UINT64_C(1) << 20)
/* A signal undoes what fallocate has done so far: large ranges are backed in pieces. */
#define PIECE (UINT64_C(16) << 20)
#define CGROUP_ROOT "/sys/fs/cgroup"

static bool read_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, text, size - 1);

    if (fd >= 0)
        close(fd);
    if (length < 0)
        return false;
    text[length] = 0;
    return true;
}

/* The number in a file of a cgroup; false for none, and for "max". */
static bool read_number(const char *directory, const char *file, uint64_t *number)
{
    char path[1024], text[64], *end;

    if ((size_t)snprintf(path, sizeof(path), "%s/%s", directory, file) >= sizeof(path) ||
        !read_text(path, text, sizeof(text)))
        return false;
    *number = strtoull(text, &end, 10);
    return end != text;
}

/* A row "name value" of a statistics file. */
static uint64_t read_row(const char *path, const char *name)
{
    char text[8192];
    const char *row;
    size_t length = strlen(name);

    if (!read_text(path, text, sizeof(text)))
        return 0;
    for (row = text; row; row = strchr(row, '\n'), row += row != NULL)
        if (strncmp(row, name, length) == 0)
            return strtoull(row + length, NULL, 10);
    return 0;
}

static void update_available(uint64_t value, const char *from, uint64_t *available, char *where, size_t where_size)
{
    if (value >= *available)
        return;
    *available = value;
    snprintf(where, where_size, "%s", from);
}

static void read_group(const char *directory, const char *limit_file, const char *usage_file, uint64_t *available,
                       char *where, size_t where_size)
{
    char path[1024];
    uint64_t limit, usage, reclaimable;

    if (!read_number(directory, limit_file, &limit) || !read_number(directory, usage_file, &usage))
        return;
    /* The kernel drops inactive page cache first. */
    snprintf(path, sizeof(path), "%.1000s/memory.stat", directory);
    reclaimable = read_row(path, "inactive_file ");
    usage = usage > reclaimable ? usage - reclaimable : 0;
    update_available(limit > usage ? limit - usage : 0, directory, available, where, where_size);
}

/* From the group itself up to the root of the hierarchy. */
static void read_groups(const char *root, const char *group, const char *limit_file, const char *usage_file,
                        uint64_t *available, char *where, size_t where_size)
{
    char path[900];
    size_t root_length = strlen(root);
    char *slash;

    snprintf(path, sizeof(path), "%s%.800s", root, strcmp(group, "/") == 0 ? "" : group);
    do {
        read_group(path, limit_file, usage_file, available, where, where_size);
        slash = strrchr(path, '/');
        if (slash)
            *slash = 0;
    } while (slash && strlen(path) >= root_length);
}

uint64_t shm_memory_compute_available(char *where, size_t where_size)
{
    uint64_t available = UINT64_MAX, machine;
    char text[4096], *line, *rest = text;

    snprintf(where, where_size, "this machine");
    machine = read_row("/proc/meminfo", "MemAvailable:");
    if (machine)
        available = machine * 1024;
    if (!read_text("/proc/self/cgroup", text, sizeof(text)))
        return available;
    while ((line = strsep(&rest, "\n"))) {
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;

        if (!group)
            continue;
        *group++ = 0;
        if (strcmp(controllers, ":") == 0)
            read_groups(CGROUP_ROOT, group, "memory.max", "memory.current", &available, where, where_size);
        else if (strstr(controllers, "memory"))
            read_groups(CGROUP_ROOT "/memory", group, "memory.limit_in_bytes", "memory.usage_in_bytes", &available,
                        where, where_size);
    }
    return available;
}

int shm_memfd_reserve(int fd, uint64_t offset, uint64_t length, const char *parameter, char *text, size_t text_size)
{
    char where[256];
    uint64_t available = length < LARGE ? UINT64_MAX : shm_memory_compute_available(where, sizeof(where));

    if (length > available) {
        snprintf(text, text_size,
                 "%" PRIu64 " KiB of shared memory are needed and %s has %" PRIu64 " KiB left: free some, raise its "
                 "limit, or ask for less%s%s",
                 length >> 10, where, available >> 10, parameter ? " with " : "", parameter ? parameter : "");
        return -ENOMEM;
    }
    for (uint64_t done = 0, piece; done < length; done += piece) {
        piece = length - done < PIECE ? length - done : PIECE;
        while (fallocate(fd, 0, (off_t)(offset + done), (off_t)piece) != 0) {
            if (errno == EINTR)
                continue;
            snprintf(text, text_size, "cannot back %" PRIu64 " KiB of shared memory: %s%s%s", length >> 10,
                     strerror(errno), parameter ? "; ask for less with " : "", parameter ? parameter : "");
            return -ENOMEM;
        }
    }
    return 0;
}
