/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The steps of a session: what the peer sends, in which pieces, what it does not read, and what the program does meanwhile.
 * Messages are put together from a few bytes, mostly right and with the ids that the endpoint waits for, so that the input
 * gets far; twists make them wrong.
 */
#ifndef FUZZ_PLAY_H
#define FUZZ_PLAY_H

#include "session.h"

#define STEPS 300

/* ------------------------------------------------------------------------------------------------- the peer's messages */

/* Few bytes mostly, sometimes many. */
static inline uint64_t some_length(struct session *self)
{
    uint8_t byte = take(&self->input);

    if (byte < 128)
        return byte;
    if (byte < 192)
        return (byte - 128u) * 97u;
    return byte < 240 ? (byte - 192u) * 1531u : (byte - 239u) * 6007u;
}

static inline void some_remote(struct session *self, struct tcp_header *header)
{
    header->remote_count = (uint8_t)(1 + take(&self->input) % 8 / 2);
    header->length = 0;
    for (unsigned i = 0; i < header->remote_count; i++) {
        uint8_t byte = take(&self->input);

        /* Regions have the keys from 1 on. */
        header->remote[i].key = byte & 3 ? byte & 3 : byte >> 6;
        header->remote[i].offset = byte & 4 ? some_length(self) : 0;
        header->remote[i].length = some_length(self);
        header->length += header->remote[i].length;
    }
}

static inline void some_atomic(struct session *self, struct tcp_header *header)
{
    static const uint8_t sizes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 8, 16, 1, 1, 1, 1, 2};
    uint8_t datatype = take(&self->input) % 17;

    some_remote(self, header);
    header->length = 0;
    for (unsigned i = 0; i < header->remote_count; i++) {
        header->remote[i].length = header->remote[i].length % 512 / sizes[datatype] * sizes[datatype];
        header->remote[i].offset = header->remote[i].offset / 16 * 16;
        header->length += header->remote[i].length;
    }
    header->op_data = (uint8_t)(OFP_ATOMIC + take(&self->input) % 3);
    header->flags |= TCP_ATOMIC_FLAGS(take(&self->input) % 21, datatype);
    header->payload = tcp_atomic_compute_payload(header);
}

/* What the endpoint waits for next. */
static inline void answer_read(struct session *self, struct tcp_header *header)
{
    struct far_numbers *reads = &self->far.reads;
    uint64_t place = self->far.reads_answered % FAR_KEPT;

    if (self->far.reads_answered == reads->count)
        return;
    self->far.reads_answered++;
    header->op = reads->id[place] ? TCP_FETCHED : TCP_READ_RSP;
    header->payload = reads->length[place];
}

static inline void fill(struct session *self, struct tcp_header *header)
{
    struct far *far = &self->far;
    uint64_t length;

    switch (header->op) {
    case TCP_MSG:
        header->op_data = take(&self->input) < 200 ? 0 : TCP_OP_DATA_ACK;
        header->payload = tcp_header_is_ack(header) ? 0 : some_length(self);
        break;
    case TCP_TAG:
    case TCP_INTERNAL:
        header->payload = some_length(self);
        break;
    case TCP_WRITE:
    case TCP_READ_REQ:
        some_remote(self, header);
        header->payload = header->op == TCP_WRITE ? header->length : 0;
        break;
    case TCP_READ_RSP:
    case TCP_FETCHED:
        answer_read(self, header);
        break;
    case TCP_TAG_RTS:
        header->op_data = take(&self->input);
        header->length = some_length(self);
        far_remember(&far->rendezvous, header->op_data, header->length);
        break;
    case TCP_CTS:
        header->op_data = (uint8_t)far_recall(&far->requests, take(&self->input), &length);
        break;
    case TCP_DATA:
        header->op_data = (uint8_t)far_recall(&far->clears, take(&self->input), &header->payload);
        break;
    case TCP_HELLO:
    case TCP_CREDIT:
        header->words[0] = some_length(self);
        break;
    case TCP_ANNOUNCE:
        header->op_data = take(&self->input) % 3;
        header->length = some_length(self);
        header->words[0] = ++far->announced;
        far_remember(&far->ours, header->words[0], header->length);
        break;
    case TCP_PULL:
        header->words[0] = far_recall(&far->announcements, take(&self->input), &length);
        header->words[1] = take(&self->input);
        header->words[2] = take(&self->input) < 192 ? length : 0;
        break;
    case TCP_PULLED:
        header->words[0] = far_recall(&far->pulls, take(&self->input), &header->payload);
        break;
    case TCP_REFUSED:
        header->op_data = take(&self->input) & 1;
        header->words[0] = take(&self->input);
        break;
    case TCP_ATOMIC:
        some_atomic(self, header);
        break;
    default:
        header->op_data = take(&self->input) & 1;
        break;
    }
}

