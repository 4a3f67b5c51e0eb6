/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packets of a meeting.
 *
 *     caller                         called
 *     HELLO, segment, eventfd  ──▶   checks, maps: ACCEPTED
 *     maps                     ◀──   WELCOME, segment, eventfd
 *     UP                       ──▶   ACK, or the first slot in its ring: UP
 *
 * The ACK is needed since a caller may end its attempt while the WELCOME is in flight: the called side may send only once the
 * caller is known to read its ring. The identity of each endpoint is in its segment, since a packet has no space for it. When
 * two HELLOs cross, the one of the lower address wins. native/meet decides what follows from a call, and when the answer is
 * LATER. Called by meet.c under the domain's lock.
 */
#include "connection/hello.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "connection/lifecycle.h"
#include "connection/meet.h"
#include "connection/offer.h"
#include "link/link.h"
#include "link/process.h"
#include "link/table.h"
#include "memory/arena.h"
#include "meet/versions.h"
#include "memory/segment.h"

static void reject_call(struct shm_meeting *meeting, enum shm_packet_type type, int error)
{
    struct shm_packet packet = shm_packet_of(meeting->endpoint, type);

    packet.status = error;
    shm_packet_send(meeting, &packet, NULL, 0);
    shm_meeting_free(meeting);
}

static int send_segment_offer(struct shm_meeting *meeting, enum shm_packet_type type, const struct shm_link *link,
                              bool keep)
{
    struct shm_endpoint *endpoint = meeting->endpoint;
    struct shm_packet packet = shm_packet_of(endpoint, type);
    int fds[2] = {endpoint->segment_fd, endpoint->domain->self.event_fd};

    /* A damaged segment will be replaced: repair.c. */
    if (!shm_segment_is_whole(&endpoint->segment))
        return -EAGAIN;
    packet.number = link->number;
    packet.stamp = link->stamp_in;
    packet.flags = keep ? SHM_KEEP : 0;
    return shm_packet_send(meeting, &packet, fds, 2);
}

/* ---------------------------------------------------------------------------------------------------------- called */

static bool has_caller_hung_up(const struct shm_meeting *meeting)
{
    char byte;

    return recv(meeting->watch.fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) == 0;
}

/*
 * Collect the facts that native/meet needs about a call by a peer with a link. False: the caller does not prove to be
 * that peer.
 */
static bool collect_call_facts(const struct shm_meeting *meeting, struct shm_link *link, uint64_t incarnation,
                               unsigned *facts)
{
    const struct shm_endpoint *endpoint = meeting->endpoint;
    bool is_same = shm_connection_is_of_link(link, meeting->watch.fd);

    /*
     * The peer has dropped the link, or has started again. Its earlier slots are read first; usually its GOODBYE is
     * among them.
     */
    if (link->met.state == OFPI_MEET_UP)
        link->drain_until = shm_ring_find_end(&endpoint->ring, endpoint->head);
    if (link->met.state == OFPI_MEET_UP || endpoint->head < link->drain_until)
        *facts |= OFPI_MEET_UNREAD;
    if (link->segment.incarnation == incarnation)
        return is_same;
    /*
     * The known endpoint has ended, unless its process lives and has not closed it. It ends as a link does: its slots
     * are read to the last.
     */
    *facts |= OFPI_MEET_RENEWED | OFPI_MEET_UNREAD;
    return is_same || shm_process_has_died(link->process) || ofp_load_acquire(&link->ring.header->status) & SHM_CLOSED;
}

/* A peer's call, as the manager of native/meet passes it on. */
struct call {
    struct shm_meeting *meeting;
    struct shm_received *received;
};

/* Link the peer to the offered segment, and answer. */
static int accept_offer(struct ofp_peer *peer, const struct call *call, struct shm_segment_offer *offer, bool keep)
{
    struct shm_link *link = shm_link_create(call->meeting->endpoint, peer);
    int error;

    if (!link) {
        shm_segment_offer_release(offer);
        return -ENOMEM;
    }
    shm_segment_offer_accept(link, offer, &call->received->packet);
    OFP_SHM_STEP(before_welcome);
    error = send_segment_offer(call->meeting, SHM_WELCOME, link, keep);
    OFP_SHM_STEP(after_welcome);
    if (error)
        shm_link_free(link);
    else
        call->meeting->link = link;
    return error;
}

