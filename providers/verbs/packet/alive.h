/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keep-alive. A queue pair without work never detects that its peer has ended, so an idle path gets an empty write.
 */
#ifndef VERBS_ALIVE_H
#define VERBS_ALIVE_H

#include "packet/packet.h"

void verbs_alive_start(struct verbs_rdm *rdm);
void verbs_alive_stop(struct verbs_rdm *rdm);

#endif
