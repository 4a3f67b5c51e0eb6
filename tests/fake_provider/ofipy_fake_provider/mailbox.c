/* SPDX-License-Identifier: BSD-3-Clause */
/* The exchange: mailboxes of all endpoints of the process, and the packets in them. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"
#include "ofipy/iov.h"

#define INBOX_LIMIT 256 /* packets; beyond it senders are told to try again */

static pthread_mutex_t exchange_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ofp_list mailboxes = {&mailboxes, &mailboxes};
static uint64_t last_number, last_packet_id, departures;

/* --------------------------------------------------------------------------------- helpers that want the lock held */

static struct mailbox *find_locked(const struct fake_address *address)
{
    for (struct ofp_list *node = mailboxes.next; node != &mailboxes; node = node->next) {
        struct mailbox *mailbox = OFP_CONTAINER_OF(node, struct mailbox, node);

        if (memcmp(&mailbox->address, address, sizeof(*address)) == 0)
            return mailbox;
    }
    return NULL;
}

static void release_locked(struct mailbox *mailbox)
{
    if (--mailbox->references == 0)
        free(mailbox);
}

static void ring_locked(struct mailbox *mailbox)
{
    uint64_t one = 1;

    if (!mailbox->armed || mailbox->rung)
        return;
    mailbox->rung = true;
    if (write(mailbox->doorbell, &one, sizeof(one)) < 0)
        fake_core->log(OFP_LOG_ERROR, "fake", "cannot wake an endpoint: errno %d", errno);
}

static void silence_locked(struct mailbox *mailbox)
{
    uint64_t ignored;

    if (mailbox->rung && read(mailbox->doorbell, &ignored, sizeof(ignored)) < 0)
        fake_core->log(OFP_LOG_ERROR, "fake", "cannot read a doorbell: errno %d", errno);
    mailbox->rung = false;
}

static void free_locked(struct packet *packet)
{
    if (packet->source)
        release_locked(packet->source);
    free(packet);
}

static void free_all_locked(struct ofp_list *packets)
{
    struct ofp_list *node;

    while ((node = ofp_list_pop(packets)))
        free_locked(OFP_CONTAINER_OF(node, struct packet, node));
}

static void put_locked(struct mailbox *mailbox, struct packet *packet)
{
    if (mailbox->open) {
        ofp_list_append(&mailbox->inbox, &packet->node);
        mailbox->inbox_count++;
        ring_locked(mailbox);
    } else {
        /* As if it had been lost on the way; the sender notices the departure. */
        free_locked(packet);
    }
}

static void answer_locked(struct packet *packet, struct mailbox *acceptor, const void *data, size_t length)
{
    struct mailbox *asked_by = packet->source;

    packet->source = acceptor;
    if (acceptor)
        acceptor->references++;
    packet->operation = FAKE_ANSWER;
    packet->error = acceptor ? 0 : ECONNREFUSED;
    packet->length = length;
    if (length)
        memcpy(packet->payload, data, length);
    put_locked(asked_by, packet);
    release_locked(asked_by);
}

static void refuse_all_locked(struct ofp_list *packets)
{
    struct ofp_list *node;

    while ((node = ofp_list_pop(packets)))
        answer_locked(OFP_CONTAINER_OF(node, struct packet, node), NULL, NULL, 0);
}

static int name_locked(struct mailbox *mailbox, const char *service, char *text, size_t text_size)
{
    char any[FAKE_SERVICE_SIZE];
    int result;

    mailbox->number = ++last_number;
    snprintf(any, sizeof(any), "~%llu", (unsigned long long)mailbox->number);
    result = fake_address_make(service ? service : any, &mailbox->address, text, text_size);
    if (!result && find_locked(&mailbox->address)) {
        snprintf(text, text_size, "another endpoint of this process has the service %s", mailbox->address.service);
        result = -EADDRINUSE;
    }
    return result;
}

/* -------------------------------------------------------------------------------------------------------- mailboxes */

int mailbox_open(enum mailbox_kind kind, bool pulls, const char *service, int doorbell, struct mailbox **result,
                 uint64_t *departures_seen, char *text, size_t text_size)
{
    struct mailbox *mailbox = calloc(1, sizeof(*mailbox));
    int error;

    if (!mailbox)
        return -ENOMEM;
    ofp_list_init(&mailbox->inbox);
    ofp_list_init(&mailbox->returned);
    mailbox->kind = kind;
    mailbox->pulls = pulls;
    mailbox->doorbell = doorbell;
    mailbox->references = 1;
    mailbox->open = true;
    pthread_mutex_lock(&exchange_lock);
    *departures_seen = departures;
    error = name_locked(mailbox, service, text, text_size);
    if (!error)
        ofp_list_append(&mailboxes, &mailbox->node);
    pthread_mutex_unlock(&exchange_lock);
    if (error)
        free(mailbox);
    else
        *result = mailbox;
    return error;
}

