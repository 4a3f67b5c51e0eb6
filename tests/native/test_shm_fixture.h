/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several processes over the shm provider, for tests through the core's public calls.
 *
 * The test program itself opens nothing: it forks the processes, each of which runs a function and exits; so a process may
 * be killed, have its own settings, and leave nothing to the next test. Nobody sleeps to wait for somebody: meeting points
 * are counters in memory that all of them map, and every wait has a deadline.
 *
 * TEST_FILTER=<pattern> runs some of the tests, TEST_LOG=1 prints what the processes log.
 */
#ifndef TEST_SHM_FIXTURE_H
#define TEST_SHM_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "object/domain.h"
#include "provider/provider_registry.h"
#include "shm.h"

const struct ofp_provider *ofp_provider_entry(const struct ofp_core *core);

#define SECONDS UINT64_C(1000000000)
/* Longer than anything here takes, under a sanitizer on a busy machine too. */
#define PATIENCE (60 * SECONDS)

#define MEETING_POINTS 16
struct shared {
    _Atomic uint32_t meeting_points[MEETING_POINTS];
    _Atomic uint32_t words[64]; /* for the tests' own use */
    uint32_t first_port;        /* of the processes' services */
    uint32_t count;             /* processes */
};

/* In a child a failed check ends the child, which the parent notices. */
#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: process %d: %s\n", __FILE__, __LINE__, (int)getpid(), #condition);                 \
            _exit(99);                                                                                                 \
        }                                                                                                              \
    } while (0)
#define CHECK_EQUAL(a, b)                                                                                              \
    do {                                                                                                               \
        long long left_ = (long long)(a), right_ = (long long)(b);                                                     \
        if (left_ != right_) {                                                                                         \
            fprintf(stderr, "%s:%d: process %d: %s is %lld, not %s = %lld\n", __FILE__, __LINE__, (int)getpid(), #a,   \
                    left_, #b, right_);                                                                                \
            _exit(99);                                                                                                 \
        }                                                                                                              \
    } while (0)

static inline uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECONDS + (uint64_t)now.tv_nsec;
}

/* ------------------------------------------------------------------------------------------------------- processes */

/* Of each program that runs at the same time; a rank is one of them. */
#define PORTS 1000u

/* Ports that no other of these programs has: whoever binds the socket has them, until the process ends. */
static inline uint32_t reserve_ports(void)
{
    static uint32_t first;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = first ? -1 : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    for (uint32_t block = 2; !first && block < 65; block++) {
        snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "ofipy-native-tests-%u", block);
        if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
            first = block * PORTS;
    }
    assert_true(first);
    return first;
}

typedef void process_function(struct shared *shared, uint32_t rank);

#define KILLED 0x10000 /* the expected end of a process: by SIGKILL */

/*
 * Fork the processes, wait for all, compare how they ended with `expected` (NULL: all exit with 0); the first one may
 * also exit with 0 instead. Returns whether it did not.
 */
static inline bool run_processes_first(uint32_t count, process_function *function, const int *expected)
{
    struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t *children = calloc(count, sizeof(*children));
    uint64_t deadline = now_ns() + PATIENCE;
    uint32_t failed = 0;
    bool as_expected = true;

    assert_true(shared != MAP_FAILED && children);
    shared->first_port = reserve_ports();
    shared->count = count;
    fflush(NULL);
    for (uint32_t rank = 0; rank < count; rank++) {
        children[rank] = fork();
        assert_true(children[rank] >= 0);
        if (children[rank] == 0) {
            function(shared, rank);
            free(children);
            /* exit, not _exit: the leak checker shall look. */
            exit(0);
        }
    }
    for (uint32_t rank = 0; rank < count; rank++) {
        int status = 0, result, want = expected ? expected[rank] : 0;
        pid_t done;

        while ((done = waitpid(children[rank], &status, WNOHANG)) == 0 && now_ns() < deadline)
            usleep(1000);
        if (done == 0) {
            fprintf(stderr, "process %u hangs\n", rank);
            kill(children[rank], SIGABRT);
            waitpid(children[rank], &status, 0);
            failed++;
            continue;
        }
        result = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status) == SIGKILL ? KILLED : 0x20000;
        if (rank == 0 && result == 0) {
            as_expected = want == 0;
        } else if (result != want) {
            fprintf(stderr, "process %u of %u ended with status %x\n", rank, count, (unsigned)status);
            failed++;
        }
    }
    free(children);
    munmap(shared, sizeof(*shared));
    assert_int_equal(failed, 0);
    return as_expected;
}

static inline void run_processes(uint32_t count, process_function *function, const int *expected)
{
    assert_true(run_processes_first(count, function, expected));
}

/* Two of them, which have a setting of their own. */
static inline void with_setting(const char *name, const char *value, process_function *function)
{
    setenv(name, value, 1);
    run_processes(2, function, NULL);
    unsetenv(name);
}

