/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Callers that hold what they began: connections without a word, and greetings that are not ended. They cost a bounded number of
 * descriptors, and keep nobody else from being met. And calls in the name of somebody else.
 */
#include <fcntl.h>
#include <sys/eventfd.h>

#include "connection/meet.h"
#include "shm.h"
#include "test_shm_fixture.h"

enum { VICTIM, ATTACKER, BYSTANDER };
enum { WORD_HELD, WORD_OVER };

#define HELD 200

static bool greets; /* the attacker's calls bring a HELLO each */

/* With the descriptors of a good HELLO. */
static void greet(struct side *side, int fd, const struct shm_packet *packet, size_t length)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    struct iovec iov = {(void *)(uintptr_t)packet, length};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    int fds[2] = {shm_endpoint_of(side->endpoint)->segment_fd, shm_domain_of(side->domain)->self.event_fd};

    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(fds));
    memcpy(CMSG_DATA(&control.header), fds, sizeof(fds));
    CHECK_EQUAL(sendmsg(fd, &message, MSG_NOSIGNAL), length);
}

static struct shm_address named(const char *name, uint32_t number)
{
    char service[40];

    snprintf(service, sizeof(service), "%.30s-%u", name, number % 1000u);
    return address_of(service);
}

static void hold_calls(struct side *side, struct shared *shared)
{
    struct shm_packet packet = shm_packet_of(shm_endpoint_of(side->endpoint), SHM_HELLO);
    int fds[HELD];

    packet.number = 1;
    for (unsigned i = 0; i < HELD; i++) {
        fds[i] = connect_to(shared, VICTIM);
        packet.address = named("held", i);
        if (greets)
            greet(side, fds[i], &packet, sizeof(packet));
    }
    ofp_store_release(&shared->words[WORD_HELD], 1);
    wait_until(&shared->words[WORD_OVER], 1);
    for (unsigned i = 0; i < HELD; i++)
        close(fds[i]);
}

static void held_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    uint32_t descriptors, most = 0;

    side_open(&side, shared, rank);
    descriptors = open_descriptors();
    meet_all(shared, 0);
    if (rank == VICTIM) {
        post(&side, tagged(OFP_TRECV, OFP_PEER_ANY, 1, NULL, 0, 1));
        for (struct ofp_completion row; ofp_cq_read(side.cq, &row, 1) == 0;) {
            uint32_t now = open_descriptors();

            most = now > most ? now : most;
            CHECK(shm_endpoint_of(side.endpoint)->calls <= SHM_CALLS_MAX);
            ofp_domain_progress(side.domain);
        }
        /* Of each call its connection, of each process two, and some that come and go. */
        CHECK(most <= descriptors + SHM_CALLS_MAX + 10);
        CHECK(most >= descriptors + SHM_CALLS_MAX / 2);
        ofp_store_release(&shared->words[WORD_OVER], 1);
    } else if (rank == ATTACKER) {
        hold_calls(&side, shared);
    } else {
        uint64_t began;

        wait_until(&shared->words[WORD_HELD], 1);
        began = now_ns();
        post(&side, tagged(OFP_TSEND, insert_rank(&side, shared, VICTIM), 1, NULL, 0, 1));
        completion_of(&side, 1);
        /* Well before the default of OFIPY_CONNECT_TIMEOUT. */
        CHECK(now_ns() - began < 8 * SECONDS);
        progress_until(&side, &shared->words[WORD_OVER], 1);
    }
    side_close(&side);
}

static void test_held_calls(void **state)
{
    (void)state;
    greets = false;
    run_processes(3, held_process, NULL);
    greets = true;
    run_processes(3, held_process, NULL);
}

/* ------------------------------------------------------------------------------------------------- empty packets */

