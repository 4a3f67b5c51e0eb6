/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Text for a code with which the peer's ofpi_remote_access_acquire has refused an access, for the initiator; NULL:
 * another code.
 */
#ifndef OFPI_STRERROR_H
#define OFPI_STRERROR_H

const char *ofpi_refusal_describe(int code);

#endif
