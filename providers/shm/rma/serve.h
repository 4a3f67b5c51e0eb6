/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHM_SERVE_H
#define SHM_SERVE_H

#include "shm.h"

/* Serve a REMOTE slot. False: the peer broke the protocol. */
bool shm_request_arrived(struct shm_link *link, const struct shm_content *content);

#endif
