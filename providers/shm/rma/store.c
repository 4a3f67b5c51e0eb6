/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stores of a remote write. Ordinary stores leave the block modified in this core's caches; nontemporal ones bypass
 * the caches. The faster of both depends on the processor, on the size, and on whether the peer reads the block: its
 * caches then have the lines that the write takes away. So the cost of both is measured, and base/choice.h chooses. The
 * cost is the time that the writer needs: what the peer needs to read the block cannot be seen from here.
 */
#include "rma/store.h"

#include <stdlib.h>

#include "base/choice.h"
#include "base/copy.h"
#include "shm.h"

/* Numbers of the methods. */
#define STORE_ORDINARY 0u
#define STORE_NONTEMPORAL 1u
#define STORES (SHM_METHOD_BIT(STORE_ORDINARY) | SHM_METHOD_BIT(STORE_NONTEMPORAL))

/* Classes of sizes: powers of two, from 32 KiB to SHM_PIECE, the longest block. Shorter blocks use ordinary stores. */
#define FIRST_CLASS 15
#define CLASSES 8
/* From this class on nontemporal stores come first, until costs are known: 128 KiB. */
#define FIRST_NONTEMPORAL_CLASS 2
/* A block is alone if it starts more than the time of ALONE blocks after the end of the last one. */
#define ALONE 4

_Static_assert(SHM_PIECE >> FIRST_CLASS >> (CLASSES - 1) == 1, "the last class is that of a whole piece");

/* The first block of a trial finds the lines where the other stores left them. The next ones cost what a stream costs. */
static const struct shm_choice_trials trials = {.lengths = {[STORE_ORDINARY] = 3, [STORE_NONTEMPORAL] = 3}};

struct shm_stores {
    struct shm_choice choices[CLASSES];
    uint64_t ended; /* when the last block was stored; 0: none was */
};

static struct shm_stores *create_stores(void)
{
    struct shm_stores *stores = calloc(1, sizeof(*stores));

    for (uint32_t class = FIRST_NONTEMPORAL_CLASS; stores && class < CLASSES; class++)
        stores->choices[class].current = STORE_NONTEMPORAL;
    return stores;
}

static struct shm_choice *find_store_choice(struct shm_stores *stores, uint64_t length)
{
    uint32_t class = 63 - (uint32_t)__builtin_clzll(length) - FIRST_CLASS;

    OFP_CHECK(class < CLASSES);
    return &stores->choices[class];
}

void shm_store_pieces(struct shm_link *link, struct iovec *to, struct iovec *from, uint64_t length)
{
    struct shm_stores *stores = link->stores;
    struct shm_choice *choice;
    uint64_t begun;
    uint32_t method;
    bool trial, alone;

    if (!stores && SHM_HAS_NONTEMPORAL && length >> FIRST_CLASS)
        stores = link->stores = create_stores();
    if (!stores || !(length >> FIRST_CLASS)) {
        shm_pieces_copy(to, from, length, false);
        return;
    }
    choice = find_store_choice(stores, length);
    begun = shm_core->now();
    alone = begun - stores->ended > ALONE * shm_choice_compute_cost(choice, choice->current, length);
    method = shm_choice_choose_method(choice, &trials, STORES, alone, &trial);
    shm_pieces_copy(to, from, length, method == STORE_NONTEMPORAL);
    stores->ended = shm_core->now();
    shm_choice_store_cost(choice, method, trial, length, stores->ended - begun);
}
