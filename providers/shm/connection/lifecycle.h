/* SPDX-License-Identifier: BSD-3-Clause */
/* How links are established, lost, and end. */
#ifndef SHM_LIFECYCLE_H
#define SHM_LIFECYCLE_H

#include "shm.h"

/* Free a link: its number is retired, our bounce buffers become free. The core has released the link before. */
void shm_link_free(struct shm_link *link);
/* As ofpi_meeting_ops.dial, .close and .use. */
int shm_peer_call(struct ofp_peer *peer, char *text, size_t text_size);
void shm_peer_close(struct ofp_peer *peer);
void shm_peer_report_up(struct ofp_peer *peer);
/* Report to the core that the peer is up. */
void shm_link_report_up(struct shm_link *link);
/* Compose the user's error text for a failed call. `why`: NULL: what the positive errno says. */
void shm_failure_describe(const struct ofp_peer *peer, int error, const char *why, char *text, size_t text_size);
/* Mark the peer lost for this reason; the link is freed, or drains, afterwards. */
void shm_link_mark_lost(struct shm_link *link, int error, bool process_gone, const char *text);
/* Mark the peer lost since it broke the protocol. */
void shm_link_fail_protocol(struct shm_link *link, const char *what);
/* Progress of links: end drained links, send queued controls. Returns events handled. */
int shm_links_progress(struct shm_endpoint *endpoint);
/* The peer's GOODBYE arrived; the link may be freed afterwards. */
void shm_goodbye_arrived(struct shm_link *link, bool ended);
/*
 * Our segment is replaced: end all links with the old one; then connect the links again that had not been established.
 */
void shm_links_disconnect(struct shm_endpoint *endpoint);
void shm_links_connect_again(struct shm_endpoint *endpoint);
/* Entries of the core's endpoint table. */
int shm_link_connect(struct ofp_peer *peer, char *text, size_t text_size);
void shm_link_disconnect(struct ofp_peer *peer);

#endif
