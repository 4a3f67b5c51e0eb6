/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which processes of a job have ended. ofp_roster_depart stores a departure from any thread and needs no domain's lock:
 * it writes an eventfd in each follower's reactor, and the domain reads the roster in its next round of progress. This
 * also works for domains that are bound to a thread.
 */
#include "peer/roster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/process_lock.h"
#include "base/reactor.h"
#include "object/domain.h"
#include "object/peer.h"
#include "ofipy/ofp.h"
#include "peer/peer_find.h"
#include "peer/peer_state.h"
#include "progress/progress.h"

struct departure {
    uint32_t rank;
    enum ofpi_departure how;
};

/* OFPI_LOCK_ROSTERS guards all but `size`. Acquire it after a domain's lock, never before one. */
struct ofp_roster {
    uint32_t size;       /* constant */
    uint32_t references; /* one of the handle, one of each follower */
    struct ofp_list followers;
    uint32_t count; /* of `departures` */
    bool *has_departed;
    struct departure departures[]; /* in the order reported, at most one for each rank */
};

/* A following endpoint. The endpoint owns it; its domain's lock guards it. */
struct ofpi_follower {
    struct ofp_roster *roster;
    struct ofpi_endpoint *endpoint;
    struct ofp_list node;   /* in roster->followers, guarded by OFPI_LOCK_ROSTERS */
    struct ofp_watch watch; /* of the eventfd that ofp_roster_depart writes */
    uint32_t heard;         /* how many of roster->departures were handled */
    uint32_t peers[];       /* by rank */
};

int ofp_roster_open(uint32_t size, struct ofp_roster **result)
{
    struct ofp_roster *roster = calloc(1, sizeof(*roster) + size * (sizeof(roster->departures[0]) + sizeof(bool)));

    if (!roster)
        return -ENOMEM;
    ofp_list_init(&roster->followers);
    roster->size = size;
    roster->references = 1;
    roster->has_departed = (bool *)(roster->departures + size);
    *result = roster;
    return 0;
}

void ofp_roster_close(struct ofp_roster *roster)
{
    bool last;

    ofpi_process_lock_acquire(OFPI_LOCK_ROSTERS);
    last = --roster->references == 0;
    ofpi_process_lock_release(OFPI_LOCK_ROSTERS);
    if (last)
        free(roster);
}

int ofp_roster_depart(struct ofp_roster *roster, uint32_t rank, bool died)
{
    static const uint64_t one = 1;
    struct ofp_list *node, *following;

    if (rank >= roster->size)
        return -EINVAL;
    ofpi_process_lock_acquire(OFPI_LOCK_ROSTERS);
    if (!roster->has_departed[rank]) {
        roster->has_departed[rank] = true;
        roster->departures[roster->count++] = (struct departure){.rank = rank, .how = died ? OFPI_DIED : OFPI_LEFT};
        OFP_LIST_EACH(node, following, &roster->followers) {
            const struct ofpi_follower *follower = OFP_CONTAINER_OF(node, const struct ofpi_follower, node);

            /* Cannot fail: the eventfd's counter is read long before it overflows. */
            (void)!write(follower->watch.fd, &one, sizeof(one));
        }
    }
    ofpi_process_lock_release(OFPI_LOCK_ROSTERS);
    return 0;
}

static bool pop_departure(struct ofpi_follower *follower, struct departure *departure)
{
    struct ofp_roster *roster = follower->roster;
    bool found;

    ofpi_process_lock_acquire(OFPI_LOCK_ROSTERS);
    found = follower->heard < roster->count;
    if (found)
        *departure = roster->departures[follower->heard++];
    ofpi_process_lock_release(OFPI_LOCK_ROSTERS);
    return found;
}