/* An empty packet looks like the end of a connection, and may bring descriptors all the same. */
static void empty_process(struct shared *shared, uint32_t rank)
{
    struct shm_packet packet = {0};
    struct side side;
    uint32_t descriptors;

    side_open(&side, shared, rank);
    descriptors = open_descriptors();
    meet_all(shared, 0);
    if (rank == VICTIM) {
        progress_until(&side, &shared->words[WORD_HELD], 1);
        for (uint64_t until = now_ns() + SECONDS / 10; now_ns() < until;)
            ofp_domain_progress(side.domain);
        CHECK_EQUAL(open_descriptors(), descriptors);
    } else {
        for (unsigned i = 0; i < 20; i++) {
            int fd = connect_to(shared, VICTIM);

            greet(&side, fd, &packet, 0);
            close(fd);
        }
        ofp_store_release(&shared->words[WORD_HELD], 1);
    }
    side_close(&side);
}

static void test_empty_packets(void **state)
{
    (void)state;
    run_processes(2, empty_process, NULL);
}

/* ------------------------------------------------------------------------------------------------- a wrong word */

static enum shm_packet_type word;

/* After WELCOME something comes that is no ACK: whoever that was, the endpoint of that name is called, and reached. */
static void wrong_word_process(struct shared *shared, uint32_t rank)
{
    struct side side;

    side_open(&side, shared, rank);
    meet_all(shared, 0);
    if (rank == VICTIM) {
        progress_until(&side, &shared->words[WORD_HELD], 1);
        post(&side, tagged(OFP_TSEND, insert_rank(&side, shared, BYSTANDER), 1, NULL, 0, 1));
        completion_of(&side, 1);
    } else if (rank == ATTACKER) {
        struct shm_packet packet = shm_packet_of(shm_endpoint_of(side.endpoint), SHM_HELLO), answer;
        int fd = connect_to(shared, VICTIM);

        packet.address = address_of_rank(shared, BYSTANDER);
        packet.number = 1;
        greet(&side, fd, &packet, sizeof(packet));
        CHECK_EQUAL(recv(fd, &answer, sizeof(answer), 0), sizeof(answer));
        CHECK_EQUAL(answer.type, SHM_WELCOME);
        packet.type = (uint16_t)word;
        CHECK_EQUAL(send(fd, &packet, sizeof(packet), 0), sizeof(packet));
        ofp_store_release(&shared->words[WORD_HELD], 1);
        close(fd);
    } else {
        post(&side, tagged(OFP_TRECV, OFP_PEER_ANY, 1, NULL, 0, 1));
        completion_of(&side, 1);
    }
    side_close(&side);
}

static void test_wrong_word(void **state)
{
    static const enum shm_packet_type words[] = {SHM_HELLO, SHM_WELCOME, SHM_ARENA_QUESTION, SHM_FAREWELL, SHM_LATER};

    (void)state;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        word = words[i];
        run_processes(3, wrong_word_process, NULL);
    }
}

/* ---------------------------------------------------------------------------------------------------- a refusal */

/* A listener in the place of an endpoint. */
static int listen_as(const char *service)
{
    struct shm_address address = address_of(service);
    struct sockaddr_un socket_address;
    socklen_t length = shm_address_convert(&address, &socket_address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    CHECK(fd >= 0);
    CHECK_EQUAL(bind(fd, (struct sockaddr *)&socket_address, length), 0);
    CHECK_EQUAL(listen(fd, 1), 0);
    return fd;
}

/* The next call is refused with `status` for the errno. */
static int error_of_refusal(struct side *side, uint32_t peer, int listener, int32_t status)
{
    struct shm_packet packet = shm_packet_of(shm_endpoint_of(side->endpoint), SHM_REFUSED), hello;
    uint64_t until = now_ns() + PATIENCE;
    int fd = -1;

    post(side, tagged(OFP_TSEND, peer, 1, NULL, 0, 1));
    /* The HELLO is read: a close with unread data resets the connection. */
    while (fd < 0 || recv(fd, &hello, sizeof(hello), MSG_DONTWAIT) != sizeof(hello)) {
        ofp_domain_progress(side->domain);
        if (fd < 0)
            fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        CHECK(now_ns() < until);
    }
    CHECK_EQUAL(hello.type, SHM_HELLO);
    packet.status = status;
    CHECK_EQUAL(send(fd, &packet, sizeof(packet), 0), sizeof(packet));
    close(fd);
    return next_completion(side).error;
}

static void refusal_process(struct shared *shared, uint32_t rank)
{
    static const int32_t given[][2] = {{EACCES, EACCES},
                                       {0, ECONNREFUSED},
                                       {-EACCES, ECONNREFUSED},
                                       {INT32_MAX, INT32_MAX},
                                       {INT32_MIN, ECONNREFUSED}};
    struct shm_address address;
    struct side side;
    char service[40];
    int listener;

    side_open(&side, shared, rank);
    snprintf(service, sizeof(service), "%u", shared->first_port + 1);
    listener = listen_as(service);
    address = address_of(service);
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        uint32_t peer;

        CHECK_EQUAL(ofp_av_insert(side.av, &address, sizeof(address), &peer), 0);
        CHECK_EQUAL(error_of_refusal(&side, peer, listener, given[i][0]), given[i][1]);
    }
    close(listener);
    side_close(&side);
}

