/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that writes where it should not in the segment of another, and dies (or goes on): the other one is reached again by
 * all the others soon, no message is delivered twice or with foreign contents, what is lost without a word is nothing, and who
 * did nothing loses nothing where that can be.
 */
#include <poll.h>

#include "link/link.h"
#include "shm.h"
#include "test_shm_fixture.h"

enum { VICTIM, ATTACKER, BYSTANDER };
/* Words that the processes share. */
enum { WORD_NUMBER, WORD_MET, WORD_DAMAGED, WORD_NOTICED, WORD_OVER };

#define REQUEST 5
#define ANSWER 6
#define EXCHANGES 40

/* What is written, and what may come of it. */
struct damage {
    const char *name;
    void (*write)(struct shm_link *link, uint32_t innocent);
    bool heals;    /* nobody else loses anything */
    bool renews;   /* the victim's segment is given up */
    bool silent;   /* it is nothing beside the attacker's death */
    bool survives; /* the attacker lives on, and makes progress */
};

static const struct damage *damage;

/* ------------------------------------------------------------------------------------------------------------ damages */

static uint64_t end_of(const struct shm_link *link) { return ofp_load_acquire(&link->ring.header->tail); }

static void tail_far_ahead(struct shm_link *link, uint32_t innocent)
{
    (void)innocent;
    ofp_store_release(&link->ring.header->tail, end_of(link) + (UINT64_C(1) << 20));
}

static void tail_before_a_lap(struct shm_link *link, uint32_t innocent)
{
    (void)innocent;
    ofp_store_release(&link->ring.header->tail, UINT64_MAX / 3);
}

/* Neither ahead nor behind. */
static void tail_half_way(struct shm_link *link, uint32_t innocent)
{
    (void)innocent;
    ofp_store_release(&link->ring.header->tail, end_of(link) + (UINT64_C(1) << (31 + link->ring.shift)));
}

/* The next message leaves a hole. */
static void tail_ahead(struct shm_link *link, uint32_t innocent)
{
    (void)innocent;
    ofp_store_release(&link->ring.header->tail, end_of(link) + 3);
}

static void status_closed(struct shm_link *link, uint32_t innocent)
{
    (void)innocent;
    ofp_store_release(&link->ring.header->status, SHM_CLOSING | SHM_CLOSED);
}

static void status_garbage(struct shm_link *link, uint32_t innocent)
{
    (void)innocent;
    ofp_store_release(&link->ring.header->status, UINT64_MAX);
}

static void constants_zeroed(struct shm_link *link, uint32_t innocent)
{
    (void)innocent;
    memset(link->ring.header, 0, offsetof(struct shm_header, tail));
}

static void header_zeroed(struct shm_link *link, uint32_t innocent)
{
    (void)innocent;
    memset(link->ring.header, 0, sizeof(*link->ring.header));
}

static void claim_of(struct shm_link *link, uint32_t owner)
{
    uint64_t state;

    CHECK(shm_ring_claim(&link->ring, owner, &state));
}

static void claimed_for_innocent(struct shm_link *link, uint32_t innocent) { claim_of(link, innocent); }

static void claimed_for_nobody(struct shm_link *link, uint32_t innocent) { claim_of(link, innocent + 1000); }

static void claimed_for_itself(struct shm_link *link, uint32_t innocent)
{
    (void)innocent;
    claim_of(link, link->number_there);
}

static void states_zeroed(struct shm_link *link, uint32_t innocent)
{
    (void)innocent;
    for (uint64_t i = 0; i < UINT64_C(1) << link->ring.shift; i++)
        ofp_store_relaxed(&link->ring.slots[i].state, 0x7777);
}

/* Nobody gets past it, by a hint that lags so far. */
static void last_state(struct shm_link *link, uint32_t innocent)
{
    (void)innocent;
    ofp_store_relaxed(&shm_ring_find_slot(&link->ring, end_of(link) - 2)->state, UINT64_C(0xffc0000000000000));
    ofp_store_relaxed(&link->ring.header->tail, end_of(link) - 2);
}

/* Garbage signed by somebody else. */
static void forged(struct shm_link *link, uint32_t innocent, uint8_t kind)
{
    uint64_t state;
    struct shm_slot *slot = shm_ring_claim(&link->ring, innocent, &state);

    CHECK(slot);
    memset(&slot->content, 0xee, sizeof(slot->content));
    slot->content.kind = kind;
    shm_ring_publish(&link->ring, slot, state);
}

