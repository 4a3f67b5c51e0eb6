/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core's internal channel, which groups use. libfabric has one space of tags, so internal messages are tagged ones
 * with a bit that the program's tags lack. An endpoint keeps that bit from its first group on, until it closes: a late
 * message of a group that was closed must not meet a receive of the program. Endpoints without groups keep nothing.
 *
 * From then on a send or receive of the program whose tag has the bit is refused, and a receive that ignores the bit
 * does so no more.
 */
#include <errno.h>

#include "bridge.h"

/* Bit 63 is ofi_rxm's own. The bits above the core's tags, OFP_INTERNAL_TAG_BITS, and below this one stay free. */
#define HIGHEST_BIT 62
/* Tags below 2^59 are the program's over every provider. */
#define LOWEST_BIT 59

_Static_assert(OFP_INTERNAL_TAG_BITS <= LOWEST_BIT, "the bit is none of the core's");

/*
 * The highest bit of tags is the highest one in their format; the values below LF_TAG_MAX_FORMAT name formats. 0: the
 * provider has too few bits.
 */
static uint64_t choose_bit(uint64_t format)
{
    int highest = format < LF_TAG_MAX_FORMAT ? 0 : 63 - __builtin_clzll(format);

    return highest < LOWEST_BIT ? 0 : UINT64_C(1) << (highest < HIGHEST_BIT ? highest : HIGHEST_BIT);
}

int bridge_internal_channel_open(struct ofp_endpoint *endpoint)
{
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);
    uint64_t bit = choose_bit(bridge_domain_of(endpoint->domain)->info->ep_attr->mem_tag_format);

    if (self->internal_bit)
        return 0;
    if (!bit) {
        bridge_core->log(OFP_LOG_WARNING, BRIDGE_NAME, "%s has no groups: its tags have fewer than %d bits",
                         endpoint->info->provider, LOWEST_BIT + 1);
        return -EOPNOTSUPP;
    }
    if (bridge_receive_is_posted(self, bit))
        return -EBUSY;
    self->internal_bit = bit;
    return 0;
}

int bridge_tag_convert(uint64_t bit, const struct ofp_operation *op, struct ofp_operation *converted)
{
    const struct ofp_operation_row *row = ofp_operation_row(op->op);
    bool receives = row->traits & OFP_RECEIVES;

    if (row->channel == OFP_CHANNEL_INTERNAL) {
        *converted = *op;
        converted->op = receives ? OFP_TRECV : OFP_TSEND;
        converted->tag |= bit;
        return BRIDGE_TAG_INTERNAL;
    }
    if (row->channel != OFP_CHANNEL_TAGGED)
        return BRIDGE_TAG_SAME;
    if (receives && op->ignore & bit) {
        *converted = *op;
        converted->tag &= ~bit;
        converted->ignore &= ~bit;
        return BRIDGE_TAG_NARROWED;
    }
    return op->tag & bit ? -EDOM : BRIDGE_TAG_SAME;
}
