/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hooks at one endpoint, and their operations. Created when the endpoint opens if its domain has hooks. The domain's
 * lock is held in all calls.
 *
 * A hooked operation is owned by a struct ofpi_hooked, which wraps the owner that the operation was posted with and
 * contains the hooks' bytes. It lives from the post to the end of the operation and belongs to the endpoint of the
 * post. With a shared receive context another endpoint may complete it.
 */
#ifndef OFPI_HOOKED_H
#define OFPI_HOOKED_H

#include "hook/hook_list.h"
#include "object/endpoint.h"
#include "object/owner.h"
#include "ofipy/services.h"

struct ofpi_hooked {
    struct ofpi_delayed_owner delayed; /* first */
    struct ofpi_hooks *hooks;
    struct ofp_hook_operation operation; /* `private` is that of the hook that is called */
    struct ofp_list node;                /* in hooks->free while unused */
    uint32_t asked;                      /* how many hooks were called; only these are notified of the end */
    bool live;                           /* the operation is in flight */
    _Alignas(16) char private[];
};

struct ofpi_hooks {
    struct ofpi_endpoint *endpoint;
    const struct ofpi_hook_list *list; /* the domain's */
    /*
     * Unused struct ofpi_hooked. Their memory stays until the endpoint closes, and the one that ended longest ago is
     * reused first, so that the hook `debug` detects an operation that ends twice.
     */
    struct ofp_list free;
    struct ofpi_hooked_chunk *chunks;
    struct ofp_services services; /* of the endpoint */
    bool in_post;                 /* hooks are being called; a peer_lose is stored in `losing` */
    struct ofpi_peer *losing;
    char why[OFP_TEXT_MAX]; /* reason of the loss of `losing` */
    void *memory;           /* the hooks' own bytes of the endpoint */
    uint32_t open;          /* length of the open prefix of `each` */
    struct ofp_hook_endpoint each[];
};

/* Open the hooks of an endpoint that is being opened; no effect if its domain has none. */
int ofpi_hooks_open(struct ofpi_endpoint *endpoint, char *text, size_t text_size);
/* Close the hooks after every operation has ended. */
void ofpi_hooks_close(struct ofpi_endpoint *endpoint);

/* The rows of struct ofpi_upper. */
int ofpi_hooks_post(struct ofpi_endpoint *endpoint, const struct ofp_operation *op);
void ofpi_hooks_peer_changed(struct ofpi_peer *peer, enum ofp_peer_state before, int error);
void ofpi_hooks_released(struct ofpi_endpoint *endpoint, void *memory, size_t length);

#endif
