/* SPDX-License-Identifier: BSD-3-Clause */
#include "exchange.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ofipy/check.h"

/* Of a line: an answer and its confirmation, and for each side the answer to a probe, the end, and that it is closed. */
#define SPARES 8

static pthread_mutex_t exchange_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ofp_list ports = {&ports, &ports};
static uint64_t last_number, steps, lose_at;
static struct ofp_list held = {&held, &held}; /* struct rdmfake_event: packets that have not left */
static bool holds;

/* --------------------------------------------------------------------------------- helpers that want the lock held */

static void port_release_locked(struct rdmfake_port *port)
{
    if (--port->references == 0)
        free(port);
}

static void free_spares(struct rdmfake_line *line)
{
    struct ofp_list *node;

    while ((node = ofp_list_pop(&line->spares)))
        free(OFP_CONTAINER_OF(node, struct rdmfake_event, node));
}

static void line_release_locked(struct rdmfake_line *line)
{
    if (--line->references)
        return;
    port_release_locked(line->ends[0]);
    port_release_locked(line->ends[1]);
    free_spares(line);
    free(line);
}

static void ring_locked(struct rdmfake_port *port)
{
    uint64_t one = 1;

    if (!port->armed || port->rung)
        return;
    port->rung = write(port->doorbell, &one, sizeof(one)) == sizeof(one);
}

static void silence_locked(struct rdmfake_port *port)
{
    uint64_t ignored;

    if (port->rung)
        port->rung = read(port->doorbell, &ignored, sizeof(ignored)) < 0;
}

static struct rdmfake_port *find_locked(const struct rdmfake_address *address)
{
    for (struct ofp_list *node = ports.next; node != &ports; node = node->next) {
        struct rdmfake_port *port = OFP_CONTAINER_OF(node, struct rdmfake_port, node);

        if (memcmp(&port->address, address, sizeof(*address)) == 0)
            return port;
    }
    return NULL;
}

static struct rdmfake_event *event_new(enum rdmfake_event_kind kind, const void *bytes, uint32_t length)
{
    struct rdmfake_event *event = calloc(1, sizeof(*event) + length);

    if (!event)
        return NULL;
    event->kind = kind;
    event->length = length;
    if (length)
        memcpy(event->bytes, bytes, length);
    return event;
}

/* NULL: no memory. */
static struct rdmfake_line *line_new(void)
{
    struct rdmfake_line *line = calloc(1, sizeof(*line));

    if (!line)
        return NULL;
    ofp_list_init(&line->spares);
    for (int i = 0; i < SPARES; i++) {
        struct rdmfake_event *event = event_new(RDMFAKE_END, NULL, 0);

        if (!event) {
            free_spares(line);
            free(line);
            return NULL;
        }
        ofp_list_append(&line->spares, &event->node);
    }
    return line;
}

static void put_locked(struct rdmfake_line *line, int side, struct rdmfake_event *event)
{
    struct rdmfake_port *port = line->ends[side];

    event->line = line;
    event->side = side;
    line->references++;
    if (holds && event->kind == RDMFAKE_PACKET) {
        ofp_list_append(&held, &event->node);
        return;
    }
    ofp_list_append(&port->inbox, &event->node);
    ring_locked(port);
}

/* From one's own port nothing gets lost. */
static bool is_own(enum rdmfake_event_kind kind)
{
    return kind == RDMFAKE_SENT || kind == RDMFAKE_MOVED || kind == RDMFAKE_PROBED || kind == RDMFAKE_CLOSED;
}

static bool takes_locked(const struct rdmfake_line *line, int side)
{
    return line->ends[side]->open && !line->broken && !line->closed[side];
}

static void event_free_locked(struct rdmfake_event *event)
{
    line_release_locked(event->line);
    free(event);
}

/* Tell one side something for which the line has kept an event, so that no memory is needed. */
static void notify_locked(struct rdmfake_line *line, int side, enum rdmfake_event_kind kind, int error)
{
    struct rdmfake_event *event;

    if (!(is_own(kind) || kind == RDMFAKE_END ? line->ends[side]->open : takes_locked(line, side)))
        return;
    OFP_CHECK(!ofp_list_empty(&line->spares));
    event = OFP_CONTAINER_OF(ofp_list_pop(&line->spares), struct rdmfake_event, node);
    event->kind = kind;
    event->error = error;
    event->flag = error != 0;
    event->path = is_own(kind) ? line->paths[side] : NULL;
    put_locked(line, side, event);
}

/* Both sides hear of it, behind whatever came before. */
static void break_locked(struct rdmfake_line *line, int error)
{
    if (line->broken)
        return;
    line->broken = true;
    for (int side = 0; side < 2; side++)
        notify_locked(line, side, RDMFAKE_END, error);
}

/* Whether this is the step at which a line is to be lost. */
static bool step_locked(struct rdmfake_line *line)
{
    if (line->broken || ++steps != lose_at)
        return false;
    break_locked(line, ECONNRESET);
    return true;
}