static inline void wait_until(const _Atomic uint32_t *word, uint32_t value)
{
    uint64_t deadline = now_ns() + PATIENCE;

    while (ofp_load_acquire(word) < value) {
        CHECK(now_ns() < deadline);
        sched_yield();
    }
}

/* All processes are here. */
static inline void meet_all(struct shared *shared, uint32_t point)
{
    atomic_fetch_add(&shared->meeting_points[point], 1);
    wait_until(&shared->meeting_points[point], shared->count);
}

/* ----------------------------------------------------------------------------------------------------------- sides */

struct side {
    struct ofp_domain *domain;
    struct ofp_cq *cq;
    struct ofp_av *av;
    struct ofp_endpoint *endpoint;
};

static inline struct ofp_provider *shm_provider(void)
{
    struct ofp_provider *provider;
    char text[OFP_TEXT_MAX] = "";

    CHECK_EQUAL(ofpi_provider_register(ofp_provider_entry, &provider, text, sizeof(text)), 0);
    return provider;
}

static inline void print_log(void)
{
    char provider[32], text[OFP_TEXT_MAX];
    int level;

    while (ofp_log_next(&level, provider, sizeof(provider), text, sizeof(text)))
        if (getenv("TEST_LOG"))
            fprintf(stderr, "[%d] %d %s: %s\n", (int)getpid(), level, provider, text);
}

/* Which of the provider's infos. */
static uint32_t domain_info;

static inline void domain_open(struct side *side)
{
    struct ofp_info infos[2];
    struct ofp_domain_attr domain_attr = {0};
    char text[OFP_TEXT_MAX];

    CHECK_EQUAL(ofp_provider_getinfo(shm_provider(), infos, 2, text, sizeof(text)), 2);
    CHECK_EQUAL(ofp_domain_open(shm_provider(), &infos[domain_info], &domain_attr, &side->domain, text, sizeof(text)),
                0);
}

static inline void endpoint_open(struct side *side, const char *service, uint64_t unexpected_limit)
{
    struct ofp_cq_attr cq_attr = {0};
    struct ofp_av_attr av_attr = {.auto_insert = 1};
    struct ofp_endpoint_attr attr = {0};
    char text[OFP_TEXT_MAX];
    int result;

    CHECK_EQUAL(ofp_cq_open(side->domain, &cq_attr, &side->cq), 0);
    CHECK_EQUAL(ofp_av_open(side->domain, &av_attr, &side->av), 0);
    attr.tx_cq = attr.rx_cq = side->cq;
    attr.av = side->av;
    attr.service = service;
    attr.unexpected_limit = unexpected_limit;
    result = ofp_endpoint_open(side->domain, &attr, &side->endpoint, text, sizeof(text));
    if (result)
        fprintf(stderr, "%s\n", text);
    CHECK_EQUAL(result, 0);
}

static inline void service_of(const struct shared *shared, uint32_t rank, char service[40])
{
    snprintf(service, 40, "%u", shared->first_port + rank % PORTS);
}

static inline void side_open(struct side *side, const struct shared *shared, uint32_t rank)
{
    char service[40];

    service_of(shared, rank, service);
    domain_open(side);
    endpoint_open(side, service, 0);
}

static inline void endpoint_close(struct side *side)
{
    CHECK_EQUAL(ofp_endpoint_close(side->endpoint, (int64_t)SECONDS), 0);
    CHECK_EQUAL(ofp_av_close(side->av), 0);
    CHECK_EQUAL(ofp_cq_close(side->cq), 0);
}

static inline void side_close(struct side *side)
{
    endpoint_close(side);
    CHECK_EQUAL(ofp_domain_close(side->domain), 0);
    print_log();
}

/* With the regions that there are. */
static inline void side_close_with(struct side *side, const uint32_t *regions, uint32_t count)
{
    endpoint_close(side);
    for (uint32_t i = 0; i < count; i++)
        CHECK_EQUAL(ofp_region_close(side->domain, regions[i]), 0);
    CHECK_EQUAL(ofp_domain_close(side->domain), 0);
    print_log();
}

static inline uint32_t insert_rank(struct side *side, const struct shared *shared, uint32_t rank)
{
    char address[OFP_ADDRESS_MAX], service[40], text[OFP_TEXT_MAX];
    size_t length = sizeof(address);
    uint32_t index;

    service_of(shared, rank, service);
    CHECK_EQUAL(ofp_provider_resolve(shm_provider(), NULL, "localhost", service, address, &length, text, sizeof(text)),
                0);
    CHECK_EQUAL(ofp_av_insert(side->av, address, length, &index), 0);
    return index;
}

/* In a process that may have opened nothing of shm yet. */
static inline struct shm_address address_of(const char *service)
{
    struct shm_address address;
    char text[OFP_TEXT_MAX];
    size_t size = sizeof(address);

    shm_provider();
    CHECK_EQUAL(shm_address_resolve(NULL, service, &address, &size, text, sizeof(text)), 0);
    return address;
}

