/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/strerror.h"

#include <errno.h>
#include <string.h>

#include "ofipy/ofp.h"

const char *ofp_strerror(int error)
{
    switch (error < 0 ? -error : error) {
    case OFP_ETOOSMALL:
        return "the buffer for the result is too small";
    case OFP_EADDRNOTAVAIL:
        return "the address vector has no such peer: it was never inserted, or it was removed";
    case OFP_ETRUNC:
        return "the message was longer than the receive buffer";
    case OFP_ENOKEY:
        return "no memory region has this key";
    case OFP_EOVERRUN:
        return "a queue overran";
    case OFP_ENORX:
        return "the peer has no receive buffer";
    case OFP_EPEERLOST:
        return "the peer is gone";
    case OFP_EPEERLEFT:
        return "the peer has left the job";
    case OFP_EPEERDIED:
        return "the peer, a rank of the job, has died";
    case OFP_EMISMATCH:
        return "the members of the group do not make the same calls";
    case OFP_EFORKED:
        return "the object belongs to the parent process";
    case OFP_ETHREAD:
        return "the domain is bound to another thread";
    case OFP_EREMOTE:
        return "the peer refused the operation";
    case OFP_ENOREGION:
        return "no region of this domain has this id: it is closed, or another domain's";
    case OFP_EEXHAUSTED:
        return "every entry of the table is in use, or used up";
    case EDOM:
        return "the tag has the bit that tags of groups have, and the endpoint has had a group";
    case OFP_ETOOLONG:
        return "the message was longer than OFIPY_BOUNCE_SIZE, which bounds receives without a buffer where the "
               "transport matches messages itself";
    default:
        /* glibc's strerror returns constants for known errors; only unknown numbers share a buffer. */
        return strerror(error < 0 ? -error : error);
    }
}

const char *ofpi_refusal_describe(int code)
{
    switch (code) {
    case OFP_ENOKEY:
        return "no region of the peer has this key; it may have been closed";
    case ERANGE:
        return "the peer's region does not reach so far";
    case EACCES:
        return "the peer's region does not grant this";
    default:
        return NULL;
    }
}
