/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events that the hook `trace` stores until the endpoint closes, and the file to which they are then written, in
 * Chrome's trace format. Endpoints of one process may share a file, which is a complete document after each of them.
 * Any thread; own lock.
 */
#ifndef TRACE_FILE_H
#define TRACE_FILE_H

#include <pthread.h>

#include "ofipy/provider.h"

enum trace_kind { TRACE_OPERATION, TRACE_ARRIVAL, TRACE_MOVE, TRACE_PEER };

struct trace_event {
    uint64_t begin, end; /* ns */
    uint64_t length, tag;
    uint64_t number; /* of an operation */
    uint64_t flow;   /* the arrow that begins or ends here; 0: none */
    uint32_t peer;   /* index, OFP_PEER_ANY, OFP_PEER_UNKNOWN */
    int32_t error;
    uint16_t kind; /* enum trace_kind */
    uint16_t
        code; /* operation: OFP_SEND …; arrival: enum ofp_hook_arrival; move: enum ofp_moved; peer: enum ofp_peer_state */
};

/* Events of one endpoint. Guarded by its domain's lock. */
struct trace_events {
    struct trace_event *all;
    size_t count, room;
};

struct trace_file;

/* Guards all files. */
extern pthread_mutex_t trace_files_lock;

/*
 * Open the file of this name, or return it if an endpoint of this process has opened it and it still has its name; it
 * stays open until the process ends. NULL with a text: it cannot be written.
 */
struct trace_file *trace_file_open(const char *name, char *text, size_t text_size);
/* Sort the events and append them under this title. 0, or a negative errno. */
int trace_file_add(struct trace_file *file, const char *title, struct trace_events *events);
/* "unused", "connecting", "up", "lost" */
const char *trace_peer_state_describe(uint32_t state);
/* "mapped", "pipeline", "attach" */
const char *trace_method_describe(uint32_t how);

#endif
