/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inbound ring: claim, publish, poll, free.
 *
 * Many senders, one reader, no lock. A position counts slots since the ring was created; its slot is `position mod slots`, its
 * lap `position / slots`, cut to 32 bits and only compared for equality or by a signed difference. A slot's state
 *
 *     FREE(lap) -> CLAIMED(lap, owner) -> READY(lap, owner) -> FREE(lap + 1)
 *
 * is changed by the sender (first two) and the reader (last). `tail` is a hint that is never ahead of the first free
 * position: a sender stores it only after it has found the slot before it claimed (release, so that the owner may rely on
 * that: repair.c). The hint may fall behind; a sender that finds it behind checks the following slots.
 */
#ifndef SHM_RING_H
#define SHM_RING_H

#include <stdbool.h>

#include "base/step.h"
#include "memory/layout.h"
#include "ofipy/atomics.h"

enum shm_phase { SHM_FREE = 0, SHM_CLAIMED = 1, SHM_READY = 2 };

#define SHM_OWNER_MAX 0xffffffu

struct shm_ring {
    struct shm_header *header;
    struct shm_slot *slots;
    uint32_t shift; /* slots = 1 << shift */
};

static inline uint64_t shm_state_build(uint64_t lap, uint32_t owner, enum shm_phase phase)
{
    return lap << 32 | (uint64_t)owner << 8 | (uint64_t)phase;
}

static inline uint32_t shm_lap_of(uint64_t state) { return (uint32_t)(state >> 32); }
static inline uint32_t shm_slot_owner_of(uint64_t state) { return (uint32_t)(state >> 8) & SHM_OWNER_MAX; }
static inline unsigned shm_phase_of(uint64_t state) { return (unsigned)(state & 0xff); }

static inline struct shm_slot *shm_ring_find_slot(const struct shm_ring *ring, uint64_t position)
{
    return &ring->slots[position & ((UINT64_C(1) << ring->shift) - 1)];
}

/* Advance `position` to the next position that may be free, by the state of its slot. False: the ring is full. */
static inline bool shm_ring_advance(const struct shm_ring *ring, uint64_t state, uint64_t *position)
{
    uint64_t slots = UINT64_C(1) << ring->shift;
    int32_t laps = (int32_t)(shm_lap_of(state) - (uint32_t)(*position >> ring->shift));

    /* The slot still contains a message of the previous lap (or a faulty peer wrote the state). */
    if (laps < 0)
        return false;
    /* FREE(n): other free positions may come before position n of this slot, but its position n - 1 was claimed. */
    if (laps > 0 && shm_phase_of(state) == SHM_FREE)
        laps--;
    *position += (uint64_t)laps * slots + 1;
    return true;
}

/*
 * Claim the first free slot for the caller, until shm_ring_publish. NULL: the ring is full. `state` is the state to
 * publish.
 */
static inline struct shm_slot *shm_ring_claim(const struct shm_ring *ring, uint32_t owner, uint64_t *state)
{
    /* Acquire: the owner may rely on a hint that is stored below, so it must tell of the claims behind this one. */
    uint64_t position = ofp_load_acquire(&ring->header->tail);
    /*
     * Checking the whole ring once finds a free slot or a full ring. More steps are needed only if other senders race,
     * or a peer wrote wrong values.
     */
    uint64_t steps = UINT64_C(2) << ring->shift;

    OFP_SHM_STEP(before_claim);
    for (; steps; steps--) {
        struct shm_slot *slot = shm_ring_find_slot(ring, position);
        uint64_t lap = position >> ring->shift;
        uint64_t expected = shm_state_build(lap, 0, SHM_FREE);

        /* Acquire pairs with shm_ring_free: the reader has finished with the old content. */
        if (ofp_claim(&slot->state, &expected, shm_state_build(lap, owner, SHM_CLAIMED))) {
            OFP_SHM_STEP(after_claim);
            /*
             * A plain store suffices: at worst the hint falls back, and later claims check more slots. Nothing is read
             * through the hint.
             */
            if (ofp_load_relaxed(&ring->header->tail) == position)
                ofp_store_release(&ring->header->tail, position + 1);
            OFP_SHM_STEP(after_tail);
            *state = shm_state_build(lap, owner, SHM_READY);
            return slot;
        }
        if (!shm_ring_advance(ring, expected, &position))
            return NULL;
        ofp_store_release(&ring->header->tail, position);
    }
    return NULL;
}

