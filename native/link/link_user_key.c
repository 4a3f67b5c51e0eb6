/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/link_user_key.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static int describe_key_failure(int error, const char *path, const char *what, char *text, size_t text_size)
{
    snprintf(text, text_size, "%s: %s", path, what);
    return -error;
}

/* -------------------------------------------------------------------------------------------------------------- reading */

/* Check that an open file belongs to the user, and that nobody else can read or write it. */
static int check_key_file(int fd, const char *path, char *text, size_t text_size)
{
    struct stat status;

    if (fstat(fd, &status) != 0)
        return describe_key_failure(errno, path, strerror(errno), text, text_size);
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid())
        return describe_key_failure(EACCES, path, "it is not a file of this user: remove it", text, text_size);
    if (status.st_mode & 077)
        return describe_key_failure(
            EACCES, path, "others may read or write it, so it proves nothing: remove it, and end all programs", text,
            text_size);
    return 0;
}

/* As read(). A folder of a network may let a signal interrupt it. */
static ssize_t read_uninterrupted(int fd, void *bytes, size_t length)
{
    ssize_t result;

    do
        result = read(fd, bytes, length);
    while (result < 0 && errno == EINTR);
    return result;
}

/* -ENOENT without a text: the file does not exist. */
static int read_key(const char *path, uint8_t *key, char *text, size_t text_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), result;
    uint8_t more;

    if (fd < 0)
        return errno == ENOENT ? -ENOENT : describe_key_failure(errno, path, strerror(errno), text, text_size);
    result = check_key_file(fd, path, text, text_size);
    if (!result && (read_uninterrupted(fd, key, OFP_KEY_SIZE) != OFP_KEY_SIZE || read_uninterrupted(fd, &more, 1) != 0))
        result = describe_key_failure(EINVAL, path, "it is no key of 32 bytes: remove it", text, text_size);
    close(fd);
    return result;
}

/* --------------------------------------------------------------------------------------------------------------- making */

static int write_random_key(int fd, const char *path, char *text, size_t text_size)
{
    uint8_t key[OFP_KEY_SIZE];

    if (getrandom(key, sizeof(key), 0) != sizeof(key))
        return describe_key_failure(EIO, path, "there are no random numbers for a key", text, text_size);
    if (write(fd, key, sizeof(key)) != sizeof(key))
        return describe_key_failure(errno ? errno : EIO, path, strerror(errno), text, text_size);
    return 0;
}

/*
 * Write the key to a temporary file first, then link that to the final name, so the file under that name is always
 * complete. If two processes do this at once, the second finds the file of the first.
 */
static int create_key(const char *path, char *text, size_t text_size)
{
    char draft[PATH_MAX];
    int fd, result;

    if ((size_t)snprintf(draft, sizeof(draft), "%s.XXXXXX", path) >= sizeof(draft))
        return describe_key_failure(ENAMETOOLONG, path, strerror(ENAMETOOLONG), text, text_size);
    fd = mkostemp(draft, O_CLOEXEC); /* mode 0600, O_EXCL */
    if (fd < 0)
        return describe_key_failure(errno, path, strerror(errno), text, text_size);
    result = write_random_key(fd, path, text, text_size);
    if (!result && link(draft, path) != 0 && errno != EEXIST)
        result = describe_key_failure(errno, path, strerror(errno), text, text_size);
    close(fd);
    unlink(draft);
    return result;
}

int link_key_file_read(const char *path, uint8_t key[OFP_KEY_SIZE], char *text, size_t text_size)
{
    int result = read_key(path, key, text, text_size);

    if (result != -ENOENT)
        return result;
    result = create_key(path, text, text_size);
    if (!result)
        result = read_key(path, key, text, text_size);
    return result == -ENOENT ? describe_key_failure(ENOENT, path, strerror(ENOENT), text, text_size) : result;
}

/* ---------------------------------------------------------------------------------------------------------------- where */

static const char *find_home_folder(void)
{
    const char *path = getenv("HOME");
    const struct passwd *user;

    if (path && path[0] == '/')
        return path;
    user = getpwuid(geteuid());
    return user ? user->pw_dir : NULL;
}

/* Create the missing folders of a path behind its first `given` bytes. */
static int create_folders(char *path, size_t given, char *text, size_t text_size)
{
    for (char *slash = strchr(path + given + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        int result;

        *slash = 0;
        result = mkdir(path, 0700) != 0 && errno != EEXIST
                     ? describe_key_failure(errno, path, strerror(errno), text, text_size)
                     : 0;
        *slash = '/';
        if (result)
            return result;
    }
    return 0;
}

int link_user_key_read(uint8_t key[OFP_KEY_SIZE], char *text, size_t text_size)
{
    const char *given = getenv("XDG_RUNTIME_DIR"), *rest = "/ofipy/key";
    char path[PATH_MAX];
    int result;

    if (!given || given[0] != '/') {
        given = find_home_folder();
        rest = "/.local/state/ofipy/key";
    }
    if (!given)
        return describe_key_failure(ENOENT, "ofipy/key", "neither XDG_RUNTIME_DIR nor HOME says where it is to be",
                                    text, text_size);
    if ((size_t)snprintf(path, sizeof(path), "%s%s", given, rest) >= sizeof(path))
        return describe_key_failure(ENAMETOOLONG, given, strerror(ENAMETOOLONG), text, text_size);
    result = create_folders(path, strlen(given), text, text_size);
    return result ? result : link_key_file_read(path, key, text, text_size);
}
