/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that the device knows for as long as an operation lasts. */
#ifndef OFPI_RDM_REGISTRATION_H
#define OFPI_RDM_REGISTRATION_H

#include "rdm/transfer/rdm.h"

struct ofpi_rdm_registration {
    struct ofp_list node; /* path->holds */
    uint32_t count;
    struct ofpi_memory memory[];
};

/*
 * The first `length` bytes of these pieces, which stay where they are until ofpi_rdm_memory_deregister. NULL: the device cannot
 * know them, or the channel moves nothing. `regions` may be NULL, and so may each.
 */
struct ofpi_rdm_registration *ofpi_rdm_memory_register(struct ofpi_rdm_path *path, const struct iovec *iov,
                                                       struct ofp_region *const *regions, uint32_t count,
                                                       uint64_t length, uint32_t access);
void ofpi_rdm_memory_deregister(struct ofpi_rdm_path *path,
                                struct ofpi_rdm_registration *registration); /* NULL: nothing */
/* All of a path's, whoever has them: their memory is about to be its owners' again. */
void ofpi_rdm_path_deregister_memory(struct ofpi_rdm_path *path);
/* What a peer has to know of them. */
void ofpi_rdm_registration_fill_pieces(const struct ofpi_rdm_registration *registration,
                                       struct ofpi_rdm_packet *header);

#endif