static void handle_departures(struct ofpi_follower *follower)
{
    struct departure departure;

    while (pop_departure(follower, &departure)) {
        struct ofpi_peer *peer = ofpi_peer_find_at(follower->endpoint, follower->peers[departure.rank]);

        /* NULL: its address was removed from the vector. */
        if (peer)
            ofpi_peer_departure_handle(peer, departure.how);
    }
}

static void handle_roster_event(struct ofp_watch *watch, uint32_t events)
{
    uint64_t ignored;

    (void)events;
    (void)!read(watch->fd, &ignored, sizeof(ignored));
    handle_departures(OFP_CONTAINER_OF(watch, struct ofpi_follower, watch));
}

static struct ofpi_follower *create_follower(struct ofp_roster *roster, struct ofpi_endpoint *endpoint,
                                             const uint32_t *peers, int *error)
{
    struct ofpi_follower *follower = calloc(1, sizeof(*follower) + roster->size * sizeof(peers[0]));

    *error = -ENOMEM;
    if (!follower)
        return NULL;
    memcpy(follower->peers, peers, roster->size * sizeof(peers[0]));
    follower->roster = roster;
    follower->endpoint = endpoint;
    follower->watch = (struct ofp_watch){
        .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .events = EPOLLIN, .ready = handle_roster_event};
    *error = follower->watch.fd < 0 ? -errno : ofpi_reactor_add(&endpoint->domain->reactor, &follower->watch);
    if (!*error)
        return follower;
    if (follower->watch.fd >= 0)
        close(follower->watch.fd);
    free(follower);
    return NULL;
}

void ofpi_follower_free(struct ofpi_endpoint *endpoint)
{
    struct ofpi_follower *follower = endpoint->follower;

    if (!follower)
        return;
    endpoint->follower = NULL;
    ofpi_process_lock_acquire(OFPI_LOCK_ROSTERS);
    ofp_list_remove(&follower->node);
    ofpi_process_lock_release(OFPI_LOCK_ROSTERS);
    ofpi_reactor_remove(&endpoint->domain->reactor, &follower->watch);
    close(follower->watch.fd);
    ofp_roster_close(follower->roster);
    free(follower);
}

/* Create the members now, so that handling a departure needs no memory. */
static int create_members(struct ofpi_endpoint *endpoint, const uint32_t *peers, uint32_t size, bool waits)
{
    int error = 0;

    for (uint32_t rank = 0; rank < size && !error; rank++) {
        struct ofpi_peer *peer = ofpi_peer_get(endpoint, peers[rank], &error);

        if (!peer)
            break;
        if (!peer->member && !(peer->member = calloc(1, sizeof(*peer->member))))
            return -ENOMEM;
        peer->member->peer = peer;
        peer->member->awaits_departure = waits;
        peer->member->rank = rank;
    }
    return error;
}

static int attach_follower(struct ofp_roster *roster, struct ofpi_endpoint *endpoint, const uint32_t *peers, bool waits)
{
    struct ofpi_follower *follower;
    int error = endpoint->av ? create_members(endpoint, peers, roster->size, waits) : -EOPNOTSUPP;

    if (error)
        return error;
    follower = create_follower(roster, endpoint, peers, &error);
    if (!follower)
        return error;
    ofpi_follower_free(endpoint);
    endpoint->follower = follower;
    ofpi_process_lock_acquire(OFPI_LOCK_ROSTERS);
    roster->references++;
    ofp_list_append(&roster->followers, &follower->node);
    ofpi_process_lock_release(OFPI_LOCK_ROSTERS);
    handle_departures(follower);
    return 0;
}

int ofp_roster_follow(struct ofp_roster *roster, struct ofp_endpoint *handle, const uint32_t *peers, bool waits)
{
    struct ofpi_endpoint *endpoint = (struct ofpi_endpoint *)handle;
    int error = ofpi_endpoint_enter(endpoint);

    if (error)
        return error;
    error = attach_follower(roster, endpoint->behind, peers, waits);
    ofpi_domain_leave(endpoint->domain);
    return error;
}
