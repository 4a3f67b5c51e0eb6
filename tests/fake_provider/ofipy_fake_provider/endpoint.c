/* SPDX-License-Identifier: BSD-3-Clause */
/* What both kinds of endpoint share: peers, sending, progress and the sleep handshake. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake.h"

#define PROGRESS_LIMIT 64 /* packets handled in one call */

static struct fake_endpoint *private_of(struct ofp_endpoint *endpoint) { return endpoint->private; }

/* It only has to wake the domain: progress follows. */
static void doorbell_rang(struct ofp_watch *watch, uint32_t events)
{
    (void)events;
    mailbox_silence(OFP_CONTAINER_OF(watch, struct fake_endpoint, doorbell)->mailbox);
}

int fake_open(struct ofp_endpoint *endpoint, const char *service, char *text, size_t text_size)
{
    struct fake_endpoint *self = private_of(endpoint);
    int result;

    ofp_list_init(&self->peers);
    ofp_list_init(&self->unexpected);
    ofp_list_init(&self->replies);
    self->doorbell = (struct ofp_watch){.events = EPOLLIN, .ready = doorbell_rang};
    self->doorbell.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self->doorbell.fd < 0)
        return -errno;
    result = fake_core->watch_add(endpoint->domain, &self->doorbell);
    if (result)
        goto no_watch;
    result =
        mailbox_open(fake_is_connected(endpoint) ? MAILBOX_CONNECTED : MAILBOX_RDM, !endpoint->info->offloads_matching,
                     service, self->doorbell.fd, &self->mailbox, &self->departures_seen, text, text_size);
    if (result)
        goto no_mailbox;
    self->knock = (struct packet *)(uintptr_t)endpoint->request;
    return 0;
no_mailbox:
    fake_core->watch_remove(endpoint->domain, &self->doorbell);
no_watch:
    close(self->doorbell.fd);
    return result;
}

void fake_close(struct ofp_endpoint *endpoint, uint64_t deadline)
{
    struct fake_endpoint *self = private_of(endpoint);
    struct ofp_list *node;

    (void)deadline;
    fake_flush(endpoint);
    fake_core->timer_stop(endpoint->domain, &self->pause);
    while ((node = ofp_list_pop(&self->unexpected)))
        packet_free(OFP_CONTAINER_OF(node, struct packet, node));
    /* The core ends what was posted here. */
    free(self->receives);
    self->receives = NULL;
    self->receive_count = 0;
    if (self->knock)
        packet_answer(self->knock, NULL, NULL, 0);
    self->knock = NULL;
    mailbox_close(self->mailbox);
    self->mailbox = NULL;
    fake_core->watch_remove(endpoint->domain, &self->doorbell);
    close(self->doorbell.fd);
}

