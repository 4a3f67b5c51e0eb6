/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations that outlive their post. The domain's lock is held. */
#ifndef OFPI_PENDING_H
#define OFPI_PENDING_H

#include "object/peer.h"

struct ofpi_flush_part;

/*
 * An operation retained beyond its post. The provider's view is first; the copies that it points to follow. With more
 * than one segment, `many` contains the local segments, their regions and the remote segments.
 */
struct ofpi_pending {
    struct ofp_pending base;
    /*
     * The public endpoint and peer; base.endpoint and base.peer are the provider's, which are inner ones with the
     * provider `link`.
     */
    struct ofpi_endpoint *endpoint;
    struct ofpi_peer *peer; /* NULL: a receive from any source, or not posted and not in a backlog */
    bool posted;            /* the provider has it; otherwise it waits in the backlog */
    bool recalled;          /* a receive: the core asked the provider to cancel it, to post it again */
    bool flushed;           /* a remote operation: `flush` waits for its end */
    bool confirms;          /* it is the confirmation of `flush`, an operation of the core's own */
    union {
        uint64_t sequence;             /* a receive: its place among those of the endpoint */
        struct ofpi_flush_part *flush; /* `flushed` or `confirms` */
    };
    struct iovec iov_inline;
    struct ofp_region *region_inline;
    struct ofp_remote_segment remote_inline;
    void *many;
    void *inject_copy; /* owned: the payload of an OFP_INJECT in the backlog, or the packed form of a layout */
};

struct ofp_pending *ofpi_transfer_retain(struct ofp_endpoint *endpoint, struct ofp_peer *peer,
                                         const struct ofp_transfer *transfer);
struct ofp_pending *ofpi_pending_find(struct ofp_peer *peer, uint64_t id);
/* Store an operation until its peer is up and the transport has space. */
int ofpi_backlog_append(struct ofpi_peer *peer, const struct ofp_transfer *transfer);
/* Pack the layout of an operation that waits in the backlog. 0 or -ENOMEM; then nothing has changed. */
int ofpi_pending_pack(struct ofpi_pending *pending);
void ofpi_transfer_complete(struct ofp_pending *pending, int error, int provider_error);
/* Free the object without reporting anything. */
void ofpi_pending_free(struct ofpi_pending *pending);
/* An operation that was not started has ended. */
void ofpi_transfer_end(struct ofpi_endpoint *endpoint, const struct ofp_transfer *transfer, int error,
                       int provider_error);
/* Report a send-like operation that finished; `op_flags` as in ofpi_endpoint_complete. */
void ofpi_transfer_report(struct ofpi_endpoint *endpoint, const struct ofp_transfer *transfer, int error,
                          int provider_error);
/* Count and report a send-like operation that finished within its post. */
void ofpi_transfer_report_done(struct ofpi_endpoint *endpoint, const struct ofpi_peer *peer,
                               const struct ofp_transfer *transfer, enum ofp_protocol protocol);

#endif
