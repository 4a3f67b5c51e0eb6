/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of gets and puts, and of messages that wait for the peer to get them: entries of the channel's table. */
#ifndef VERBS_HOLD_H
#define VERBS_HOLD_H

#include "packet/packet.h"

int verbs_hold(struct ofpi_path *path, struct ofpi_memory *memory, uint32_t access);
void verbs_release(struct ofpi_path *path, struct ofpi_memory *memory);
bool verbs_knows_key(const struct ofpi_path *path, uint64_t key);

#endif