static inline void send_message(struct session *self)
{
    struct far *far = &self->far;
    uint8_t bytes[TCP_HEADER_MAX], twist, op = take(&self->input), flags = take(&self->input);
    static uint8_t payload[FAR_ROOM];
    struct tcp_header header = {.op = op % TCP_OPS, .flags = flags & 0xf, .tag = flags >> 4 & 3, .data = flags};
    uint64_t length;
    size_t size, place = 0;

    fill(self, &header);
    twist = op < 2 * TCP_OPS ? 0 : take(&self->input);
    length = header.payload;
    if (twist & 1)
        header.payload += (uint64_t)take(&self->input) - 128;
    if (twist & 2)
        length -= take(&self->input) < length ? take(&self->input) : 0;
    if (twist & 4)
        header.remote[0].length = header.words[0] = UINT64_MAX - take(&self->input);
    size = tcp_header_encode(&header, far->next_id++, far->swapped, bytes);
    if (twist & 8)
        place = take(&self->input) % size;
    if (twist & 8)
        bytes[place] = take(&self->input);
    far_put(far, bytes, size);
    memset(payload, 'a' + far->next_id % 26, length < FAR_ROOM ? length : FAR_ROOM);
    far_put(far, payload, length < FAR_ROOM ? length : FAR_ROOM);
}

static inline void send_raw(struct session *self)
{
    size_t length = take(&self->input) % 64;

    if (length > self->input.size)
        length = self->input.size;
    far_put(&self->far, self->input.data, length);
    self->input.data += length;
    self->input.size -= length;
}

/* ------------------------------------------------------------------------------------------------- the program's part */

static inline void post_receive(struct session *self)
{
    static const uint64_t flags[] = {0, 0, 0, OFP_MULTI_RECV, OFP_PEEK, OFP_PEEK | OFP_DISCARD};
    uint8_t byte = take(&self->input);
    struct ofp_operation op = {.op = byte & 1 ? OFP_RECV : OFP_TRECV,
                               .peer = byte & 2 ? OFP_PEER_ANY : self->peer,
                               .flags = flags[(byte >> 2 & 7) % 6],
                               .tag = byte >> 5 & 3};
    int pieces = op.flags ? 1 : 1 + (byte >> 7) * 2;
    struct side_operation *operation;

    if (op.flags & OFP_MULTI_RECV)
        op.op = OFP_RECV;
    operation = side_operation(&self->side, &op, some_length(self), pieces);
    if (operation)
        side_post(&self->side, operation, &op);
}

static inline void post_send(struct session *self, uint32_t peer)
{
    static const uint64_t levels[] = {0, OFP_TRANSMIT_COMPLETE, OFP_DELIVERY_COMPLETE, OFP_MATCH_COMPLETE};
    uint8_t byte = take(&self->input);
    struct ofp_operation op = {.op = byte & 1 ? OFP_SEND : OFP_TSEND,
                               .peer = peer,
                               .flags = levels[byte >> 1 & 3] | (byte & 8 ? OFP_REMOTE_CQ_DATA : 0) |
                                        (byte & 16 ? OFP_MORE : 0) | (byte & 32 ? OFP_INJECT : 0) |
                                        (byte & 64 ? OFP_FENCE : 0),
                               .tag = 1};
    struct side_operation *operation =
        side_operation(&self->side, &op, some_length(self), byte & 128 ? SIDE_PIECES : 1);

    if (operation)
        side_post(&self->side, operation, &op);
}

static inline void post_remote(struct session *self)
{
    uint8_t byte = take(&self->input);
    struct ofp_operation op = {.op = byte & 1 ? OFP_READ : OFP_WRITE,
                               .peer = self->peer,
                               .flags = (byte & 2 ? OFP_DELIVERY_COMPLETE : 0) | (byte & 4 ? OFP_MORE : 0) |
                                        (byte & 8 && !(byte & 1) ? OFP_REMOTE_CQ_DATA : 0),
                               .remote_key = 7};
    struct side_operation *operation = side_operation(&self->side, &op, some_length(self), byte & 16 ? SIDE_PIECES : 1);

    if (!operation)
        return;
    if (byte & 32) {
        operation->remote[0] = (struct ofp_remote_segment){5, operation->length / 2, 1};
        operation->remote[1] = (struct ofp_remote_segment){9, operation->length - operation->length / 2, 2};
        op.remote_segments = (uint64_t)(uintptr_t)operation->remote;
        op.remote_segment_count = 2;
    }
    side_post(&self->side, operation, &op);
}

