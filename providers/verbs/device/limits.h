/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_LIMITS_H
#define VERBS_LIMITS_H

#include "objects.h"

/* Fill in port->limits. An error with a text: nothing can be opened on this device, as where too little memory may be locked. */
int verbs_limits_probe(struct verbs_port *port, char *text, size_t text_size);
/* "RLIMIT_MEMLOCK is 64 KiB; …": what to do where memory cannot be registered. */
void verbs_memlock_describe(char *text, size_t text_size);

#endif
