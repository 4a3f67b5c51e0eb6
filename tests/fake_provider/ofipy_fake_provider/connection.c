/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints of type MSG and listeners. A knock in the listener's mailbox asks for a connection, and goes back as the answer;
 * from then on both endpoints send each other packets as the other kind does, until one says goodbye or closes.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fake.h"

static struct fake_endpoint *endpoint_of(const struct ofp_peer *peer) { return peer->endpoint->private; }

/* ---------------------------------------------------------------------------------------------------------- endpoints */

int fake_knock(struct ofp_peer *peer, char *text, size_t text_size)
{
    struct fake_endpoint *self = endpoint_of(peer);
    struct fake_address address;
    struct mailbox *listener;
    struct packet *packet;

    memcpy(&address, peer->address, sizeof(address));
    listener = mailbox_find(&address, MAILBOX_LISTENER);
    if (!listener) {
        snprintf(text, text_size, "nobody in this process listens at the service %s", address.service);
        return -ECONNREFUSED;
    }
    packet = packet_control_new(self->mailbox, FAKE_KNOCK, peer->private_data, peer->private_data_length);
    if (packet) {
        self->connection = peer;
        mailbox_knock(listener, packet);
    }
    mailbox_release(listener);
    return packet ? 0 : -ENOMEM;
}

int fake_accept(struct ofp_peer *peer, const void *data, size_t length)
{
    struct fake_endpoint *self = endpoint_of(peer);
    struct packet *knock = self->knock;
    struct mailbox *asked_by = mailbox_hold(knock->source);

    self->knock = NULL;
    self->connection = peer;
    /* Should it close from here on, its departure is noticed like any other. */
    if (!mailbox_is_open(asked_by)) {
        mailbox_release(asked_by);
        packet_free(knock);
        return -ECONNRESET;
    }
    packet_answer(knock, self->mailbox, data, length);
    fake_meet(peer, asked_by);
    return 0;
}

static void say_goodbye(struct ofp_endpoint *endpoint, struct mailbox *target)
{
    struct packet *packet =
        packet_control_new(((struct fake_endpoint *)endpoint->private)->mailbox, FAKE_GOODBYE, NULL, 0);

    if (packet)
        mailbox_put(target, packet);
}

void fake_leave_if_done(struct ofp_peer *peer)
{
    struct fake_peer *self = peer->private;

    if (!self->leaving || self->waiting)
        return;
    say_goodbye(peer->endpoint, self->target);
    ofp_peer_lost(peer, 0, false, "shut down here");
}

int fake_shutdown(struct ofp_peer *peer)
{
    ((struct fake_peer *)peer->private)->leaving = true;
    fake_leave_if_done(peer);
    return 0;
}

static void answer_arrived(struct ofp_endpoint *endpoint, const struct packet *packet)
{
    struct ofp_peer *peer = ((struct fake_endpoint *)endpoint->private)->connection;

    if (!peer) {
        /* It was given up meanwhile. */
        if (!packet->error)
            say_goodbye(endpoint, packet->source);
        return;
    }
    ofp_connection_answered(peer, packet->payload, packet->length);
    if (packet->error)
        ofp_peer_lost(peer, packet->error, false, "the request was rejected");
    else
        fake_meet(peer, mailbox_hold(packet->source));
}

void fake_control_arrived(struct ofp_endpoint *endpoint, struct packet *packet)
{
    struct ofp_peer *peer = packet->source ? fake_sender(endpoint, packet) : NULL;

    if (packet->operation == FAKE_ANSWER)
        answer_arrived(endpoint, packet);
    else if (packet->operation == FAKE_GOODBYE && peer)
        ofp_peer_lost(peer, ESHUTDOWN, false, "the other side shut down");
    else if (packet->operation == FAKE_LOST && peer && peer->state == OFP_PEER_UP)
        fake_lost_by(peer);
    packet_free(packet);
}

/* ---------------------------------------------------------------------------------------------------------- listeners */

static struct fake_passive *private_of(struct ofp_passive *passive) { return passive->private; }

static void look_for_knocks(struct ofp_passive *passive)
{
    struct fake_passive *self = private_of(passive);
    struct packet *packet;

    do {
        while ((packet = mailbox_take(self->mailbox))) {
            const struct mailbox *from = packet->source;

            if (fake_core->connection_requested(passive, (uint64_t)(uintptr_t)packet, &from->address,
                                                sizeof(from->address), packet->payload, packet->length) != 0)
                packet_answer(packet, NULL, NULL, 0);
        }
        mailbox_settle(self->mailbox, false, &self->departures_seen);
    } while (!mailbox_arm(self->mailbox, self->departures_seen, false));
}

static void somebody_knocked(struct ofp_watch *watch, uint32_t events)
{
    (void)events;
    look_for_knocks(OFP_CONTAINER_OF(watch, struct fake_passive, doorbell)->passive);
}

static int passive_open(struct ofp_passive *passive, const char *service, char *text, size_t text_size)
{
    struct fake_passive *self = private_of(passive);
    int result;

    self->passive = passive;
    self->doorbell = (struct ofp_watch){.events = EPOLLIN, .ready = somebody_knocked};
    self->doorbell.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self->doorbell.fd < 0)
        return -errno;
    result = fake_core->watch_add(passive->domain, &self->doorbell);
    if (result)
        goto no_watch;
    result = mailbox_open(MAILBOX_BOUND, false, service, self->doorbell.fd, &self->mailbox, &self->departures_seen,
                          text, text_size);
    if (result)
        goto no_mailbox;
    return 0;
no_mailbox:
    fake_core->watch_remove(passive->domain, &self->doorbell);
no_watch:
    close(self->doorbell.fd);
    return result;
}

static int passive_name(struct ofp_passive *passive, void *address, size_t *length)
{
    size_t room = *length;

    *length = sizeof(struct fake_address);
    if (room < *length)
        return -OFP_ETOOSMALL;
    memcpy(address, &private_of(passive)->mailbox->address, *length);
    return 0;
}

static int passive_listen(struct ofp_passive *passive, uint32_t backlog)
{
    (void)backlog;
    mailbox_listen(private_of(passive)->mailbox);
    look_for_knocks(passive);
    return 0;
}

static int passive_reject(struct ofp_passive *passive, uint64_t request, const void *data, size_t length)
{
    (void)passive;
    packet_answer((struct packet *)(uintptr_t)request, NULL, data, length);
    return 0;
}

static void passive_close(struct ofp_passive *passive)
{
    struct fake_passive *self = private_of(passive);

    mailbox_close(self->mailbox);
    fake_core->watch_remove(passive->domain, &self->doorbell);
    close(self->doorbell.fd);
}

const struct ofp_passive_ops fake_passive_ops = {
    .size = sizeof(struct ofp_passive_ops),
    .passive_size = sizeof(struct fake_passive),
    .open = passive_open,
    .name = passive_name,
    .listen = passive_listen,
    .reject = passive_reject,
    .close = passive_close,
};
