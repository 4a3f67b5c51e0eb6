/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sockets of meetings: connections, and packets with descriptors. Nothing blocks. A request for an arena that fails
 * for a temporary shortage (descriptors, space in a backlog) is repeated by a timer until the deadline; a call, by the
 * core.
 */
#include "connection/meet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/address.h"
#include "link/process.h"
#include "memory/arena.h"

#define PAUSE_FIRST UINT64_C(1000000)
#define PAUSE_LONGEST UINT64_C(50000000)

/* -------------------------------------------------------------------------------------------------------- packets */

struct shm_packet shm_packet_of(const struct shm_endpoint *endpoint, enum shm_packet_type type)
{
    return (struct shm_packet){.magic = SHM_PACKET_MAGIC,
                               .version = SHM_VERSION,
                               .oldest = SHM_OLDEST_VERSION,
                               .type = (uint16_t)type,
                               .address = endpoint->address,
                               .incarnation = endpoint->incarnation,
                               .token = endpoint->domain->token,
                               .start_time = endpoint->domain->start_time,
                               .probe_address = (uint64_t)(uintptr_t)&endpoint->incarnation};
}

/* Space for the descriptors that a packet may bring. */
union control_room {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(2 * sizeof(int))];
};

static int send_packet(int connection, const struct shm_packet *packet, const int *fds, int fd_count)
{
    union control_room control = {0};
    struct iovec iov = {(void *)(uintptr_t)packet, sizeof(*packet)};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

    if (fd_count) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE((size_t)fd_count * sizeof(int));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN((size_t)fd_count * sizeof(int));
        memcpy(CMSG_DATA(&control.header), fds, (size_t)fd_count * sizeof(int));
    }
    if (sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(*packet))
        return 0;
    return -errno;
}

int shm_packet_send(struct shm_meeting *meeting, const struct shm_packet *packet, const int *fds, int fd_count)
{
    return send_packet(meeting->watch.fd, packet, fds, fd_count);
}

static void collect_descriptors(struct shm_received *received, struct msghdr *message)
{
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header)) {
        size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(fd));
            if (received->fd_count < 2)
                received->fds[received->fd_count++] = fd;
            else
                close(fd);
        }
    }
}

static void close_received(struct shm_received *received)
{
    for (int i = 0; i < received->fd_count; i++)
        if (received->fds[i] >= 0)
            close(received->fds[i]);
    received->fd_count = 0;
}