static inline struct shm_address address_of_rank(const struct shared *shared, uint32_t rank)
{
    char service[40];

    service_of(shared, rank, service);
    return address_of(service);
}

/* A connection to the socket of an endpoint, on which nothing has been said. */
static inline int connect_to(const struct shared *shared, uint32_t rank)
{
    struct shm_address address = address_of_rank(shared, rank);
    struct sockaddr_un socket_address;
    socklen_t length;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    length = shm_address_convert(&address, &socket_address);
    CHECK_EQUAL(connect(fd, (struct sockaddr *)&socket_address, length), 0);
    return fd;
}

/* Lost is noticed within a second of progress; the rest is for slow machines. */
#define SOON (5 * SECONDS)

static inline uint32_t link_count(const struct side *side)
{
    const struct shm_endpoint *endpoint = shm_endpoint_of(side->endpoint);
    uint32_t count = 0;

    for (uint32_t i = 1; i < endpoint->link_capacity; i++)
        count += endpoint->links[i] != NULL;
    return count;
}

static inline uint32_t open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    uint32_t count = 0;

    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

/* ------------------------------------------------------------------------------------------------------- operations */

static inline struct ofp_operation tagged(uint16_t op, uint32_t peer, uint64_t tag, const void *buffer, uint64_t length,
                                          uint64_t context)
{
    return (struct ofp_operation){.op = op,
                                  .peer = peer,
                                  .tag = tag,
                                  .offset = (uint64_t)(uintptr_t)buffer,
                                  .length = length,
                                  .context = context};
}

#define BOTH_WAYS (OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE)

/* Beginning at the region's start. */
static inline struct ofp_operation remote(uint16_t op, uint32_t peer, const void *buffer, uint64_t length, uint64_t key,
                                          uint64_t context)
{
    return (struct ofp_operation){.op = op,
                                  .peer = peer,
                                  .offset = (uint64_t)(uintptr_t)buffer,
                                  .length = length,
                                  .remote_key = key,
                                  .context = context};
}

static inline void post(struct side *side, struct ofp_operation op)
{
    uint64_t deadline = now_ns() + PATIENCE;
    int64_t result;

    while ((result = ofp_post(side->endpoint, &op, 1)) == -EAGAIN) {
        ofp_domain_progress(side->domain);
        CHECK(now_ns() < deadline);
    }
    CHECK_EQUAL(result, 1);
}

static inline struct ofp_completion next_completion(struct side *side)
{
    struct ofp_completion row = {0};
    uint64_t deadline = now_ns() + PATIENCE;
    bool expired;

    while (ofp_cq_wait(side->cq, &row, 1, 1, (int64_t)SECONDS, &expired) != 1) {
        print_log();
        CHECK(now_ns() < deadline);
    }
    return row;
}

static inline int region_allocate(struct ofp_domain *domain, uint64_t length, uint32_t access, uint32_t *region,
                                  void **base, char text[OFP_TEXT_MAX])
{
    struct ofp_region_attr attr = {.length = length, .access = access};
    struct ofp_region_handle handle = {0};
    int result = ofp_region_allocate(domain, &attr, &handle, text, OFP_TEXT_MAX);

    *region = handle.id;
    *base = handle.base;
    return result;
}

/* Completions in any order; the one of this context, all others must be fine too. */
static inline struct ofp_completion completion_of(struct side *side, uint64_t context)
{
    for (;;) {
        struct ofp_completion row = next_completion(side);

        if (row.error)
            fprintf(stderr, "context %llu: error %d\n", (unsigned long long)row.context, row.error);
        CHECK_EQUAL(row.error, 0);
        if (row.context == context)
            return row;
    }
}

/* Drive progress until a word reaches a value. */
static inline void progress_until(struct side *side, const _Atomic uint32_t *word, uint32_t value)
{
    uint64_t deadline = now_ns() + PATIENCE;

    while (ofp_load_acquire(word) < value) {
        ofp_domain_progress(side->domain);
        CHECK(now_ns() < deadline);
    }
}

/* All processes are here; who waits goes on serving the others. */
static inline void meet_all_busy(struct side *side, struct shared *shared, uint32_t point)
{
    atomic_fetch_add(&shared->meeting_points[point], 1);
    progress_until(side, &shared->meeting_points[point], shared->count);
}

/* Bytes that tell where they belong. */
static inline void fill(uint8_t *buffer, uint64_t length, uint32_t seed)
{
    for (uint64_t i = 0; i < length; i++)
        buffer[i] = (uint8_t)((i * 2654435761u + seed) >> 13);
}

static inline void check_filled(const uint8_t *buffer, uint64_t length, uint32_t seed)
{
    for (uint64_t i = 0; i < length; i++)
        CHECK_EQUAL(buffer[i], (uint8_t)((i * 2654435761u + seed) >> 13));
}

#endif
