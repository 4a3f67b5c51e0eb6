/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slots of requests, for all domains of the process.
 *
 * A handle is generation << 32 | index + 1, and a directory maps the index to the slot, so that any number can be
 * looked up safely. Slots are allocated in chunks, which are never freed: when a domain closes, another one uses its
 * chunks. The generation advances when a use ends, so the old handle is stale before the slot is used again.
 */
#include "completion/request_slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/process_lock.h"
#include "completion/request_many.h"
#include "object/domain.h"
#include "progress/progress.h"

#define CHUNK_REQUESTS 64
#define DIRECTORY_CHUNKS (1u << 18)
#define GENERATIONS (1u << 31) /* so that handles are positive */

struct ofpi_request_chunk {
    struct ofp_request slots[CHUNK_REQUESTS];
    struct ofpi_request_chunk *next; /* in the domain's list of chunks, or in `unused` */
};

static _Atomic(struct ofpi_request_chunk *) directory[DIRECTORY_CHUNKS];
/* Guarded by OFPI_LOCK_REQUEST_SLOTS. Lock order: a domain's lock first, then this one. */
static uint32_t known_chunks;
static struct ofpi_request_chunk *unused;

static struct ofpi_request_chunk *create_request_chunk(void)
{
    struct ofpi_request_chunk *chunk = known_chunks < DIRECTORY_CHUNKS ? calloc(1, sizeof(*chunk)) : NULL;

    if (!chunk)
        return NULL;
    for (uint32_t i = 0; i < CHUNK_REQUESTS; i++)
        chunk->slots[i].place = known_chunks * CHUNK_REQUESTS + i + 1;
    /* Pairs with the load-acquire in ofpi_request_find: a thread that has a handle reads an initialised chunk. */
    ofp_store_release(&directory[known_chunks++], chunk);
    return chunk;
}

static bool add_request_slots(struct ofpi_domain *domain)
{
    struct ofpi_request_chunk *chunk;

    ofpi_process_lock_acquire(OFPI_LOCK_REQUEST_SLOTS);
    chunk = unused;
    if (chunk)
        unused = chunk->next;
    else
        chunk = create_request_chunk();
    ofpi_process_lock_release(OFPI_LOCK_REQUEST_SLOTS);
    if (!chunk)
        return false;
    chunk->next = domain->request_chunks;
    domain->request_chunks = chunk;
    for (int i = CHUNK_REQUESTS - 1; i >= 0; i--) {
        chunk->slots[i].domain = domain;
        ofp_list_prepend(&domain->free_requests, &chunk->slots[i].node);
    }
    return true;
}

struct ofp_request *ofpi_request_allocate(struct ofpi_endpoint *endpoint)
{
    struct ofpi_domain *domain = endpoint->domain;
    struct ofp_request *request;

    if (__builtin_expect(ofp_list_empty(&domain->free_requests), 0) && !add_request_slots(domain))
        return NULL;
    request = OFP_CONTAINER_OF(ofp_list_pop(&domain->free_requests), struct ofp_request, node);
    OFPI_CHECK(ofp_load_relaxed(&request->state) == OFPI_REQUEST_IDLE && !request->released);
    request->endpoint = endpoint;
    request->runs++;
    ofp_store_relaxed(&request->state, OFPI_REQUEST_RUNNING);
    return request;
}

static void end_request_use(struct ofp_request *request)
{
    uint32_t generation = ofp_load_relaxed(&request->generation);

    if (__builtin_expect(request->many, 0))
        ofpi_request_many_clear(request);
    if (__builtin_expect(request->kept != NULL, 0))
        request->kept->release(request->kept);
    request->kept = NULL;
    free(request->prepared);
    request->prepared = NULL;
    request->notify = request->released = request->claimed = false;
    ofp_store_relaxed(&request->state, OFPI_REQUEST_IDLE);
    ofp_store_release(&request->generation, (generation + 1) % GENERATIONS);
}

void ofpi_request_free(struct ofp_request *request)
{
    OFPI_CHECK(ofpi_domain_is_held(request->domain));
    if (ofp_list_linked(&request->node))
        ofp_list_remove(&request->node);
    end_request_use(request);
    /* Reuse the slot freed last: its memory is still in the cache. */
    ofp_list_prepend(&request->domain->free_requests, &request->node);
}

struct ofp_request *ofpi_request_find(ofp_request_t handle)
{
    uint32_t index = (uint32_t)handle - 1;
    struct ofpi_request_chunk *chunk;
    struct ofp_request *request;

    if (__builtin_expect(handle <= 0 || index / CHUNK_REQUESTS >= DIRECTORY_CHUNKS, 0))
        return NULL;
    chunk = ofp_load_acquire(&directory[index / CHUNK_REQUESTS]);
    if (__builtin_expect(!chunk, 0))
        return NULL;
    request = &chunk->slots[index % CHUNK_REQUESTS];
    /*
     * Pairs with the store-release in end_request_use: a thread that finds the handle stale also sees all that was
     * written before the use ended.
     */
    return ofp_load_acquire(&request->generation) == (uint32_t)(handle >> 32) ? request : NULL;
}

int ofpi_request_enter_as(ofp_request_t handle, bool at_once, struct ofp_request **result)
{
    struct ofp_request *request = ofpi_request_find(handle);
    struct ofpi_domain *domain;
    int error;

    if (!request)
        return -ESTALE;
    domain = request->domain;
    error = ofpi_domain_enter_as(domain, at_once);
    if (error)
        return error;
    /* The use may have ended before this thread acquired the lock. */
    if (__builtin_expect(ofpi_handle_of_request(request) != handle || request->domain != domain, 0)) {
        ofpi_domain_leave(domain);
        return -ESTALE;
    }
    *result = request;
    return 0;
}

void ofpi_requests_free(struct ofpi_domain *domain)
{
    struct ofpi_request_chunk *chunk = domain->request_chunks, *last = NULL;

    for (; chunk; chunk = chunk->next) {
        for (int i = 0; i < CHUNK_REQUESTS; i++)
            end_request_use(&chunk->slots[i]);
        last = chunk;
    }
    if (!last)
        return;
    ofpi_process_lock_acquire(OFPI_LOCK_REQUEST_SLOTS);
    last->next = unused;
    unused = domain->request_chunks;
    ofpi_process_lock_release(OFPI_LOCK_REQUEST_SLOTS);
    domain->request_chunks = NULL;
}