/* 1: a packet; 0: the peer disconnected; -EAGAIN: nothing yet; -EMFILE: no space for its descriptors; -EPROTO. */
static int receive_packet(int connection, struct shm_received *received)
{
    union control_room control;
    struct iovec iov = {&received->packet, sizeof(received->packet)};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    ssize_t length;

    memset(received, 0, sizeof(*received));
    do
        length = recvmsg(connection, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    while (length < 0 && errno == EINTR);
    if (length < 0)
        return errno == EAGAIN ? -EAGAIN : 0;
    /* An empty packet, which looks like a disconnect, may carry descriptors too. */
    collect_descriptors(received, &message);
    if (length == 0) {
        close_received(received);
        return 0;
    }
    if (message.msg_flags & MSG_CTRUNC) {
        close_received(received);
        return -EMFILE;
    }
    /* A packet of another version may have another length; its first bytes contain the version. */
    received->has_address = length >= (ssize_t)offsetof(struct shm_packet, incarnation);
    received->whole = length == sizeof(received->packet) && !(message.msg_flags & MSG_TRUNC);
    if (length < SHM_PACKET_COMMON || received->packet.magic != SHM_PACKET_MAGIC ||
        (received->packet.version == SHM_VERSION && !received->whole)) {
        close_received(received);
        return -EPROTO;
    }
    return 1;
}

/* ------------------------------------------------------------------------------------------------------- meetings */

static struct ofp_domain *domain_of_meeting(const struct shm_meeting *meeting)
{
    return meeting->endpoint->domain->base;
}

static void close_connection(struct shm_meeting *meeting)
{
    if (meeting->watch.fd < 0)
        return;
    shm_core->watch_remove(domain_of_meeting(meeting), &meeting->watch);
    close(meeting->watch.fd);
    meeting->watch.fd = -1;
}

static void read_meeting_packet(struct ofp_watch *watch, uint32_t events)
{
    struct shm_meeting *meeting = OFP_CONTAINER_OF(watch, struct shm_meeting, watch);
    struct shm_received received;
    int result = receive_packet(watch->fd, &received);

    (void)events;
    switch (result) {
    case -EAGAIN:
        break;
    case 1:
        /* The meeting may be freed afterwards. */
        meeting->endpoint->upper->meeting_received(meeting, &received);
        close_received(&received);
        break;
    case -EMFILE:
        if (meeting->role == SHM_CALLED)
            meeting->endpoint->upper->meeting_disconnected(meeting);
        else
            shm_meeting_retry(meeting, EMFILE);
        break;
    case -EPROTO:
        meeting->endpoint->upper->meeting_failed(meeting, EPROTO, "the other side does not speak the protocol of shm");
        break;
    default:
        meeting->endpoint->upper->meeting_disconnected(meeting);
    }
}

static int watch_connection(struct shm_meeting *meeting, int fd)
{
    int error;

    meeting->watch = (struct ofp_watch){.fd = fd, .events = EPOLLIN, .ready = read_meeting_packet};
    error = shm_core->watch_add(domain_of_meeting(meeting), &meeting->watch);
    if (error) {
        close(fd);
        meeting->watch.fd = -1;
    }
    return error;
}

/* A connection to the peer's listener, or a negative errno. */
static int open_connection(const struct ofp_peer *peer)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), error;
    struct sockaddr_un address;
    struct shm_address there;
    socklen_t length;

    if (fd < 0)
        return -errno;
    memcpy(&there, peer->address, sizeof(there));
    length = shm_address_convert(&there, &address);
    if (connect(fd, (struct sockaddr *)&address, length) == 0)
        return fd;
    error = -errno;
    close(fd);
    return error;
}

/* Connect, and send the first packet. */
static int connect_to_listener(struct shm_meeting *meeting)
{
    int fd = open_connection(meeting->link->peer), error = fd < 0 ? fd : watch_connection(meeting, fd);

    return error ? error : meeting->endpoint->upper->meeting_connected(meeting);
}

static void start_meeting_timer(struct shm_meeting *meeting, uint64_t deadline)
{
    meeting->timer.deadline = deadline;
    shm_core->timer_start(domain_of_meeting(meeting), &meeting->timer);
}

void shm_meeting_retry(struct shm_meeting *meeting, int reason)
{
    uint64_t now = shm_core->now();
    bool can_retry = meeting->role == SHM_REQUESTER && now < meeting->deadline;

    close_connection(meeting);
    if (!can_retry) {
        meeting->deferred = true;
        meeting->endpoint->upper->meeting_failed(meeting, ofpi_meet_is_shortage(reason) ? reason : ETIMEDOUT, NULL);
        return;
    }
    meeting->pause = meeting->pause < PAUSE_LONGEST / 2 ? 2 * meeting->pause : PAUSE_LONGEST;
    start_meeting_timer(meeting, now + meeting->pause < meeting->deadline ? now + meeting->pause : meeting->deadline);
}

/* 0, or a negative errno; -EAGAIN: another attempt may succeed. */
static int start_attempt(struct shm_meeting *meeting)
{
    int error = connect_to_listener(meeting);

    if (!error)
        start_meeting_timer(meeting, meeting->deadline);
    return error == -EINTR || error == -EPIPE || error == -ECONNRESET ? -EAGAIN : error;
}

/* Ask for an arena. The meeting may be freed. */
static void start_request(struct shm_meeting *meeting)
{
    int error = -start_attempt(meeting);

    if (error == EAGAIN || ofpi_meet_is_shortage(error))
        shm_meeting_retry(meeting, error);
    else if (error)
        meeting->endpoint->upper->meeting_failed(meeting, error, NULL);
}

