/* SPDX-License-Identifier: BSD-3-Clause */
/* Which versions two sides have in common, and what they are told if there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "meet/versions.h"
#include "ofipy/ofp.h"

#define NEWEST 6u

/* The smaller newest version is spoken. So it must be one of both, and no larger version may be. */
static void test_a_common_version_is_found(void **state)
{
    (void)state;
    for (unsigned all = 0; all < NEWEST * NEWEST * NEWEST * NEWEST; all++) {
        struct ofpi_versions ours = {all % NEWEST, all / NEWEST % NEWEST};
        struct ofpi_versions theirs = {all / NEWEST / NEWEST % NEWEST, all / NEWEST / NEWEST / NEWEST};
        bool common = false;

        for (unsigned version = 0; version < NEWEST; version++)
            common |= version >= ours.oldest && version <= ours.newest && version >= theirs.oldest &&
                      version <= theirs.newest;
        assert_int_equal(ofpi_versions_are_compatible(ours, theirs), common);
        assert_int_equal(ofpi_versions_are_compatible(theirs, ours), common);
    }
}

static void check_text(struct ofpi_versions ours, struct ofpi_versions theirs, const char *expected)
{
    char text[OFP_TEXT_MAX];

    ofpi_versions_describe("the x protocol", ours, theirs, text, sizeof(text));
    assert_string_equal(text, expected);
}

static void test_the_older_side_is_to_be_updated(void **state)
{
    (void)state;
    check_text(
        (struct ofpi_versions){3, 2}, (struct ofpi_versions){5, 4},
        "the peer speaks versions 4 to 5 of the x protocol, and this side versions 2 to 3; update ofipy on this side");
    check_text((struct ofpi_versions){5, 4}, (struct ofpi_versions){3, 3},
               "the peer speaks version 3 of the x protocol, and this side versions 4 to 5; update ofipy on the peer's "
               "side");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_common_version_is_found),
        cmocka_unit_test(test_the_older_side_is_to_be_updated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
