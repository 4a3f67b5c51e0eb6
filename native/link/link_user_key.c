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

static int fail(int error, const char *path, const char *what, char *text, size_t text_size)
{
    snprintf(text, text_size, "%s: %s", path, what);
    return -error;
}

/* -------------------------------------------------------------------------------------------------------------- reading */

/* Whether a file that is open is the user's own and nobody else can read or write it. */
static int check(int fd, const char *path, char *text, size_t text_size)
{
    struct stat status;

    if (fstat(fd, &status) != 0)
        return fail(errno, path, strerror(errno), text, text_size);
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid())
        return fail(EACCES, path, "it is not a file of this user: remove it", text, text_size);
    if (status.st_mode & 077)
        return fail(EACCES, path, "others may read or write it, so it proves nothing: remove it, and end all programs",
                    text, text_size);
    return 0;
}

/* -ENOENT without a text: there is none. */
static int read_key(const char *path, uint8_t *key, char *text, size_t text_size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), result;
    uint8_t more;

    if (fd < 0)
        return errno == ENOENT ? -ENOENT : fail(errno, path, strerror(errno), text, text_size);
    result = check(fd, path, text, text_size);
    if (!result && (read(fd, key, OFP_KEY_SIZE) != OFP_KEY_SIZE || read(fd, &more, 1) != 0))
        result = fail(EINVAL, path, "it is no key of 32 bytes: remove it", text, text_size);
    close(fd);
    return result;
}

/* --------------------------------------------------------------------------------------------------------------- making */

static int fill(int fd, const char *path, char *text, size_t text_size)
{
    uint8_t key[OFP_KEY_SIZE];

    if (getrandom(key, sizeof(key), 0) != sizeof(key))
        return fail(EIO, path, "there are no random numbers for a key", text, text_size);
    if (write(fd, key, sizeof(key)) != sizeof(key))
        return fail(errno ? errno : EIO, path, strerror(errno), text, text_size);
    return 0;
}

/*
 * Under a name of its own first, then linked to the one that counts, which so is whole from the beginning; of two processes that do
 * this at once the second finds it there.
 */
static int make_key(const char *path, char *text, size_t text_size)
{
    char draft[PATH_MAX];
    int fd, result;

    if ((size_t)snprintf(draft, sizeof(draft), "%s.XXXXXX", path) >= sizeof(draft))
        return fail(ENAMETOOLONG, path, strerror(ENAMETOOLONG), text, text_size);
    fd = mkostemp(draft, O_CLOEXEC); /* mode 0600, O_EXCL */
    if (fd < 0)
        return fail(errno, path, strerror(errno), text, text_size);
    result = fill(fd, path, text, text_size);
    if (!result && link(draft, path) != 0 && errno != EEXIST)
        result = fail(errno, path, strerror(errno), text, text_size);
    close(fd);
    unlink(draft);
    return result;
}

int link_key_file(const char *path, uint8_t key[OFP_KEY_SIZE], char *text, size_t text_size)
{
    int result = read_key(path, key, text, text_size);

    if (result != -ENOENT)
        return result;
    result = make_key(path, text, text_size);
    if (!result)
        result = read_key(path, key, text, text_size);
    return result == -ENOENT ? fail(ENOENT, path, strerror(ENOENT), text, text_size) : result;
}

/* ---------------------------------------------------------------------------------------------------------------- where */

static const char *home(void)
{
    const char *path = getenv("HOME");
    const struct passwd *user;

    if (path && path[0] == '/')
        return path;
    user = getpwuid(geteuid());
    return user ? user->pw_dir : NULL;
}

/* Make what is missing of a path behind its first `given` bytes. */
static int make_folders(char *path, size_t given, char *text, size_t text_size)
{
    for (char *slash = strchr(path + given + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        int result;

        *slash = 0;
        result = mkdir(path, 0700) != 0 && errno != EEXIST ? fail(errno, path, strerror(errno), text, text_size) : 0;
        *slash = '/';
        if (result)
            return result;
    }
    return 0;
}

int link_user_key(uint8_t key[OFP_KEY_SIZE], char *text, size_t text_size)
{
    const char *given = getenv("XDG_RUNTIME_DIR"), *rest = "/ofipy/key";
    char path[PATH_MAX];
    int result;

    if (!given || given[0] != '/') {
        given = home();
        rest = "/.local/state/ofipy/key";
    }
    if (!given)
        return fail(ENOENT, "ofipy/key", "neither XDG_RUNTIME_DIR nor HOME says where it is to be", text, text_size);
    if ((size_t)snprintf(path, sizeof(path), "%s%s", given, rest) >= sizeof(path))
        return fail(ENAMETOOLONG, given, strerror(ENAMETOOLONG), text, text_size);
    result = make_folders(path, strlen(given), text, text_size);
    return result ? result : link_key_file(path, key, text, text_size);
}