/* ------------------------------------------------------------------------------------------------------------ ports */

void rdmfake_lose_at(uint64_t step)
{
    pthread_mutex_lock(&exchange_lock);
    steps = 0;
    lose_at = step;
    pthread_mutex_unlock(&exchange_lock);
}

uint64_t rdmfake_steps(void)
{
    uint64_t count;

    pthread_mutex_lock(&exchange_lock);
    count = steps;
    pthread_mutex_unlock(&exchange_lock);
    return count;
}

void rdmfake_hold_packets(bool hold)
{
    struct ofp_list *node;

    pthread_mutex_lock(&exchange_lock);
    holds = hold;
    while (!hold && (node = ofp_list_pop(&held))) {
        struct rdmfake_event *event = OFP_CONTAINER_OF(node, struct rdmfake_event, node);
        struct rdmfake_port *port = event->line->ends[event->side];

        if (takes_locked(event->line, event->side)) {
            ofp_list_append(&port->inbox, &event->node);
            ring_locked(port);
        } else {
            port->posted++;
            event_free_locked(event);
        }
    }
    pthread_mutex_unlock(&exchange_lock);
}

uint64_t rdmfake_port_held(const struct rdmfake_port *port)
{
    uint64_t count = 0;

    pthread_mutex_lock(&exchange_lock);
    for (const struct ofp_list *node = held.next; node != &held; node = node->next) {
        const struct rdmfake_event *event = OFP_CONTAINER_OF(node, const struct rdmfake_event, node);

        count += event->line->ends[!event->side] == port && takes_locked(event->line, event->side);
    }
    pthread_mutex_unlock(&exchange_lock);
    return count;
}

uint64_t rdmfake_line_held(const struct rdmfake_line *line, int side)
{
    uint64_t count = 0;

    pthread_mutex_lock(&exchange_lock);
    for (const struct ofp_list *node = held.next; node != &held; node = node->next) {
        const struct rdmfake_event *event = OFP_CONTAINER_OF(node, const struct rdmfake_event, node);

        count += event->line == line && event->side != side && event->flag;
    }
    pthread_mutex_unlock(&exchange_lock);
    return count;
}

int rdmfake_port_open(const struct rdmfake_address *address, bool any, int doorbell, const void *owner,
                      struct rdmfake_port **result)
{
    struct rdmfake_port *port = calloc(1, sizeof(*port));
    int error = 0;

    if (!port)
        return -ENOMEM;
    port->address = *address;
    port->doorbell = doorbell;
    port->owner = owner;
    port->references = 1;
    port->open = port->listening = true;
    ofp_list_init(&port->inbox);
    pthread_mutex_lock(&exchange_lock);
    port->number = ++last_number;
    if (any)
        snprintf(port->address.service, sizeof(port->address.service), "~%llu", (unsigned long long)port->number);
    if (find_locked(&port->address))
        error = -EADDRINUSE;
    else
        ofp_list_append(&ports, &port->node);
    pthread_mutex_unlock(&exchange_lock);
    if (error)
        free(port);
    else
        *result = port;
    return error;
}

void rdmfake_port_hush(struct rdmfake_port *port)
{
    pthread_mutex_lock(&exchange_lock);
    if (port->listening)
        ofp_list_remove(&port->node);
    port->listening = false;
    pthread_mutex_unlock(&exchange_lock);
}

void rdmfake_port_close(struct rdmfake_port *port)
{
    struct ofp_list *node;

    rdmfake_port_hush(port);
    pthread_mutex_lock(&exchange_lock);
    port->open = false;
    while ((node = ofp_list_pop(&port->inbox))) {
        struct rdmfake_event *event = OFP_CONTAINER_OF(node, struct rdmfake_event, node);

        if (event->kind == RDMFAKE_ASK)
            notify_locked(event->line, 0, RDMFAKE_REFUSE, 0);
        event_free_locked(event);
    }
    port_release_locked(port);
    pthread_mutex_unlock(&exchange_lock);
}

void rdmfake_port_posted(struct rdmfake_port *port)
{
    pthread_mutex_lock(&exchange_lock);
    port->posted++;
    pthread_mutex_unlock(&exchange_lock);
}

struct rdmfake_event *rdmfake_port_take(struct rdmfake_port *port)
{
    struct ofp_list *node;

    pthread_mutex_lock(&exchange_lock);
    node = ofp_list_pop(&port->inbox);
    if (!node)
        silence_locked(port);
    pthread_mutex_unlock(&exchange_lock);
    return node ? OFP_CONTAINER_OF(node, struct rdmfake_event, node) : NULL;
}

bool rdmfake_port_arm(struct rdmfake_port *port)
{
    bool armed;

    pthread_mutex_lock(&exchange_lock);
    port->armed = armed = ofp_list_empty(&port->inbox);
    pthread_mutex_unlock(&exchange_lock);
    return armed;
}

