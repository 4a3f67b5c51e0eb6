/* SPDX-License-Identifier: BSD-3-Clause */
/* A domain of several devices. The functions are those of ofp_domain_ops. */
#ifndef LINK_DEVICE_H
#define LINK_DEVICE_H

#include "ofipy/provider.h"

int link_domain_open(struct ofp_domain *outer, char *text, size_t text_size);
void link_domain_close(struct ofp_domain *outer);

#endif
