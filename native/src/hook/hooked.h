/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hooks at one endpoint, and the operations that they look at. Made when the endpoint opens if its domain has hooks; the
 * domain's lock is held for all of it.
 *
 * An operation that hooks look at is owned by a struct ofpi_hooked, which stands before the owner that it was posted with
 * and has the hooks' bytes behind it. It lives from the post to the end of the operation, and belongs to the endpoint that
 * it was posted to; with a shared receive context another one may complete it.
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
    struct ofp_list node;                /* free ones, in hooks->free */
    uint32_t asked;                      /* how many hooks have been asked; none behind them hears of its end */
    bool live;                           /* under way */
    _Alignas(16) char private[];
};

struct ofpi_hooks {
    struct ofpi_endpoint *endpoint;
    const struct ofpi_hook_list *list; /* the domain's */
    /*
     * Of struct ofpi_hooked. Their memory stays until the endpoint closes, and the one that ended longest ago is used first:
     * what ends twice is found out by the hook `debug`.
     */
    struct ofp_list free;
    struct ofpi_hooked_chunk *chunks;
    struct ofp_services services; /* of the endpoint */
    bool in_post;                 /* hooks are being asked, and may lose a peer */
    struct ofpi_peer *losing;
    char why[OFP_TEXT_MAX]; /* … it is lost */
    void *memory;           /* the hooks' own bytes of the endpoint */
    uint32_t open;          /* of `each`, from the first on */
    struct ofp_hook_endpoint each[];
};

/* The hooks of an endpoint that is about to open; nothing happens when its domain has none. */
int ofpi_hooks_open(struct ofpi_endpoint *endpoint, char *text, size_t text_size);
/* Every operation has ended. */
void ofpi_hooks_close(struct ofpi_endpoint *endpoint);

/* The rows of struct ofpi_upper. */
int ofpi_hooks_post(struct ofpi_endpoint *endpoint, const struct ofp_operation *op);
void ofpi_hooks_peer_changed(struct ofpi_peer *peer, enum ofp_peer_state before, int error);
void ofpi_hooks_released(struct ofpi_endpoint *endpoint, void *memory, size_t length);

#endif
