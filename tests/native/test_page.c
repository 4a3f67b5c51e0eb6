/* SPDX-License-Identifier: BSD-3-Clause */
/* Statistics pages: more endpoints and peers than one has, the sum of closed ones, and a forked child. */
#include "core_fixture.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/page.h"
#include "object/domain.h"
#include "object/count.h"
#include "ofipy/ofp.h"

enum { ENDPOINTS = OFPI_PAGE_ENDPOINTS + 44, PEERS = OFPI_PAGE_PEERS + 1, IDLE_PEERS = 1000 };

static struct ofpi_counts *opened[ENDPOINTS];
static struct ofpi_peer_counts *entered[PEERS];

static struct ofpi_counts *open_counts(const char *provider)
{
    struct ofp_info info = {0};

    snprintf(info.provider, sizeof(info.provider), "%s", provider);
    return ofpi_counts_open(&info);
}

static void test_every_endpoint_has_words_of_its_own(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < ENDPOINTS; i++) {
        opened[i] = open_counts("many");
        assert_non_null(opened[i]);
        opened[i]->errors = i;
        for (uint32_t row = 0; row < OFPI_ROWS; row++)
            ofpi_sizes_find(opened[i], row)->counts[OFPI_SIZE_CLASSES - 1] = i;
    }
    for (uint32_t i = 0; i < ENDPOINTS; i++) {
        const struct ofpi_page_endpoint *entry = ofpi_page_entry_find(opened[i]);

        assert_int_equal(opened[i]->errors, i);
        for (uint32_t row = 0; row < OFPI_ROWS; row++)
            assert_int_equal(ofpi_sizes_find(opened[i], row)->counts[OFPI_SIZE_CLASSES - 1], i);
        assert_int_equal(entry->state, OFPI_SLOT_OPEN);
        assert_string_equal(entry->provider, "many");
        assert_true(!i || entry->number == ofpi_page_entry_find(opened[i - 1])->number + 1);
    }
    for (uint32_t i = 0; i < ENDPOINTS; i++)
        ofpi_counts_close(opened[i]);
}

static void test_closed_endpoints_are_summed_up(void **state)
{
    struct ofpi_counts *sum = open_counts("summed"), *other = open_counts("other");
    struct ofpi_counts *first = open_counts("summed");

    (void)state;
    sum->errors = 1;
    sum->last_progress = 7;
    ofpi_page_entry_find(sum)->levels.pending = 5;
    ofpi_counts_set_name(sum, "a name");
    ofpi_counts_close(sum);
    assert_int_equal(ofpi_page_entry_find(sum)->state, OFPI_SLOT_CLOSED);
    assert_int_equal(ofpi_page_entry_find(sum)->levels.pending, 0);
    assert_string_equal(ofpi_page_entry_find(sum)->name, "");
    for (uint64_t i = 0; i < 3; i++) {
        struct ofpi_counts *next = i ? open_counts("summed") : first;

        next->errors = 10;
        next->last_progress = 6 + i;
        ofpi_sizes_find(next, OFPI_ROWS - 1)->counts[3] = 2;
        ofpi_page_entry_find(next)->levels.wakeups = 4;
        ofpi_counts_close(next);
        assert_int_equal(ofpi_page_entry_find(next)->state, OFPI_SLOT_FREE);
    }
    assert_int_equal(sum->errors, 31);
    assert_int_equal(sum->last_progress, 8);
    assert_int_equal(ofpi_sizes_find(sum, OFPI_ROWS - 1)->counts[3], 6);
    assert_int_equal(ofpi_page_entry_find(sum)->levels.wakeups, 12);
    assert_int_equal(other->errors, 0);
    ofpi_counts_close(other);
}

static void test_peers_beyond_the_page_are_the_others(void **state)
{
    struct ofpi_counts *counts = open_counts("peers");

    (void)state;
    for (uint32_t i = 0; i < PEERS; i++) {
        entered[i] = ofpi_peer_counts_open(counts, "way", "address");
        entered[i]->messages_sent++;
    }
    assert_ptr_equal(entered[PEERS - 1], &counts->others);
    assert_ptr_not_equal(entered[PEERS - 2], &counts->others);
    assert_int_equal(counts->others.messages_sent, 1);
    for (uint32_t i = 0; i < PEERS; i++)
        ofpi_peer_counts_close(counts, entered[i]);
    assert_int_equal(counts->others.messages_sent, PEERS);
    /* A free entry is used again. */
    entered[0] = ofpi_peer_counts_open(counts, "way", "address");
    assert_int_equal(entered[0]->messages_sent, 0);
    ofpi_peer_counts_close(counts, entered[0]);
    ofpi_counts_close(counts);
}

