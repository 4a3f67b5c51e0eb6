/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Intrusive doubly linked list with a sentinel. A zeroed node is in no list; ofp_list_remove restores that state. No
 * locking: the caller holds the lock of the list, which is mostly the domain's.
 */
#ifndef OFIPY_LIST_H
#define OFIPY_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct ofp_list {
    struct ofp_list *next;
    struct ofp_list *previous;
};

#define OFP_CONTAINER_OF(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

static inline void ofp_list_init(struct ofp_list *list)
{
    list->next = list;
    list->previous = list;
}

static inline bool ofp_list_empty(const struct ofp_list *list) { return list->next == list; }

static inline bool ofp_list_linked(const struct ofp_list *node) { return node->next != NULL; }

static inline void ofp_list_insert_after(struct ofp_list *position, struct ofp_list *node)
{
    node->previous = position;
    node->next = position->next;
    position->next->previous = node;
    position->next = node;
}

static inline void ofp_list_append(struct ofp_list *list, struct ofp_list *node)
{
    ofp_list_insert_after(list->previous, node);
}

static inline void ofp_list_prepend(struct ofp_list *list, struct ofp_list *node) { ofp_list_insert_after(list, node); }

static inline void ofp_list_remove(struct ofp_list *node)
{
    node->previous->next = node->next;
    node->next->previous = node->previous;
    node->next = NULL;
    node->previous = NULL;
}

/* Remove the first node and return it; NULL: the list is empty. */
static inline struct ofp_list *ofp_list_pop(struct ofp_list *list)
{
    struct ofp_list *node = list->next;

    if (node == list)
        return NULL;
    ofp_list_remove(node);
    return node;
}

/* `node` may be removed inside the loop, its neighbours may not. */
#define OFP_LIST_EACH(node, following, list)                                                                           \
    for ((node) = (list)->next, (following) = (node)->next; (node) != (list);                                          \
         (node) = (following), (following) = (node)->next)

#endif
