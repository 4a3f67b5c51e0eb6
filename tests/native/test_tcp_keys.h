/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints over TCP with and without keys, and whether they talk. */
#ifndef TEST_TCP_KEYS_H
#define TEST_TCP_KEYS_H

#include "test_tcp_fixture.h"

#include <sys/stat.h>

static inline void write_key(char *path, const char *key, mode_t mode)
{
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, key, strlen(key)), (ssize_t)strlen(key));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static inline void side_open_with(struct side *side, const char *key)
{
    char path[] = "/tmp/ofipy-key-XXXXXX";

    if (key)
        write_key(path, key, 0600);
    setenv("OFIPY_AUTH_KEY_FILE", key ? path : "", 1);
    setenv("OFIPY_CONNECT_TIMEOUT", "2", 1);
    side_open(side, false, OFP_PROGRESS_MANUAL, 0);
    unsetenv("OFIPY_AUTH_KEY_FILE");
    unsetenv("OFIPY_CONNECT_TIMEOUT");
    if (key)
        unlink(path);
}

static inline void open_with(struct side *side, const char *key)
{
    setenv("OFIPY_TCP_INTERFACE", "lo", 1);
    side_open_with(side, key);
}

/* Whether a message gets through, and the reason if it does not. */
static inline int try_to_talk_or(struct side *from, struct side *to, char reason[OFP_TEXT_MAX])
{
    uint8_t out = 1, in = 0;
    struct ofp_operation send = tagged(OFP_TSEND, from->peer, 1, &out, 1, 1);
    struct ofp_completion row;

    send.flags = OFP_DELIVERY_COMPLETE;
    post(to, tagged(OFP_TRECV, OFP_PEER_ANY, 1, &in, 1, 2));
    post(from, send);
    row = next_completion(from, to);
    if (!row.error) {
        assert_int_equal(next_completion(to, from).context, 2);
        assert_int_equal(in, 1);
    }
    ofp_reason(row.provider_error, reason, OFP_TEXT_MAX);
    return row.error;
}

static inline int try_to_talk(struct side *from, struct side *to)
{
    char ignored[OFP_TEXT_MAX];

    return try_to_talk_or(from, to, ignored);
}

/* A warning among what waits says this. */
static inline bool is_warned_of(const char *words)
{
    char provider[32], text[OFP_TEXT_MAX];
    bool found = false;
    int level;

    while (ofp_log_next(&level, provider, sizeof(provider), text, sizeof(text)))
        found |= level == OFP_LOG_WARNING && strstr(text, words);
    return found;
}

#endif
