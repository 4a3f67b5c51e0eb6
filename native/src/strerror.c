/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "parts.h"

const char *ofp_strerror(int error)
{
    switch (error < 0 ? -error : error) {
    case OFP_ETOOSMALL:
        return "the buffer for the result is too small";
    case OFP_EADDRNOTAVAIL:
        return "the address vector holds no address at this index";
    case OFP_ETRUNC:
        return "the message was longer than the receive buffer";
    case OFP_ENOKEY:
        return "no memory region has this id or key";
    case OFP_EOVERRUN:
        return "a queue overran";
    case OFP_ENORX:
        return "the peer has no receive buffer";
    case OFP_EPEERLOST:
        return "the peer is gone";
    case OFP_EFORKED:
        return "the object belongs to the parent process";
    case OFP_ETHREAD:
        return "the domain is bound to another thread";
    case OFP_EREMOTE:
        return "the peer refused the operation";
    case OFP_ETOOLONG:
        return "the message was longer than OFIPY_BOUNCE_SIZE, which bounds receives without a buffer where the "
               "transport matches messages itself";
    default:
        /* glibc's strerror keeps known errors as constants; only unknown numbers share a buffer. */
        return strerror(error < 0 ? -error : error);
    }
}