void mailbox_close(struct mailbox *mailbox)
{
    pthread_mutex_lock(&exchange_lock);
    ofp_list_remove(&mailbox->node);
    mailbox->open = false;
    mailbox->departure = ++departures;
    for (struct ofp_list *node = mailboxes.next; node != &mailboxes; node = node->next)
        ring_locked(OFP_CONTAINER_OF(node, struct mailbox, node));
    if (mailbox->kind == MAILBOX_LISTENER)
        refuse_all_locked(&mailbox->inbox);
    free_all_locked(&mailbox->inbox);
    free_all_locked(&mailbox->returned);
    release_locked(mailbox);
    pthread_mutex_unlock(&exchange_lock);
}

struct mailbox *mailbox_find(const struct fake_address *address, enum mailbox_kind kind)
{
    struct mailbox *mailbox;

    pthread_mutex_lock(&exchange_lock);
    mailbox = find_locked(address);
    if (mailbox && mailbox->kind != kind)
        mailbox = NULL;
    if (mailbox)
        mailbox->references++;
    pthread_mutex_unlock(&exchange_lock);
    return mailbox;
}

void mailbox_listen(struct mailbox *mailbox)
{
    pthread_mutex_lock(&exchange_lock);
    mailbox->kind = MAILBOX_LISTENER;
    pthread_mutex_unlock(&exchange_lock);
}

struct mailbox *mailbox_hold(struct mailbox *mailbox)
{
    pthread_mutex_lock(&exchange_lock);
    mailbox->references++;
    pthread_mutex_unlock(&exchange_lock);
    return mailbox;
}

void mailbox_release(struct mailbox *mailbox)
{
    pthread_mutex_lock(&exchange_lock);
    release_locked(mailbox);
    pthread_mutex_unlock(&exchange_lock);
}

bool mailbox_has_room(struct mailbox *mailbox)
{
    bool room;

    pthread_mutex_lock(&exchange_lock);
    room = mailbox->inbox_count < INBOX_LIMIT;
    pthread_mutex_unlock(&exchange_lock);
    return room;
}

bool mailbox_is_open(struct mailbox *mailbox)
{
    bool open;

    pthread_mutex_lock(&exchange_lock);
    open = mailbox->open;
    pthread_mutex_unlock(&exchange_lock);
    return open;
}

bool mailbox_has_departed(struct mailbox *mailbox, uint64_t first)
{
    bool departed;

    pthread_mutex_lock(&exchange_lock);
    departed = mailbox->departure && mailbox->departure <= first;
    pthread_mutex_unlock(&exchange_lock);
    return departed;
}

void mailbox_put(struct mailbox *mailbox, struct packet *packet)
{
    pthread_mutex_lock(&exchange_lock);
    put_locked(mailbox, packet);
    pthread_mutex_unlock(&exchange_lock);
}

void mailbox_knock(struct mailbox *listener, struct packet *packet)
{
    pthread_mutex_lock(&exchange_lock);
    if (listener->open)
        put_locked(listener, packet);
    else
        answer_locked(packet, NULL, NULL, 0);
    pthread_mutex_unlock(&exchange_lock);
}

void mailbox_put_answer(struct mailbox *mailbox, struct packet *packet)
{
    pthread_mutex_lock(&exchange_lock);
    if (mailbox->open) {
        ofp_list_append(&mailbox->returned, &packet->node);
        ring_locked(mailbox);
    } else {
        free_locked(packet);
    }
    pthread_mutex_unlock(&exchange_lock);
}

void mailbox_set_full(struct mailbox *mailbox, bool full)
{
    pthread_mutex_lock(&exchange_lock);
    mailbox->full = full;
    pthread_mutex_unlock(&exchange_lock);
}

bool mailbox_is_full(struct mailbox *mailbox)
{
    bool full;

    pthread_mutex_lock(&exchange_lock);
    full = mailbox->full;
    pthread_mutex_unlock(&exchange_lock);
    return full;
}

void mailbox_put_back(struct mailbox *mailbox, struct packet *packet)
{
    pthread_mutex_lock(&exchange_lock);
    ofp_list_prepend(&mailbox->inbox, &packet->node);
    mailbox->inbox_count++;
    pthread_mutex_unlock(&exchange_lock);
}

struct packet *mailbox_take(struct mailbox *mailbox)
{
    struct ofp_list *node;

    pthread_mutex_lock(&exchange_lock);
    node = ofp_list_pop(&mailbox->inbox);
    if (node)
        mailbox->inbox_count--;
    pthread_mutex_unlock(&exchange_lock);
    return node ? OFP_CONTAINER_OF(node, struct packet, node) : NULL;
}

struct packet *mailbox_take_returned(struct mailbox *mailbox)
{
    struct ofp_list *node;

    pthread_mutex_lock(&exchange_lock);
    node = ofp_list_pop(&mailbox->returned);
    pthread_mutex_unlock(&exchange_lock);
    return node ? OFP_CONTAINER_OF(node, struct packet, node) : NULL;
}

