/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints and their meeting: to oneself, many in a process, many processes, few descriptors, refusals, sleep. */
#include <sys/socket.h>
#include <sys/un.h>

#include "link/link.h"
#include "memory/segment.h"
#include "shm.h"
#include "test_shm_fixture.h"

#define LENGTH 70000

static uint32_t insert_address(struct side *side, const struct side *other)
{
    char address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);
    uint32_t index;

    CHECK_EQUAL(ofp_endpoint_address(other->endpoint, address, &length), 0);
    CHECK_EQUAL(ofp_av_insert(side->av, address, length, &index), 0);
    return index;
}

/* --------------------------------------------------------------------------------------------------------- oneself */

static void self_process(struct shared *shared, uint32_t rank)
{
    static const uint64_t lengths[] = {8, 96, 5000, LENGTH, 5000000};
    struct side side;
    uint8_t *out = malloc(5000000), *in = malloc(5000000);
    uint32_t self;

    side_open(&side, shared, rank);
    self = insert_address(&side, &side);
    for (uint32_t i = 0; i < 5; i++) {
        fill(out, lengths[i], i);
        post(&side, tagged(OFP_TSEND, self, i, out, lengths[i], 1));
        post(&side, tagged(OFP_TRECV, self, i, in, lengths[i], 2));
        CHECK_EQUAL(completion_of(&side, 2).source, self);
        check_filled(in, lengths[i], i);
    }
    side_close(&side);
    free(out);
    free(in);
}

static void test_self(void **state)
{
    (void)state;
    run_processes(1, self_process, NULL);
    setenv("OFIPY_SHM_ATTACH", "no", 1);
    run_processes(1, self_process, NULL);
    unsetenv("OFIPY_SHM_ATTACH");
}

/* -------------------------------------------------------------------------------------- several in one process */

#define ENDPOINTS 6

/* In one domain and driven by one thread, and in two domains. */
static void several_process(struct shared *shared, uint32_t rank)
{
    struct side sides[ENDPOINTS];
    static uint8_t out[LENGTH], in[ENDPOINTS][ENDPOINTS][LENGTH];

    (void)shared;
    (void)rank;
    domain_open(&sides[0]);
    domain_open(&sides[ENDPOINTS - 1]);
    fill(out, LENGTH, 9);
    for (uint32_t i = 0; i < ENDPOINTS; i++) {
        if (i < ENDPOINTS - 1)
            sides[i].domain = sides[0].domain;
        endpoint_open(&sides[i], NULL, 0);
    }
    for (uint32_t from = 0; from < ENDPOINTS; from++) {
        for (uint32_t to = 0; to < ENDPOINTS; to++) {
            uint32_t peer = insert_address(&sides[from], &sides[to]);

            post(&sides[to], tagged(OFP_TRECV, OFP_PEER_ANY, from, in[to][from], LENGTH, 1));
            post(&sides[from], tagged(OFP_TSEND, peer, from, out, from % 2 ? LENGTH : 20, 2));
        }
    }
    for (uint32_t i = 0; i < ENDPOINTS; i++) {
        uint64_t deadline = now_ns() + PATIENCE;

        for (uint32_t done = 0; done < 2 * ENDPOINTS;) {
            struct ofp_completion row;

            /* One thread drives all of them: none may wait for another. */
            ofp_domain_progress(sides[0].domain);
            ofp_domain_progress(sides[ENDPOINTS - 1].domain);
            if (ofp_cq_read(sides[i].cq, &row, 1) != 1)
                continue;
            CHECK_EQUAL(row.error, 0);
            CHECK(now_ns() < deadline);
            done++;
        }
        for (uint32_t from = 0; from < ENDPOINTS; from++)
            check_filled(in[i][from], from % 2 ? LENGTH : 20, 9);
    }
    for (uint32_t i = 0; i < ENDPOINTS; i++)
        endpoint_close(&sides[i]);
    CHECK_EQUAL(ofp_domain_close(sides[0].domain), 0);
    CHECK_EQUAL(ofp_domain_close(sides[ENDPOINTS - 1].domain), 0);
}

static void test_several_in_one_process(void **state)
{
    (void)state;
    run_processes(1, several_process, NULL);
}

