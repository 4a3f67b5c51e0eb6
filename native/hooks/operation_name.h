/* SPDX-License-Identifier: BSD-3-Clause */
/* What hooks call operations: as the methods of Python that post them. */
#ifndef OPERATION_NAME_H
#define OPERATION_NAME_H

#include "ofipy/types.h"

static inline const char *operation_name(uint32_t code)
{
    static const char *const names[] = {
        [OFP_SEND] = "send",
        [OFP_RECV] = "recv",
        [OFP_TSEND] = "tsend",
        [OFP_TRECV] = "trecv",
        [OFP_READ] = "read",
        [OFP_WRITE] = "write",
        [OFP_ATOMIC] = "atomic",
        [OFP_FETCH_ATOMIC] = "fetch_atomic",
        [OFP_COMPARE_ATOMIC] = "compare_atomic",
    };

    return code < sizeof(names) / sizeof(names[0]) && names[code] ? names[code] : "internal";
}

#endif
