/* SPDX-License-Identifier: BSD-3-Clause */
/* Every allocation on the way of endpoints over a packet channel fails once, over a channel that has packets only. */
#include "no_memory.h"
