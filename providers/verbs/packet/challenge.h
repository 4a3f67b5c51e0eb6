/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The challenges that an endpoint with a key has sent and that no caller has answered yet. A challenge ends with its
 * first answer, valid or not, or after ten seconds. The table has a fixed size, so unknown callers cost no memory, and
 * one source cannot displace the challenges of the others: see docs/explanation/verbs.md.
 *
 * An endpoint owns its table. The domain's lock is held in every function.
 */
#ifndef VERBS_CHALLENGE_H
#define VERBS_CHALLENGE_H

#include "library/library.h"
#include "ofipy/list.h"
#include "rdm/channel.h"

/*
 * The time in which a challenge must be answered, ns. If the second request is lost, the caller's connection manager
 * repeats it after 4.3 s. A longer time costs no memory, and no caller its place: the table is full or it is not.
 */
#define VERBS_CHALLENGE_NS UINT64_C(10000000000)
/* Open challenges of one source, which is a GID, and of all sources. */
#define VERBS_CHALLENGES_OF_SOURCE 64
#define VERBS_CHALLENGES 192

#define VERBS_CHALLENGE_SIZE 8
#define VERBS_CALLER_NONCE_SIZE 13
#define VERBS_ACCEPTOR_NONCE_SIZE 16

/* What the acceptor stores of a caller's first request. */
struct verbs_challenge {
    struct ofp_list node; /* in table->open, oldest first, or in table->free */
    uint64_t deadline;
    uint32_t source; /* index of the source */
    uint8_t number[VERBS_CHALLENGE_SIZE];
    uint8_t nonce[VERBS_ACCEPTOR_NONCE_SIZE];
    uint16_t port; /* at which the caller listens */
    uint8_t hello_length;
    uint8_t hello[OFPI_HELLO_MAX];
};

struct verbs_challenge_source {
    union ibv_gid gid;
    uint32_t count; /* open challenges; 0: the entry is free */
};

struct verbs_challenges {
    struct ofp_list open, free;
    uint64_t displaced; /* challenges that ended because there were too many */
    struct verbs_challenge entries[VERBS_CHALLENGES];
    struct verbs_challenge_source sources[VERBS_CHALLENGES];
};

void verbs_challenges_init(struct verbs_challenges *table);
/*
 * Open a challenge of random numbers. The caller fills in port and hello. If there are too many, one challenge of the
 * same source ends, or one of the source with the most. NULL: there are no random numbers.
 */
struct verbs_challenge *verbs_challenge_open(struct verbs_challenges *table, const union ibv_gid *source, uint64_t now);
/* End an open challenge of this source, and copy it to `answered`. False: there is none, or its time is over. */
bool verbs_challenge_end(struct verbs_challenges *table, const uint8_t number[VERBS_CHALLENGE_SIZE],
                         const union ibv_gid *source, uint64_t now, struct verbs_challenge *answered);

#endif
