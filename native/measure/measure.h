/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions that the measuring loops share. They take no lock, as user code takes none. The loops call the core
 * through ofpi_measure_core only: a direct call would link a second core into their shared object. Only the matching
 * is linked, which ofp_measure_match runs without an endpoint.
 */
#ifndef OFPI_MEASURE_H
#define OFPI_MEASURE_H

#include "ofipy/measure.h"

/* The calls that ofp_measure_bind received. */
extern struct ofp_measure_calls ofpi_measure_core;

/* Post all operations, with progress while there is no space. */
int ofpi_measure_post(struct ofp_endpoint *endpoint, const struct ofp_operation *ops, uint64_t count);

/*
 * Wait for completions, and subtract them from the counts of open receives and of other open operations. An error
 * completion is returned as its errno.
 */
int ofpi_measure_completions_wait(struct ofp_cq *cq, uint64_t *receives_open, uint64_t *others_open);

/*
 * A send of `length` bytes from send_buffer. If the flags request no completion level and the length allows it, the
 * send is injected.
 */
struct ofp_operation ofpi_measure_send(const struct ofp_measure_attr *attr, uint64_t length);

/* A receive of `length` bytes into receive_buffer. */
struct ofp_operation ofpi_measure_recv(const struct ofp_measure_attr *attr, uint64_t length);

/* A write of all of send_buffer, or a read into all of receive_buffer. Writes are injected as sends are. */
struct ofp_operation ofpi_measure_remote(const struct ofp_measure_attr *attr, uint16_t op);

#endif
