/* SPDX-License-Identifier: BSD-3-Clause */
/* The hooks `trace` and `profile` over both kinds of the fake's endpoints; tests/unit/test_trace.py reads what is written. */
#include "hook_fixture.h"

#include <stdio.h>
#include <unistd.h>

#define MESSAGES 40

/* A file of its own; `hooks` has the place for its name. */
static void traced_side_open(struct side *side, const char *hooks, char *name, size_t size, bool offloads_matching)
{
    char list[256];
    const char *folder = getenv("TMPDIR");

    snprintf(name, size, "%s/ofipy-trace-%ld.json", folder ? folder : "/tmp", (long)getpid());
    snprintf(list, sizeof(list), hooks, name);
    hooked_side_open(side, list, offloads_matching);
}

static void exchange(struct side *side, uint32_t count)
{
    char out[8] = "traced", in[8];

    for (uint32_t i = 0; i < count; i++) {
        post_one(side, tagged(OFP_TSEND, side->peer, i, out, sizeof(out), i));
        assert_int_equal(next_completion(side, NULL).error, 0);
        assert_int_equal(request_take(request_trecv(side->endpoint, in, sizeof(in), OFP_PEER_ANY, i), -1).error, 0);
    }
}

static uint32_t count_in(const char *text, const char *words)
{
    uint32_t count = 0;

    while ((text = strstr(text, words))) {
        count++;
        text += strlen(words);
    }
    return count;
}

static char *read_whole(const char *name)
{
    char *text = calloc(1, 1 << 20);
    FILE *file = fopen(name, "r");

    assert_non_null(file);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

static void check_file(bool offloads_matching)
{
    struct side side;
    char name[128], *text;
    uint32_t slices, sent;

    traced_side_open(&side, "trace:file=%s;profile:table=no", name, sizeof(name), offloads_matching);
    text = read_whole(name);
    slices = count_in(text, "\"X\"");
    sent = count_in(text, "\"s\",\"pid\"");
    free(text);
    exchange(&side, MESSAGES);
    side_close(&side);
    text = read_whole(name);
    /* Where the transport matches, nobody hears of arrivals, and there are no arrows. */
    assert_int_equal(count_in(text, "\"X\"") - slices, offloads_matching ? 2 * MESSAGES : 3 * MESSAGES);
    assert_int_equal(count_in(text, "\"s\",\"pid\"") - sent, offloads_matching ? 0 : MESSAGES);
    assert_int_equal(strcmp(text + strlen(text) - 4, "\n]}\n"), 0);
    free(text);
}

static void test_a_file_of_two_endpoints(void **state)
{
    char name[128];
    struct side side;

    (void)state;
    check_file(false);
    check_file(true);
    traced_side_open(&side, "trace:file=%s", name, sizeof(name), false);
    side_close(&side);
    unlink(name);
}

static void test_the_limit_bounds_what_is_kept(void **state)
{
    struct side side;
    char name[128];

    (void)state;
    traced_side_open(&side, "trace:file=%s,limit=5", name, sizeof(name), false);
    exchange(&side, MESSAGES);
    side_close(&side);
    expect_warning("which had more than limit=5");
    unlink(name);
}

static void test_a_report_is_as_long_as_it_says(void **state)
{
    struct side side;
    char json[8192], part[64];
    int64_t length;

    (void)state;
    hooked_side_open(&side, "profile:table=no", false);
    exchange(&side, MESSAGES);
    length = ofp_endpoint_hook_report(side.endpoint, "profile", json, sizeof(json));
    assert_in_range(length, 1, sizeof(json) - 1);
    assert_int_equal(strlen(json), length);
    assert_non_null(strstr(json, "\"operation\":\"tsend\""));
    assert_non_null(strstr(json, "\"operations\":40,\"errors\":0,\"bytes\":320,\"sizes\":[[8,40]]"));
    assert_int_equal(ofp_endpoint_hook_report(side.endpoint, "profile", NULL, 0), length);
    assert_int_equal(ofp_endpoint_hook_report(side.endpoint, "profile", part, sizeof(part)), length);
    assert_int_equal(strlen(part), sizeof(part) - 1);
    assert_memory_equal(part, json, sizeof(part) - 1);
    assert_int_equal(ofp_endpoint_hook_report(side.endpoint, "trace", NULL, 0), -ENOENT);
    side_close(&side);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file_of_two_endpoints),
        cmocka_unit_test(test_the_limit_bounds_what_is_kept),
        cmocka_unit_test(test_a_report_is_as_long_as_it_says),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
