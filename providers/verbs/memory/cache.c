/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory/cache.h"

#include <errno.h>
#include <stdlib.h>

#include "ofipy/check.h"

/*
 * A region of at most this part of the cache's size is registered whole, a larger one only where an operation needs
 * it.
 */
#define WHOLE_PART 8

void verbs_cache_open(struct verbs_cache *cache, struct ofp_domain *domain, struct ibv_pd *pd, uint32_t most,
                      uint64_t most_bytes)
{
    *cache = (struct verbs_cache){.domain = domain, .pd = pd, .most = most, .most_bytes = most_bytes};
    ofp_list_init(&cache->idle);
}

/* The registrations of a region are a list that starts in the region's provider data. */
static struct verbs_registration *get_first_registration(const struct verbs_cache *cache, struct ofp_region *region)
{
    return (struct verbs_registration *)(uintptr_t)ofp_region_device(cache->domain, region)->provider_data[0];
}

static void set_first_registration(const struct verbs_cache *cache, struct ofp_region *region,
                                   struct verbs_registration *registration)
{
    ofp_region_device(cache->domain, region)->provider_data[0] = (uintptr_t)registration;
}

/* --------------------------------------------------------------------------------------------------------- end */

static void remove_from_region(const struct verbs_cache *cache, struct verbs_registration *registration)
{
    struct verbs_registration *before = get_first_registration(cache, registration->region);

    if (before == registration) {
        set_first_registration(cache, registration->region, registration->next);
        return;
    }
    while (before->next != registration)
        before = before->next;
    before->next = registration->next;
}

/* Remove a registration from the cache, so that no operation finds it. Operations that use it keep it open. */
static void remove_registration(struct verbs_cache *cache, struct verbs_registration *registration)
{
    remove_from_region(cache, registration);
    OFP_CHECK(cache->count > 0 && cache->bytes >= registration->mr->length);
    cache->bytes -= registration->mr->length;
    cache->count--;
    registration->region = NULL;
}

static void close_registration(struct verbs_cache *cache, struct verbs_registration *registration)
{
    OFP_CHECK(registration->uses == 0);
    if (registration->region)
        remove_registration(cache, registration);
    if (ofp_list_linked(&registration->node))
        ofp_list_remove(&registration->node);
    verbs_calls.dereg_mr(registration->mr);
    free(registration);
}

/* Close the registration that was idle for the longest time. Returns false if all are in use. */
static bool close_idle_registration(struct verbs_cache *cache)
{
    if (ofp_list_empty(&cache->idle))
        return false;
    close_registration(cache, OFP_CONTAINER_OF(cache->idle.next, struct verbs_registration, node));
    cache->domain->engine->registrations_dropped++;
    return true;
}

static void close_surplus_registrations(struct verbs_cache *cache)
{
    while ((cache->count > cache->most || cache->bytes > cache->most_bytes) && close_idle_registration(cache))
        ;
}

void verbs_cache_clear(struct verbs_cache *cache)
{
    while (close_idle_registration(cache))
        ;
}

void verbs_cache_remove_region(struct verbs_cache *cache, struct ofp_region *region)
{
    struct verbs_registration *registration;

    while ((registration = get_first_registration(cache, region))) {
        if (registration->uses)
            remove_registration(cache, registration);
        else
            close_registration(cache, registration);
    }
}

/* ------------------------------------------------------------------------------------------------------- beginning */

/* A peer that may access memory remotely must not reach bytes that its key was not meant for. */
static bool is_remote_access(int access)
{
    return access & (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
}

static bool can_use_registration(const struct verbs_registration *registration, const void *base, uint64_t length,
                                 int access)
{
    uint64_t offset = (uint64_t)((const char *)base - (const char *)registration->mr->addr);

    if (is_remote_access(access) && (offset || length != registration->mr->length))
        return false;
    /* An address below the registration wraps to an offset beyond every length. */
    return !(access & ~registration->access) && length <= registration->mr->length &&
           offset <= registration->mr->length - length;
}

static struct verbs_registration *find_registration(const struct verbs_cache *cache, struct ofp_region *region,
                                                    const void *base, uint64_t length, int access)
{
    struct verbs_registration *registration = get_first_registration(cache, region);

    while (registration && !can_use_registration(registration, base, length, access))
        registration = registration->next;
    return registration;
}

/* Close idle registrations until the limit on locked memory allows a new one. */
static struct ibv_mr *register_memory(struct verbs_cache *cache, void *base, uint64_t length, int access)
{
    struct ibv_mr *mr;

    do
        mr = verbs_calls.reg_mr(cache->pd, base, length, access);
    while (!mr && (errno == ENOMEM || errno == EAGAIN) && close_idle_registration(cache));
    return mr;
}

static struct verbs_registration *create_registration(struct verbs_cache *cache, void *base, uint64_t length,
                                                      int access)
{
    struct verbs_registration *registration = calloc(1, sizeof(*registration));

    if (!registration)
        return NULL;
    registration->mr = register_memory(cache, base, length, access);
    if (!registration->mr) {
        int error = errno;

        free(registration);
        errno = error;
        return NULL;
    }
    registration->access = access;
    cache->domain->engine->registrations++;
    return registration;
}

static struct verbs_registration *create_cached_registration(struct verbs_cache *cache, struct ofp_region *region,
                                                             void *base, uint64_t length, int access)
{
    struct verbs_registration *registration = NULL;

    /* The next operation may receive into the same memory. */
    access |= IBV_ACCESS_LOCAL_WRITE;
    if (region->length <= cache->most_bytes / WHOLE_PART && !is_remote_access(access))
        registration = create_registration(cache, region->base, region->length, access);
    if (!registration)
        registration = create_registration(cache, base, length, access);
    if (!registration)
        return NULL;
    registration->region = region;
    registration->next = get_first_registration(cache, region);
    set_first_registration(cache, region, registration);
    cache->bytes += registration->mr->length;
    cache->count++;
    close_surplus_registrations(cache);
    return registration;
}

struct verbs_registration *verbs_cache_acquire(struct verbs_cache *cache, struct ofp_region *region, void *base,
                                               uint64_t length, int access)
{
    bool cached = region && region->owned && cache->most && length <= cache->most_bytes;
    struct verbs_registration *registration = cached ? find_registration(cache, region, base, length, access) : NULL;

    if (registration)
        cache->domain->engine->registrations_reused++;
    else if (cached)
        registration = create_cached_registration(cache, region, base, length, access);
    else
        registration = create_registration(cache, base, length, access);
    if (registration && registration->uses++ == 0 && ofp_list_linked(&registration->node))
        ofp_list_remove(&registration->node);
    return registration;
}

void verbs_cache_release(struct verbs_cache *cache, struct verbs_registration *registration)
{
    OFP_CHECK(registration->uses > 0 && !ofp_list_linked(&registration->node));
    if (--registration->uses)
        return;
    if (!registration->region) {
        close_registration(cache, registration);
        return;
    }
    ofp_list_append(&cache->idle, &registration->node);
    close_surplus_registrations(cache);
}
