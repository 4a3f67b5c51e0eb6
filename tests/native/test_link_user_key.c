/* SPDX-License-Identifier: BSD-3-Clause */
/* The random key of the user: made once, refused when others may read it, the same for all who ask at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "link/link_user_key.h"

enum { PROCESSES = 16 };

static char folder[64], path[128], text[OFP_TEXT_MAX];

static int open_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/ofipy-key-XXXXXX");
    text[0] = 0;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof(path), "%s/ofipy/key", folder);
    setenv("XDG_RUNTIME_DIR", folder, 1);
    return 0;
}

static int close_folder(void **state)
{
    char command[160];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static void test_it_is_made_once_and_for_this_user_alone(void **state)
{
    uint8_t first[OFP_KEY_SIZE] = {0}, second[OFP_KEY_SIZE] = {0};
    static const uint8_t zeros[OFP_KEY_SIZE];
    struct stat status;

    (void)state;
    assert_int_equal(link_user_key_read(first, text, sizeof(text)), 0);
    assert_int_equal(link_user_key_read(second, text, sizeof(text)), 0);
    assert_memory_equal(first, second, sizeof(first));
    assert_memory_not_equal(first, zeros, sizeof(first));
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(status.st_size, OFP_KEY_SIZE);
}

static void test_without_a_runtime_folder_it_is_at_home(void **state)
{
    uint8_t key[OFP_KEY_SIZE];

    (void)state;
    unsetenv("XDG_RUNTIME_DIR");
    setenv("HOME", folder, 1);
    assert_int_equal(link_user_key_read(key, text, sizeof(text)), 0);
    snprintf(path, sizeof(path), "%s/.local/state/ofipy/key", folder);
    assert_int_equal(access(path, R_OK), 0);
}

static void refused(int error, const char *why)
{
    uint8_t key[OFP_KEY_SIZE];

    assert_int_equal(link_user_key_read(key, text, sizeof(text)), error);
    assert_non_null(strstr(text, path));
    assert_non_null(strstr(text, why));
}

static void test_one_that_others_can_read_is_refused(void **state)
{
    uint8_t key[OFP_KEY_SIZE];

    (void)state;
    assert_int_equal(link_user_key_read(key, text, sizeof(text)), 0);
    assert_int_equal(chmod(path, 0640), 0);
    refused(-EACCES, "others may read");
}

static void test_one_of_another_length_is_refused(void **state)
{
    uint8_t key[OFP_KEY_SIZE];

    (void)state;
    assert_int_equal(link_user_key_read(key, text, sizeof(text)), 0);
    assert_int_equal(truncate(path, OFP_KEY_SIZE - 1), 0);
    refused(-EINVAL, "no key of 32 bytes");
    assert_int_equal(truncate(path, OFP_KEY_SIZE + 1), 0);
    refused(-EINVAL, "no key of 32 bytes");
}

static void test_what_is_no_file_is_refused(void **state)
{
    uint8_t key[OFP_KEY_SIZE];

    (void)state;
    assert_int_equal(link_user_key_read(key, text, sizeof(text)), 0);
    unlink(path);
    assert_int_equal(symlink("/dev/zero", path), 0);
    refused(-ELOOP, "");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    refused(-EACCES, "not a file");
}

static void test_a_folder_that_cannot_be_made_is_named(void **state)
{
    char file[96];
    uint8_t key[OFP_KEY_SIZE];
    int fd;

    (void)state;
    snprintf(file, sizeof(file), "%s/ofipy", folder);
    fd = open(file, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(link_user_key_read(key, text, sizeof(text)), -ENOTDIR);
    assert_non_null(strstr(text, file));
}

/* Many processes at once, none of which finds one: all have the same in the end, and nothing else is left. */
static void test_of_those_who_make_one_at_once_all_have_the_same(void **state)
{
    int ends[2], go[2];
    uint8_t first[OFP_KEY_SIZE], key[OFP_KEY_SIZE];
    DIR *left;
    int entries = 0;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(go), 0);
    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0) {
            char byte;

            close(go[1]);
            if (read(go[0], &byte, 1) != 0 || link_user_key_read(key, text, sizeof(text)) != 0)
                _exit(1);
            _exit(write(ends[1], key, sizeof(key)) != sizeof(key));
        }
    close(go[0]);
    close(go[1]);
    assert_int_equal(read(ends[0], first, sizeof(first)), sizeof(first));
    for (int i = 1; i < PROCESSES; i++) {
        assert_int_equal(read(ends[0], key, sizeof(key)), sizeof(key));
        assert_memory_equal(key, first, sizeof(key));
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status;

        wait(&status);
        assert_int_equal(status, 0);
    }
    close(ends[0]);
    close(ends[1]);
    path[strlen(path) - strlen("/key")] = 0;
    left = opendir(path);
    assert_non_null(left);
    while (readdir(left))
        entries++;
    closedir(left);
    assert_int_equal(entries, 3); /* ".", ".." and the key */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_it_is_made_once_and_for_this_user_alone, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(test_without_a_runtime_folder_it_is_at_home, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(test_one_that_others_can_read_is_refused, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(test_one_of_another_length_is_refused, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(test_what_is_no_file_is_refused, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(test_a_folder_that_cannot_be_made_is_named, open_folder, close_folder),
        cmocka_unit_test_setup_teardown(test_of_those_who_make_one_at_once_all_have_the_same, open_folder,
                                        close_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
