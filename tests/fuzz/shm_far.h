/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer of the endpoint under test that a target plays: it meets it as it should, has its segment mapped, and writes there what
 * the input says.
 */
#ifndef FUZZ_SHM_FAR_H
#define FUZZ_SHM_FAR_H

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "connection/meet.h"
#include "link/table.h"
#include "memory/segment.h"
#include "shm_world.h"

#define FAR_MEMORY 65536
#define FAR_KEPT 8
/* Our number for it. */
#define FAR_NUMBER 1

struct far {
    struct shm_segment own, theirs; /* theirs.base NULL: not met */
    int own_fd, event_fd, listener;
    uint64_t head; /* in our ring */
    uint32_t number, stamp;
    uint64_t incarnation;   /* also where it is to be read */
    uint64_t ids[FAR_KEPT]; /* newest operations that it announced, buffers that it named */
    uint32_t id_count;
    char memory[FAR_MEMORY]; /* what may be reached by attach */
};

static inline struct shm_ring far_ring(const struct shm_segment *segment)
{
    return (struct shm_ring){segment->header, segment->slots, segment->slot_shift};
}

/* ----------------------------------------------------------------------------------------------------------- packets */

static inline struct shm_packet far_packet(const struct far *far, enum shm_packet_type type)
{
    return (struct shm_packet){.magic = SHM_PACKET_MAGIC,
                               .version = SHM_VERSION,
                               .oldest = SHM_OLDEST_VERSION,
                               .type = (uint16_t)type,
                               .address = world_address("far"),
                               .incarnation = far->incarnation,
                               .token = 1000 + far->incarnation,
                               .probe_address = (uint64_t)(uintptr_t)&far->incarnation,
                               .number = FAR_NUMBER};
}

#define FAR_DESCRIPTORS 3
static inline bool far_send(int connection, const void *packet, size_t length, const int *fds, unsigned count)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(FAR_DESCRIPTORS * sizeof(int))];
    } control = {0};
    struct iovec iov = {(void *)(uintptr_t)packet, length};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

    if (count) {
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(&control.header), fds, count * sizeof(int));
    }
    return sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)length;
}

