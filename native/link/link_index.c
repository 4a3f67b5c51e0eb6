/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/link_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/address_vector.h"
#include "base/ids.h"
#include "object/peer.h"
#include "base/check.h"

struct link_index {
    struct ofpi_av_table *identities;
    struct ofp_peer **peers; /* by the index of the table's number */
    uint32_t capacity;
};

struct link_index *link_index_open(void)
{
    struct link_index *index = calloc(1, sizeof(*index));

    if (!index)
        return NULL;
    index->identities = ofpi_av_table_create(NULL);
    if (!index->identities) {
        free(index);
        return NULL;
    }
    return index;
}

void link_index_close(struct link_index *index)
{
    ofpi_av_table_free(index->identities);
    free(index->peers);
    free(index);
}

static int grow_index(struct link_index *index, uint32_t place)
{
    uint32_t capacity = index->capacity ? index->capacity : 16;
    struct ofp_peer **peers;

    while (capacity <= place)
        capacity *= 2;
    peers = realloc(index->peers, capacity * sizeof(struct ofp_peer *));
    if (!peers)
        return -ENOMEM;
    memset(peers + index->capacity, 0, (capacity - index->capacity) * sizeof(struct ofp_peer *));
    index->peers = peers;
    index->capacity = capacity;
    return 0;
}

int link_index_add(struct link_index *index, const uint8_t *identity, struct ofp_peer *outer)
{
    uint32_t number, place;
    int result = ofpi_av_table_insert(index->identities, identity, OFP_IDENTITY_SIZE, &number);

    if (result)
        return result;
    place = ofpi_index_of_id(number);
    if (place >= index->capacity && grow_index(index, place) != 0) {
        ofpi_av_table_remove(index->identities, number);
        return -ENOMEM;
    }
    OFPI_CHECK(place < index->capacity && outer->state != OFP_PEER_UP);
    index->peers[place] = outer;
    return 0;
}

void link_index_remove(struct link_index *index, const uint8_t *identity, const struct ofp_peer *outer)
{
    uint32_t number;

    if (ofpi_av_table_find(index->identities, identity, OFP_IDENTITY_SIZE, &number) == 0 &&
        index->peers[ofpi_index_of_id(number)] == outer)
        ofpi_av_table_remove(index->identities, number);
}

struct ofp_peer *link_index_find(const struct link_index *index, const uint8_t *identity)
{
    struct ofp_peer *outer;
    uint32_t number;

    if (ofpi_av_table_find(index->identities, identity, OFP_IDENTITY_SIZE, &number) != 0)
        return NULL;
    outer = index->peers[ofpi_index_of_id(number)];
    return ((const struct ofpi_peer *)outer)->removed ? NULL : outer;
}