/* ------------------------------------------------------------------------------------------------------- all to all */

#define ROUNDS 3

static void all_to_all_process(struct shared *shared, uint32_t rank)
{
    uint32_t count = shared->count, peers[64];
    uint8_t *out = malloc(ROUNDS * LENGTH), *in = malloc((size_t)count * LENGTH);
    struct side side;

    side_open(&side, shared, rank);
    meet_all(shared, 0);
    for (uint32_t other = 0; other < count; other++)
        peers[other] = insert_rank(&side, shared, other);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint64_t length = round == 0 ? 8 : round == 1 ? 3000 : 20000;

        fill(out + round * LENGTH, length, rank + round);
        for (uint32_t other = 0; other < count; other++) {
            post(&side, tagged(OFP_TRECV, peers[other], round, in + (size_t)other * LENGTH, length, 1));
            post(&side, tagged(OFP_TSEND, peers[other], round, out + round * LENGTH, length, 2));
        }
        for (uint32_t done = 0; done < 2 * count; done++) {
            struct ofp_completion row = next_completion(&side);

            if (row.error)
                fprintf(stderr, "rank %u: %s\n", rank, ofp_strerror(row.error));
            CHECK_EQUAL(row.error, 0);
        }
        for (uint32_t other = 0; other < count; other++)
            check_filled(in + (size_t)other * LENGTH, length, other + round);
    }
    meet_all_busy(&side, shared, 1);
    side_close(&side);
    free(out);
    free(in);
}

static void test_all_to_all(void **state)
{
    (void)state;
    run_processes(8, all_to_all_process, NULL);
}

static void test_64_processes(void **state)
{
    (void)state;
    run_processes(64, all_to_all_process, NULL);
}

static void with_descriptor_limit(rlim_t limit, uint32_t count)
{
    struct rlimit before, now;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    now = before;
    now.rlim_cur = limit;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    run_processes(count, all_to_all_process, NULL);
    setrlimit(RLIMIT_NOFILE, &before);
}

static void test_32_with_256_descriptors(void **state)
{
    (void)state;
    with_descriptor_limit(256, 32);
}

/* Barely enough for what stays open: meetings run out of descriptors all the time, and are held again. */
static void test_8_with_hardly_any_descriptors(void **state)
{
    (void)state;
    with_descriptor_limit(30, 8);
}

/* --------------------------------------------------------------------------------------------------------- refusals */

static void refusal_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    struct ofp_completion row;
    struct shm_address address;
    char text[OFP_TEXT_MAX];
    size_t length = sizeof(address);
    uint32_t peer, stranger;

    setenv("OFIPY_CONNECT_TIMEOUT", "1", 1);
    side_open(&side, shared, rank);
    unsetenv("OFIPY_CONNECT_TIMEOUT");
    /* Nobody listens, and nobody comes. */
    peer = insert_rank(&side, shared, 5);
    post(&side, tagged(OFP_TSEND, peer, 0, "x", 1, 1));
    row = next_completion(&side);
    CHECK_EQUAL(row.error, ECONNREFUSED);
    /* Another host, another user. */
    CHECK_EQUAL(ofp_provider_resolve(shm_provider(), NULL, NULL, "elsewhere", &address, &length, text, sizeof(text)),
                0);
    address.host++;
    CHECK_EQUAL(ofp_av_insert(side.av, &address, sizeof(address), &stranger), -EHOSTUNREACH);
    address.host--;
    address.uid++;
    CHECK_EQUAL(ofp_av_insert(side.av, &address, sizeof(address), &stranger), 0);
    post(&side, tagged(OFP_TSEND, stranger, 0, "x", 1, 1));
    CHECK_EQUAL(next_completion(&side).error, EACCES);
    side_close(&side);
}

static void test_refusals(void **state)
{
    (void)state;
    run_processes(1, refusal_process, NULL);
}

