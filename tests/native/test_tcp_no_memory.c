/* SPDX-License-Identifier: BSD-3-Clause */
/* Every allocation on the way of tcp's endpoints fails once. */
#include "no_memory.h"
