/* SPDX-License-Identifier: BSD-3-Clause */
#include "core.h"

struct core_calls core;
