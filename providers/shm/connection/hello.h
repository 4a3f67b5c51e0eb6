/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers of meeting packets: the entries of struct shm_upper about meetings. */
#ifndef SHM_HELLO_H
#define SHM_HELLO_H

#include "connection/meet.h"

/* As ofpi_meeting_ops.accept and .refuse. */
int shm_call_accept(struct ofp_peer *peer, void *request);
void shm_call_put_off(struct ofp_peer *peer, void *request);
int shm_meeting_connected(struct shm_meeting *meeting);
void shm_meeting_received(struct shm_meeting *meeting, struct shm_received *received);
void shm_meeting_disconnected(struct shm_meeting *meeting);
void shm_meeting_failed(struct shm_meeting *meeting, int error, const char *text);

#endif