int fake_name(struct ofp_endpoint *endpoint, void *address, size_t *length)
{
    size_t room = *length;

    *length = sizeof(struct fake_address);
    if (room < *length)
        return -OFP_ETOOSMALL;
    memcpy(address, &private_of(endpoint)->mailbox->address, *length);
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------ peers */

void fake_meet(struct ofp_peer *peer, struct mailbox *target)
{
    struct fake_peer *self = peer->private;

    self->peer = peer;
    self->target = target;
    ofp_list_init(&self->announced);
    ofp_list_init(&self->streams);
    ofp_list_append(&private_of(peer->endpoint)->peers, &self->node);
    peer->incarnation = target->number;
    ofp_peer_up(peer);
}

int fake_connect(struct ofp_peer *peer, char *text, size_t text_size)
{
    struct fake_address address;
    struct mailbox *target;

    memcpy(&address, peer->address, sizeof(address));
    if (address.process != (uint32_t)getpid()) {
        snprintf(text, text_size, "the fake provider reaches this process only, not process %u", address.process);
        return -EHOSTUNREACH;
    }
    if (fake_is_connected(peer->endpoint))
        return fake_knock(peer, text, text_size);
    target = mailbox_find(&address, MAILBOX_RDM);
    if (!target) {
        snprintf(text, text_size, "no endpoint of this process has the service %s", address.service);
        return -ECONNREFUSED;
    }
    fake_meet(peer, target);
    return 0;
}

struct ofp_peer *fake_sender(struct ofp_endpoint *endpoint, const struct packet *packet)
{
    struct ofp_peer *only = private_of(endpoint)->connection;

    if (!fake_is_connected(endpoint))
        return ofp_peer_by_address(endpoint, &packet->source->address, sizeof(packet->source->address));
    return only && ((struct fake_peer *)only->private)->target == packet->source ? only : NULL;
}

/* The peer that sent a packet, up. NULL: out of memory, or it is no longer connected. */
static struct ofp_peer *sender_of(struct ofp_endpoint *endpoint, const struct packet *packet)
{
    struct mailbox *source = packet->source;
    struct ofp_peer *peer = fake_sender(endpoint, packet);

    if (!peer || fake_is_connected(endpoint))
        return peer;
    if (peer->state == OFP_PEER_UP && peer->incarnation != source->number)
        ofp_peer_lost(peer, OFP_EPEERLOST, true, "another endpoint took its address");
    if (peer->state != OFP_PEER_UP) {
        ofp_peer_connecting(peer);
        fake_meet(peer, mailbox_hold(source));
    }
    return peer;
}

/* What nobody will receive any more. */
static void drop_packets(struct fake_endpoint *endpoint, struct ofp_list *packets)
{
    struct ofp_list *node;

    while ((node = ofp_list_pop(packets))) {
        struct packet *packet = OFP_CONTAINER_OF(node, struct packet, node);

        /* When the whole endpoint closes its departure tells the sender. */
        if (endpoint->mailbox)
            packet_finish(packet, ECONNRESET);
        else
            packet_free(packet);
    }
}

void fake_lost_by(struct ofp_peer *peer)
{
    ((struct fake_peer *)peer->private)->told = true;
    ofp_peer_lost(peer, ECONNRESET, false, "the other side lost the connection");
}

/* A wire would tell the other side of the end of a connection: no message is missing where it does not look. */
static void tell_of_loss(struct fake_endpoint *endpoint, const struct fake_peer *peer)
{
    struct packet *packet = packet_control_new(endpoint->mailbox, FAKE_LOST, NULL, 0);

    if (packet)
        mailbox_put(peer->target, packet);
}

void fake_peer_down(struct ofp_peer *peer)
{
    struct fake_peer *self = peer->private;
    struct fake_endpoint *endpoint = private_of(peer->endpoint);

    endpoint->connection = NULL;
    /* After a refused connection there is nothing more to drop. */
    if (!self->target)
        return;
    drop_packets(endpoint, &self->announced);
    for (struct ofp_list *node = self->streams.next; node != &self->streams; node = node->next)
        endpoint->streaming--;
    drop_packets(endpoint, &self->streams);
    ofp_list_remove(&self->node);
    if (endpoint->mailbox && !self->told && !fake_is_connected(peer->endpoint))
        tell_of_loss(endpoint, self);
    self->told = false;
    mailbox_release(self->target);
    self->target = NULL;
}

/* Lose the peers whose mailbox is among the first `departures` that were closed: everything that they sent has been handled. */
static int notice_departures(struct ofp_endpoint *endpoint, uint64_t departures)
{
    bool connected = fake_is_connected(endpoint);
    struct ofp_list *node, *following;
    int lost = 0;

    OFP_LIST_EACH(node, following, &private_of(endpoint)->peers) {
        struct fake_peer *peer = OFP_CONTAINER_OF(node, struct fake_peer, node);

        if (!mailbox_has_departed(peer->target, departures))
            continue;
        ofp_peer_lost(peer->peer, connected ? ESHUTDOWN : OFP_EPEERLOST, !connected, "its endpoint was closed");
        lost++;
    }
    return lost;
}

/* ---------------------------------------------------------------------------------------------------------- sending */

int fake_send(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    const struct ofp_operation *op = transfer->op;
    struct fake_peer *to = peer->private;
    uint64_t levels = op->flags & (OFP_DELIVERY_COMPLETE | OFP_MATCH_COMPLETE);
    bool is_message = !ofp_operation_is(op->op, OFP_REMOTE), announces = false;
    bool is_long = transfer->length > fake_domain_of(endpoint)->eager_size;
    struct ofp_pending *pending;
    struct packet *packet;

    if ((op->flags & OFP_FENCE && to->waiting) || !mailbox_has_room(to->target))
        return -EAGAIN;
    /* Who waits for a match keeps a long payload until then; who waits for delivery alone sends every one along. */
    if (is_message && to->target->pulls && levels != OFP_DELIVERY_COMPLETE)
        announces = (is_long && levels) || mailbox_is_full(to->target);
    packet = packet_new(private_of(endpoint)->mailbox, to->target, transfer, !announces);
    if (!packet)
        return -ENOMEM;
    /* Short messages are done when they lie in the inbox, unless the sender asked to hear of more. */
    if (is_message && !is_long && !levels && !announces) {
        mailbox_put(to->target, packet);
        return OFP_POST_DONE;
    }
    pending = ofp_transfer_retain(endpoint, peer, transfer);
    if (!pending) {
        packet_free(packet);
        return -EAGAIN;
    }
    packet->pending_id = pending->id;
    packet->only_delivery = levels == OFP_DELIVERY_COMPLETE;
    to->waiting++;
    mailbox_put(to->target, packet);
    return OFP_POST_PENDING;
}

static void end_send(struct fake_peer *to, struct ofp_pending *pending, int error, int provider_error)
{
    to->waiting--;
    ofp_transfer_complete(pending, error, provider_error);
    fake_leave_if_done(to->peer);
}

/* An own packet came back: the operation that waited for it is over, unless the target asks for the payload first. */
static void finish_send(struct ofp_endpoint *endpoint, struct packet *packet)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &private_of(endpoint)->peers) {
        struct fake_peer *to = OFP_CONTAINER_OF(node, struct fake_peer, node);
        struct ofp_pending *pending;

        if (to->target->number != packet->target_number)
            continue;
        pending = ofp_pending_find(to->peer, packet->pending_id);
        if (packet->stage == PACKET_PULL && !packet->error) {
            int error = fake_pulled(to, pending, packet);

            if (error && pending)
                end_send(to, pending, error, 0);
            return;
        }
        if (pending && packet_is_remote(packet) && !packet->error)
            fake_remote_answered(packet, &pending->transfer);
        if (pending)
            end_send(to, pending, packet->error, packet->provider_error);
        break;
    }
    packet_free(packet);
}

