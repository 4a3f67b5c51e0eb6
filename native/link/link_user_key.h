/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A random key of the user. Processes of one host prove it to each other on a network lane, where the kernel proves
 * no user as it does for shared memory. The file is $XDG_RUNTIME_DIR/ofipy/key, else ~/.local/state/ofipy/key. It is
 * created at first use, and only the user may read it.
 */
#ifndef LINK_USER_KEY_H
#define LINK_USER_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "ofipy/objects.h"

/* 0, or a negative errno with a text that names the file and the remedy. Any thread may call it; it reads a file. */
int link_user_key_read(uint8_t key[OFP_KEY_SIZE], char *text, size_t text_size);
/* The same for a file by name, whose folder exists. */
int link_key_file_read(const char *path, uint8_t key[OFP_KEY_SIZE], char *text, size_t text_size);

#endif
