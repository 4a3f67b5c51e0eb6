/* SPDX-License-Identifier: BSD-3-Clause */
/* The id of this host: of boot and network namespace, or none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host.h"
#include "ofipy/ofp.h"

#define NOWHERE "/nowhere/boot_id"

static char boot[] = "/tmp/ofipy-boot-XXXXXX";

static int make_boot(void **state)
{
    int fd = mkstemp(boot);

    (void)state;
    if (fd < 0 || write(fd, "a boot\n", 7) != 7)
        return -1;
    return close(fd);
}

static int remove_boot(void **state)
{
    (void)state;
    return unlink(boot);
}

/* As shm's addresses have had it from the first: FNV-1a over the text of the boot id, its newline too, then the inode. */
static void test_value(void **state)
{
    unsigned char bytes[7 + sizeof(uint64_t)] = "a boot\n";
    uint64_t expected = UINT64_C(0xcbf29ce484222325), inode, id;
    char text[OFP_TEXT_MAX];
    struct stat space;

    (void)state;
    assert_int_equal(stat("/", &space), 0);
    inode = space.st_ino;
    memcpy(bytes + 7, &inode, sizeof(inode));
    for (size_t i = 0; i < sizeof(bytes); i++)
        expected = (expected ^ bytes[i]) * UINT64_C(0x100000001b3);
    assert_int_equal(ofpi_host_id_read(boot, "/", &id, text, sizeof(text)), 0);
    assert_int_equal(id, expected);
}

static void test_here(void **state)
{
    char text[OFP_TEXT_MAX];
    uint64_t first, again;

    (void)state;
    assert_int_equal(ofp_host_id(&first, text, sizeof(text)), 0);
    assert_int_equal(ofp_host_id(&again, text, sizeof(text)), 0);
    assert_int_equal(first, again);
    /* Another boot, in the same namespace. */
    assert_int_equal(ofpi_host_id_read(boot, "/proc/self/ns/net", &again, text, sizeof(text)), 0);
    assert_int_not_equal(first, again);
}

/* A setting tells processes apart, and never brings together what the kernel tells apart. */
static void test_setting(void **state)
{
    char text[OFP_TEXT_MAX];
    uint64_t real, first, second, again;

    (void)state;
    assert_int_equal(ofp_host_id(&real, text, sizeof(text)), 0);
    setenv("OFIPY_HOST_ID", "first", 1);
    assert_int_equal(ofp_host_id(&first, text, sizeof(text)), 0);
    assert_int_equal(ofp_host_id(&again, text, sizeof(text)), 0);
    assert_int_equal(first, again);
    setenv("OFIPY_HOST_ID", "second", 1);
    assert_int_equal(ofp_host_id(&second, text, sizeof(text)), 0);
    assert_int_not_equal(first, second);
    assert_int_not_equal(first, real);
    /* It goes on top of the real one, whatever that is. */
    assert_int_not_equal(ofpi_host_id_compute(real, "first"), ofpi_host_id_compute(real + 1, "first"));
    assert_int_equal(ofpi_host_id_compute(real, "first"), first);
    unsetenv("OFIPY_HOST_ID");
    assert_int_equal(ofp_host_id(&again, text, sizeof(text)), 0);
    assert_int_equal(again, real);
}

static void test_unknown(void **state)
{
    char text[OFP_TEXT_MAX];
    uint64_t id;

    (void)state;
    assert_int_equal(ofpi_host_id_read(NOWHERE, "/", &id, text, sizeof(text)), -ENOENT);
    assert_non_null(strstr(text, NOWHERE ": No such file"));
    assert_int_equal(ofpi_host_id_read(boot, NOWHERE, &id, text, sizeof(text)), -ENOENT);
    assert_non_null(strstr(text, NOWHERE ": No such file"));
    assert_int_equal(ofpi_host_id_read("/dev/null", "/", &id, text, sizeof(text)), -ENODATA);
    assert_int_equal(ofpi_host_id_read("/", "/", &id, text, sizeof(text)), -EISDIR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_value),
        cmocka_unit_test(test_here),
        cmocka_unit_test(test_setting),
        cmocka_unit_test(test_unknown),
    };

    return cmocka_run_group_tests(tests, make_boot, remove_boot);
}
