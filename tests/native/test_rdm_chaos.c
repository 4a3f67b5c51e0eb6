/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Three endpoints that send, receive, read, write, lose each other, forget and find each other's addresses, close and
 * open again, drawn by lot, with plenty of buffers or hardly any. Each operation ends exactly once; its memory, freed
 * then, is not touched afterwards; and when the storm is over, messages get through.
 */
#include "rdm_fixture.h"

#include <stdio.h>

#define SIDES 3
#define STEPS 1500
#define LONGEST 40000

static struct place {
    struct side side;
    uint32_t peers[SIDES];
    uint64_t posted, ended;
    uint8_t *memory;
    struct ofp_region_handle region;
} places[SIDES];

/* The context of an operation: what goes when it ends. */
struct job {
    struct place *place;
    uint8_t *bytes;
};

static const char *const services[SIDES] = {"chaos-a", "chaos-b", "chaos-c"};

static void open_endpoint(struct place *place)
{
    struct side *side = &place->side;
    struct ofp_endpoint_attr attr = {.tx_cq = side->cq, .rx_cq = side->cq, .av = side->av, .unexpected_limit = 30000};
    char text[OFP_TEXT_MAX];

    attr.service = services[place - places];
    assert_int_equal(ofp_endpoint_open(side->domain, &attr, &side->endpoint, text, sizeof(text)), 0);
}

static void insert(struct place *place, int other)
{
    char address[OFP_ADDRESS_MAX], text[OFP_TEXT_MAX];
    size_t length = sizeof(address);

    assert_int_equal(
        ofp_provider_resolve(fake_provider(), NULL, NULL, services[other], address, &length, text, sizeof(text)), 0);
    assert_int_equal(ofp_av_insert(place->side.av, address, length, &place->peers[other]), 0);
}

static void place_open(struct place *place, enum rdmfake_kind kind)
{
    struct ofp_region_attr attr = {.length = LONGEST, .access = OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE};

    memset(place, 0, sizeof(*place));
    rdm_side_open(&place->side, kind, 0);
    assert_int_equal(ofp_endpoint_close(place->side.endpoint, 0), 0);
    open_endpoint(place);
    attr.base = place->memory = calloc(1, LONGEST);
    assert_int_equal(ofp_region_register(place->side.domain, &attr, &place->region), 0);
    for (int other = 0; other < SIDES; other++)
        insert(place, other);
}

static void post(struct place *place, struct ofp_operation op, uint64_t flags)
{
    struct job *job = malloc(sizeof(*job));
    int result;

    *job = (struct job){place, calloc(1, op.length ? op.length : 1)};
    op.offset = (uint64_t)(uintptr_t)job->bytes;
    op.context = (uint64_t)(uintptr_t)job;
    op.flags = flags;
    op.result_offset = op.offset;
    result = ofp_post(place->side.endpoint, &op, 1);
    if (result == 1) {
        place->posted++;
        return;
    }
    free(job->bytes);
    free(job);
}

static void read_queue(struct place *place)
{
    struct ofp_completion row;

    while (ofp_cq_read(place->side.cq, &row, 1) == 1) {
        struct job *job = (struct job *)(uintptr_t)row.context;

        if (row.flags & (OFP_COMPLETED_REMOTE_READ | OFP_COMPLETED_REMOTE_WRITE))
            continue;
        assert_ptr_equal(job->place, place);
        place->ended++;
        free(job->bytes);
        free(job);
    }
}

static uint64_t some_length(void)
{
    static const uint64_t lengths[] = {0, 8, 700, 5000, LONGEST};

    return lengths[rand() % 5];
}

static void send_something(struct place *place, int other)
{
    static const uint64_t levels[] = {0, 0, OFP_DELIVERY_COMPLETE, OFP_MATCH_COMPLETE};

    post(place, tagged(OFP_TSEND, place->peers[other], (uint64_t)rand() % 3, NULL, some_length(), 0),
         levels[rand() % 4]);
}

static void receive_something(struct place *place, int other)
{
    uint32_t from = rand() % 2 ? OFP_PEER_ANY : place->peers[other];

    post(place, tagged(OFP_TRECV, from, (uint64_t)rand() % 3, NULL, some_length(), 0), 0);
}

