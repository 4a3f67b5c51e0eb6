/* SPDX-License-Identifier: BSD-3-Clause */
/* ofp_host_id of the contents of one file and the inode of another. Any thread. */
#ifndef OFPI_HOST_H
#define OFPI_HOST_H

#include <stddef.h>
#include <stdint.h>

int ofpi_host_id_read(const char *boot_path, const char *space_path, uint64_t *id, char *text, size_t text_size);
/* The id that OFIPY_HOST_ID makes of `id`; an empty setting leaves it as it is. */
uint64_t ofpi_host_id_compute(uint64_t id, const char *setting);

#endif