/* Whether a claim would find a free slot now. */
static inline bool shm_ring_has_space(const struct shm_ring *ring)
{
    uint64_t position = ofp_load_relaxed(&ring->header->tail);
    uint64_t state = ofp_load_relaxed(&shm_ring_find_slot(ring, position)->state);

    return (int32_t)(shm_lap_of(state) - (uint32_t)(position >> ring->shift)) >= 0;
}

/*
 * Pass the slot to the reader. Release: the content is written before READY. The exchange is also the sender's fence of
 * the sleep handshake: the returned status was read after READY became visible (the reader sets SHM_SLEEPING, then
 * checks the slot). On x86 it costs the one locked instruction that a fence would cost.
 */
static inline uint64_t shm_ring_publish(const struct shm_ring *ring, struct shm_slot *slot, uint64_t state)
{
    OFP_SHM_STEP(after_content);
    ofp_publish(&slot->state, state);
    OFP_SHM_STEP(after_publish);
    return ofp_load_ordered(&ring->header->status);
}

/* Reader: the state of the slot at `head`; with shm_ring_is_ready true, its content may be read. */
static inline uint64_t shm_ring_peek(const struct shm_ring *ring, uint64_t head)
{
    /* Pairs with shm_ring_publish. */
    return ofp_load_acquire(&shm_ring_find_slot(ring, head)->state);
}

static inline bool shm_ring_is_ready(const struct shm_ring *ring, uint64_t head, uint64_t state)
{
    return shm_lap_of(state) == (uint32_t)(head >> ring->shift) && shm_phase_of(state) == SHM_READY;
}

static inline bool shm_ring_is_claimed(const struct shm_ring *ring, uint64_t head, uint64_t state)
{
    return shm_lap_of(state) == (uint32_t)(head >> ring->shift) && shm_phase_of(state) == SHM_CLAIMED;
}

/* Reader: free the slot at `head`. Release: all reads of its content come before. */
static inline void shm_ring_free(const struct shm_ring *ring, uint64_t head)
{
    uint64_t lap = (head >> ring->shift) + 1;

    OFP_SHM_STEP(before_slot_free);
    ofp_store_release(&shm_ring_find_slot(ring, head)->state, shm_state_build(lap, 0, SHM_FREE));
    OFP_SHM_STEP(after_slot_free);
}

/*
 * The sleep handshake. The reader arms, then checks its head with shm_ring_peek_armed, and sleeps if it is not ready. A
 * sender publishes, and disarms if the returned status says SHM_SLEEPING; if shm_ring_disarm returns true it signals.
 */
static inline void shm_ring_arm(const struct shm_ring *ring) { ofp_set_bits(&ring->header->status, SHM_SLEEPING); }

static inline bool shm_ring_disarm(const struct shm_ring *ring)
{
    return ofp_clear_bits(&ring->header->status, SHM_SLEEPING) & SHM_SLEEPING;
}

static inline uint64_t shm_ring_peek_armed(const struct shm_ring *ring, uint64_t head)
{
    return ofp_load_ordered(&shm_ring_find_slot(ring, head)->state);
}

/* Whether the slot of `position` is claimed or published. */
static inline bool shm_ring_is_occupied(const struct shm_ring *ring, uint64_t position)
{
    uint64_t state = shm_ring_peek(ring, position);

    return shm_ring_is_claimed(ring, position, state) || shm_ring_is_ready(ring, position, state);
}

/* Reader: the first position from `head` on that is not claimed. Checks each claimed slot, so only for rare events. */
static inline uint64_t shm_ring_find_end(const struct shm_ring *ring, uint64_t head)
{
    uint64_t limit = head + (UINT64_C(1) << ring->shift);

    while (head != limit && shm_ring_is_occupied(ring, head))
        head++;
    return head;
}

/* Owner, before a peer has the segment: all slots become FREE for the lap of `position`. */
static inline void shm_ring_init(const struct shm_ring *ring, uint64_t position)
{
    for (uint64_t i = 0; i < UINT64_C(1) << ring->shift; i++) {
        uint64_t at = position + i;

        ofp_store_relaxed(&shm_ring_find_slot(ring, at)->state, shm_state_build(at >> ring->shift, 0, SHM_FREE));
    }
    ofp_store_relaxed(&ring->header->tail, position);
}

#endif