static void meeting_expired(struct ofp_timer *timer, uint64_t now)
{
    struct shm_meeting *meeting = OFP_CONTAINER_OF(timer, struct shm_meeting, timer);

    if (meeting->role == SHM_REQUESTER && meeting->watch.fd < 0 && now < meeting->deadline)
        start_request(meeting);
    else
        meeting->endpoint->upper->meeting_failed(meeting, ETIMEDOUT, NULL);
}

static struct shm_meeting *create_meeting(struct shm_endpoint *endpoint, enum shm_meeting_role role,
                                          struct shm_link *link)
{
    struct shm_meeting *meeting = calloc(1, sizeof(*meeting));

    OFP_CHECK((role == SHM_CALLED) == !link);
    if (!meeting)
        return NULL;
    meeting->endpoint = endpoint;
    meeting->role = role;
    meeting->link = link;
    meeting->watch.fd = -1;
    meeting->timer.expired = meeting_expired;
    meeting->deadline = shm_core->now() + endpoint->domain->connect_ns;
    meeting->pause = PAUSE_FIRST / 2;
    endpoint->calls += role == SHM_CALLED;
    ofp_list_append(&endpoint->meetings, &meeting->node);
    return meeting;
}

void shm_meeting_free(struct shm_meeting *meeting)
{
    close_connection(meeting);
    shm_core->timer_stop(domain_of_meeting(meeting), &meeting->timer);
    if (meeting->role == SHM_REQUESTER)
        shm_foreign_arena_arrived(meeting->link->process, meeting->arena, -1);
    OFP_CHECK(meeting->role != SHM_CALLED || meeting->endpoint->calls > 0);
    meeting->endpoint->calls -= meeting->role == SHM_CALLED;
    ofp_list_remove(&meeting->node);
    free(meeting);
}

void shm_meetings_close(struct shm_endpoint *endpoint, const struct shm_link *link)
{
    struct ofp_list *node, *following;

    OFP_LIST_EACH(node, following, &endpoint->meetings) {
        struct shm_meeting *meeting = OFP_CONTAINER_OF(node, struct shm_meeting, node);

        if (!link || meeting->link == link)
            shm_meeting_free(meeting);
    }
}

int shm_meeting_start(struct shm_link *link)
{
    struct shm_meeting *meeting = create_meeting(link->endpoint, SHM_CALLER, link);

    return meeting ? start_attempt(meeting) : -ENOMEM;
}

int shm_arena_request(struct shm_link *link, uint32_t number)
{
    struct shm_meeting *meeting = create_meeting(link->endpoint, SHM_REQUESTER, link);

    if (!meeting)
        return -ENOMEM;
    meeting->arena = number;
    start_request(meeting);
    OFP_SHM_STEP(arena_asked);
    return 0;
}

void shm_caller_accept(struct shm_endpoint *endpoint, int fd)
{
    struct shm_meeting *meeting;
    int32_t pid;

    /* A process of another user gets no answer. */
    if (shm_connection_identify(fd, &pid) != 0) {
        close(fd);
        return;
    }
    meeting = create_meeting(endpoint, SHM_CALLED, NULL);
    if (!meeting) {
        close(fd);
        return;
    }
    if (watch_connection(meeting, fd) != 0) {
        shm_meeting_free(meeting);
        return;
    }
    start_meeting_timer(meeting, meeting->deadline);
    /* The first packet has usually arrived already. */
    read_meeting_packet(&meeting->watch, EPOLLIN);
}

void shm_close_notice_send(struct shm_link *link)
{
    struct shm_packet packet = shm_packet_of(link->endpoint, SHM_FAREWELL);
    int fd = link->peer && link->peer->address ? open_connection(link->peer) : -1;

    if (fd < 0)
        return;
    /* Connection and packet stay in the peer's backlog until it accepts. */
    send_packet(fd, &packet, NULL, 0);
    close(fd);
}
