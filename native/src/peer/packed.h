/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Layouts over a transport that cannot move them: the core packs the memory into one buffer, which the transport sends
 * from or fills, and unpacks it when the operation ends. A packed operation has OFPI_PACKED, its transfer's `iov` is the
 * buffer, and `packed` the layout. The pending owns the buffer. The domain's lock is held.
 */
#ifndef OFPI_PACKED_H
#define OFPI_PACKED_H

#include "object/endpoint.h"

/*
 * A buffer for the bytes of the layout, with these bytes in it, unless it is for a read: a receive may fill a part only. NULL:
 * out of memory. The caller owns it.
 */
char *ofpi_packed_allocate(const struct ofp_transfer *transfer);
/* Post a receive into a layout to a transport that matches. As ofp_endpoint_ops.post. */
int ofpi_packed_receive_post(struct ofpi_endpoint *endpoint, struct ofp_peer *peer,
                             const struct ofp_transfer *transfer);
/*
 * An operation with OFPI_PACKED ends: move what a read or a receive has brought into the layout. A receive may have brought
 * some of the message in spite of its error; its buffer has what the layout had before in all other places.
 */
void ofpi_packed_scatter(const struct ofp_transfer *transfer, int error);

#endif
