/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of the same user that break the rules: memory that could be pulled away, garbage in slots and segments, garbage on
 * the sockets. None may crash us, and who keeps the rules goes on undisturbed.
 */
#include <fcntl.h>
#include <sys/socket.h>

#include "connection/meet.h"
#include "link/bounce.h"
#include "link/publish.h"
#include "memory/segment.h"
#include "shm.h"
#include "test_shm_fixture.h"

/* --------------------------------------------------------------------------------------------------- foreign memory */

static int memfd(uint64_t size, int seals)
{
    int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    assert_true(fd >= 0 && ftruncate(fd, (off_t)size) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0);
    return fd;
}

static void test_foreign_memory(void **state)
{
    struct shm_segment segment;
    char text[OFP_TEXT_MAX], path[64];
    uint64_t size = 0;
    int fd;

    (void)state;
    fd = memfd(8192, F_SEAL_SHRINK);
    assert_int_equal(shm_memfd_check(fd, &size, text, sizeof(text)), 0);
    assert_int_equal(size, 8192);
    size = 4096;
    assert_int_equal(shm_memfd_check(fd, &size, text, sizeof(text)), -EPROTO);
    /* A segment without a header. */
    assert_int_equal(shm_segment_map(&segment, fd, text, sizeof(text)), -EPROTO);
    close(fd);
    /* It could shrink under us. */
    fd = memfd(8192, F_SEAL_GROW);
    size = 0;
    assert_int_equal(shm_memfd_check(fd, &size, text, sizeof(text)), -EPROTO);
    assert_int_equal(shm_segment_map(&segment, fd, text, sizeof(text)), -EPROTO);
    close(fd);
    fd = memfd(0, F_SEAL_SHRINK);
    assert_int_equal(shm_memfd_check(fd, &size, text, sizeof(text)), -EPROTO);
    close(fd);
    fd = memfd(100, F_SEAL_SHRINK);
    assert_int_equal(shm_segment_map(&segment, fd, text, sizeof(text)), -EPROTO);
    close(fd);
    fd = memfd(8192, F_SEAL_SHRINK | F_SEAL_WRITE);
    size = 0;
    assert_int_equal(shm_memfd_check(fd, &size, text, sizeof(text)), -EPROTO);
    close(fd);
    /* No memfd at all. */
    snprintf(path, sizeof(path), "/proc/self/exe");
    fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(shm_memfd_check(fd, &size, text, sizeof(text)), -EPROTO);
    close(fd);
}

/* A segment of ours, with one constant changed after the other. */
static void test_foreign_header(void **state)
{
    struct shm_segment own, foreign;
    struct shm_header good;
    char text[OFP_TEXT_MAX];
    int fd;

    (void)state;
    assert_int_equal(shm_segment_create(&own, 4, 4096, 3, 77, NULL, &fd, text, sizeof(text)), 0);
    assert_int_equal(shm_segment_reserve_bounce(&own, fd, text, sizeof(text)), 0);
    memcpy(&good, own.header, offsetof(struct shm_header, tail));
    assert_int_equal(shm_segment_map(&foreign, fd, text, sizeof(text)), 0);
    assert_int_equal(foreign.incarnation, 77);
    assert_int_equal(foreign.bounce_buffers - foreign.base, own.bounce_buffers - own.base);
    shm_segment_unmap(&foreign);
    for (unsigned field = 0; field < 6; field++) {
        switch (field) {
        case 0:
            own.header->magic++;
            break;
        case 1:
            own.header->version = 0;
            break;
        case 2:
            own.header->oldest = SHM_VERSION + 1;
            break;
        case 3:
            own.header->slot_shift = 63;
            break;
        case 4:
            own.header->bounce_size = 0x80000000u;
            break;
        default:
            own.header->bounce_count = 0xffffffffu;
            break;
        }
        assert_int_equal(shm_segment_map(&foreign, fd, text, sizeof(text)),
                         field == 1 || field == 2 ? -EPROTONOSUPPORT : -EPROTO);
        memcpy(own.header, &good, offsetof(struct shm_header, tail));
    }
    shm_segment_unmap(&own);
    close(fd);
}

/* ---------------------------------------------------------------------------------------------------------- garbage */