int shm_call_accept(struct ofp_peer *peer, void *request)
{
    const struct call *call = request;
    struct shm_meeting *meeting = call->meeting;
    bool keep =
        call->received->packet.flags & SHM_KEEP || !shm_peer_is_watchable(meeting->endpoint->domain, meeting->watch.fd);
    char text[OFP_TEXT_MAX] = "";
    struct shm_segment_offer offer;
    int error = shm_segment_offer_open(&offer, meeting, call->received, keep, text, sizeof(text));

    if (error) {
        shm_core->log(OFP_LOG_WARNING, SHM_NAME, "a peer that called is refused: %s",
                      text[0] ? text : strerror(-error));
        reject_call(meeting, error == -EMFILE || error == -ENFILE ? SHM_LATER : SHM_REFUSED, -error);
        return error;
    }
    if (peer->state != OFP_PEER_CONNECTING)
        ofp_peer_connecting(peer);
    error = accept_offer(peer, call, &offer, keep);
    if (error)
        shm_meeting_free(meeting);
    return error;
}

void shm_call_put_off(struct ofp_peer *peer, void *request)
{
    (void)peer;
    reject_call(((const struct call *)request)->meeting, SHM_LATER, EAGAIN);
}

/* Handle a call of a peer by the rules of native/meet. */
static void handle_call(struct shm_meeting *meeting, struct shm_received *received, struct ofp_peer *peer)
{
    const struct shm_endpoint *endpoint = meeting->endpoint;
    const struct shm_packet *packet = &received->packet;
    struct shm_link *link = shm_link_of(peer);
    int order = memcmp(&packet->address, &endpoint->address, sizeof(packet->address));
    unsigned facts = ofpi_meet_winner_compute(OFPI_MEET_SMALLER_WINS, order);

    if (link && link->process && !collect_call_facts(meeting, link, packet->incarnation, &facts))
        reject_call(meeting, SHM_LATER, EAGAIN);
    else
        ofpi_meeting_requested(endpoint->upper->meeting, peer, &(struct call){meeting, received}, facts);
}

/* Whether an address can be that of a caller: of another endpoint of this user and host. */
static bool is_address_of_caller(const struct shm_endpoint *endpoint, const struct shm_address *address)
{
    return shm_address_check(address, sizeof(*address)) == 0 && address->host == endpoint->address.host &&
           address->uid == endpoint->address.uid && memcmp(address, &endpoint->address, sizeof(*address)) != 0;
}

/* Find the calling peer by the identity in its segment, else by its address. */
static struct ofp_peer *find_caller(const struct shm_endpoint *endpoint, const struct shm_packet *packet,
                                    const uint8_t *identity)
{
    const struct shm_address *address = &packet->address;

    if (shm_identity_is_stated(identity))
        return ofp_peer_by_identity(endpoint->base, identity, false, address, sizeof(*address));
    return ofp_peer_by_address(endpoint->base, address, sizeof(*address));
}

static void handle_hello(struct shm_meeting *meeting, struct shm_received *received)
{
    struct shm_endpoint *endpoint = meeting->endpoint;
    const struct shm_packet *packet = &received->packet;
    uint8_t identity[SHM_IDENTITY_SIZE] = {0};
    struct ofp_peer *peer;

    if (received->fd_count)
        shm_segment_read_identity(received->fds[0], identity);
    if (shm_identity_is_own(endpoint, packet->incarnation, identity)) {
        shm_core->log(OFP_LOG_WARNING, SHM_NAME,
                      "a peer that called is refused: it says that it is this endpoint itself");
        reject_call(meeting, SHM_REFUSED, EPROTO);
        return;
    }
    if (!is_address_of_caller(endpoint, &packet->address)) {
        reject_call(meeting, SHM_REFUSED, EPROTO);
        return;
    }
    /* The caller has disconnected, perhaps because our own call arrived there first. */
    if (has_caller_hung_up(meeting)) {
        shm_meeting_free(meeting);
        return;
    }
    peer = find_caller(endpoint, packet, identity);
    if (!peer)
        reject_call(meeting, SHM_REFUSED, ENOMEM);
    else
        handle_call(meeting, received, peer);
}

/* Find the descriptor of an own arena or of the region table; -1: no such number. */
static int find_descriptor(const struct shm_domain *domain, uint32_t number)
{
    return number == SHM_TABLE_NUMBER ? shm_table_descriptor_of(domain) : shm_arena_find_descriptor(domain, number);
}

