/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * OFP_COLLECTIVE_SIZED: first a collective of the same kind exchanges the lengths, 8 bytes a block; then the result is
 * allocated, and the data follow.
 */
#ifndef OFPI_SIZED_H
#define OFPI_SIZED_H

#include "collective/collective.h"

/* Describe the collective of the lengths. 0, -ENOMEM. */
int ofpi_sized_start(struct ofpi_collective *collective);
/* The lengths have come: describe the collective of the data. -EMSGSIZE: they are more than memory has; -ENOMEM. */
int ofpi_sized_start_data(struct ofpi_collective *collective);

#endif