static void forged_garbage(struct shm_link *link, uint32_t innocent) { forged(link, innocent, 200); }

static void forged_farewell(struct shm_link *link, uint32_t innocent) { forged(link, innocent, SHM_GOODBYE); }

static void forged_message(struct shm_link *link, uint32_t innocent) { forged(link, innocent, SHM_BOUNCE); }

static const struct damage damages[] = {
    {"tail far ahead", tail_far_ahead, .heals = true},
    {"tail anywhere", tail_before_a_lap, .heals = true},
    {"tail half way round", tail_half_way, .heals = true},
    {"tail a little ahead", tail_ahead, .renews = true},
    {"closed", status_closed, .renews = true},
    {"status garbage", status_garbage, .renews = true},
    {"constants", constants_zeroed, .renews = true},
    {"header", header_zeroed, .renews = true},
    {"claimed for an innocent", claimed_for_innocent, .renews = true},
    {"claimed for an innocent by a living one", claimed_for_innocent, .renews = true, .survives = true},
    {"claimed for nobody", claimed_for_nobody, .renews = true},
    {"claimed for itself", claimed_for_itself, .heals = true, .silent = true},
    {"claimed for itself by a living one", claimed_for_itself, .renews = true, .survives = true},
    {"states", states_zeroed, .renews = true},
    {"a state behind the head", last_state, .renews = true},
    {"forged garbage", forged_garbage, .heals = true},
    {"forged farewell", forged_farewell, .heals = true},
    {"forged message", forged_message, .heals = true, .survives = true},
};

/* ---------------------------------------------------------------------------------------------------------- processes */

/* Answers every request; tells under which number it knows the first that asked. */
static void victim(struct side *side, struct shared *shared)
{
    struct shm_endpoint *endpoint = shm_endpoint_of(side->endpoint);
    const char *segment = endpoint->segment.base;
    uint32_t renewals = 0;
    uint64_t in = 0, out[64];
    uint32_t answers = 0;

    post(side, tagged(OFP_TRECV, OFP_PEER_ANY, REQUEST, &in, sizeof(in), 1));
    while (!ofp_load_acquire(&shared->words[WORD_OVER])) {
        struct ofp_completion row;
        bool expired;

        renewals += endpoint->segment.base != segment;
        segment = endpoint->segment.base;
        ofp_store_release(&shared->words[WORD_NOTICED], endpoint->protocol_errors || damage->silent);
        if (ofp_cq_wait(side->cq, &row, 1, 1, (int64_t)SECONDS / 4, &expired) != 1 || row.context != 1)
            continue;
        CHECK_EQUAL(row.error, 0);
        if (!answers)
            ofp_store_release(&shared->words[WORD_NUMBER], endpoint->links[1] ? 1 : 2);
        out[answers % 64] = in;
        post(side, tagged(OFP_TSEND, row.source, ANSWER, &out[answers++ % 64], sizeof(in), 2));
        post(side, tagged(OFP_TRECV, OFP_PEER_ANY, REQUEST, &in, sizeof(in), 1));
    }
    CHECK_EQUAL(renewals, damage->renews);
}

/* Ask until there is an answer to this very question. Returns errors and silences on the way. */
static uint32_t ask(struct side *side, uint32_t peer, uint64_t question)
{
    uint64_t deadline = now_ns() + PATIENCE / 2;
    uint32_t troubles = 0;

    for (bool answered = false; !answered;) {
        uint64_t answer = 0, patience = now_ns() + 8 * SECONDS;

        post(side, tagged(OFP_TRECV, peer, ANSWER, &answer, sizeof(answer), question));
        post(side, tagged(OFP_TSEND, peer, REQUEST, &question, sizeof(question), 1000000));
        for (bool over = false; !over;) {
            struct ofp_completion row;
            bool expired;

            CHECK(now_ns() < deadline);
            if (now_ns() > patience)
                ofp_cancel(side->endpoint, question);
            if (ofp_cq_wait(side->cq, &row, 1, 1, (int64_t)SECONDS / 10, &expired) != 1)
                continue;
            if (row.error) {
                troubles++;
                /* A receive from who is believed gone ends at once; asking on does not mend it sooner. */
                usleep(200000);
                CHECK(row.error == ECONNRESET || row.error == OFP_EPEERLOST || row.error == ECANCELED);
                /* Its own end, or that of the question: then nothing more comes of it. */
                if (row.context == question)
                    over = true;
                else
                    patience = 0;
                continue;
            }
            if (row.context == question) {
                /* Of a question that was asked twice, since its asker was told that the victim had gone, both are answered. */
                CHECK(answer <= question);
                if (answer < question)
                    post(side, tagged(OFP_TRECV, peer, ANSWER, &answer, sizeof(answer), question));
                else
                    answered = over = true;
            }
        }
    }
    return troubles;
}

