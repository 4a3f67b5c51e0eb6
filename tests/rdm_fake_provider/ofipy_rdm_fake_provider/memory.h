/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that endpoints of this process let each other reach: what a device's table of keys is. A mutex of its own. */
#ifndef RDMFAKE_MEMORY_H
#define RDMFAKE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "rdm/channel.h"

/* `owner`: whose keys they are. `address`: what peers call the first byte. Key 0: one is made, below 2^32. */
int rdmfake_memory_add(const void *owner, void *base, uint64_t address, uint64_t length, uint32_t access,
                       uint64_t *key);
void rdmfake_memory_remove(const void *owner, uint64_t key);
bool rdmfake_memory_knows(const void *owner, uint64_t key);
/* 0, or a positive error when the key does not allow it. */
int rdmfake_memory_copy(const void *owner, uint64_t key, uint64_t address, void *local, uint64_t length, bool put);
/* The same of a word, in one step against all others of this kind; `before`: what it was, 8 bytes. */
int rdmfake_memory_change(const void *owner, const struct ofpi_word *word, void *before);

#endif
