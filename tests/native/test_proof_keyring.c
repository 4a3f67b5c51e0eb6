/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings of keys: which files make them, and what happens when a file changes. */
#include "proof/keyring.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define OLD "the key until now"
#define NEW "the key from now on"
#define THIRD "still another key"

static char folder[] = "/tmp/ofipy-rings-XXXXXX", own[64], accepted[64], further[64];
static struct ofpi_key_files files;
static char text[512];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(own, sizeof(own), "%s/own", folder);
    snprintf(accepted, sizeof(accepted), "%s/accepted", folder);
    snprintf(further, sizeof(further), "%s/further", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

static int close_files(void **state)
{
    (void)state;
    ofpi_key_files_close(&files);
    assert_null(files.ring);
    unlink(own);
    unlink(accepted);
    unlink(further);
    return 0;
}

/* As an operator would: the path never leads to a part of a key. */
static void replace_key_file(const char *path, const char *key)
{
    char beside[80];
    int fd;

    snprintf(beside, sizeof(beside), "%s.new", path);
    fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, key, strlen(key)), (ssize_t)strlen(key));
    close(fd);
    assert_int_equal(rename(beside, path), 0);
}

static void check_ring(const struct ofpi_keyring *ring, const char *const keys[], uint32_t count)
{
    assert_int_equal(ring->count, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(ring->keys[i].key.length, strlen(keys[i]));
        assert_memory_equal(ring->keys[i].key.bytes, keys[i], strlen(keys[i]));
        assert_int_equal(strlen(ring->keys[i].tls_identity), OFPI_KEY_IDENTITY_SIZE);
    }
}

static int open_files(const char *accepted_paths)
{
    text[0] = '\0';
    return ofpi_key_files_open(&files, own, accepted_paths, text, sizeof(text));
}

static int update_ring(void)
{
    text[0] = '\0';
    return ofpi_key_files_update(&files, text, sizeof(text));
}

static void test_no_key(void **state)
{
    (void)state;
    assert_int_equal(ofpi_key_files_open(&files, "", "", text, sizeof(text)), 0);
    assert_null(files.ring);
    assert_int_equal(update_ring(), 0);
    assert_null(files.ring);
}

static void test_the_own_key_comes_first(void **state)
{
    char paths[256];

    (void)state;
    replace_key_file(own, NEW);
    replace_key_file(accepted, OLD);
    replace_key_file(further, THIRD);
    snprintf(paths, sizeof(paths), ":%s::%s:", accepted, further);
    assert_int_equal(open_files(paths), 0);
    check_ring(files.ring, (const char *const[]){NEW, OLD, THIRD}, 3);
    assert_memory_not_equal(files.ring->keys[0].tls_key, files.ring->keys[1].tls_key, OFPI_SHA256_SIZE);
    assert_memory_not_equal(files.ring->keys[0].tls_key, files.ring->keys[0].verbs_key, OFPI_SHA256_SIZE);
}

static void test_the_keys_are_proven_in_turn(void **state)
{
    const struct ofpi_key keys[] = {{.length = 16, .bytes = {1}}, {.length = 16, .bytes = {2}}};
    struct ofpi_keyring *ring = ofpi_keyring_create(keys, 2);
    uint32_t number = 0;

    (void)state;
    assert_true(ofpi_keyring_advance(ring, &number));
    assert_int_equal(number, 1);
    assert_false(ofpi_keyring_advance(ring, &number));
    assert_int_equal(number, 1);
    assert_false(ofpi_keyring_advance(NULL, &number));
    ofpi_keyring_release(ring);
}

static void test_equal_keys_are_one(void **state)
{
    (void)state;
    replace_key_file(own, OLD);
    replace_key_file(accepted, OLD);
    assert_int_equal(open_files(accepted), 0);
    check_ring(files.ring, (const char *const[]){OLD}, 1);
}

