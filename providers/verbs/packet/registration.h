/* SPDX-License-Identifier: BSD-3-Clause */
/* Channel registrations, for reads and writes and for announced messages: entries of the channel's table. */
#ifndef VERBS_REGISTRATION_H
#define VERBS_REGISTRATION_H

#include "packet/packet.h"

int verbs_transfer_register(struct ofpi_path *path, struct ofpi_memory *memory, uint32_t access);
void verbs_transfer_deregister(struct ofpi_path *path, struct ofpi_memory *memory);
bool verbs_path_can_use_key(const struct ofpi_path *path, uint64_t key);

#endif
