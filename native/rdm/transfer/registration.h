/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that is registered with the channel for one transfer. */
#ifndef OFPI_RDM_REGISTRATION_H
#define OFPI_RDM_REGISTRATION_H

#include "rdm/transfer/rdm.h"

struct ofpi_rdm_registration {
    struct ofp_list node; /* path->holds */
    uint32_t count;
    struct ofpi_memory memory[];
};

/*
 * Register the first `length` bytes of these pieces until ofpi_rdm_memory_deregister. NULL: the device cannot
 * register them, or the channel has neither gets nor puts. `regions`, and each entry of it, may be NULL.
 */
struct ofpi_rdm_registration *ofpi_rdm_memory_register(struct ofpi_rdm_path *path, const struct iovec *iov,
                                                       struct ofp_region *const *regions, uint32_t count,
                                                       uint64_t length, uint32_t access);
void ofpi_rdm_memory_deregister(struct ofpi_rdm_path *path,
                                struct ofpi_rdm_registration *registration); /* NULL is allowed */
/*
 * Deregister all memory of a path, because its owners are about to use it again. The structures stay with their
 * transfers.
 */
void ofpi_rdm_path_deregister_memory(struct ofpi_rdm_path *path);
/* Write the description of the memory that the peer needs to the header. */
void ofpi_rdm_registration_fill_pieces(const struct ofpi_rdm_registration *registration,
                                       struct ofpi_rdm_packet *header);

#endif
