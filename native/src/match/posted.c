/* SPDX-License-Identifier: BSD-3-Clause */
#include "match/posted.h"

#include <errno.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/slab.h"
#include "match/match_index.h"
#include "match/selector.h"

static int add_posted_class(struct ofpi_posted_receives *posted, uint64_t ignore, bool named)
{
    struct ofpi_posted_class *classes = posted->classes;
    uint32_t capacity = posted->class_capacity;

    if (posted->class_count == capacity) {
        capacity = capacity ? capacity * 2 : 4;
        classes = realloc(classes, capacity * sizeof(*classes));
        if (!classes)
            return -ENOMEM;
        posted->classes = classes;
        posted->class_capacity = capacity;
    }
    classes += posted->class_count;
    if (ofpi_match_index_open(&classes->index, posted->seed))
        return -ENOMEM;
    classes->ignore = ignore;
    classes->named = named;
    posted->class_count++;
    return 0;
}

int ofpi_posted_open(struct ofpi_posted_receives *posted, const uint64_t seed[2])
{
    *posted = (struct ofpi_posted_receives){.seed = {seed[0], seed[1]}};
    ofp_list_init(&posted->order);
    ofpi_slab_open(&posted->slab, sizeof(struct ofpi_posted));
    if (add_posted_class(posted, 0, true) || add_posted_class(posted, 0, false)) {
        ofpi_posted_close(posted);
        return -ENOMEM;
    }
    return 0;
}

void ofpi_posted_close(struct ofpi_posted_receives *posted)
{
    for (uint32_t i = 0; i < posted->class_count; i++)
        ofpi_match_index_close(&posted->classes[i].index);
    free(posted->classes);
    ofpi_slab_close(&posted->slab);
}

/* The index of the class with this mask. A new mask reuses an empty class before a class is added. -ENOMEM. */
static int64_t choose_masked_class(struct ofpi_posted_receives *posted, uint64_t ignore, bool named)
{
    uint32_t empty = 0;

    for (uint32_t i = OFPI_CLASS_MASKED; i < posted->class_count; i++) {
        if (posted->classes[i].ignore == ignore && posted->classes[i].named == named)
            return i;
        if (!posted->classes[i].index.count)
            empty = i;
    }
    if (empty) {
        posted->classes[empty].ignore = ignore;
        posted->classes[empty].named = named;
        return empty;
    }
    if (add_posted_class(posted, ignore, named))
        return -ENOMEM;
    return posted->class_count - 1;
}

int ofpi_posted_add(struct ofpi_posted_receives *posted, struct ofp_endpoint *endpoint,
                    const struct ofpi_selector *selector, const struct ofpi_receiver *receiver)
{
    bool named = selector->source != OFP_PEER_ANY;
    int64_t class = named ? OFPI_CLASS_NAMED : OFPI_CLASS_ANY;
    struct ofpi_posted *receive;

    if (selector->ignore) {
        class = choose_masked_class(posted, selector->ignore, named);
        if (class < 0)
            return (int)class;
    }
    receive = ofpi_slab_allocate(&posted->slab);
    if (!receive)
        return -ENOMEM;
    receive->node.key = ofpi_key_of_selector(selector);
    receive->node.sequence = posted->next_sequence++;
    receive->endpoint = endpoint;
    receive->receiver = *receiver;
    receive->class = (uint64_t)class;
    ofpi_match_index_insert(&posted->classes[class].index, &receive->node);
    ofp_list_append(&posted->order, &receive->order);
    posted->count++;
    posted->masked += class >= OFPI_CLASS_MASKED;
    return 0;
}

/* The older of `best` (may be NULL) and the class's oldest entry with this key. */
static inline struct ofpi_match_node *choose_older_node(const struct ofpi_posted_class *class,
                                                        struct ofpi_match_node *best, struct ofpi_match_key key)
{
    struct ofpi_match_node *node = ofpi_match_index_find(&class->index, key);

    return node && (!best || node->sequence < best->sequence) ? node : best;
}

struct ofpi_posted *ofpi_posted_match(const struct ofpi_posted_receives *posted, uint32_t channel, uint64_t tag,
                                      uint32_t source)
{
    const struct ofpi_posted_class *classes = posted->classes;
    struct ofpi_match_node *best = NULL;

    if (classes[OFPI_CLASS_NAMED].index.count)
        best =
            choose_older_node(&classes[OFPI_CLASS_NAMED], NULL, ofpi_message_key_build(channel, tag, source, 0, true));
    if (classes[OFPI_CLASS_ANY].index.count)
        best =
            choose_older_node(&classes[OFPI_CLASS_ANY], best, ofpi_message_key_build(channel, tag, source, 0, false));
    if (posted->masked) {
        for (uint32_t i = OFPI_CLASS_MASKED; i < posted->class_count; i++) {
            const struct ofpi_posted_class *class = &classes[i];

            if (class->index.count)
                best = choose_older_node(class, best,
                                         ofpi_message_key_build(channel, tag, source, class->ignore, class->named));
        }
    }
    return best ? OFP_CONTAINER_OF(best, struct ofpi_posted, node) : NULL;
}

struct ofpi_posted *ofpi_posted_match_unbound(struct ofpi_posted_receives *posted, uint32_t channel, uint64_t tag,
                                              uint32_t source)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &posted->order) {
        struct ofpi_posted *receive = OFP_CONTAINER_OF(node, struct ofpi_posted, order);
        const struct ofpi_posted_class *class = &posted->classes[receive->class];
        struct ofpi_match_key key = ofpi_message_key_build(channel, tag, source, class->ignore, class->named);

        if (!(receive->receiver.op_flags & OFP_BOUND) && receive->node.key.tag == key.tag &&
            receive->node.key.origin == key.origin)
            return receive;
    }
    return NULL;
}

void ofpi_posted_remove(struct ofpi_posted_receives *posted, struct ofpi_posted *receive)
{
    OFPI_CHECK(ofp_list_linked(&receive->order) && posted->count);
    ofpi_match_index_remove(&posted->classes[receive->class].index, &receive->node);
    ofp_list_remove(&receive->order);
    posted->count--;
    posted->masked -= receive->class >= OFPI_CLASS_MASKED;
}