void rdmfake_port_disarm(struct rdmfake_port *port)
{
    pthread_mutex_lock(&exchange_lock);
    port->armed = false;
    pthread_mutex_unlock(&exchange_lock);
}

void rdmfake_port_silence(struct rdmfake_port *port)
{
    pthread_mutex_lock(&exchange_lock);
    silence_locked(port);
    pthread_mutex_unlock(&exchange_lock);
}

void rdmfake_forget(void)
{
    /* Another thread of the parent may have held the lock. What it guarded belongs to the parent's objects. */
    pthread_mutex_init(&exchange_lock, NULL);
    ofp_list_init(&ports);
    ofp_list_init(&held);
}

/* ------------------------------------------------------------------------------------------------------------ lines */

struct rdmfake_line *rdmfake_line_ask(struct rdmfake_port *port, const struct rdmfake_address *address,
                                      const uint8_t *hello, size_t length, int *error)
{
    struct rdmfake_line *line = line_new();
    struct rdmfake_event *event = event_new(RDMFAKE_ASK, hello, (uint32_t)length);
    struct rdmfake_port *other;

    *error = line && event ? 0 : -ENOMEM;
    pthread_mutex_lock(&exchange_lock);
    other = find_locked(address);
    if (!*error && !other)
        *error = -ECONNREFUSED;
    if (!*error) {
        line->ends[0] = port;
        line->ends[1] = other;
        port->references++;
        other->references++;
        line->references = 1;
        put_locked(line, 1, event);
        step_locked(line);
    }
    pthread_mutex_unlock(&exchange_lock);
    if (!*error)
        return line;
    free(event);
    if (line)
        free_spares(line);
    free(line);
    return NULL;
}

struct rdmfake_line *rdmfake_line_hold(struct rdmfake_line *line)
{
    pthread_mutex_lock(&exchange_lock);
    line->references++;
    pthread_mutex_unlock(&exchange_lock);
    return line;
}

void rdmfake_line_release(struct rdmfake_line *line)
{
    pthread_mutex_lock(&exchange_lock);
    line_release_locked(line);
    pthread_mutex_unlock(&exchange_lock);
}

bool rdmfake_line_has_end(struct rdmfake_line *line, int side)
{
    bool listening;

    pthread_mutex_lock(&exchange_lock);
    listening = line->ends[side]->listening;
    pthread_mutex_unlock(&exchange_lock);
    return listening;
}

int rdmfake_line_put(struct rdmfake_line *line, int side, enum rdmfake_event_kind kind, bool flag, const void *bytes,
                     uint32_t length)
{
    struct rdmfake_event *event = event_new(kind, bytes, length);
    struct rdmfake_port *port = line->ends[side];
    int result = 0;

    if (!event)
        return -ENOMEM;
    event->flag = flag;
    pthread_mutex_lock(&exchange_lock);
    step_locked(line);
    if (kind == RDMFAKE_PACKET && !line->broken && port->open && !port->posted)
        result = -ENOBUFS;
    if (result || !takes_locked(line, side)) {
        /* Lost on its way; the end of the line is told by itself. */
        free(event);
    } else {
        port->posted -= kind == RDMFAKE_PACKET;
        put_locked(line, side, event);
    }
    pthread_mutex_unlock(&exchange_lock);
    return result;
}

void rdmfake_line_notify(struct rdmfake_line *line, int side, enum rdmfake_event_kind kind, int error)
{
    pthread_mutex_lock(&exchange_lock);
    if (!is_own(kind))
        step_locked(line);
    notify_locked(line, side, kind, error);
    pthread_mutex_unlock(&exchange_lock);
}

struct rdmfake_event *rdmfake_event_reserve(enum rdmfake_event_kind kind, void *cookie)
{
    struct rdmfake_event *event = event_new(kind, NULL, 0);

    if (event)
        event->cookie = cookie;
    return event;
}

void rdmfake_line_put_reserved(struct rdmfake_line *line, int side, struct rdmfake_event *event, int error)
{
    event->error = error;
    event->path = line->paths[side];
    pthread_mutex_lock(&exchange_lock);
    if (line->ends[side]->open)
        put_locked(line, side, event);
    else
        free(event);
    pthread_mutex_unlock(&exchange_lock);
}

bool rdmfake_line_lose_here(struct rdmfake_line *line)
{
    bool lost;

    pthread_mutex_lock(&exchange_lock);
    lost = line->broken || step_locked(line);
    pthread_mutex_unlock(&exchange_lock);
    return lost;
}

void rdmfake_line_close(struct rdmfake_line *line, int side)
{
    pthread_mutex_lock(&exchange_lock);
    line->closed[side] = true;
    break_locked(line, ECONNRESET);
    notify_locked(line, side, RDMFAKE_CLOSED, 0);
    line_release_locked(line);
    pthread_mutex_unlock(&exchange_lock);
}

void rdmfake_event_free(struct rdmfake_event *event)
{
    pthread_mutex_lock(&exchange_lock);
    event_free_locked(event);
    pthread_mutex_unlock(&exchange_lock);
}