/* --------------------------------------------------------------------------------------------------------- progress */

struct ofp_message fake_message(const struct packet *packet, struct ofp_peer *peer)
{
    return (struct ofp_message){
        .peer = peer,
        .source = peer ? peer->index : OFP_PEER_UNKNOWN,
        .channel = packet->channel,
        .has_data = packet->has_data,
        .tag = packet->tag,
        .data = packet->data,
        .length = packet->length,
        .provider_data = {packet->id},
    };
}

/* False: there is no room for it now. */
static bool packet_arrived(struct ofp_endpoint *endpoint, struct packet *packet, fake_deliver_fn *deliver)
{
    struct ofp_peer *peer;

    if (packet_is_control(packet)) {
        fake_control_arrived(endpoint, packet);
        return true;
    }
    peer = sender_of(endpoint, packet);
    if (!peer && fake_is_connected(endpoint)) {
        packet_finish(packet, ECONNRESET);
        return true;
    }
    if (!peer)
        return false;
    if (packet_is_remote(packet)) {
        fake_remote_serve(endpoint, peer, packet);
        return true;
    }
    return deliver(endpoint, peer, packet) == 0;
}

void fake_reply(struct ofp_endpoint *endpoint, struct packet *packet, int error)
{
    packet->error = error;
    ofp_list_append(&private_of(endpoint)->replies, &packet->node);
    ofp_flush_later(endpoint);
}

void fake_flush(struct ofp_endpoint *endpoint) { packets_finish(&private_of(endpoint)->replies); }

int fake_progress(struct ofp_endpoint *endpoint, fake_deliver_fn *deliver)
{
    struct fake_endpoint *self = private_of(endpoint);
    struct packet *packet;
    uint64_t departures;
    int handled = 0;

    while (handled < PROGRESS_LIMIT && (packet = mailbox_take_returned(self->mailbox))) {
        if (packet->stage == PACKET_PAYLOAD)
            fake_payload_arrived(endpoint, packet);
        else
            finish_send(endpoint, packet);
        handled++;
    }
    self->stalled = false;
    while (handled < PROGRESS_LIMIT && !self->paused && (packet = mailbox_take(self->mailbox))) {
        if (!packet_arrived(endpoint, packet, deliver)) {
            mailbox_put_back(self->mailbox, packet);
            self->stalled = true;
            break;
        }
        handled++;
    }
    if (mailbox_settle(self->mailbox, self->stalled || self->paused, &departures) &&
        departures != self->departures_seen) {
        self->departures_seen = departures;
        handled += notice_departures(endpoint, departures);
    }
    return handled;
}

bool fake_arm(struct ofp_endpoint *endpoint)
{
    struct fake_endpoint *self = private_of(endpoint);

    /* What progress that nobody has asked for left here has no other flush. */
    fake_flush(endpoint);
    return !self->streaming && mailbox_arm(self->mailbox, self->departures_seen, self->stalled || self->paused);
}

void fake_disarm(struct ofp_endpoint *endpoint) { mailbox_disarm(private_of(endpoint)->mailbox); }
