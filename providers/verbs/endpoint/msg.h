/* SPDX-License-Identifier: BSD-3-Clause */
/* Connected endpoints: how a connection is made, and how it ends. */
#ifndef VERBS_MSG_H
#define VERBS_MSG_H

#include "objects.h"

/* What an id of an endpoint hears. */
void verbs_msg_handle_event(struct verbs_listener *listener, const struct verbs_event *event);
int verbs_msg_connect(struct ofp_peer *peer, char *text, size_t text_size);
int verbs_msg_accept(struct ofp_peer *peer, const void *data, size_t length);
int verbs_msg_shutdown(struct ofp_peer *peer);
/* Ends what was shut down, as soon as nothing is under way. */
void verbs_msg_progress_shutdown(struct verbs_endpoint *endpoint);
void verbs_msg_peer_disconnect(struct ofp_peer *peer);

#endif