/* A listener that never looks: the operation ends at the deadline. */
static void silent_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    struct shm_address address;
    struct sockaddr_un socket_address;
    char text[OFP_TEXT_MAX], service[40];
    size_t size = sizeof(address);
    socklen_t length;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    service_of(shared, 7, service);
    CHECK_EQUAL(ofp_provider_resolve(shm_provider(), NULL, NULL, service, &address, &size, text, sizeof(text)), 0);
    length = shm_address_convert(&address, &socket_address);
    CHECK_EQUAL(bind(fd, (struct sockaddr *)&socket_address, length), 0);
    CHECK_EQUAL(listen(fd, 1), 0);
    side_open(&side, shared, rank);
    post(&side, tagged(OFP_TSEND, insert_rank(&side, shared, 7), 0, "x", 1, 1));
    CHECK_EQUAL(next_completion(&side).error, ETIMEDOUT);
    side_close(&side);
    close(fd);
}

static void test_silent_listener(void **state)
{
    (void)state;
    setenv("OFIPY_CONNECT_TIMEOUT", "1", 1);
    run_processes(1, silent_process, NULL);
    unsetenv("OFIPY_CONNECT_TIMEOUT");
}

static void names_process(struct shared *shared, uint32_t rank)
{
    static const char *const wrong[] = {"", "with/slash", "~drawn", "0123456789012345678901234567890123456789too-long"};
    struct side side;
    struct ofp_endpoint_attr attr = {0};
    struct ofp_endpoint *endpoint;
    char text[OFP_TEXT_MAX], service[40];

    side_open(&side, shared, rank);
    attr.tx_cq = attr.rx_cq = side.cq;
    attr.av = side.av;
    for (uint32_t i = 0; i < 4; i++) {
        attr.service = wrong[i];
        CHECK_EQUAL(ofp_endpoint_open(side.domain, &attr, &endpoint, text, sizeof(text)), -EINVAL);
        CHECK(text[0]);
    }
    service_of(shared, rank, service);
    attr.service = service;
    CHECK_EQUAL(ofp_endpoint_open(side.domain, &attr, &endpoint, text, sizeof(text)), -EADDRINUSE);
    CHECK(strstr(text, service));
    side_close(&side);
    /* Free again. */
    side_open(&side, shared, rank);
    side_close(&side);
}

static void test_names(void **state)
{
    (void)state;
    run_processes(1, names_process, NULL);
}

/* ----------------------------------------------------------------------------------------------------- too little memory */

static void memory_process(struct shared *shared, uint32_t rank)
{
    struct rlimit before, limit;
    struct ofp_endpoint_attr attr = {0};
    struct ofp_endpoint *endpoint;
    struct side side;
    char text[OFP_TEXT_MAX], word[8] = "seven..";
    uint32_t region, self;
    void *base;

    side_open(&side, shared, rank);
    /* More than any machine has: an error with the remedy in place of SIGBUS or worse. */
    CHECK_EQUAL(region_allocate(side.domain, UINT64_C(1) << 45, OFP_ACCESS_SEND, &region, &base, text), -ENOMEM);
    CHECK(strstr(text, "ask for less") || strstr(text, "cannot map"));
    /* Beyond the file size limit the kernel would send SIGXFSZ. */
    attr.tx_cq = attr.rx_cq = side.cq;
    attr.av = side.av;
    CHECK_EQUAL(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = (struct rlimit){4096, before.rlim_max};
    CHECK_EQUAL(setrlimit(RLIMIT_FSIZE, &limit), 0);
    CHECK_EQUAL(ofp_endpoint_open(side.domain, &attr, &endpoint, text, sizeof(text)), -EFBIG);
    CHECK(strstr(text, "ulimit -f"));
    CHECK(region_allocate(side.domain, 100000, OFP_ACCESS_SEND, &region, &base, text) < 0);
    /* What is there goes on. */
    self = insert_address(&side, &side);
    post(&side, tagged(OFP_TRECV, self, 1, word, 8, 1));
    post(&side, tagged(OFP_TSEND, self, 1, word, 8, 2));
    completion_of(&side, 1);
    side_close(&side);
    /* A build that measures coverage writes its counts at the end. */
    CHECK_EQUAL(setrlimit(RLIMIT_FSIZE, &before), 0);
}

static void test_too_little_memory(void **state)
{
    (void)state;
    run_processes(1, memory_process, NULL);
}

/* ------------------------------------------------------------------------------------------------------------ sleep */

static uint64_t processor_ns(void)
{
    struct timespec used;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * SECONDS + (uint64_t)used.tv_nsec;
}

/* The receiver sleeps until each message comes; the sender sees to it that it does. */
static void sleep_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    uint64_t word = 0;
    uint32_t peer;

    side_open(&side, shared, rank);
    meet_all(shared, 0);
    peer = insert_rank(&side, shared, !rank);
    for (uint32_t round = 0; round < 20; round++) {
        if (rank == 1) {
            uint64_t used;

            post(&side, tagged(OFP_TRECV, peer, round, &word, 8, 1));
            used = processor_ns();
            ofp_store_release(&shared->words[0], round + 1);
            completion_of(&side, 1);
            CHECK_EQUAL(word, round);
            /* The sender lets pass 30 ms. */
            CHECK(processor_ns() - used < 15000000);
            ofp_store_release(&shared->words[1], round + 1);
        } else {
            uint64_t until;

            wait_until(&shared->words[0], round + 1);
            until = now_ns() + 30000000;
            while (now_ns() < until)
                usleep(1000);
            word = round;
            post(&side, tagged(OFP_TSEND, peer, round, &word, 8, 1));
            completion_of(&side, 1);
            wait_until(&shared->words[1], round + 1);
        }
    }
    meet_all_busy(&side, shared, 1);
    side_close(&side);
}

