/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints of libfabric's shm within one process. They do not map each other's memory but use each other's pointers
 * (smr_map_to_region). The bridge handles two consequences:
 *
 * - An endpoint that closes unmaps its own memory (smr_free), and the next send to it, or the next access to a message of it,
 *   would end the process. So all neighbours are closed together: an endpoint that ofipy closes rests, without progress,
 *   until no neighbour is in use.
 * - From 2.5 on, the endpoint that makes contact does not store where the other's memory is (smr_map_to_endpoint is left out),
 *   and an answer of more than a few bytes would end the process. Both store it once both have made contact. So the bridge
 *   makes contact when an endpoint opens.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bridge.h"

struct bridge_neighbour {
    struct ofp_list node; /* in `neighbours` */
    char name[OFP_ADDRESS_MAX];
    bool rests; /* closed by ofipy: the neighbour then owns the following members; before, they are copies */
    struct lf_ep *ep;
    struct lf_av *av;
    struct lf_cq *cq;
    struct bridge_slab *slabs; /* memory of libfabric's contexts */
    struct bridge_opened *opened;
};

/*
 * Guards all neighbours; acquired inside a domain's lock. libfabric is opened thread-safe, so its calls may be made
 * from another domain's thread.
 */
pthread_mutex_t bridge_neighbours_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ofp_list neighbours = {&neighbours, &neighbours};

/* A forked child has no neighbours. */
static void clear_neighbours(void) { ofp_list_init(&neighbours); }

static void watch_forks(void) { pthread_atfork(NULL, NULL, clear_neighbours); }

/* Post an operation without effect. libfabric first sends the own name to a peer that it does not know yet. */
static void send_contact(const struct bridge_neighbour *from, const struct bridge_neighbour *to)
{
    char nothing;
    struct iovec iov = {&nothing, 0};
    void *descriptor = NULL;
    struct lf_rma_iov remote = {.key = LF_KEY_NOTAVAIL};
    struct lf_msg_rma msg = {
        .iov = &iov, .descriptors = &descriptor, .iov_count = 1, .remote = &remote, .remote_count = 1};

    if (from->av->ops->insert(from->av, to->name, 1, &msg.address, 0, NULL) == 1)
        from->ep->rma->writemsg(from->ep, &msg, LF_INJECT);
}

/* Let libfabric process what the neighbour has received; no completion is read. */
static void progress_neighbour(const struct bridge_neighbour *neighbour)
{
    neighbour->cq->ops->read(neighbour->cq, NULL, 0);
}

/*
 * Exchange contacts between the newcomer and all neighbours. No endpoint can send to the newcomer before this returns.
 */
static void connect_newcomer(const struct bridge_neighbour *newcomer)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &neighbours) {
        const struct bridge_neighbour *other = OFP_CONTAINER_OF(node, struct bridge_neighbour, node);

        if (other->rests)
            continue;
        /* Both make contact before one of them processes the other's, since it would not do so afterwards. */
        send_contact(other, newcomer);
        send_contact(newcomer, other);
        progress_neighbour(newcomer);
        progress_neighbour(other);
    }
}

int bridge_neighbour_enter(struct ofp_endpoint *endpoint)
{
    struct bridge_endpoint *self = bridge_endpoint_of(endpoint);
    struct bridge_opened *opened = bridge_domain_of(endpoint->domain)->opened;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct bridge_neighbour *neighbour;
    size_t length = sizeof(neighbour->name);
    int result;

    if (strcmp(opened->info->fabric_attr->prov_name, "shm") != 0)
        return 0;
    pthread_once(&once, watch_forks);
    neighbour = calloc(1, sizeof(*neighbour));
    if (!neighbour)
        return -ENOMEM;
    result = bridge_endpoint_get_address(endpoint, neighbour->name, &length);
    if (result) {
        free(neighbour);
        return result;
    }
    neighbour->opened = opened;
    neighbour->ep = self->ep;
    neighbour->av = self->av;
    neighbour->cq = self->cq;
    self->neighbour = neighbour;
    pthread_mutex_lock(&bridge_neighbours_lock);
    if (opened->library->version >= LF_VERSION(2, 5))
        connect_newcomer(neighbour);
    ofp_list_append(&neighbours, &neighbour->node);
    pthread_mutex_unlock(&bridge_neighbours_lock);
    return 0;
}

static bool are_neighbours_resting(void)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &neighbours) {
        if (!OFP_CONTAINER_OF(node, struct bridge_neighbour, node)->rests)
            return false;
    }
    return true;
}

static void free_neighbour(struct bridge_neighbour *neighbour)
{
    bridge_objects_close(neighbour->ep, neighbour->av, neighbour->cq);
    bridge_slabs_free(neighbour->slabs);
    bridge_opened_release(neighbour->opened);
    free(neighbour);
}

void bridge_neighbour_leave(struct bridge_endpoint *endpoint)
{
    struct bridge_neighbour *neighbour = endpoint->neighbour;
    struct ofp_list *node;

    if (!neighbour)
        return;
    pthread_mutex_lock(&bridge_neighbours_lock);
    OFP_CHECK(!neighbour->rests && neighbour->ep == endpoint->ep);
    neighbour->rests = true;
    neighbour->slabs = endpoint->slabs;
    atomic_fetch_add_explicit(&neighbour->opened->users, 1, memory_order_relaxed);
    if (are_neighbours_resting())
        while ((node = ofp_list_pop(&neighbours)))
            free_neighbour(OFP_CONTAINER_OF(node, struct bridge_neighbour, node));
    pthread_mutex_unlock(&bridge_neighbours_lock);
    endpoint->neighbour = NULL;
    endpoint->ep = NULL;
    endpoint->av = NULL;
    endpoint->cq = NULL;
    endpoint->slabs = NULL;
}