static uint64_t next_random(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

static struct shm_link *first_link(const struct side *side)
{
    const struct shm_endpoint *endpoint = shm_endpoint_of(side->endpoint);

    for (uint32_t i = 1; i < endpoint->link_capacity; i++)
        if (endpoint->links[i] && endpoint->links[i]->up)
            return endpoint->links[i];
    return NULL;
}

static void drain(struct side *side)
{
    struct ofp_completion row;

    ofp_domain_progress(side->domain);
    while (ofp_cq_read(side->cq, &row, 1) == 1)
        ;
}

enum { VICTIM, ATTACKER, BYSTANDER };

#define READ_ONLY_KEY 5

/* A request for memory that may be read, nearly right. */
static void fill_request(struct shm_link *link, uint32_t index, uint64_t *random)
{
    struct shm_request *request;

    if (!link->endpoint->bounce.reserved) {
        int taken = shm_bounce_allocate(link, true);

        CHECK(taken >= 0);
        shm_bounce_free(link->endpoint, (uint32_t)taken);
    }
    request = (struct shm_request *)(void *)shm_bounce_resolve(&link->endpoint->segment, index);
    *request = (struct shm_request){.offset = next_random(random) >> (next_random(random) % 64),
                                    .length = (uint32_t)(next_random(random) % 3000),
                                    .piece_count = (uint32_t)(next_random(random) % 18),
                                    .op = (uint8_t)(OFP_READ + next_random(random) % 5),
                                    .atomic_op = (uint8_t)(next_random(random) % 22),
                                    .datatype = (uint8_t)(next_random(random) % 18)};
    for (uint32_t i = 0; i < 18; i++)
        shm_pieces_of(request)[i] =
            (struct shm_remote_piece){next_random(random) % 3000, next_random(random) >> (next_random(random) % 64),
                                      READ_ONLY_KEY + next_random(random) % 2};
}

/* A slot of any kind with any content, signed by us or by nobody. Half of it is nearly right, which gets further. */
static void throw_slot(struct shm_link *link, uint64_t *random, bool lies)
{
    uint64_t state;
    struct shm_slot *slot = shm_ring_claim(&link->ring, link->number_there, &state);
    struct shm_content content;
    uint8_t *bytes = (uint8_t *)&content;

    if (!slot)
        return;
    for (size_t i = 0; i < sizeof(content); i++)
        bytes[i] = (uint8_t)(next_random(random) >> 20);
    content.kind = (uint8_t)(next_random(random) % 15);
    /* To take leave and go on is a game of its own. */
    if (content.kind == SHM_GOODBYE && !lies)
        content.kind = SHM_FRAGMENT;
    if (next_random(random) % 2) {
        content.length = (uint32_t)(next_random(random) % 200);
        content.announced.length = next_random(random) % 100000;
        content.announced.iov_count = (uint32_t)(next_random(random) % 4);
        content.announced.arena = (uint32_t)(next_random(random) % 3);
        content.announced.arena_offset = next_random(random) >> (next_random(random) % 64);
    } else if (content.kind == SHM_BOUNCE) {
        content.bounce.index = (uint32_t)(next_random(random) % 70);
        content.length = (uint32_t)(next_random(random) % 20000);
    } else if (content.kind == SHM_REMOTE) {
        content.bounce.index = (uint32_t)(next_random(random) % 4);
        content.length = (uint32_t)(next_random(random) % 3000);
        fill_request(link, content.bounce.index, random);
    }
    /* Otherwise nobody would believe that it is ours. */
    link->stamp_out = shm_stamp_advance(link->stamp_out);
    content.stamp = shm_stamp_of(link->stamp_out);
    memcpy(&slot->content, &content, sizeof(content));
    if (next_random(random) % 16 == 0)
        state = shm_state_build(state >> 32, 1000 + (uint32_t)(next_random(random) % 1000), SHM_READY);
    /* Awake it can defend itself. */
    shm_owner_notify(link, shm_ring_publish(&link->ring, slot, state) & SHM_SLEEPING);
}

static void attack(struct side *side, struct shared *shared)
{
    uint64_t random = 0x9e3779b97f4a7c15u;
    uint32_t peer = insert_rank(side, shared, VICTIM), lives = 0;
    bool alive = false;
    uint64_t deadline = now_ns() + PATIENCE;

    /* The victim hangs up after the first offence: call again, and again. */
    while (lives < 40) {
        struct ofp_operation op = tagged(OFP_TSEND, peer, 1, "?", 1, 1);
        struct shm_link *link;

        CHECK(now_ns() < deadline);
        drain(side);
        link = first_link(side);
        lives += link && !alive;
        alive = link != NULL;
        if (link)
            throw_slot(link, &random, false);
        else
            ofp_post(side->endpoint, &op, 1);
    }
    ofp_store_release(&shared->words[0], 1);
}

static void victim(struct side *side, struct shared *shared)
{
    uint32_t bystander = insert_rank(side, shared, BYSTANDER);
    uint8_t *in = malloc(50000), *out = malloc(50000), readable[3000];
    struct ofp_region_attr attr = {
        .base = readable, .length = 3000, .access = OFP_ACCESS_REMOTE_READ, .has_key = 1, .key = READ_ONLY_KEY};
    struct ofp_region_handle handle;

    fill(out, 50000, 4);
    fill(readable, 3000, 6);
    CHECK_EQUAL(ofp_region_register(side->domain, &attr, &handle), 0);
    for (uint32_t round = 0; !ofp_load_acquire(&shared->words[0]) || round < 50; round++) {
        uint64_t length = round % 3 == 0 ? 8 : round % 3 == 1 ? 3000 : 50000;

        post(side, tagged(OFP_TRECV, bystander, 5, in, length, 1));
        post(side, tagged(OFP_TSEND, bystander, 5, out, length, 2));
        CHECK_EQUAL(completion_of(side, 1).length, length);
        check_filled(in, length, 4);
        ofp_store_release(&shared->words[1], round + 1);
    }
    CHECK(shm_endpoint_of(side->endpoint)->protocol_errors >= 10);
    ofp_store_release(&shared->words[2], 1);
    check_filled(readable, 3000, 6);
    CHECK_EQUAL(ofp_region_close(side->domain, handle.id), 0);
    free(in);
    free(out);
}

static void bystander(struct side *side, struct shared *shared)
{
    uint32_t peer = insert_rank(side, shared, VICTIM);
    uint8_t *in = malloc(50000);

    while (!ofp_load_acquire(&shared->words[2])) {
        struct ofp_completion row;

        post(side, tagged(OFP_TRECV, peer, 5, in, 50000, 1));
        do
            row = next_completion(side);
        while (row.context != 1 && !row.error);
        if (row.error)
            break;
        post(side, tagged(OFP_TSEND, peer, 5, in, row.length, 2));
        completion_of(side, 2);
    }
    CHECK(ofp_load_acquire(&shared->words[2]));
    free(in);
}

static void garbage_process(struct shared *shared, uint32_t rank)
{
    struct side side;

    side_open(&side, shared, rank);
    meet_all(shared, 0);
    if (rank == VICTIM)
        victim(&side, shared);
    else if (rank == ATTACKER)
        attack(&side, shared);
    else
        bystander(&side, shared);
    side_close(&side);
}

static void test_garbage_in_slots(void **state)
{
    (void)state;
    run_processes(3, garbage_process, NULL);
}

/* Random writes all over what the victim maps: its ring and its header, the attacker's own segment. It need not work, but live. */
static void vandal_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    uint64_t random = 0x2545f4914f6cdd1du;
    uint8_t *in = malloc(50000), *out = calloc(1, 50000);
    uint32_t peer;

    setenv("OFIPY_SHM_RING_SIZE", "64", 1);
    side_open(&side, shared, rank);
    meet_all(shared, 0);
    peer = insert_rank(&side, shared, !rank);
    if (rank == VICTIM) {
        while (!ofp_load_acquire(&shared->words[0])) {
            struct ofp_operation op = tagged(OFP_TSEND, peer, 5, out, next_random(&random) % 50000, 2);

            ofp_post(side.endpoint, &op, 1);
            op = tagged(OFP_TRECV, peer, 5, in, 50000, 1);
            ofp_post(side.endpoint, &op, 1);
            drain(&side);
            /* The sleep handshake over a hostile status word. */
            ofp_cq_wait(side.cq, &(struct ofp_completion){0}, 1, 1, 1000, &(bool){false});
        }
        side_close(&side);
        free(in);
        free(out);
        return;
    }
    for (uint64_t until = now_ns() + SECONDS / 2; now_ns() < until;) {
        struct ofp_operation op = tagged(OFP_TSEND, peer, 5, out, 20, 2);
        struct shm_link *link;

        drain(&side);
        link = first_link(&side);
        if (!link) {
            ofp_post(side.endpoint, &op, 1);
            continue;
        }
        for (unsigned i = 0; i < 16; i++) {
            uint64_t where = next_random(&random), value = next_random(&random) >> (next_random(&random) % 64);
            struct shm_slot *slot = &link->segment.slots[where % 64];

            switch (where >> 60) {
            case 0:
                ofp_store_relaxed(&link->segment.header->tail, value);
                break;
            case 1:
                /* All but SHM_CLOSED and SHM_CLOSING, which would end the game. */
                ofp_store_relaxed(&link->segment.header->status, value & 3);
                break;
            case 2:
                memset(shm_endpoint_of(side.endpoint)->segment.header, (int)value, 40);
                break;
            case 3:
                ofp_store_relaxed(&shm_endpoint_of(side.endpoint)->segment.bounce_states[where % 64].freed,
                                  (uint32_t)value);
                break;
            case 4:
            case 5:
                throw_slot(link, &random, true);
                break;
            case 6:
                ofp_store_relaxed(&slot->state,
                                  shm_state_build(value % 4, (uint32_t)(where >> 8) % 4, where >> 20 & 3));
                break;
            default:
                memcpy((uint8_t *)&slot->content + where % 100, &value, sizeof(value));
            }
        }
    }
    ofp_store_release(&shared->words[0], 1);
    /* Its own endpoint may be beyond an orderly end. */
    _exit(0);
}

