/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The selector of a receive, and the index keys of selectors and of messages.
 *
 * A class is a kind of selector: which bits of the tag are ignored, and whether the source is named. Within a class
 * a selector matches a message if their keys are equal, so each class has an index of its own.
 */
#ifndef OFPI_SELECTOR_H
#define OFPI_SELECTOR_H

#include "match/match_index.h"
#include "ofipy/provider.h"

struct ofpi_selector {
    uint64_t tag, ignore;
    uint32_t source;  /* OFP_PEER_ANY: any */
    uint32_t channel; /* messages of OFP_CHANNEL_MESSAGE have no tags */
};

static inline struct ofpi_selector ofpi_selector_of(const struct ofp_operation *op)
{
    uint32_t channel = ofp_operation_rows[op->op].channel;

    if (channel != OFP_CHANNEL_MESSAGE)
        return (struct ofpi_selector){op->tag & ~op->ignore, op->ignore, op->peer, channel};
    return (struct ofpi_selector){0, 0, op->peer, channel};
}

static inline struct ofpi_match_key ofpi_key_of_selector(const struct ofpi_selector *selector)
{
    return (struct ofpi_match_key){selector->tag, ofpi_match_origin_build(selector->channel, selector->source)};
}

/* The key of a message in the index of the class with this mask. */
static inline struct ofpi_match_key ofpi_message_key_build(uint32_t channel, uint64_t tag, uint32_t source,
                                                           uint64_t ignore, bool named)
{
    return (struct ofpi_match_key){channel != OFP_CHANNEL_MESSAGE ? tag & ~ignore : 0,
                                   ofpi_match_origin_build(channel, named ? source : OFP_PEER_ANY)};
}

#endif
