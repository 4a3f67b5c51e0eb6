/* SPDX-License-Identifier: BSD-3-Clause */
/* Keep-alive: a queue pair without work never notices that nobody is there any more, so it gets some. */
#ifndef VERBS_ALIVE_H
#define VERBS_ALIVE_H

#include "packet/packet.h"

void verbs_alive_start(struct verbs_rdm *rdm);
void verbs_alive_stop(struct verbs_rdm *rdm);

#endif
