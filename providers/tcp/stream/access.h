/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TCP_ACCESS_H
#define TCP_ACCESS_H

#include "objects.h"

/* Acquire every segment of a request, or none. NULL: *error is a negative errno. */
struct tcp_accesses *tcp_accesses_acquire(struct tcp_connection *connection, const struct tcp_header *header,
                                          uint32_t rights, int *error);
void tcp_accesses_release(struct tcp_accesses *accesses);
/*
 * Describe the bytes from `offset` on, in at most `space` pieces. -1: a region was closed, and its memory is not valid
 * any more.
 */
int tcp_accesses_fill_iov(const struct tcp_accesses *accesses, uint64_t offset, struct iovec *iov, uint32_t space);

#endif
