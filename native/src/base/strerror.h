/* SPDX-License-Identifier: BSD-3-Clause */
/* What the initiator reads of the codes with which its peer's ofpi_remote_access_acquire refused; NULL: none of them. */
#ifndef OFPI_STRERROR_H
#define OFPI_STRERROR_H

const char *ofpi_refusal_describe(int code);

#endif