static void serve_arena_request(struct shm_meeting *meeting, const struct shm_packet *packet)
{
    struct shm_domain *domain = meeting->endpoint->domain;
    struct shm_packet answer = shm_packet_of(meeting->endpoint, SHM_ARENA_ANSWER);
    int fd = packet->token == domain->token ? find_descriptor(domain, packet->arena) : -1;

    if (fd < 0) {
        reject_call(meeting, SHM_REFUSED, ENOENT);
        return;
    }
    answer.arena = packet->arena;
    shm_packet_send(meeting, &answer, &fd, 1);
    OFP_SHM_STEP(arena_answered);
    shm_meeting_free(meeting);
}

static void handle_close_notice(struct shm_meeting *meeting, const struct shm_packet *packet)
{
    struct shm_endpoint *endpoint = meeting->endpoint;

    for (uint32_t i = 1; i < endpoint->link_capacity; i++) {
        struct shm_link *link = endpoint->links[i];

        if (link && link->process && link->segment.incarnation == packet->incarnation &&
            shm_connection_is_of_link(link, meeting->watch.fd))
            shm_link_mark_ended(link, SHM_END_CLOSED);
    }
    shm_meeting_free(meeting);
}

static void handle_packet_as_called(struct shm_meeting *meeting, struct shm_received *received)
{
    struct shm_link *link = meeting->link;

    if (link && received->packet.type != SHM_ACK) {
        shm_meeting_failed(meeting, EPROTO, "no answer to a WELCOME");
        return;
    }
    switch (received->packet.type) {
    case SHM_HELLO:
        handle_hello(meeting, received);
        break;
    case SHM_ACK:
        if (link && link->met.state == OFPI_MEET_ACCEPTED)
            ofpi_meeting_confirmed(link->endpoint->upper->meeting, link->peer);
        shm_meeting_free(meeting);
        break;
    case SHM_ARENA_QUESTION:
        serve_arena_request(meeting, &received->packet);
        break;
    case SHM_FAREWELL:
        handle_close_notice(meeting, &received->packet);
        break;
    default:
        shm_meeting_failed(meeting, EPROTO, "an unknown packet");
    }
}

/* ---------------------------------------------------------------------------------------------------------- caller */

int shm_meeting_connected(struct shm_meeting *meeting)
{
    struct shm_packet packet;
    int32_t pid = 0;
    int error = shm_connection_identify(meeting->watch.fd, &pid);

    if (error)
        return error;
    if (meeting->role == SHM_REQUESTER) {
        packet = shm_packet_of(meeting->endpoint, SHM_ARENA_QUESTION);
        packet.token = meeting->link->process->token;
        packet.arena = meeting->arena;
        return shm_packet_send(meeting, &packet, NULL, 0);
    }
    /* A forked child may keep the socket of a dead process open, and no process would ever answer there. */
    if (pid > 0 && kill(pid, 0) != 0 && errno == ESRCH)
        return -ECONNREFUSED;
    meeting->keep = !shm_peer_is_watchable(meeting->endpoint->domain, meeting->watch.fd);
    OFP_SHM_STEP(before_hello);
    error = send_segment_offer(meeting, SHM_HELLO, meeting->link, meeting->keep);
    OFP_SHM_STEP(after_hello);
    return error;
}

static void handle_welcome(struct shm_meeting *meeting, struct shm_received *received)
{
    struct shm_link *link = meeting->link;
    struct shm_packet ack = shm_packet_of(meeting->endpoint, SHM_ACK);
    char text[OFP_TEXT_MAX] = "";
    struct shm_segment_offer offer;
    int error = -ECONNREFUSED;

    if (memcmp(&received->packet.address, link->peer->address, sizeof(received->packet.address)) == 0)
        error =
            shm_segment_offer_open(&offer, meeting, received, received->packet.flags & SHM_KEEP, text, sizeof(text));
    if (!error)
        error = shm_segment_offer_identify(&offer, link->peer, text, sizeof(text));
    if (error == -EMFILE || error == -ENFILE || error == -ESRCH) {
        shm_meeting_retry(meeting, -error);
        return;
    }
    if (error) {
        shm_meeting_failed(meeting, -error, text[0] ? text : NULL);
        return;
    }
    OFP_SHM_STEP(before_ack);
    error = shm_packet_send(meeting, &ack, NULL, 0);
    OFP_SHM_STEP(after_ack);
    if (error) {
        shm_segment_offer_release(&offer);
        shm_meeting_retry(meeting, EAGAIN);
        return;
    }
    shm_segment_offer_accept(link, &offer, &received->packet);
    shm_meeting_free(meeting);
    ofpi_meeting_answered(link->endpoint->upper->meeting, link->peer, NULL);
}