static void test_files_that_change_are_read_again(void **state)
{
    const struct ofpi_keyring *first;
    struct ofpi_keyring *retained;

    (void)state;
    replace_key_file(own, OLD);
    replace_key_file(accepted, OLD);
    assert_int_equal(open_files(accepted), 0);
    first = retained = ofpi_keyring_retain(files.ring);
    assert_int_equal(update_ring(), 0);
    assert_ptr_equal(files.ring, first);
    replace_key_file(accepted, NEW);
    assert_int_equal(update_ring(), 0);
    check_ring(files.ring, (const char *const[]){OLD, NEW}, 2);
    replace_key_file(own, NEW);
    replace_key_file(accepted, OLD);
    assert_int_equal(update_ring(), 0);
    check_ring(files.ring, (const char *const[]){NEW, OLD}, 2);
    /* Who has begun with the first ring still has it. */
    check_ring(retained, (const char *const[]){OLD}, 1);
    ofpi_keyring_release(retained);
}

static void test_a_file_that_cannot_be_used_changes_nothing(void **state)
{
    (void)state;
    replace_key_file(own, OLD);
    replace_key_file(accepted, NEW);
    assert_int_equal(open_files(accepted), 0);
    replace_key_file(accepted, "too short");
    assert_int_equal(update_ring(), -EACCES);
    assert_non_null(strstr(text, "OFIPY_AUTH_KEY_FILE_ACCEPTED="));
    assert_non_null(strstr(text, "a key of 16 to 1024 bytes is meant"));
    check_ring(files.ring, (const char *const[]){OLD, NEW}, 2);
    /* That is said once. */
    assert_int_equal(update_ring(), 0);
    unlink(accepted);
    assert_int_equal(update_ring(), -ENOENT);
    assert_int_equal(update_ring(), 0);
    check_ring(files.ring, (const char *const[]){OLD, NEW}, 2);
    replace_key_file(accepted, THIRD);
    assert_int_equal(chmod(accepted, 0640), 0);
    assert_int_equal(update_ring(), -EACCES);
    assert_int_equal(chmod(accepted, 0600), 0);
    assert_int_equal(update_ring(), 0);
    check_ring(files.ring, (const char *const[]){OLD, THIRD}, 2);
}

/* A closed descriptor's number may lead to any other file. */
static void test_a_descriptor_is_read_once(void **state)
{
    char path[64];
    int fd;

    (void)state;
    replace_key_file(own, OLD);
    replace_key_file(accepted, NEW);
    fd = open(own, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    assert_int_equal(ofpi_key_files_open(&files, path, accepted, text, sizeof(text)), 0);
    close(fd);
    replace_key_file(accepted, THIRD);
    assert_int_equal(update_ring(), 0);
    check_ring(files.ring, (const char *const[]){OLD, NEW}, 2);
}

static void check_refused(int error, const char *own_path, const char *paths, const char *words)
{
    assert_int_equal(ofpi_key_files_open(&files, own_path, paths, text, sizeof(text)), error);
    assert_non_null(strstr(text, words));
    assert_null(files.ring);
    assert_int_equal(files.count, 0);
}

static void test_what_is_refused(void **state)
{
    char paths[1024] = "";

    (void)state;
    check_refused(-EINVAL, "", accepted, "OFIPY_AUTH_KEY_FILE, which names the key to prove, is not");
    replace_key_file(own, OLD);
    check_refused(-ENOENT, own, accepted, "OFIPY_AUTH_KEY_FILE_ACCEPTED=");
    replace_key_file(accepted, NEW);
    for (int i = 0; i < OFPI_KEYS_MAX; i++) {
        strcat(paths, accepted);
        strcat(paths, ":");
    }
    check_refused(-EINVAL, own, paths, "at most 7 files are meant");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_no_key, close_files),
        cmocka_unit_test_teardown(test_the_own_key_comes_first, close_files),
        cmocka_unit_test_teardown(test_the_keys_are_proven_in_turn, close_files),
        cmocka_unit_test_teardown(test_equal_keys_are_one, close_files),
        cmocka_unit_test_teardown(test_files_that_change_are_read_again, close_files),
        cmocka_unit_test_teardown(test_a_file_that_cannot_be_used_changes_nothing, close_files),
        cmocka_unit_test_teardown(test_a_descriptor_is_read_once, close_files),
        cmocka_unit_test_teardown(test_what_is_refused, close_files),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
