/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Statistics pages: the memory in which the counters of endpoints and peers live, and which other processes of the same
 * user read. The reader is ofipy/statistics/page.py; docs/explanation/operators.md describes the layout.
 *
 * A page is a memory file, sealed so that nobody but the owner can write it. Without one it is ordinary memory of the
 * same layout, so that counting needs no condition. A process has a page for each 256 endpoints. A forked child gets
 * memory of its own at the place of its parent's pages, and never counts in them.
 *
 * Every counter is an aligned word of 64 bits that one thread at a time writes, with the lock of the endpoint's domain
 * held. So a reader never finds half of a value. Nothing here decides anything: what the core needs to know about a page
 * it keeps elsewhere.
 */
#ifndef OFPI_PAGE_H
#define OFPI_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "ofipy/objects.h"

#define OFPI_PAGE_VERSION 2
#define OFPI_PAGE_ENDPOINTS 256
#define OFPI_PAGE_PEERS 2048
#define OFPI_BLOCK_ENDPOINTS 16 /* whose parts lie together, so that few endpoints use few pages of memory */

/* Rows of messages: those sent by a protocol, then those received. */
#define OFPI_SENT_PROTOCOLS (OFP_PROTOCOL_ANNOUNCED + 1)
#define OFPI_ROWS (OFPI_SENT_PROTOCOLS + OFP_PROTOCOLS)
#define OFPI_SIZE_CLASSES 32

struct ofpi_peer_counts {
    uint64_t messages_sent, bytes_sent, messages_received, bytes_received, errors;
};

/* Messages of one row by the logarithm of their size; class 0 also counts empty ones. */
struct ofpi_sizes {
    uint64_t counts[OFPI_SIZE_CLASSES];
};

/* Counters of an endpoint. They live here and nowhere else. */
struct ofpi_counts {
    struct ofpi_peer_counts others; /* of peers that have no entry of their own */
    uint64_t bytes[OFPI_ROWS];
    uint64_t reads, writes, atomics, flushes, errors;
    uint64_t peers_up, peers_lost, messages_dropped, packed;
    uint64_t last_progress; /* time of CLOCK_MONOTONIC, ns; 0: none yet */
    uint64_t spare[8];
};

/* Copies of what the core keeps elsewhere, as of the last round of progress that wrote them; progress/levels.c. */
struct ofpi_levels {
    uint64_t posted_receives, unexpected_messages, unexpected_bytes, announced_messages, linear_searches;
    uint64_t backlog, pending;
    /* Shares of what the domain counts: what was added to it since another of its endpoints got the last share. */
    uint64_t sleeps, wakeups, progress_calls, registrations, registrations_reused, registrations_dropped;
    uint64_t packet_buffers_reclaimed;
    /* Of the domain: at one of its endpoints, 0 at the others. */
    uint64_t packet_buffers;
};

enum ofpi_slot_state { OFPI_SLOT_FREE, OFPI_SLOT_OPEN, OFPI_SLOT_CLOSED };

struct ofpi_page_endpoint {
    uint32_t state;  /* enum ofpi_slot_state; CLOSED: the sum of the closed endpoints of a provider */
    uint32_t number; /* in the process; 0 if CLOSED */
    uint64_t opened; /* as last_progress */
    struct ofpi_levels levels;
    uint32_t offloads; /* 1: the transport matches, and chooses protocols itself */
    char provider[28], name[88];
};

struct ofpi_page_peer {
    struct ofpi_peer_counts counts;
    uint32_t endpoint; /* number of its endpoint; 0: the entry is free */
    uint32_t reserved;
    char way[16], address[64];
};

struct ofpi_page_header {
    char magic[8]; /* "ofipystp" */
    uint32_t version;
    uint32_t pid; /* in the process's own namespace */
    /* Odd while entries are added, removed, renamed or summed up; counting alone does not change it. */
    _Atomic uint64_t changes;
    int32_t rank; /* -1: none */
    char job[68];
    char reserved[4000];
};

/*
 * The parts of 16 endpoints: part n of an endpoint lies n * 4,096 bytes behind its first part, so that one pointer
 * reaches all of them by constant offsets.
 */
struct ofpi_page_block {
    struct ofpi_counts counts[OFPI_BLOCK_ENDPOINTS];
    struct ofpi_sizes sizes[OFPI_ROWS][OFPI_BLOCK_ENDPOINTS];
    struct ofpi_page_endpoint endpoints[OFPI_BLOCK_ENDPOINTS];
};

struct ofpi_page {
    struct ofpi_page_header header;
    struct ofpi_page_block blocks[OFPI_PAGE_ENDPOINTS / OFPI_BLOCK_ENDPOINTS];
    struct ofpi_page_peer peers[OFPI_PAGE_PEERS];
};

#define OFPI_PART_SIZE 256
_Static_assert(sizeof(struct ofpi_page_header) == 4096 && sizeof(struct ofpi_page_peer) == 128, "the reader knows it");
_Static_assert(sizeof(struct ofpi_counts) == OFPI_PART_SIZE && sizeof(struct ofpi_sizes) == OFPI_PART_SIZE &&
                   sizeof(struct ofpi_page_endpoint) == OFPI_PART_SIZE,
               "parts are of equal size, so one pointer reaches all");
_Static_assert(sizeof(struct ofpi_page_block) == (OFPI_ROWS + 2) * 4096, "a block is whole pages of memory");

static inline struct ofpi_sizes *ofpi_sizes_find(struct ofpi_counts *counts, uint32_t row)
{
    return (struct ofpi_sizes *)(counts + OFPI_BLOCK_ENDPOINTS * (1 + row));
}
static inline struct ofpi_page_endpoint *ofpi_page_entry_find(struct ofpi_counts *counts)
{
    return (struct ofpi_page_endpoint *)(counts + OFPI_BLOCK_ENDPOINTS * (1 + OFPI_ROWS));
}

/* Zeroed counters of a new endpoint; NULL: out of memory. Any thread. */
struct ofpi_counts *ofpi_counts_open(const struct ofp_info *info);
/* Tell readers the endpoint's address. */
void ofpi_counts_set_name(struct ofpi_counts *counts, const char *name);
/* Add the counters to the sum of closed endpoints. The peers' entries must be closed already. NULL is allowed. */
void ofpi_counts_close(struct ofpi_counts *counts);
/* The entry of a peer; &counts->others if there is none left. */
struct ofpi_peer_counts *ofpi_peer_counts_open(struct ofpi_counts *counts, const char *way, const char *address);
/* Tell readers by which provider the peer's messages go now. */
void ofpi_peer_counts_set_way(struct ofpi_counts *counts, struct ofpi_peer_counts *peer, const char *way);
/* Add the counters to those of the endpoint's other peers. */
void ofpi_peer_counts_close(struct ofpi_counts *counts, struct ofpi_peer_counts *peer);

/* In a forked child, before anything else runs: give the child memory of its own at the place of all pages. */
void ofpi_pages_forked(void);

#endif