/* Bytes of a packet, at most so many descriptors, -1 where there are fewer. 0: none. */
static inline ssize_t far_receive(int connection, struct shm_packet *packet, int fds[2])
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    struct iovec iov = {packet, sizeof(*packet)};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
    ssize_t length = recvmsg(connection, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = length > 0 ? CMSG_FIRSTHDR(&message) : NULL;

    fds[0] = fds[1] = -1;
    if (header)
        memcpy(fds, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
    if (length <= 0)
        return 0;
    /* What it says is well formed. */
    check(length == sizeof(*packet) && packet->magic == SHM_PACKET_MAGIC && packet->version == SHM_VERSION);
    return length;
}

static inline int far_connect(void)
{
    struct shm_address address = world_address("tested");
    struct sockaddr_un socket_address;
    socklen_t length = shm_address_convert(&address, &socket_address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    check(fd >= 0);
    if (connect(fd, (struct sockaddr *)&socket_address, length) == 0)
        return fd;
    close(fd);
    return -1;
}

static inline void far_listen(struct far *far)
{
    struct shm_address address = world_address("far");
    struct sockaddr_un socket_address;
    socklen_t length = shm_address_convert(&address, &socket_address);

    far->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    check(bind(far->listener, (struct sockaddr *)&socket_address, length) == 0 && listen(far->listener, 16) == 0);
}

static inline void far_close_descriptors(const int fds[2])
{
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

/* ----------------------------------------------------------------------------------------------------------- meeting */

static inline void far_open(struct far *far)
{
    char text[OFP_TEXT_MAX];

    memset(far, 0, sizeof(*far));
    far->incarnation = 77;
    check(shm_segment_create(&far->own, 4, 4096, 4, far->incarnation, NULL, &far->own_fd, text, sizeof(text)) == 0);
    check(shm_segment_reserve_bounce(&far->own, far->own_fd, text, sizeof(text)) == 0);
    far->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    far->listener = -1;
    world.memory = far->memory;
    world.memory_size = sizeof(far->memory);
    world.word = &far->incarnation;
}

/* WELCOME, or HELLO of the other side. */
static inline bool far_take(struct far *far, const struct shm_packet *packet, const int fds[2])
{
    char text[OFP_TEXT_MAX];

    shm_segment_unmap(&far->theirs);
    check(fds[0] >= 0 && fds[1] >= 0);
    if (shm_segment_map(&far->theirs, fds[0], text, sizeof(text)) != 0)
        return false;
    far->number = packet->number;
    far->stamp = packet->stamp;
    return true;
}

/* As it should be done. */
static inline bool far_meet(struct far *far)
{
    struct shm_packet packet = far_packet(far, SHM_HELLO);
    int fds[2] = {far->own_fd, far->event_fd}, fd = far_connect();
    bool met = false;

    if (fd >= 0 && far_send(fd, &packet, sizeof(packet), fds, 2)) {
        world_progress(&world.tested);
        if (far_receive(fd, &packet, fds)) {
            met = packet.type == SHM_WELCOME && far_take(far, &packet, fds);
            far_close_descriptors(fds);
        }
        packet = far_packet(far, SHM_ACK);
        if (met)
            far_send(fd, &packet, sizeof(packet), NULL, 0);
        world_progress(&world.tested);
    }
    if (fd >= 0)
        close(fd);
    return met;
}

static inline void far_close(struct far *far)
{
    shm_segment_unmap(&far->theirs);
    if (far->listener >= 0)
        close(far->listener);
    far->listener = -1;
}

/* Behind the endpoints: they may write there until they close. */
static inline void far_free(struct far *far)
{
    shm_segment_unmap(&far->own);
    close(far->own_fd);
    close(far->event_fd);
}

/* -------------------------------------------------------------------------------------------------------------- slots */

static inline void far_remember(struct far *far, uint64_t id) { far->ids[far->id_count++ % FAR_KEPT] = id; }

/* One that it has named, or nearly. */
static inline uint64_t far_id(const struct far *far, struct input *input)
{
    uint8_t byte = take(input);

    return far->ids[byte % FAR_KEPT] + (byte & 0xc0 ? 0 : 1);
}

/* Content as a peer would fill it, more or less. */
static inline struct shm_content far_content(const struct far *far, struct input *input)
{
    struct shm_content content = {.kind = (uint8_t)(take(input) % 17), .tag = WORLD_OTHER};
    uint8_t twist = take(input);
    uint32_t length = take(input) * (twist & 64 ? 40u : 1u);

    content.flags = twist & 32 ? take(input) : SHM_TAGGED;
    content.length = content.kind == SHM_INLINE && !(twist & 128) ? length % (SHM_INLINE_SIZE + 1) : length;
    switch (content.kind) {
    case SHM_BOUNCE:
    case SHM_FRAGMENT:
    case SHM_REMOTE:
        content.bounce = (struct shm_bounce_fields){
            .index = take(input) % 5u, .generation = take(input), .receive = far_id(far, input), .offset = length * 3};
        break;
    case SHM_ANNOUNCED:
        content.announced =
            (struct shm_announced_fields){.length = twist & 16 ? UINT64_MAX >> take(input) % 64 : length,
                                          .id = take(input),
                                          .address = (uint64_t)(uintptr_t)far->memory + (twist & 8 ? FAR_MEMORY : 0),
                                          .iov_count = twist & 4 ? take(input) % 18u : 1,
                                          .arena = take(input) % 3u,
                                          .arena_offset = take(input)};
        break;
    case SHM_INLINE:
        break;
    default:
        content.control = (struct shm_control_fields){.id = far_id(far, input),
                                                      .receive = far_id(far, input),
                                                      .length = length,
                                                      .error = (int32_t)(take(input) % 4) - 1,
                                                      .completed = UINT64_C(1) << take(input) % 64};
        break;
    }
    return content;
}

/* In the ring of the endpoint under test, under a number, with the right stamp or another. */
static inline void far_publish(struct far *far, const struct shm_content *content, uint32_t number, bool stamped)
{
    struct shm_ring ring = far_ring(&far->theirs);
    struct shm_slot *slot;
    uint64_t state;

    slot = shm_ring_claim(&ring, number, &state);
    if (!slot)
        return;
    slot->content = *content;
    if (stamped) {
        far->stamp = shm_stamp_advance(far->stamp);
        slot->content.stamp = shm_stamp_of(far->stamp);
    }
    shm_ring_publish(&ring, slot, state);
}

/* What it wrote to us: ids are kept, questions answered. False: nothing. */
static inline bool far_read(struct far *far, bool answer)
{
    struct shm_ring ring = far_ring(&far->own);
    uint64_t state = shm_ring_peek(&ring, far->head);
    struct shm_content content;

    if (!shm_ring_is_ready(&ring, far->head, state))
        return false;
    content = shm_ring_find_slot(&ring, far->head)->content;
    shm_ring_free(&ring, far->head++);
    switch (content.kind) {
    case SHM_ANNOUNCED:
        far_remember(far, content.announced.id);
        break;
    case SHM_BOUNCE:
    case SHM_REMOTE:
        far_remember(far, (uint64_t)content.bounce.index << 32 | content.bounce.generation);
        if (answer && content.bounce.index < far->theirs.bounce_count)
            ofp_store_release(&far->theirs.bounce_states[content.bounce.index].freed, content.bounce.generation);
        break;
    case SHM_CLEAR:
        far_remember(far, content.control.receive);
        break;
    case SHM_PROBE:
        content.kind = SHM_ECHO;
        if (answer)
            far_publish(far, &content, far->number, true);
        break;
    default:
        break;
    }
    return true;
}

#endif
