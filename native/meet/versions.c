/* SPDX-License-Identifier: BSD-3-Clause */
#include "versions.h"

#include <errno.h>
#include <stdio.h>

static unsigned find_smaller(unsigned first, unsigned second) { return first < second ? first : second; }

bool ofpi_versions_are_compatible(struct ofpi_versions ours, struct ofpi_versions theirs)
{
    unsigned spoken = find_smaller(ours.newest, theirs.newest);

    return spoken >= ours.oldest && spoken >= theirs.oldest;
}

static void describe_range(struct ofpi_versions versions, char text[32])
{
    if (versions.oldest == versions.newest)
        snprintf(text, 32, "version %u", versions.newest);
    else
        snprintf(text, 32, "versions %u to %u", versions.oldest, versions.newest);
}

void ofpi_versions_describe(const char *protocol, struct ofpi_versions ours, struct ofpi_versions theirs, char *text,
                            size_t text_size)
{
    char of_peer[32], own[32];

    describe_range(theirs, of_peer);
    describe_range(ours, own);
    snprintf(text, text_size, "the peer speaks %s of %s, and this side %s; update ofipy on %s", of_peer, protocol, own,
             theirs.newest < ours.oldest ? "the peer's side" : "this side");
}

void ofpi_versions_fail_caller(struct ofp_peer *peer, const char *text)
{
    if (!peer || peer->state == OFP_PEER_CONNECTING || peer->state == OFP_PEER_UP)
        return;
    ofp_peer_connecting(peer);
    ofp_peer_lost(peer, EPROTONOSUPPORT, false, text);
}
