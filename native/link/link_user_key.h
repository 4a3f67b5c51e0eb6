/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A random key of the user, which processes of one host prove to each other over the network's way, as shared memory proves the
 * user by itself: $XDG_RUNTIME_DIR/ofipy/key, else ~/.local/state/ofipy/key. Made at first use; nobody else may read it.
 */
#ifndef LINK_USER_KEY_H
#define LINK_USER_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "ofipy/objects.h"

/* 0, or a negative errno with a text that names the file and what to do. Any thread; reads a file. */
int link_user_key_read(uint8_t key[OFP_KEY_SIZE], char *text, size_t text_size);
/* The same of a file by name, whose folder is there. */
int link_key_file_read(const char *path, uint8_t key[OFP_KEY_SIZE], char *text, size_t text_size);

#endif
