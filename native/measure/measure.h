/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steps that the measuring loops share; like a program's own they take no lock. The loops call the core by
 * ofpi_measure_core alone: a direct call would link a second core into their shared object. Only the matching is linked,
 * which ofp_measure_match runs without an endpoint.
 */
#ifndef OFPI_MEASURE_H
#define OFPI_MEASURE_H

#include "ofipy/measure.h"

/* What ofp_measure_bind was given. */
extern struct ofp_measure_calls ofpi_measure_core;

/* Post all of these, with progress in between while there is no room. */
int ofpi_measure_post(struct ofp_endpoint *endpoint, const struct ofp_operation *ops, uint64_t count);

/* Wait for completions and take what came off both counts, receives and all others; an error row is an error. */
int ofpi_measure_completions_wait(struct ofp_cq *cq, uint64_t *receives_open, uint64_t *others_open);

/*
 * A send of `length` bytes from send_buffer. Where no level of completion is asked for it is injected if the provider does
 * that without a copy of the core's.
 */
struct ofp_operation ofpi_measure_send(const struct ofp_measure_attr *attr, uint64_t length);

/* A receive of `length` bytes into receive_buffer. */
struct ofp_operation ofpi_measure_recv(const struct ofp_measure_attr *attr, uint64_t length);

/* A write of all of send_buffer, or a read into all of receive_buffer: the same of it as of a message. */
struct ofp_operation ofpi_measure_remote(const struct ofp_measure_attr *attr, uint16_t op);

#endif
