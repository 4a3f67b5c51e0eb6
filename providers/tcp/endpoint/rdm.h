/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_RDM_H
#define TCP_RDM_H

#include "objects.h"

int tcp_rdm_open(struct ofp_endpoint *base, const char *service, char *text, size_t text_size);

#endif
