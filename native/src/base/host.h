/* SPDX-License-Identifier: BSD-3-Clause */
/* Compute the result of ofp_host_id from the contents of one file and the inode of another. Any thread. */
#ifndef OFPI_HOST_H
#define OFPI_HOST_H

#include <stddef.h>
#include <stdint.h>

int ofpi_host_id_read(const char *boot_path, const char *space_path, uint64_t *id, char *text, size_t text_size);
/* Combine `id` with the value of OFIPY_HOST_ID; an empty setting leaves it unchanged. */
uint64_t ofpi_host_id_compute(uint64_t id, const char *setting);

#endif
