/* SPDX-License-Identifier: BSD-3-Clause */
#include "proof/key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Read the file into *key as far as it fits, and its state into *status. 0, or a negative errno. O_NONBLOCK: to open a
 * pipe must not wait for its other end. Only a regular file is read: what a pipe contains could be read only once, and
 * every domain reads its key.
 */
static int read_key_file(struct ofpi_key *key, const char *path, struct stat *status)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), error = 0;
    ssize_t length = 0;

    if (fd < 0)
        return -errno;
    if (fstat(fd, status) != 0 || (S_ISREG(status->st_mode) && (length = read(fd, key->bytes, sizeof(key->bytes))) < 0))
        error = -errno;
    else
        key->length = (size_t)length;
    close(fd);
    return error;
}

/* Why a file that was read cannot be used, with a remedy; NULL: it can. */
static const char *describe_fault(const struct ofpi_key *key, const struct stat *status)
{
    const char *why = NULL;

    if (!S_ISREG(status->st_mode))
        why = "it is no regular file; make a key with: ofipy key new";
    else if (status->st_mode & (S_IRWXG | S_IRWXO))
        why = "others than its owner may use the key; chmod 600";
    else if (key->length < OFPI_KEY_MIN || status->st_size > OFPI_KEY_MAX)
        why = "a key of 16 to 1024 bytes is meant; make one with: ofipy key new";
    return why;
}

static int refuse_key_file(struct ofpi_key *key, int error)
{
    memset(key, 0, sizeof(*key));
    return error;
}

int ofpi_key_read(struct ofpi_key *key, const char *setting, const char *path, char *text, size_t text_size)
{
    const char *fault;
    struct stat status;
    int error;

    memset(key, 0, sizeof(*key));
    if (!path || !path[0])
        return 0;
    error = read_key_file(key, path, &status);
    if (error == -ENOENT) {
        snprintf(text, text_size, "%s=%s: the key file is missing; copy the peer's, or make one: ofipy key new",
                 setting, path);
        return refuse_key_file(key, error);
    }
    if (error) {
        snprintf(text, text_size, "%s=%s: %s; name a file that this user can read", setting, path, strerror(-error));
        return refuse_key_file(key, error);
    }
    fault = describe_fault(key, &status);
    if (fault) {
        snprintf(text, text_size, "%s=%s: %s", setting, path, fault);
        return refuse_key_file(key, -EACCES);
    }
    return 0;
}
