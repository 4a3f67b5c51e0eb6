/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VERBS_LIMITS_H
#define VERBS_LIMITS_H

#include "objects.h"

/*
 * Fill port->limits. Returns an errno with a text if no endpoint can be opened on the device, for example if too
 * little memory may be locked.
 */
int verbs_limits_probe(struct verbs_port *port, char *text, size_t text_size);
/* Describe the limit on locked memory and how to raise it. */
void verbs_memlock_describe(char *text, size_t text_size);

#endif