bool mailbox_settle(struct mailbox *mailbox, bool stalled, uint64_t *departures_now)
{
    bool idle;

    pthread_mutex_lock(&exchange_lock);
    *departures_now = departures;
    idle = ofp_list_empty(&mailbox->inbox) && ofp_list_empty(&mailbox->returned);
    if (idle || stalled)
        silence_locked(mailbox);
    pthread_mutex_unlock(&exchange_lock);
    return idle;
}

void mailbox_silence(struct mailbox *mailbox)
{
    pthread_mutex_lock(&exchange_lock);
    silence_locked(mailbox);
    pthread_mutex_unlock(&exchange_lock);
}

bool mailbox_arm(struct mailbox *mailbox, uint64_t departures_seen, bool stalled)
{
    bool armed;

    pthread_mutex_lock(&exchange_lock);
    /* Behind a packet that the core has no room for nothing can be done, and departures wait their turn. */
    mailbox->armed = ofp_list_empty(&mailbox->returned) &&
                     (stalled || (ofp_list_empty(&mailbox->inbox) && departures == departures_seen));
    armed = mailbox->armed;
    pthread_mutex_unlock(&exchange_lock);
    return armed;
}

void mailbox_disarm(struct mailbox *mailbox)
{
    pthread_mutex_lock(&exchange_lock);
    mailbox->armed = false;
    pthread_mutex_unlock(&exchange_lock);
}

void mailboxes_forget(void)
{
    /* Another thread of the parent may have held the lock. What it guarded belongs to the parent's objects. */
    pthread_mutex_init(&exchange_lock, NULL);
    ofp_list_init(&mailboxes);
}

/* ---------------------------------------------------------------------------------------------------------- packets */

struct packet *packet_new(struct mailbox *source, struct mailbox *target, const struct ofp_transfer *transfer,
                          bool with_payload)
{
    bool compares = ofp_operation_is(transfer->op->op, OFP_COMPARES);
    uint64_t room = with_payload ? transfer->length * (compares ? 2 : 1) : 0;
    struct packet *packet = calloc(1, sizeof(*packet) + room);

    if (!packet)
        return NULL;
    packet->length = transfer->length;
    packet->stage = with_payload ? PACKET_WHOLE : PACKET_ANNOUNCED;
    if (with_payload && transfer->op->op != OFP_READ)
        ofp_iov_gather(packet->payload, transfer->iov, transfer->iov_count, 0, transfer->length);
    packet->target_number = target->number;
    packet->operation = transfer->op->op;
    if (packet_is_remote(packet))
        fake_remote_request(packet, transfer);
    packet->channel = ofp_operation_row(transfer->op->op)->channel;
    packet->tag = packet->channel != OFP_CHANNEL_MESSAGE ? transfer->op->tag : 0;
    packet->has_data = transfer->op->flags & OFP_REMOTE_CQ_DATA;
    packet->data = packet->has_data ? transfer->op->data : 0;
    pthread_mutex_lock(&exchange_lock);
    packet->source = source;
    source->references++;
    packet->id = ++last_packet_id;
    pthread_mutex_unlock(&exchange_lock);
    return packet;
}

struct packet *packet_copy(const struct packet *packet)
{
    size_t size = sizeof(*packet) + packet->length;
    struct packet *copy = malloc(size);

    if (!copy)
        return NULL;
    memcpy(copy, packet, size);
    copy->pending_id = 0;
    copy->node = (struct ofp_list){0};
    pthread_mutex_lock(&exchange_lock);
    copy->source->references++;
    pthread_mutex_unlock(&exchange_lock);
    return copy;
}

static void finish_locked(struct packet *packet)
{
    if (packet->pending_id && packet->source->open) {
        ofp_list_append(&packet->source->returned, &packet->node);
        ring_locked(packet->source);
    } else {
        free_locked(packet);
    }
}

void packet_finish(struct packet *packet, int error)
{
    packet->error = error;
    pthread_mutex_lock(&exchange_lock);
    finish_locked(packet);
    pthread_mutex_unlock(&exchange_lock);
}

void packets_finish(struct ofp_list *packets)
{
    struct ofp_list *node;

    pthread_mutex_lock(&exchange_lock);
    while ((node = ofp_list_pop(packets)))
        finish_locked(OFP_CONTAINER_OF(node, struct packet, node));
    pthread_mutex_unlock(&exchange_lock);
}

void packet_free(struct packet *packet)
{
    pthread_mutex_lock(&exchange_lock);
    free_locked(packet);
    pthread_mutex_unlock(&exchange_lock);
}

struct packet *packet_control_new(struct mailbox *source, enum packet_control what, const void *data, size_t length)
{
    struct packet *packet = calloc(1, sizeof(*packet) + FAKE_PRIVATE_DATA);

    if (!packet)
        return NULL;
    packet->operation = what;
    packet->length = length;
    if (length)
        memcpy(packet->payload, data, length);
    packet->source = mailbox_hold(source);
    return packet;
}

void packet_answer(struct packet *packet, struct mailbox *acceptor, const void *data, size_t length)
{
    pthread_mutex_lock(&exchange_lock);
    answer_locked(packet, acceptor, data, length);
    pthread_mutex_unlock(&exchange_lock);
}
