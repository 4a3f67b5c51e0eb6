/* SPDX-License-Identifier: BSD-3-Clause */
/* The core's name for OFP_CHECK. An alias without parameters, so that a failed check shows its condition as written. */
#ifndef OFPI_CHECK_H
#define OFPI_CHECK_H

#include "ofipy/check.h"

#define OFPI_CHECK OFP_CHECK

#endif