static void bystander(struct side *side, struct shared *shared)
{
    uint32_t peer = insert_rank(side, shared, VICTIM), troubles = 0;
    uint64_t question = 1;

    troubles = ask(side, peer, question++);
    CHECK_EQUAL(troubles, 0);
    ofp_store_release(&shared->words[WORD_MET], 1);
    progress_until(side, &shared->words[WORD_DAMAGED], 1);
    for (uint32_t i = 0; i < EXCHANGES || !ofp_load_acquire(&shared->words[WORD_NOTICED]); i++)
        troubles += ask(side, peer, question++);
    if (damage->heals)
        CHECK_EQUAL(troubles, 0);
    CHECK(troubles < 64);
    ofp_store_release(&shared->words[WORD_OVER], 1);
}

static void attacker(struct side *side, struct shared *shared)
{
    uint32_t peer = insert_rank(side, shared, VICTIM);

    wait_until(&shared->words[WORD_MET], 1);
    ask(side, peer, 1);
    damage->write(shm_endpoint_of(side->endpoint)->links[1], ofp_load_acquire(&shared->words[WORD_NUMBER]));
    ofp_store_release(&shared->words[WORD_DAMAGED], 1);
    if (damage->survives)
        progress_until(side, &shared->words[WORD_OVER], 1);
    _exit(0);
}

static void damage_process(struct shared *shared, uint32_t rank)
{
    struct side side;

    setenv("OFIPY_SHM_RING_SIZE", "16", 1);
    side_open(&side, shared, rank);
    meet_all(shared, 0);
    if (rank == VICTIM)
        victim(&side, shared);
    else if (rank == ATTACKER)
        attacker(&side, shared);
    else
        bystander(&side, shared);
    side_close(&side);
}

static void test_damage(void **state)
{
    (void)state;
    for (damage = damages; damage < damages + sizeof(damages) / sizeof(damages[0]); damage++) {
        print_message("%s\n", damage->name);
        run_processes(3, damage_process, NULL);
    }
}

/* ----------------------------------------------------------------------------------------------- an overwritten message */

/* A message that was sent, and is overwritten before it is received: its sender hears of it although it says no more. */
static void overwritten_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    uint64_t in = 0;

    side_open(&side, shared, rank);
    meet_all(shared, 0);
    if (rank == VICTIM) {
        post(&side, tagged(OFP_TRECV, OFP_PEER_ANY, 1, &in, sizeof(in), 1));
        completion_of(&side, 1);
        post(&side, tagged(OFP_TRECV, OFP_PEER_ANY, 1, &in, sizeof(in), 1));
        completion_of(&side, 1);
        ofp_store_release(&shared->words[WORD_MET], 1);
        /* The ring is not read meanwhile. */
        wait_until(&shared->words[WORD_DAMAGED], 2);
        post(&side, tagged(OFP_TRECV, OFP_PEER_ANY, 2, &in, sizeof(in), 1));
        completion_of(&side, 1);
        CHECK_EQUAL(in, 22);
        ofp_store_release(&shared->words[WORD_OVER], 1);
    } else {
        uint32_t peer = insert_rank(&side, shared, VICTIM);
        struct shm_link *link;

        post(&side, tagged(OFP_TSEND, peer, 1, &in, sizeof(in), 1));
        completion_of(&side, 1);
        link = shm_endpoint_of(side.endpoint)->links[1];
        progress_until(&side, &shared->words[WORD_MET], 1);
        if (rank == ATTACKER) {
            struct shm_slot *slot;

            wait_until(&shared->words[WORD_DAMAGED], 1);
            slot = shm_ring_find_slot(&link->ring, end_of(link) - 1);
            memset(&slot->content, 0x55, sizeof(slot->content));
            ofp_store_release(&shared->words[WORD_DAMAGED], 2);
            _exit(0);
        }
        in = 11;
        post(&side, tagged(OFP_TSEND, peer, 2, &in, sizeof(in), 1));
        completion_of(&side, 1);
        ofp_store_release(&shared->words[WORD_DAMAGED], 1);
        for (struct ofp_endpoint_statistics statistics = {0}; !statistics.peers_lost;) {
            ofp_domain_progress(side.domain);
            CHECK_EQUAL(ofp_endpoint_statistics(side.endpoint, &statistics), 0);
        }
        in = 22;
        post(&side, tagged(OFP_TSEND, peer, 2, &in, sizeof(in), 1));
        completion_of(&side, 1);
        progress_until(&side, &shared->words[WORD_OVER], 1);
    }
    side_close(&side);
}

