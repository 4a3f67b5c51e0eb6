/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/challenge.h"

#include <string.h>
#include <sys/random.h>

#include "ofipy/check.h"

void verbs_challenges_init(struct verbs_challenges *table)
{
    memset(table, 0, sizeof(*table));
    ofp_list_init(&table->open);
    ofp_list_init(&table->free);
    for (uint32_t i = 0; i < VERBS_CHALLENGES; i++)
        ofp_list_append(&table->free, &table->entries[i].node);
}

static struct verbs_challenge *challenge_of_node(struct ofp_list *node)
{
    return OFP_CONTAINER_OF(node, struct verbs_challenge, node);
}

static void free_challenge(struct verbs_challenges *table, struct verbs_challenge *challenge)
{
    OFP_CHECK(table->sources[challenge->source].count > 0);
    table->sources[challenge->source].count--;
    ofp_list_remove(&challenge->node);
    ofp_list_append(&table->free, &challenge->node);
}

static void free_expired_challenges(struct verbs_challenges *table, uint64_t now)
{
    while (!ofp_list_empty(&table->open) && challenge_of_node(table->open.next)->deadline <= now)
        free_challenge(table, challenge_of_node(table->open.next));
}

/* The source of this GID, or a free entry. There are as many entries as challenges, so one of both exists. */
static uint32_t find_challenge_source(const struct verbs_challenges *table, const union ibv_gid *gid)
{
    uint32_t found = VERBS_CHALLENGES;

    for (uint32_t i = 0; i < VERBS_CHALLENGES; i++) {
        if (table->sources[i].count && memcmp(&table->sources[i].gid, gid, sizeof(*gid)) == 0)
            return i;
        if (!table->sources[i].count && found == VERBS_CHALLENGES)
            found = i;
    }
    return found;
}

static uint32_t find_largest_source(const struct verbs_challenges *table)
{
    uint32_t largest = 0;

    for (uint32_t i = 1; i < VERBS_CHALLENGES; i++)
        if (table->sources[i].count > table->sources[largest].count)
            largest = i;
    return largest;
}

static void discard_oldest_challenge(struct verbs_challenges *table, uint32_t source)
{
    struct ofp_list *node = table->open.next;

    while (challenge_of_node(node)->source != source)
        node = node->next;
    OFP_CHECK(node != &table->open);
    free_challenge(table, challenge_of_node(node));
    table->displaced++;
}

struct verbs_challenge *verbs_challenge_open(struct verbs_challenges *table, const union ibv_gid *source, uint64_t now)
{
    uint8_t random[VERBS_CHALLENGE_SIZE + VERBS_ACCEPTOR_NONCE_SIZE];
    struct verbs_challenge *challenge;
    uint32_t index;

    if (getrandom(random, sizeof(random), 0) != sizeof(random))
        return NULL;
    free_expired_challenges(table, now);
    index = find_challenge_source(table, source);
    if (index < VERBS_CHALLENGES && table->sources[index].count >= VERBS_CHALLENGES_OF_SOURCE)
        discard_oldest_challenge(table, index);
    else if (ofp_list_empty(&table->free))
        discard_oldest_challenge(table, find_largest_source(table));
    index = find_challenge_source(table, source);
    OFP_CHECK(index < VERBS_CHALLENGES && !ofp_list_empty(&table->free));
    table->sources[index].gid = *source;
    table->sources[index].count++;
    challenge = challenge_of_node(ofp_list_pop(&table->free));
    memcpy(challenge->number, random, sizeof(challenge->number));
    memcpy(challenge->nonce, random + sizeof(challenge->number), sizeof(challenge->nonce));
    challenge->source = index;
    challenge->deadline = now + VERBS_CHALLENGE_NS;
    challenge->hello_length = 0;
    ofp_list_append(&table->open, &challenge->node);
    return challenge;
}

bool verbs_challenge_end(struct verbs_challenges *table, const uint8_t number[VERBS_CHALLENGE_SIZE],
                         const union ibv_gid *source, uint64_t now, struct verbs_challenge *answered)
{
    free_expired_challenges(table, now);
    for (struct ofp_list *node = table->open.next; node != &table->open; node = node->next) {
        struct verbs_challenge *challenge = challenge_of_node(node);

        if (memcmp(challenge->number, number, sizeof(challenge->number)) != 0)
            continue;
        /* Only the host that was challenged ends its challenge. */
        if (memcmp(&table->sources[challenge->source].gid, source, sizeof(*source)) != 0)
            return false;
        *answered = *challenge;
        free_challenge(table, challenge);
        return true;
    }
    return false;
}
