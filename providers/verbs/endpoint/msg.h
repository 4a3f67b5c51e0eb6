/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connected endpoints: connection setup and its end. States: address and route resolved, requested, established,
 * shutting down (`ending_peer`), closed.
 */
#ifndef VERBS_MSG_H
#define VERBS_MSG_H

#include "objects.h"

/* Handles the connection manager's events of an endpoint's id. */
void verbs_msg_handle_event(struct verbs_listener *listener, const struct verbs_event *event);
int verbs_msg_connect(struct ofp_peer *peer, char *text, size_t text_size);
int verbs_msg_accept(struct ofp_peer *peer, const void *data, size_t length);
int verbs_msg_shutdown(struct ofp_peer *peer);
/* End the connection that was shut down, once no send is in flight. */
void verbs_msg_progress_shutdown(struct verbs_endpoint *endpoint);
void verbs_msg_peer_disconnect(struct ofp_peer *peer);

#endif
