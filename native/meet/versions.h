/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Versions of a protocol that two sides agree on. Each side says in its hello the newest and the oldest version that it
 * speaks. Both speak the smaller of the newest ones, if that is not below an oldest one. docs/reference/protocols.md
 */
#ifndef OFPI_VERSIONS_H
#define OFPI_VERSIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "ofipy/services.h"

/* All versions that one side speaks. */
struct ofpi_versions {
    unsigned newest, oldest;
};

/* Whether the sides have a version in common: then the smaller of the newest ones is one. */
bool ofpi_versions_are_compatible(struct ofpi_versions ours, struct ofpi_versions theirs);
/* Write what the sides speak and where to update ofipy, for an error EPROTONOSUPPORT. `protocol`: "the shm protocol". */
void ofpi_versions_describe(const char *protocol, struct ofpi_versions ours, struct ofpi_versions theirs, char *text,
                            size_t text_size);
/*
 * A peer has called, and has no version in common with this side. End the operations that name it, with the text. A peer
 * that is connected stays. So does one that we are calling: it refuses us by itself. NULL: the core does not accept it.
 */
void ofpi_versions_fail_caller(struct ofp_peer *peer, const char *text);

#endif
