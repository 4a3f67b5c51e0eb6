/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keys of a domain: the one that it proves, and further ones that it accepts from peers, so that the processes of a
 * job can change to a new key one by one.
 *
 * A key ring is never changed. When a file has changed, the domain gets another ring. A connection that is being set up
 * retains the ring that it has begun with. No function here has a lock: the domain's lock guards a ring's users, and the
 * files.
 */
#ifndef OFPI_KEYRING_H
#define OFPI_KEYRING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "ofipy/services.h"
#include "proof/key.h"
#include "proof/sha256.h"

/* The key of OFIPY_AUTH_KEY_FILE, and those of OFIPY_AUTH_KEY_FILE_ACCEPTED. */
#define OFPI_KEYS_MAX 8
/* Length of the text that names a key in TLS. */
#define OFPI_KEY_IDENTITY_SIZE 32

/* A key, and what is derived from it for each of its uses. */
struct ofpi_ring_key {
    struct ofpi_key key; /* as read: what tcp's proof uses */
    uint8_t tls_key[OFPI_SHA256_SIZE];
    char tls_identity[OFPI_KEY_IDENTITY_SIZE + 1]; /* names the key to a peer, in hex */
    uint8_t verbs_key[OFPI_SHA256_SIZE];
};

/* keys[0] is the one to prove. All are different, and all are accepted. */
struct ofpi_keyring {
    uint32_t users;
    uint32_t count;
    struct ofpi_ring_key keys[];
};

/* One user. NULL: out of memory. Of equal keys the first counts. */
struct ofpi_keyring *ofpi_keyring_create(const struct ofpi_key *keys, uint32_t count);
/* NULL is allowed. */
struct ofpi_keyring *ofpi_keyring_retain(struct ofpi_keyring *ring);
/* The last user's call clears and frees the ring. NULL is allowed. */
void ofpi_keyring_release(struct ofpi_keyring *ring);

/* Go to the key to prove next if the peer has refused this one. False: there is none. NULL is allowed. */
bool ofpi_keyring_advance(const struct ofpi_keyring *ring, uint32_t *number);

/* The state of a file: a file that has changed has another one. */
struct ofpi_key_state {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec modified, changed;
};

/* The files behind a ring. The domain owns it. */
struct ofpi_key_files {
    char *paths[OFPI_KEYS_MAX]; /* owned */
    struct ofpi_key_state states[OFPI_KEYS_MAX];
    uint32_t count;            /* 0: no key is set */
    bool read_once;            /* a path leads to a descriptor, which may be of another file meanwhile */
    struct ofpi_keyring *ring; /* one user; NULL: no key is set */
};

/*
 * Read the files. `own`: OFIPY_AUTH_KEY_FILE; NULL or "": no key is set. `accepted`: OFIPY_AUTH_KEY_FILE_ACCEPTED, paths
 * with ':' between them. 0, or a negative errno with a text, and nothing to close.
 */
int ofpi_key_files_open(struct ofpi_key_files *files, const char *own, const char *accepted, char *text,
                        size_t text_size);
/*
 * Read them again if one has changed. 0, or a negative errno with a text, once for each change: a file cannot be used, and
 * the ring stays. With a path below /proc or /dev/fd the files are read once.
 */
int ofpi_key_files_update(struct ofpi_key_files *files, char *text, size_t text_size);
/* The same. If the files cannot be used, the provider's log says why the ring stays. */
void ofpi_key_files_update_and_log(struct ofpi_key_files *files, const struct ofp_core *core, const char *provider);
void ofpi_key_files_close(struct ofpi_key_files *files);

#endif
