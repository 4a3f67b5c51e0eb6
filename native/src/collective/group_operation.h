/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives that are posted as operations (OFP_BARRIER …), at once or as deferred work. The lock is held. */
#ifndef OFPI_GROUP_OPERATION_H
#define OFPI_GROUP_OPERATION_H

#include "collective/collective.h"

/* The rows of struct ofpi_upper. */
int ofpi_group_operation_check(struct ofpi_endpoint *endpoint, const struct ofp_operation *op);
int ofpi_group_operation_post(struct ofpi_endpoint *endpoint, const struct ofp_operation *op);
/* Complete the operation at its group's endpoint, and free the collective. */
void ofpi_group_operation_end(struct ofpi_collective *collective, struct ofpi_endpoint *endpoint);

#endif
