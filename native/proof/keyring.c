/* SPDX-License-Identifier: BSD-3-Clause */
#include "proof/keyring.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define OWN "OFIPY_AUTH_KEY_FILE"
#define ACCEPTED "OFIPY_AUTH_KEY_FILE_ACCEPTED"

/* Uses of a key (HKDF's info). A key that is derived for one use says nothing about the others. */
#define USE_TLS_KEY "ofipy tls13 psk 1"
#define USE_TLS_IDENTITY "ofipy tls13 identity 1"
#define USE_VERBS "ofipy verbs proof 1"

/* ---------------------------------------------------------------------------------------------------------- key rings */

static void compute_derived_keys(struct ofpi_ring_key *of)
{
    uint8_t identity[OFPI_SHA256_SIZE];

    ofpi_hkdf_compute(of->key.bytes, of->key.length, USE_TLS_KEY, of->tls_key);
    ofpi_hkdf_compute(of->key.bytes, of->key.length, USE_VERBS, of->verbs_key);
    ofpi_hkdf_compute(of->key.bytes, of->key.length, USE_TLS_IDENTITY, identity);
    for (size_t i = 0; i < OFPI_KEY_IDENTITY_SIZE / 2; i++)
        snprintf(of->tls_identity + 2 * i, 3, "%02x", identity[i]);
}

static bool is_key_there(const struct ofpi_keyring *ring, const struct ofpi_key *key)
{
    for (uint32_t i = 0; i < ring->count; i++)
        if (ring->keys[i].key.length == key->length && memcmp(ring->keys[i].key.bytes, key->bytes, key->length) == 0)
            return true;
    return false;
}

struct ofpi_keyring *ofpi_keyring_create(const struct ofpi_key *keys, uint32_t count)
{
    struct ofpi_keyring *ring = calloc(1, sizeof(*ring) + count * sizeof(ring->keys[0]));

    if (!ring)
        return NULL;
    ring->users = 1;
    for (uint32_t i = 0; i < count; i++)
        if (!is_key_there(ring, &keys[i])) {
            ring->keys[ring->count].key = keys[i];
            compute_derived_keys(&ring->keys[ring->count++]);
        }
    return ring;
}

struct ofpi_keyring *ofpi_keyring_retain(struct ofpi_keyring *ring)
{
    if (ring)
        ring->users++;
    return ring;
}

void ofpi_keyring_release(struct ofpi_keyring *ring)
{
    if (!ring || --ring->users)
        return;
    explicit_bzero(ring->keys, ring->count * sizeof(ring->keys[0]));
    free(ring);
}

bool ofpi_keyring_advance(const struct ofpi_keyring *ring, uint32_t *number)
{
    if (!ring || *number + 1 >= ring->count)
        return false;
    ++*number;
    return true;
}

/* -------------------------------------------------------------------------------------------------------------- files */

/* All zero: there is no such file. */
static struct ofpi_key_state query_state(const char *path)
{
    struct stat status;

    if (stat(path, &status) != 0)
        return (struct ofpi_key_state){0};
    return (struct ofpi_key_state){.device = status.st_dev,
                                   .inode = status.st_ino,
                                   .size = status.st_size,
                                   .modified = status.st_mtim,
                                   .changed = status.st_ctim};
}

static bool are_moments_equal(struct timespec one, struct timespec other)
{
    return one.tv_sec == other.tv_sec && one.tv_nsec == other.tv_nsec;
}

static bool are_states_equal(const struct ofpi_key_state *one, const struct ofpi_key_state *other)
{
    return one->device == other->device && one->inode == other->inode && one->size == other->size &&
           are_moments_equal(one->modified, other->modified) && are_moments_equal(one->changed, other->changed);
}

/* Whether the path leads to a descriptor, which is another file once it has been closed and opened again. */
static bool is_descriptor(const char *path)
{
    return strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/dev/fd/", 8) == 0;
}

/* Whether a file has changed since the last call. The states are stored before the files are read, not after. */
static bool update_states(struct ofpi_key_files *files)
{
    bool changed = false;

    for (uint32_t i = 0; i < files->count; i++) {
        struct ofpi_key_state state = query_state(files->paths[i]);

        changed |= !are_states_equal(&state, &files->states[i]);
        files->states[i] = state;
    }
    return changed;
}

/* Replace the ring by what the files contain now. After an error it stays. */
static int read_ring(struct ofpi_key_files *files, char *text, size_t text_size)
{
    struct ofpi_key *keys = calloc(files->count, sizeof(*keys));
    struct ofpi_keyring *ring = NULL;
    int error = keys ? 0 : -ENOMEM;

    for (uint32_t i = 0; i < files->count && !error; i++)
        error = ofpi_key_read(&keys[i], i ? ACCEPTED : OWN, files->paths[i], text, text_size);
    if (!error && !(ring = ofpi_keyring_create(keys, files->count)))
        error = -ENOMEM;
    if (keys)
        explicit_bzero(keys, files->count * sizeof(*keys));
    free(keys);
    if (error)
        return error;
    ofpi_keyring_release(files->ring);
    files->ring = ring;
    return 0;
}

static int add_path(struct ofpi_key_files *files, const char *path, size_t length)
{
    files->paths[files->count] = strndup(path, length);
    files->read_once |= files->paths[files->count] && is_descriptor(files->paths[files->count]);
    return files->paths[files->count++] ? 0 : -ENOMEM;
}

static int add_accepted(struct ofpi_key_files *files, const char *paths, char *text, size_t text_size)
{
    int error = 0;

    for (const char *end; *paths && !error; paths = *end ? end + 1 : end) {
        end = strchrnul(paths, ':');
        if (end == paths)
            continue;
        if (files->count == OFPI_KEYS_MAX) {
            snprintf(text, text_size, ACCEPTED ": at most %d files are meant, with ':' between them",
                     OFPI_KEYS_MAX - 1);
            return -EINVAL;
        }
        error = add_path(files, paths, (size_t)(end - paths));
    }
    return error;
}

int ofpi_key_files_open(struct ofpi_key_files *files, const char *own, const char *accepted, char *text,
                        size_t text_size)
{
    int error;

    *files = (struct ofpi_key_files){0};
    if (!own || !own[0]) {
        if (!accepted || !accepted[0])
            return 0;
        snprintf(text, text_size,
                 ACCEPTED " is set, and " OWN ", which names the key to prove, is not; set both, or neither");
        return -EINVAL;
    }
    error = add_path(files, own, strlen(own));
    if (!error && accepted)
        error = add_accepted(files, accepted, text, text_size);
    if (!error) {
        update_states(files);
        error = read_ring(files, text, text_size);
    }
    if (error)
        ofpi_key_files_close(files);
    return error;
}

int ofpi_key_files_update(struct ofpi_key_files *files, char *text, size_t text_size)
{
    return !files->read_once && update_states(files) ? read_ring(files, text, text_size) : 0;
}

void ofpi_key_files_update_and_log(struct ofpi_key_files *files, const struct ofp_core *core, const char *provider)
{
    char text[OFP_TEXT_MAX] = "";
    int error = ofpi_key_files_update(files, text, sizeof(text));

    if (error)
        core->log(error == -ENOENT ? OFP_LOG_INFO : OFP_LOG_WARNING, provider,
                  "the keys that were read before stay: %s", text);
}

void ofpi_key_files_close(struct ofpi_key_files *files)
{
    for (uint32_t i = 0; i < files->count; i++)
        free(files->paths[i]);
    ofpi_keyring_release(files->ring);
    *files = (struct ofpi_key_files){0};
}
