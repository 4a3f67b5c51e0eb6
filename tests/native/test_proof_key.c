/* SPDX-License-Identifier: BSD-3-Clause */
/* Key files: what is read, and what is refused with which words. */
#include "proof/key.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SECRET "a secret that no text may say"

static char folder[] = "/tmp/ofipy-keys-XXXXXX", path[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/job.key", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static void write_file(const void *bytes, size_t length, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), (ssize_t)length);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void check_refused(const char *file, int error, const char *words)
{
    static const struct ofpi_key empty;
    struct ofpi_key key;
    char text[256] = "";

    memset(&key, 0xa5, sizeof(key));
    assert_int_equal(ofpi_key_read(&key, "OFIPY_AUTH_KEY_FILE", file, text, sizeof(text)), error);
    assert_memory_equal(&key, &empty, sizeof(key));
    assert_non_null(strstr(text, "OFIPY_AUTH_KEY_FILE="));
    assert_non_null(strstr(text, file));
    assert_non_null(strstr(text, words));
    assert_null(strstr(text, SECRET));
}

static void check_read(const char *file, const uint8_t *bytes, size_t length)
{
    struct ofpi_key key;
    char text[256] = "unchanged";

    memset(&key, 0xa5, sizeof(key));
    assert_int_equal(ofpi_key_read(&key, "OFIPY_AUTH_KEY_FILE", file, text, sizeof(text)), 0);
    assert_int_equal(key.length, length);
    assert_memory_equal(key.bytes, bytes, length);
    for (size_t i = length; i < OFPI_KEY_MAX; i++)
        assert_int_equal(key.bytes[i], 0);
    assert_string_equal(text, "unchanged");
}

static void test_no_key(void **state)
{
    (void)state;
    check_read(NULL, (const uint8_t *)"", 0);
    check_read("", (const uint8_t *)"", 0);
}

/* Every length that is allowed at its limits; bytes of every value, zero and line ends among them. */
static void test_lengths(void **state)
{
    static const size_t lengths[] = {OFPI_KEY_MIN, OFPI_KEY_MIN + 1, 32, OFPI_KEY_MAX - 1, OFPI_KEY_MAX};
    static const size_t wrong[] = {0, 1, OFPI_KEY_MIN - 1, OFPI_KEY_MAX + 1, 1 << 20};
    uint8_t *bytes = malloc(1 << 20);

    (void)state;
    assert_non_null(bytes);
    for (size_t i = 0; i < 1 << 20; i++)
        bytes[i] = (uint8_t)i;
    for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        write_file(bytes, lengths[i], i % 2 ? 0600 : 0400);
        check_read(path, bytes, lengths[i]);
        unlink(path);
    }
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        write_file(bytes, wrong[i], 0600);
        check_refused(path, -EACCES, "a key of 16 to 1024 bytes is meant; make one with: ofipy key new");
        unlink(path);
    }
    free(bytes);
}

/* Any right of others than the owner is one too many. */
static void test_rights(void **state)
{
    (void)state;
    for (mode_t right = 1; right < 0100; right <<= 1) {
        write_file(SECRET, strlen(SECRET), 0600 | right);
        check_refused(path, -EACCES, "others than its owner may use the key; chmod 600");
        unlink(path);
    }
}

static void test_a_missing_file(void **state)
{
    (void)state;
    check_refused(path, -ENOENT, "the key file is missing; copy the peer's, or make one: ofipy key new");
    assert_int_equal(symlink("/nowhere/at/all", path), 0);
    check_refused(path, -ENOENT, "is missing");
    unlink(path);
}

static void test_a_path_that_cannot_be_opened(void **state)
{
    char below[sizeof(path) + 8];

    (void)state;
    write_file(SECRET, strlen(SECRET), 0600);
    snprintf(below, sizeof(below), "%s/below", path);
    check_refused(below, -ENOTDIR, "name a file that this user can read");
    unlink(path);
    /* root may read everything */
    if (geteuid() != 0) {
        write_file(SECRET, strlen(SECRET), 0200);
        check_refused(path, -EACCES, "name a file that this user can read");
        unlink(path);
    }
}

/* Opening the pipe does not wait for a writer, and a pipe with a key in it is refused as well, and not read. */
static void test_files_that_are_not_regular(void **state)
{
    char left[sizeof(SECRET)];
    int fd;

    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    check_refused(path, -EACCES, "it is no regular file; make a key with: ofipy key new");
    fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, SECRET, sizeof(SECRET)), sizeof(SECRET));
    check_refused(path, -EACCES, "it is no regular file");
    assert_int_equal(read(fd, left, sizeof(left)), sizeof(left));
    close(fd);
    unlink(path);
    assert_int_equal(chmod(folder, 0700), 0);
    check_refused(folder, -EACCES, "it is no regular file");
    check_refused("/dev/null", -EACCES, "it is no regular file");
}

/* A job's key is in a file without a name, which is opened by its descriptor. */
static void test_a_file_without_a_name(void **state)
{
    char name[64];
    int fd = memfd_create("ofipy key", MFD_CLOEXEC);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, SECRET, strlen(SECRET)), (ssize_t)strlen(SECRET));
    assert_int_equal(fchmod(fd, 0600), 0);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    for (int i = 0; i < 2; i++)
        check_read(name, (const uint8_t *)SECRET, strlen(SECRET));
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_key),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_rights),
        cmocka_unit_test(test_a_missing_file),
        cmocka_unit_test(test_a_path_that_cannot_be_opened),
        cmocka_unit_test(test_files_that_are_not_regular),
        cmocka_unit_test(test_a_file_without_a_name),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