static void test_vandal(void **state)
{
    (void)state;
    run_processes(2, vandal_process, NULL);
}

/* ---------------------------------------------------------------------------------------------------------- sockets */

/* A packet with up to three descriptors, which is more than any packet has. */
static void send_packet(int fd, const void *packet, size_t length, unsigned descriptors)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(3 * sizeof(int))];
    } control = {0};
    struct iovec iov = {(void *)(uintptr_t)packet, length};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    int fds[3] = {0, 1, 2};

    if (descriptors) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(descriptors * sizeof(int));
        memcpy(CMSG_DATA(&control.header), fds, descriptors * sizeof(int));
    }
    sendmsg(fd, &message, MSG_NOSIGNAL);
}

static void packet_process(struct shared *shared, uint32_t rank)
{
    struct side side;

    if (rank == VICTIM) {
        side_open(&side, shared, rank);
        meet_all(shared, 0);
        progress_until(&side, &shared->words[0], 1);
        /* All of them are gone, and it still meets whoever behaves. */
        post(&side, tagged(OFP_TSEND, insert_rank(&side, shared, VICTIM), 1, "x", 1, 1));
        CHECK_EQUAL(next_completion(&side).error, 0);
        for (uint64_t until = now_ns() + PATIENCE; !ofp_list_empty(&shm_endpoint_of(side.endpoint)->meetings);) {
            ofp_domain_progress(side.domain);
            CHECK(now_ns() < until);
        }
        side_close(&side);
        return;
    }
    meet_all(shared, 0);
    {
        uint64_t random = 0x853c49e6748fea9bu;

        for (unsigned i = 0; i < 400; i++) {
            struct shm_packet packet;
            uint8_t *bytes = (uint8_t *)&packet, answer[sizeof(packet) + 8];
            int fd = connect_to(shared, VICTIM);

            for (size_t k = 0; k < sizeof(packet); k++)
                bytes[k] = (uint8_t)(next_random(&random) >> 24);
            if (i % 2) {
                packet.magic = SHM_PACKET_MAGIC;
                packet.version = packet.oldest = (uint16_t)(i % 16 == 1 ? 9 : SHM_VERSION);
                packet.type = (uint16_t)(next_random(&random) % 10);
            }
            if (i % 4 == 3) {
                packet.address = address_of("somebody");
                packet.number &= 0xff;
            }
            send_packet(fd, &packet, i % 10 == 9 ? next_random(&random) % 12 : sizeof(packet), i % 4);
            /* Whatever it answers, or that it hangs up. A version it does not know is named in the refusal. */
            if (packet.magic == SHM_PACKET_MAGIC && packet.version == 9 && i % 10 != 9) {
                CHECK_EQUAL(recv(fd, answer, sizeof(answer), 0), sizeof(packet));
                memcpy(&packet, answer, sizeof(packet));
                CHECK_EQUAL(packet.type, SHM_REFUSED);
                CHECK_EQUAL(packet.status, EPROTONOSUPPORT);
                CHECK_EQUAL(packet.version, SHM_VERSION);
            }
            close(fd);
        }
    }
    ofp_store_release(&shared->words[0], 1);
}

static void test_garbage_on_the_socket(void **state)
{
    (void)state;
    run_processes(2, packet_process, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_foreign_memory),        cmocka_unit_test(test_foreign_header),
        cmocka_unit_test(test_garbage_in_slots),      cmocka_unit_test(test_vandal),
        cmocka_unit_test(test_garbage_on_the_socket),
    };

    cmocka_set_test_filter(getenv("TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
