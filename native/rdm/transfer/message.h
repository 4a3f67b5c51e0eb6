/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages on their way from a packet to the core, and what is stored of a message until a receive matches it.
 *
 * An eager message carries its payload. An announced message has it at the sender, or in a copy here if the core had no
 * space for an eager one. pull.c starts the receive of an announced message.
 */
#ifndef OFPI_RDM_MESSAGE_H
#define OFPI_RDM_MESSAGE_H

#include "rdm/transfer/rdm.h"

/* Indices of an announced message's provider_data. */
enum { OFPI_RDM_MESSAGE_PATH, OFPI_RDM_MESSAGE_STORED, OFPI_RDM_MESSAGE_ID };

/* An announced message that no receive has matched. The path's list owns it; receive_start frees it. */
struct ofpi_rdm_unexpected {
    struct ofp_list node;           /* path->announced */
    bool whole;                     /* `pieces` is the payload itself */
    uint32_t count;                 /* of pieces */
    struct ofpi_rdm_piece pieces[]; /* the payload in the sender's memory */
};

/* The stored part of a message; NULL if nothing is stored. */
static inline struct ofpi_rdm_unexpected *ofpi_rdm_unexpected_of(const struct ofp_message *message)
{
    return (struct ofpi_rdm_unexpected *)(uintptr_t)message->provider_data[OFPI_RDM_MESSAGE_STORED];
}
/* Remove it from its path and free it. NULL is allowed. */
void ofpi_rdm_unexpected_free(struct ofpi_rdm_unexpected *stored);

/* The message that a packet of kind EAGER or ANNOUNCE describes. */
struct ofp_message ofpi_rdm_message_build(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet,
                                          uint64_t length);
/* Announce a message to the core. Owns `stored`, also on failure. 0, or -EAGAIN: the core has no space. */
int ofpi_rdm_message_announce(struct ofpi_rdm_path *path, struct ofp_message *message,
                              struct ofpi_rdm_unexpected *stored);
/* Deliver the message of an EAGER packet. 0, or -EAGAIN: the core has no space, and the packet waits. */
int ofpi_rdm_eager_handle(struct ofpi_rdm_path *path, const struct ofpi_rdm_packet *packet);

#endif