/* Bytes of memory that the pages of this process have. */
static uint64_t count_memory(void)
{
    uint64_t bytes = 0;
    struct dirent *entry;
    DIR *folder = opendir("/proc/self/fd");

    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        char target[64] = "";
        struct stat file;

        if (readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1) > 0 &&
            strncmp(target, "/memfd:ofipy-stats", strlen("/memfd:ofipy-stats")) == 0 &&
            fstatat(dirfd(folder), entry->d_name, &file, 0) == 0)
            bytes += (uint64_t)file.st_blocks * 512;
    }
    closedir(folder);
    return bytes;
}

static void test_a_thousand_idle_peers_cost_less_than_a_kibibyte_each(void **state)
{
    struct ofpi_counts *counts = open_counts("idle");
    uint64_t before = count_memory(), each;

    (void)state;
    assert_true(before > 0);
    for (uint32_t i = 0; i < IDLE_PEERS; i++) {
        entered[i] = ofpi_peer_counts_open(counts, "way", "address");
        assert_ptr_not_equal(entered[i], &counts->others);
    }
    each = (count_memory() - before) / IDLE_PEERS;
    assert_true(each < 1024);
    assert_true(count_memory() >= IDLE_PEERS * sizeof(struct ofpi_page_peer));
    for (uint32_t i = 0; i < IDLE_PEERS; i++)
        ofpi_peer_counts_close(counts, entered[i]);
    ofpi_counts_close(counts);
}

static void test_a_child_counts_in_memory_of_its_own(void **state)
{
    struct ofpi_counts *counts = open_counts("forked");
    int status = -1;
    pid_t child;

    (void)state;
    ofpi_fork_watch();
    counts->errors = 3;
    child = fork();
    if (child == 0) {
        bool fresh = counts->errors == 0;

        counts->errors = 4;
        _exit(fresh && open_counts("child") ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(counts->errors, 3);
    ofpi_counts_close(counts);
}

static void test_packet_buffers_of_a_domain_count_once(void **state)
{
    struct ofp_endpoint_statistics statistics;
    struct ofp_endpoint_attr attr;
    struct ofp_endpoint *second;
    struct side side = {0};
    struct ofpi_levels *first_levels, *second_levels;
    char text[OFP_TEXT_MAX];

    (void)state;
    side_open(&side, false, OFP_PROGRESS_MANUAL, 64);
    attr = (struct ofp_endpoint_attr){.tx_cq = side.cq, .rx_cq = side.cq, .av = side.av};
    assert_int_equal(ofp_endpoint_open(side.domain, &attr, &second, text, sizeof(text)), 0);
    ((struct ofpi_domain *)side.domain)->base.packet_buffers = 6;
    ((struct ofpi_domain *)side.domain)->base.packet_buffers_reclaimed = 3;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ofp_endpoint_statistics(side.endpoint, &statistics), 0);
        assert_int_equal(statistics.packet_buffers, 6);
        assert_int_equal(ofp_endpoint_statistics(second, &statistics), 0);
        assert_int_equal(statistics.packet_buffers, 6);
    }
    first_levels = &ofpi_page_entry_find(((struct ofpi_endpoint *)side.endpoint)->counts)->levels;
    second_levels = &ofpi_page_entry_find(((struct ofpi_endpoint *)second)->counts)->levels;
    assert_int_equal(first_levels->packet_buffers + second_levels->packet_buffers, 6);
    assert_int_equal(first_levels->packet_buffers_reclaimed + second_levels->packet_buffers_reclaimed, 3);
    assert_int_equal(ofp_endpoint_close(second, 0), 0);
    assert_int_equal(ofp_endpoint_statistics(side.endpoint, &statistics), 0);
    assert_int_equal(first_levels->packet_buffers, 6);
    side_close(&side);
}

static void test_sizes_have_classes(void **state)
{
    (void)state;
    assert_int_equal(ofpi_size_class_compute_any(0), 0);
    assert_int_equal(ofpi_size_class_compute_any(1), 0);
    for (uint32_t step = 1; step < OFPI_SIZE_CLASSES; step++) {
        assert_int_equal(ofpi_size_class_compute_any(UINT64_C(1) << step), step);
        assert_int_equal(ofpi_size_class_compute_any((UINT64_C(2) << step) - 1), step);
    }
    assert_int_equal(ofpi_size_class_compute_any(UINT64_C(1) << 32), OFPI_SIZE_CLASSES - 1);
    assert_int_equal(ofpi_size_class_compute_any(UINT64_MAX), OFPI_SIZE_CLASSES - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First, while the page has no memory that other peers have left. */
        cmocka_unit_test(test_a_thousand_idle_peers_cost_less_than_a_kibibyte_each),
        cmocka_unit_test(test_every_endpoint_has_words_of_its_own),
        cmocka_unit_test(test_closed_endpoints_are_summed_up),
        cmocka_unit_test(test_peers_beyond_the_page_are_the_others),
        cmocka_unit_test(test_a_child_counts_in_memory_of_its_own),
        cmocka_unit_test(test_packet_buffers_of_a_domain_count_once),
        cmocka_unit_test(test_sizes_have_classes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