static void handle_packet_as_caller(struct shm_meeting *meeting, struct shm_received *received)
{
    switch (received->packet.type) {
    case SHM_WELCOME:
        handle_welcome(meeting, received);
        break;
    case SHM_LATER:
        shm_meeting_retry(meeting, EAGAIN);
        break;
    case SHM_REFUSED:
        shm_meeting_failed(meeting, received->packet.status > 0 ? received->packet.status : ECONNREFUSED, NULL);
        break;
    default:
        shm_meeting_failed(meeting, EPROTO, "an unknown packet");
    }
}

static void handle_packet_as_requester(struct shm_meeting *meeting, const struct shm_received *received)
{
    if (received->packet.type == SHM_ARENA_ANSWER && received->fd_count == 1 &&
        received->packet.arena == meeting->arena)
        shm_foreign_arena_arrived(meeting->link->process, meeting->arena, received->fds[0]);
    shm_meeting_free(meeting);
}

/* ------------------------------------------------------------------------------------------------------------ events */

static struct ofpi_versions get_versions(const struct shm_packet *packet)
{
    return (struct ofpi_versions){packet->version, packet->oldest};
}

/* The answer says which versions this side speaks. So the caller reports the same as this side. */
static void refuse_incompatible(struct shm_meeting *meeting, const struct shm_received *received)
{
    const struct ofpi_versions ours = {SHM_VERSION, SHM_OLDEST_VERSION};
    struct shm_endpoint *endpoint = meeting->endpoint;
    const struct shm_address *address = &received->packet.address;
    char text[OFP_TEXT_MAX];

    ofpi_versions_describe("the shm protocol", ours, get_versions(&received->packet), text, sizeof(text));
    if (meeting->role != SHM_CALLED || meeting->link) {
        shm_meeting_failed(meeting, EPROTONOSUPPORT, text);
        return;
    }
    shm_core->log(OFP_LOG_WARNING, SHM_NAME, "a peer that called is refused: %s", text);
    reject_call(meeting, SHM_REFUSED, EPROTONOSUPPORT);
    if (received->packet.type == SHM_HELLO && received->has_address && is_address_of_caller(endpoint, address))
        ofpi_versions_fail_caller(ofp_peer_by_address(endpoint->base, address, sizeof(*address)), text);
}

void shm_meeting_received(struct shm_meeting *meeting, struct shm_received *received)
{
    const struct ofpi_versions ours = {SHM_VERSION, SHM_OLDEST_VERSION};

    if (!ofpi_versions_are_compatible(ours, get_versions(&received->packet)) || !received->whole) {
        refuse_incompatible(meeting, received);
        return;
    }
    switch (meeting->role) {
    case SHM_CALLER:
        handle_packet_as_caller(meeting, received);
        break;
    case SHM_REQUESTER:
        handle_packet_as_requester(meeting, received);
        break;
    case SHM_CALLED:
        handle_packet_as_called(meeting, received);
        break;
    }
}

/* End a meeting that is no call of ours. A caller that was accepted and sent no ACK is called: operations may wait. */
static void end_called_meeting(struct shm_meeting *meeting)
{
    if (meeting->role == SHM_CALLED && meeting->link && meeting->link->met.state == OFPI_MEET_ACCEPTED)
        shm_link_report_end(meeting->link, false, &(struct ofpi_meeting_end){.unsure = true});
    else
        shm_meeting_free(meeting);
}

void shm_meeting_disconnected(struct shm_meeting *meeting)
{
    if (meeting->role != SHM_CALLED)
        shm_meeting_retry(meeting, EAGAIN);
    else
        end_called_meeting(meeting);
}

void shm_meeting_failed(struct shm_meeting *meeting, int error, const char *text)
{
    struct shm_link *link = meeting->link;
    char whole[OFP_TEXT_MAX];

    if (meeting->role != SHM_CALLER) {
        end_called_meeting(meeting);
        return;
    }
    shm_failure_describe(link->peer, error, text, whole, sizeof(whole));
    /* The link is freed, and the meeting with it. */
    ofpi_meeting_answered(link->endpoint->upper->meeting, link->peer,
                          &(struct ofpi_meeting_end){.error = error, .deferred = meeting->deferred, .text = whole});
}
