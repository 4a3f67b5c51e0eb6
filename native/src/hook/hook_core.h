/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_HOOK_CORE_H
#define OFPI_HOOK_CORE_H

#include "ofipy/hook.h"

/* The services for hooks. */
extern const struct ofp_hook_core ofpi_hook_core;

#endif
