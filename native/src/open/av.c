/* SPDX-License-Identifier: BSD-3-Clause */
/* Address vectors of the public interface: the table of address_vector.c bound to a domain and its endpoints. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/address_vector.h"
#include "base/provider_address.h"
#include "match/receive_context.h"
#include "object/domain.h"
#include "object/vector.h"
#include "ofipy/ofp.h"
#include "peer/forget.h"
#include "peer/peer_find.h"
#include "peer/peer_state.h"
#include "peer/uninserted.h"
#include "progress/progress.h"

int ofp_av_open(struct ofp_domain *handle, const struct ofp_av_attr *attr, struct ofp_av **result)
{
    struct ofpi_domain *domain = (struct ofpi_domain *)handle;
    struct ofp_av *av = calloc(1, sizeof(*av));
    int error;

    if (!av)
        return -ENOMEM;
    av->table = ofpi_av_table_create(handle->provider);
    error = av->table ? ofpi_domain_enter(domain) : -ENOMEM;
    if (error) {
        if (av->table)
            ofpi_av_table_free(av->table);
        free(av);
        return error;
    }
    av->domain = domain;
    av->auto_insert = attr->auto_insert;
    ofp_list_append(&domain->vectors, &av->node);
    ofpi_domain_leave(domain);
    *result = av;
    return 0;
}

int ofp_av_retire(struct ofp_av *av)
{
    int result = ofpi_av_enter(av);

    if (result)
        return result;
    if (av->uses) {
        ofpi_domain_leave(av->domain);
        return -EBUSY;
    }
    ofp_list_remove(&av->node);
    ofpi_av_table_free(av->table);
    av->table = NULL;
    ofpi_domain_leave(av->domain);
    return 0;
}

void ofp_av_free(struct ofp_av *av)
{
    if (!av->table)
        free(av);
}

int ofp_av_close(struct ofp_av *av)
{
    int result = ofp_av_retire(av);

    if (!result)
        ofp_av_free(av);
    return result;
}

/* Create the entry's peers for transports with an address table of their own (`eager_peers`). */
static int create_eager_peers(struct ofp_av *av, uint32_t index)
{
    struct ofp_list *node, *following;
    int error = 0;

    OFP_LIST_EACH(node, following, &av->domain->endpoints) {
        struct ofpi_endpoint *endpoint = OFP_CONTAINER_OF(node, struct ofpi_endpoint, node);

        if (endpoint->av == av && endpoint->base.ops->eager_peers && !ofpi_peer_get(endpoint, index, &error))
            break;
    }
    if (error)
        ofpi_av_table_remove(av->table, index);
    return error;
}

/* The inserted endpoint has an entry already, perhaps with another address. */
static void update_inserted_entry(struct ofp_av *av, uint32_t index, const void *address, size_t length)
{
    bool replaced = ofpi_av_table_replace(av->table, index, address, length);
    struct ofp_list *node, *following;

    ofpi_av_table_mark_caller(av->table, index, false);
    OFP_LIST_EACH(node, following, &av->domain->endpoints) {
        struct ofpi_endpoint *endpoint = OFP_CONTAINER_OF(node, struct ofpi_endpoint, node);
        struct ofpi_peer *peer = endpoint->av == av ? ofpi_peer_find_at(endpoint, index) : NULL;

        if (!peer)
            continue;
        ofpi_uninserted_clear(peer);
        ofpi_peer_mark_expected(peer);
        if (replaced)
            ofpi_peer_readdressed(endpoint, index);
    }
}

int ofp_av_insert(struct ofp_av *av, const void *address, size_t length, uint32_t *index)
{
    int result = ofpi_address_check(&av->domain->base, address, length);

    if (result)
        return result;
    result = ofpi_av_enter(av);
    if (result)
        return result;
    result = ofpi_av_table_find(av->table, address, length, index);
    if (!result) {
        update_inserted_entry(av, *index, address, length);
    } else {
        result = ofpi_av_table_insert(av->table, address, length, index);
        if (!result)
            result = create_eager_peers(av, *index);
    }
    ofpi_domain_leave(av->domain);
    return result;
}

int ofp_av_remove(struct ofp_av *av, uint32_t index)
{
    struct ofp_list *node, *following;
    int result = ofpi_av_enter(av);

    if (result)
        return result;
    result = ofpi_av_table_remove(av->table, index);
    if (!result) {
        OFP_LIST_EACH(node, following, &av->domain->endpoints) {
            struct ofpi_endpoint *endpoint = OFP_CONTAINER_OF(node, struct ofpi_endpoint, node);

            if (endpoint->av != av)
                continue;
            ofpi_peer_removed(endpoint, index);
            ofpi_removed_peers_free(endpoint);
        }
        OFP_LIST_EACH(node, following, &av->domain->receive_contexts) {
            struct ofpi_endpoint *context = OFP_CONTAINER_OF(node, struct ofpi_endpoint, node);

            if (context->av == av)
                ofpi_receive_context_end_directed(context->receive_context, index, ECANCELED, 0);
        }
    }
    ofpi_domain_leave(av->domain);
    return result;
}

int ofp_av_lookup(struct ofp_av *av, uint32_t index, void *address, size_t *length)
{
    const void *stored;
    size_t size;
    int result = ofpi_av_enter(av);

    if (result)
        return result;
    stored = ofpi_av_table_find_address(av->table, index, &size);
    if (!stored)
        result = -OFP_EADDRNOTAVAIL;
    else if (*length < size)
        result = -OFP_ETOOSMALL;
    else
        memcpy(address, stored, size);
    if (stored)
        *length = size;
    ofpi_domain_leave(av->domain);
    return result;
}

int ofp_av_find(struct ofp_av *av, const void *address, size_t length, uint32_t *index)
{
    int result = ofpi_av_enter(av);

    if (result)
        return result;
    result = ofpi_av_table_find(av->table, address, length, index);
    ofpi_domain_leave(av->domain);
    return result;
}

int ofp_av_next(struct ofp_av *av, uint32_t *cursor, uint32_t *index)
{
    int result = ofpi_av_enter(av);

    if (result)
        return result;
    result = ofpi_av_table_find_next(av->table, cursor, index);
    ofpi_domain_leave(av->domain);
    return result;
}

uint32_t ofp_av_count(struct ofp_av *av)
{
    uint32_t count;

    if (ofpi_av_enter(av))
        return 0;
    count = ofpi_av_table_count(av->table);
    ofpi_domain_leave(av->domain);
    return count;
}