static void reach_something(struct place *place, int other)
{
    static const uint16_t codes[] = {OFP_READ, OFP_WRITE, OFP_FETCH_ATOMIC};
    struct ofp_operation op = tagged(codes[rand() % 3], place->peers[other], 0, NULL, some_length(), 0);

    op.remote_key = places[other].region.key ^ (rand() % 8 == 0);
    op.atomic_op = OFP_ATOMIC_SUM;
    op.datatype = OFP_UINT64;
    op.length = op.length / 8 * 8;
    post(place, op, 0);
}

static void close_and_open(struct place *place)
{
    assert_int_equal(ofp_endpoint_close(place->side.endpoint, rand() % 2 ? 0 : 1000000), 0);
    read_queue(place);
    assert_int_equal(place->posted, place->ended);
    open_endpoint(place);
}

static void step(void)
{
    struct place *place = &places[rand() % SIDES];
    int other = rand() % SIDES, what = rand() % 100;

    if (what < 20) {
        send_something(place, other);
    } else if (what < 40) {
        receive_something(place, other);
    } else if (what < 50) {
        reach_something(place, other);
    } else if (what < 52) {
        rdmfake_lose_at(1 + (uint64_t)rand() % 10);
    } else if (what < 53) {
        assert_int_equal(ofp_av_remove(place->side.av, place->peers[other]), 0);
        insert(place, other);
    } else if (what < 54) {
        close_and_open(place);
    } else {
        ofp_domain_progress(place->side.domain);
        read_queue(place);
    }
}

static void progress_all(int rounds)
{
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < SIDES; i++) {
            ofp_domain_progress(places[i].side.domain);
            read_queue(&places[i]);
        }
    }
}

/* Everything anew, and a message each way between all. */
static void check_calm(void)
{
    uint64_t deadline = ofpi_clock_read() + 5000000000ull, waiting = 1;

    rdmfake_lose_at(0);
    for (int i = 0; i < SIDES; i++)
        close_and_open(&places[i]);
    progress_all(20);
    for (int i = 0; i < SIDES; i++) {
        for (int other = 0; other < SIDES; other++) {
            post(&places[i], tagged(OFP_TRECV, OFP_PEER_ANY, 9, NULL, LONGEST, 0), 0);
            post(&places[i], tagged(OFP_TSEND, places[i].peers[other], 9, NULL, LONGEST, 0), OFP_MATCH_COMPLETE);
        }
    }
    while (waiting) {
        waiting = 0;
        progress_all(1);
        for (int i = 0; i < SIDES; i++)
            waiting += places[i].posted - places[i].ended;
        assert_true(ofpi_clock_read() < deadline);
    }
}

static void run(enum rdmfake_kind kind, unsigned seed)
{
    print_message("seed %u\n", seed);
    srand(seed);
    for (int i = 0; i < SIDES; i++)
        place_open(&places[i], kind);
    for (int i = 0; i < STEPS; i++)
        step();
    check_calm();
    for (int i = 0; i < SIDES; i++) {
        struct side *side = &places[i].side;

        rdm_check_idle(side);
        assert_int_equal(ofp_endpoint_close(side->endpoint, 0), 0);
        read_queue(&places[i]);
        assert_int_equal(places[i].posted, places[i].ended);
        assert_int_equal(ofp_region_close(side->domain, places[i].region.id), 0);
        free(places[i].memory);
        assert_int_equal(ofp_av_close(side->av), 0);
        assert_int_equal(ofp_cq_close(side->cq), 0);
        assert_int_equal(ofp_domain_close(side->domain), 0);
    }
    forget_warnings();
}

static void run_all(void)
{
    for (unsigned seed = 1; seed <= 4; seed++)
        for (int kind = 0; kind < RDMFAKE_KINDS; kind++)
            run(kind, seed * 10 + (unsigned)kind);
}

static void test_with_plenty_of_buffers(void **state)
{
    (void)state;
    run_all();
}

/*
 * As many as three paths want, of which one leads to itself with both its ends, and again as many for windows that
 * grow.
 */
static void test_with_hardly_any(void **state)
{
    (void)state;
    setenv("OFIPY_RDMFAKE_PACKET_SIZE", "1000", 1);
    setenv("OFIPY_RDMFAKE_RECEIVE_SIZE", "100", 1);
    run_all();
    unsetenv("OFIPY_RDMFAKE_PACKET_SIZE");
    unsetenv("OFIPY_RDMFAKE_RECEIVE_SIZE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_with_plenty_of_buffers),
        cmocka_unit_test(test_with_hardly_any),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
