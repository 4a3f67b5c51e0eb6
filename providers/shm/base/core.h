/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SHM_CORE_H
#define SHM_CORE_H

#include "ofipy/services.h"

extern const struct ofp_core *shm_core; /* set once, when the provider is loaded */

#endif