static inline void post_atomic(struct session *self)
{
    uint8_t byte = take(&self->input);
    struct ofp_operation op = {.op = (uint16_t)(OFP_ATOMIC + (byte & 3) % 3),
                               .atomic_op = byte & 3 && byte & 2 ? OFP_ATOMIC_CSWAP : OFP_ATOMIC_SUM,
                               .datatype = OFP_UINT64,
                               .peer = self->peer,
                               .flags = byte & 4 ? OFP_REMOTE_CQ_DATA : 0,
                               .remote_key = 7};
    /* Operand, result and what to compare with lie one behind the other. */
    uint64_t length = (byte >> 3) * UINT64_C(8) + 8;
    struct side_operation *operation = side_operation(&self->side, &op, length * 3, 1);

    if (!operation)
        return;
    op.length = length;
    op.result_offset = op.offset + length;
    if (op.op == OFP_COMPARE_ATOMIC)
        op.compare_offset = op.offset + 2 * length;
    side_post(&self->side, operation, &op);
}

/* ------------------------------------------------------------------------------------------------------------- steps */

static inline void hang_up(struct session *self)
{
    uint8_t byte = take(&self->input);

    if (self->far.fd < 0)
        return;
    network.connect = byte >> 2 & 3 ? NETWORK_REFUSES + byte % 3 : NETWORK_CONNECTS;
    if (byte & 128)
        shutdown(self->far.fd, SHUT_WR);
    else
        far_close(&self->far);
    side_progress(&self->side);
    side_progress(&self->side);
}

static inline void connect_again(struct session *self)
{
    int fd = network_depart();
    uint8_t byte = take(&self->input);

    self->pid += byte & 1;
    if (fd < 0 && !(self->kind & KIND_MSG))
        meet(self, network_arrive(FAR_PORT), true);
    else if (fd >= 0)
        meet(self, fd, false);
}

/* Whoever asked is answered, as soon as somebody did. */
static inline void answer_request(struct session *self)
{
    int fd = self->far.fd < 0 ? network_depart() : -1;

    if (fd >= 0)
        meet(self, fd, false);
}

/* A piece of what the peer says. */
static inline void deliver(struct session *self, size_t length, bool silently)
{
    far_write(&self->far, length);
    side_progress(&self->side);
    if (!silently)
        far_read(&self->far, FAR_ROOM);
}

static inline void forget_peer(struct session *self)
{
    struct sockaddr_in address;

    far_address(&address, FAR_PORT);
    if (self->kind & KIND_MSG) {
        if (self->side.endpoint)
            ofp_shutdown(self->side.endpoint);
        return;
    }
    ofp_av_remove(self->side.av, self->peer);
    check(ofp_av_insert(self->side.av, &address, sizeof(address), &self->peer) == 0);
}

static inline void step(struct session *self)
{
    uint8_t what = take(&self->input), byte;

    switch (what % 16) {
    case 0:
    case 1:
    case 2:
        send_message(self);
        break;
    case 3:
        send_raw(self);
        break;
    case 4:
        byte = take(&self->input);
        deliver(self, 1 + byte % 64u, what & 16);
        break;
    case 5:
        deliver(self, FAR_ROOM, what & 16);
        break;
    case 6:
        post_receive(self);
        break;
    case 7:
        post_send(self, what & 16 ? self->itself : self->peer);
        break;
    case 8:
        post_remote(self);
        break;
    case 9:
        post_atomic(self);
        break;
    case 10:
        if (self->side.endpoint)
            ofp_cancel(self->side.endpoint, take(&self->input) % SIDE_OPERATIONS);
        break;
    case 11:
        side_progress(&self->side);
        far_read(&self->far, what & 16 ? 100 : FAR_ROOM);
        break;
    case 12:
        side_completions(&self->side);
        side_events(&self->side);
        break;
    case 13:
        hang_up(self);
        break;
    case 14:
        connect_again(self);
        break;
    default:
        byte = take(&self->input);
        if (byte & 1) {
            network.now += TCP_SECOND << (byte >> 1 & 3);
            side_progress(&self->side);
        } else if (byte & 2) {
            byte = (byte >> 2) % SIDE_REGIONS;
            side_close_region(&self->side, byte);
            side_open_region(&self->side, byte);
        } else if (byte & 4) {
            forget_peer(self);
        } else {
            ofp_cq_arm(self->side.cq);
        }
        break;
    }
    answer_request(self);
}

#endif