/* A peer states any number for the errno of its refusal: a caller never sees a negative one. */
static void test_a_refusal_without_an_errno(void **state)
{
    (void)state;
    run_processes(1, refusal_process, NULL);
}

/* ------------------------------------------------------------------------------------------------ in another's name */

static void name_process(struct shared *shared, uint32_t rank)
{
    struct side side;

    side_open(&side, shared, rank);
    meet_all(shared, 0);
    if (rank == VICTIM) {
        for (uint64_t round = 0; round < 2; round++) {
            post(&side, tagged(OFP_TRECV, OFP_PEER_ANY, 1, NULL, 0, 1));
            completion_of(&side, 1);
            ofp_store_release(&shared->words[WORD_HELD], (uint32_t)round + 1);
        }
        CHECK_EQUAL(link_count(&side), 1);
        /* Its goodbye would be a loss to the bystander. */
        progress_until(&side, &shared->words[WORD_OVER], 2);
    } else if (rank == ATTACKER) {
        struct shm_packet packet = shm_packet_of(shm_endpoint_of(side.endpoint), SHM_HELLO);
        struct shm_packet answer;

        packet.address = address_of_rank(shared, BYSTANDER);
        packet.number = 1;
        wait_until(&shared->words[WORD_HELD], 1);
        for (unsigned i = 0; i < 5; i++) {
            int fd = connect_to(shared, VICTIM);

            greet(&side, fd, &packet, sizeof(packet));
            CHECK_EQUAL(recv(fd, &answer, sizeof(answer), 0), sizeof(answer));
            CHECK_EQUAL(answer.type, SHM_LATER);
            close(fd);
        }
        ofp_store_release(&shared->words[WORD_OVER], 1);
    } else {
        uint32_t peer = insert_rank(&side, shared, VICTIM);
        struct ofp_endpoint_statistics statistics;

        post(&side, tagged(OFP_TSEND, peer, 1, NULL, 0, 1));
        completion_of(&side, 1);
        progress_until(&side, &shared->words[WORD_OVER], 1);
        post(&side, tagged(OFP_TSEND, peer, 1, NULL, 0, 1));
        completion_of(&side, 1);
        progress_until(&side, &shared->words[WORD_HELD], 2);
        CHECK_EQUAL(ofp_endpoint_statistics(side.endpoint, &statistics), 0);
        CHECK_EQUAL(statistics.peers_lost, 0);
        ofp_store_release(&shared->words[WORD_OVER], 2);
    }
    side_close(&side);
}

/* Somebody calls who says that he is one that we know, and who lives: nobody is dropped for it. */
static void test_another_name(void **state)
{
    (void)state;
    run_processes(3, name_process, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_held_calls),   cmocka_unit_test(test_empty_packets),
        cmocka_unit_test(test_wrong_word),   cmocka_unit_test(test_a_refusal_without_an_errno),
        cmocka_unit_test(test_another_name),
    };

    cmocka_set_test_filter(getenv("TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