static void test_sleep(void **state)
{
    (void)state;
    run_processes(2, sleep_process, NULL);
}

/* ------------------------------------------------------------------------------------------------------------- leaks */

static uint32_t shared_mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    uint32_t count = 0;
    char line[1024];

    while (fgets(line, sizeof(line), file))
        count += strstr(line, "memfd:ofipy") != NULL;
    fclose(file);
    return count;
}

static void cycles_process(struct shared *shared, uint32_t rank)
{
    struct side a, b;
    uint32_t descriptors = 0, mapped = 0;
    char word[8];

    (void)shared;
    (void)rank;
    domain_open(&a);
    b.domain = a.domain;
    for (uint32_t i = 0; i < 300; i++) {
        if (i == 100) {
            descriptors = open_descriptors();
            mapped = shared_mappings();
        }
        endpoint_open(&a, NULL, 0);
        endpoint_open(&b, NULL, 0);
        post(&b, tagged(OFP_TRECV, OFP_PEER_ANY, 1, word, 8, 1));
        post(&a, tagged(OFP_TSEND, insert_address(&a, &b), 1, "seven..", 8, 1));
        completion_of(&b, 1);
        endpoint_close(&a);
        endpoint_close(&b);
    }
    CHECK_EQUAL(open_descriptors(), descriptors);
    CHECK_EQUAL(shared_mappings(), mapped);
    CHECK_EQUAL(ofp_domain_close(a.domain), 0);
}

static void test_cycles_leave_nothing(void **state)
{
    (void)state;
    run_processes(1, cycles_process, NULL);
}

/* A caller had shown its segment, and hung up before it was answered; then the endpoint closes. */
static void given_up_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    struct shm_endpoint *endpoint;
    struct shm_link *link;
    char text[OFP_TEXT_MAX];

    side_open(&side, shared, rank);
    endpoint = shm_endpoint_of(side.endpoint);
    link = shm_link_create(endpoint, NULL);
    CHECK(link);
    CHECK_EQUAL(shm_segment_map(&link->segment, endpoint->segment_fd, text, sizeof(text)), 0);
    shm_segment_unmap(&link->segment);
    side_close(&side);
}

static void test_a_caller_that_was_given_up(void **state)
{
    (void)state;
    run_processes(1, given_up_process, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_self),
        cmocka_unit_test(test_several_in_one_process),
        cmocka_unit_test(test_all_to_all),
        cmocka_unit_test(test_64_processes),
        cmocka_unit_test(test_32_with_256_descriptors),
        cmocka_unit_test(test_8_with_hardly_any_descriptors),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_silent_listener),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_too_little_memory),
        cmocka_unit_test(test_sleep),
        cmocka_unit_test(test_cycles_leave_nothing),
        cmocka_unit_test(test_a_caller_that_was_given_up),
    };

    cmocka_set_test_filter(getenv("TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
