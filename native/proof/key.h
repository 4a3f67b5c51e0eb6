/* SPDX-License-Identifier: BSD-3-Clause */
/* An authentication key, as the file contains it that OFIPY_AUTH_KEY_FILE or OFIPY_AUTH_KEY_FILE_ACCEPTED names. */
#ifndef OFPI_KEY_H
#define OFPI_KEY_H

#include <stddef.h>
#include <stdint.h>

#define OFPI_KEY_MIN 16
#define OFPI_KEY_MAX 1024

struct ofpi_key {
    uint8_t bytes[OFPI_KEY_MAX];
    size_t length; /* 0: no key is set, and nothing is proven */
};

/*
 * Read the key file `path`; NULL or "": no key is set. 0, or a negative errno with a text that names the setting, the file
 * and a remedy, and says nothing about the key's contents. After an error *key is empty.
 */
int ofpi_key_read(struct ofpi_key *key, const char *setting, const char *path, char *text, size_t text_size);

#endif
