/* SPDX-License-Identifier: BSD-3-Clause */
/* How links come up, are lost, and end. */
#ifndef SHM_LIFECYCLE_H
#define SHM_LIFECYCLE_H

#include "shm.h"

/* Everything goes, the number is retired, our bounce buffers come back. The core does not know the link any more. */
void shm_link_free(struct shm_link *link);
/* Both sides have each other: tell the core. */
void shm_link_established(struct shm_link *link, enum ofpi_meet_event event);
/* The core hears that its peer is up. */
void shm_link_report_up(struct shm_link *link);
/* Call its peer; the link is lost if that cannot even begin. */
void shm_link_start_call(struct shm_link *link);
/* The way to the peer is lost for this reason; the link is gone, or leaving, afterwards. */
void shm_link_mark_lost(struct shm_link *link, int error, bool process_gone, const char *text);
/* It broke the protocol. */
void shm_link_fail_protocol(struct shm_link *link, const char *what);
/* Dying links that are drained, controls that wait. Returns events handled. */
int shm_links_progress(struct shm_endpoint *endpoint);
/* The initiator went away without an ACK: ask it ourselves, for there may be operations waiting. */
void shm_link_replace(struct shm_link *link);
/* Its GOODBYE arrived; the link may be gone afterwards. */
void shm_goodbye_arrived(struct shm_link *link, bool ended);
/* Our segment is given up: part with everybody who has it; and with the fresh one go on with what was not over. */
void shm_links_disconnect(struct shm_endpoint *endpoint);
void shm_links_connect_again(struct shm_endpoint *endpoint);
/* As the core's entries. */
int shm_link_connect(struct ofp_peer *peer, char *text, size_t text_size);
void shm_link_disconnect(struct ofp_peer *peer);

#endif