static void test_overwritten_message(void **state)
{
    (void)state;
    run_processes(3, overwritten_process, NULL);
}

/* -------------------------------------------------------------------------------------------------------------- asleep */

/* Who sleeps on the descriptor is woken although the bit is gone that says so. */
static void asleep_process(struct shared *shared, uint32_t rank)
{
    struct side side;
    uint64_t in = 0;

    side_open(&side, shared, rank);
    meet_all(shared, 0);
    if (rank == VICTIM) {
        struct pollfd entry = {.fd = ofp_cq_fileno(side.cq), .events = POLLIN};

        post(&side, tagged(OFP_TRECV, OFP_PEER_ANY, 1, &in, sizeof(in), 1));
        completion_of(&side, 1);
        post(&side, tagged(OFP_TRECV, OFP_PEER_ANY, 1, &in, sizeof(in), 1));
        for (struct ofp_completion row; ofp_cq_read(side.cq, &row, 1) == 0;) {
            if (ofp_cq_arm(side.cq) != 1)
                continue;
            ofp_store_release(&shared->words[WORD_MET], 1);
            CHECK_EQUAL(poll(&entry, 1, (int)(PATIENCE / 1000000)), 1);
        }
        ofp_store_release(&shared->words[WORD_OVER], 1);
    } else {
        uint32_t peer = insert_rank(&side, shared, VICTIM);

        post(&side, tagged(OFP_TSEND, peer, 1, &in, sizeof(in), 1));
        completion_of(&side, 1);
        wait_until(&shared->words[WORD_MET], 1);
        ofp_clear_bits(&shm_endpoint_of(side.endpoint)->links[1]->ring.header->status, SHM_SLEEPING);
        post(&side, tagged(OFP_TSEND, peer, 1, &in, sizeof(in), 1));
        completion_of(&side, 1);
        wait_until(&shared->words[WORD_OVER], 1);
    }
    side_close(&side);
}

static void test_asleep(void **state)
{
    (void)state;
    run_processes(2, asleep_process, NULL);
}

/* ------------------------------------------------------------------------------------------------------------- buffers */

/* The state words of the sender's buffers are overwritten again and again; what travels through them arrives. */
static void buffers_process(struct shared *shared, uint32_t rank)
{
    static uint8_t buffer[500000];
    struct side side;
    uint32_t peer;

    setenv("OFIPY_SHM_ATTACH", "no", 1);
    setenv("OFIPY_SHM_BOUNCE_COUNT", "8", 1);
    side_open(&side, shared, rank);
    meet_all(shared, 0);
    peer = insert_rank(&side, shared, !rank);
    for (uint32_t round = 0; round < 8; round++) {
        if (rank == VICTIM)
            fill(buffer, sizeof(buffer), round);
        post(&side, tagged(rank == VICTIM ? OFP_TSEND : OFP_TRECV, peer, 1, buffer, sizeof(buffer), 1));
        if (rank == VICTIM) {
            completion_of(&side, 1);
            continue;
        }
        for (struct ofp_completion row; ofp_cq_read(side.cq, &row, 1) == 0;) {
            const struct shm_link *link = shm_link_find(shm_endpoint_of(side.endpoint), 1);

            ofp_domain_progress(side.domain);
            for (uint32_t i = 0; link && link->up && i < 8; i++)
                ofp_store_relaxed(&link->segment.bounce_states[i].freed, 0x12345678);
        }
        check_filled(buffer, sizeof(buffer), round);
    }
    side_close(&side);
}

static void test_buffers(void **state)
{
    (void)state;
    run_processes(2, buffers_process, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_overwritten_message),
        cmocka_unit_test(test_asleep),
        cmocka_unit_test(test_buffers),
    };

    cmocka_set_test_filter(getenv("TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
