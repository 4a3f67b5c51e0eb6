/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments: create, map and check them, and the descriptors of such memory. */
#ifndef SHM_SEGMENT_H
#define SHM_SEGMENT_H

#include "memory/layout.h"

/*
 * A mapped segment, own or foreign. The constants were copied out and checked once; they are never read from the
 * mapping again.
 */
struct shm_segment {
    char *base;
    size_t size;
    struct shm_header *header;
    struct shm_slot *slots;
    struct shm_bounce_state *bounce_states;
    char *bounce_buffers;
    uint32_t slot_shift;
    uint32_t bounce_size;
    uint32_t bounce_count;
    uint64_t incarnation;
    uint64_t knows;
    uint8_t identity[SHM_IDENTITY_SIZE]; /* zeros: not stated */
};

/*
 * Create and map a segment of this geometry; its bounce buffers are not yet backed. `fd` gets the descriptor.
 * `identity`: the endpoint's; NULL: none to state.
 */
int shm_segment_create(struct shm_segment *segment, uint32_t slot_shift, uint32_t bounce_size, uint32_t bounce_count,
                       uint64_t incarnation, const uint8_t *identity, int *fd, char *text, size_t text_size);
/* Back the bounce buffers. -ENOMEM with the remedy in `text`. */
int shm_segment_reserve_bounce(const struct shm_segment *segment, int fd, char *text, size_t text_size);
/* Check a peer's descriptor, then map it. The caller still owns the descriptor. */
int shm_segment_map(struct shm_segment *segment, int fd, char *text, size_t text_size);
void shm_segment_unmap(struct shm_segment *segment);
/* Whether the constants of an own segment are what shm_segment_create wrote. */
bool shm_segment_is_whole(const struct shm_segment *segment);

/* A sealed, empty memfd of this size. Returns the descriptor or a negative error. */
int shm_memfd_create(const char *name, uint64_t size, char *text, size_t text_size);
/* Read the identity that a peer's segment states; zeros: none, or the descriptor is no segment. */
void shm_segment_read_identity(int fd, uint8_t identity[SHM_IDENTITY_SIZE]);
bool shm_identity_is_stated(const uint8_t identity[SHM_IDENTITY_SIZE]);

/* 0 when the descriptor is a memfd that cannot shrink below `size` bytes (exactly that many, unless 0). */
int shm_memfd_check(int fd, uint64_t *size, char *text, size_t text_size);

#endif
