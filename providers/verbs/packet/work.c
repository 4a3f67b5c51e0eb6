/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/work.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "packet/number.h"
#include "packet/path.h"
#include "packet/receive.h"
#include "queue/fault.h"

#define BATCH 16
#define BATCHES 4
/* Work requests reserved for verbs_path_post_empty_write, by keep-alive and at the end of a path. */
#define SPARE 2

/*
 * A work request returns at its end: a packet, or the cookie of a read or write with the lowest bit set. NULL:
 * nothing, as the packet was copied inline.
 */
#define MOVE 1u

static void *mark_cookie(void *cookie) { return (char *)cookie + MOVE; }

/*
 * Half of the queue is for inline packets, which end at once. The other half is for packets and moves that the user
 * counts.
 */
uint32_t verbs_path_compute_window(uint32_t depth) { return depth / 2 - SPARE; }

/* ---------------------------------------------------------------------------------------------------------- posting */

/* IDs of sends are odd. IDs of receives are pointers to their packets, which are even. */
static uint64_t encode_send_id(uint64_t number) { return number << 1 | 1; }

void verbs_packets_flush(struct verbs_rdm *rdm)
{
    struct verbs_path *path = rdm->chained;
    int error;

    if (!rdm->chain.count)
        return;
    OFP_CHECK(rdm->chain.count <= verbs_send_queue_count(&path->queue));
    error = verbs_chain_post(&rdm->chain, path->qp);
    /* Packets that were not posted are returned at the end of the path. */
    if (error)
        verbs_path_mark_failed(path, &(struct ofpi_meeting_end){.error = error, .unsure = true});
}

/* Reserve a work request of the chain. NULL: the queue is full, since the user sent more than it may. */
static struct ibv_send_wr *reserve_path_request(struct verbs_path *path, enum ibv_wr_opcode opcode)
{
    struct verbs_rdm *rdm = path->rdm;
    struct verbs_chain *chain = &rdm->chain;
    struct ibv_send_wr *request;

    if (!verbs_send_queue_count_space(&path->queue))
        return NULL;
    if (rdm->chained != path || verbs_chain_is_full(chain))
        verbs_packets_flush(rdm);
    rdm->chained = path;
    request = verbs_chain_reserve_request(chain);
    request->wr_id = encode_send_id(path->queue.head);
    request->opcode = opcode;
    return request;
}

/* Append the work request to the chain. `work` is returned when it ends. `more`: post it with the next one. */
static void append_path_request(struct verbs_path *path, struct ibv_send_wr *request, void *work, bool more)
{
    uint32_t place = verbs_send_queue_append(&path->queue);

    verbs_chain_append(&path->rdm->chain, request);
    path->completed[place] = false;
    path->sends[place] = work;
    if (work || !request->num_sge || verbs_send_queue_needs_signal(&path->queue))
        verbs_send_queue_set_signal(&path->queue, request);
    if (!more)
        verbs_packets_flush(path->rdm);
}

int verbs_packet_send(struct ofpi_path *base, struct ofpi_packet *packet, bool more)
{
    struct verbs_path *path = verbs_path_of(base);
    struct verbs_rdm *rdm = path->rdm;
    struct ibv_send_wr *request = reserve_path_request(path, IBV_WR_SEND);
    bool is_inline = packet->length <= base->channel->limits.inline_size;
    bool done = is_inline && verbs_send_queue_count(&path->queue) < rdm->depth / 2;
    uint8_t *bytes = packet->bytes;

    if (!request)
        return -ENOBUFS;
    /* The caller may reuse the packet before the chain is posted. */
    if (done && more)
        bytes = memcpy(rdm->chain.bytes[rdm->chain.count], bytes, packet->length);
    verbs_request_set_segment(request, bytes, packet->length, rdm->packets->mr->lkey);
    request->send_flags = is_inline ? IBV_SEND_INLINE : 0;
    append_path_request(path, request, done ? NULL : packet, more);
    path->completed[verbs_place_of_number(&path->queue, path->queue.head - 1)] = packet->completed;
    return done ? OFP_POST_DONE : OFP_POST_PENDING;
}

static int post_move(struct ofpi_path *base, enum ibv_wr_opcode opcode, const struct ofpi_memory *local,
                     uint64_t offset, uint64_t address, uint64_t key, uint64_t length, void *cookie)
{
    struct verbs_path *path = verbs_path_of(base);
    struct ibv_send_wr *request = reserve_path_request(path, opcode);

    if (!request)
        return -ENOBUFS;
    verbs_request_set_segment(request, (char *)local->base + offset, length, (uint32_t)local->private[0]);
    request->wr.rdma.remote_addr = address;
    request->wr.rdma.rkey = (uint32_t)key;
    path->moves++;
    append_path_request(path, request, mark_cookie(cookie), false);
    return 0;
}

int verbs_path_post_read(struct ofpi_path *path, const struct ofpi_memory *local, uint64_t offset, uint64_t address,
                         uint64_t key, uint64_t length, void *cookie)
{
    return post_move(path, IBV_WR_RDMA_READ, local, offset, address, key, length, cookie);
}

int verbs_path_post_write(struct ofpi_path *path, const struct ofpi_memory *local, uint64_t offset, uint64_t address,
                          uint64_t key, uint64_t length, void *cookie)
{
    return post_move(path, IBV_WR_RDMA_WRITE, local, offset, address, key, length, cookie);
}

int verbs_path_post_atomic(struct ofpi_path *base, struct ofpi_packet *packet, const struct ofpi_word *word,
                           void *cookie)
{
    struct verbs_path *path = verbs_path_of(base);
    struct ibv_send_wr *request =
        reserve_path_request(path, word->compares ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD);

    if (!request)
        return -ENOBUFS;
    verbs_request_set_segment(request, packet->bytes, sizeof(uint64_t), path->rdm->packets->mr->lkey);
    request->wr.atomic.remote_addr = word->address;
    request->wr.atomic.rkey = (uint32_t)word->key;
    request->wr.atomic.swap = word->operand;
    request->wr.atomic.compare_add = word->compares ? word->compare : word->operand;
    path->moves++;
    append_path_request(path, request, mark_cookie(cookie), false);
    return 0;
}

void verbs_path_post_empty_write(struct verbs_path *path)
{
    struct ibv_send_wr *request = reserve_path_request(path, IBV_WR_RDMA_WRITE);

    if (!request)
        return;
    request->wr.rdma.remote_addr = 0;
    request->wr.rdma.rkey = 0;
    append_path_request(path, request, NULL, false);
}

bool verbs_path_sends_drain(struct verbs_path *path)
{
    if (verbs_send_queue_is_empty(&path->queue))
        return true;
    if (path->queue.signalled != path->queue.head)
        verbs_path_post_empty_write(path);
    return false;
}

uint64_t verbs_path_count_unsent(const struct ofpi_path *base)
{
    const struct verbs_path *path = base->private;
    uint64_t count = 0;

    for (uint64_t number = path->queue.tail; number < path->queue.head; number++)
        count += path->completed[verbs_place_of_number(&path->queue, number)];
    return count;
}

/* -------------------------------------------------------------------------------------------------------------- end */

static void complete_path_send(struct verbs_path *path, void *work, int error, int provider_error)
{
    const struct ofpi_channel_user *user = path->base->channel->user;

    if (!work)
        return;
    if ((uintptr_t)work & MOVE) {
        OFP_CHECK(path->moves > 0);
        path->moves--;
        user->moved(path->base, (char *)work - MOVE, error, provider_error);
    } else {
        user->sent(path->base, work);
    }
}

/* All work requests before this number have ended without error. */
static void complete_path_sends(struct verbs_path *path, uint64_t number)
{
    while (path->queue.tail < number)
        complete_path_send(path, path->sends[verbs_send_queue_pop(&path->queue)], 0, 0);
}

void verbs_path_sends_cancel(struct verbs_path *path)
{
    while (!verbs_send_queue_is_empty(&path->queue))
        complete_path_send(path, path->sends[verbs_send_queue_pop(&path->queue)], ECANCELED, 0);
}

/* ---------------------------------------------------------------------------------------------------------- polling */

/* The first failed completion has the reason; those after it are flushed. */
static void fail_path_with_status(struct verbs_path *path, enum ibv_wc_status status)
{
    int fault = verbs_fault_identify(path->rdm->domain, status);

    if (fault == IBV_WC_WR_FLUSH_ERR)
        verbs_path_mark_failed(
            path, &(struct ofpi_meeting_end){.error = ECONNRESET, .unsure = true, .text = verbs_event_find_text(0)});
    else
        verbs_path_mark_failed(path, &(struct ofpi_meeting_end){.error = verbs_fault_find_error(fault),
                                                                .text = verbs_fault_find_text(fault)});
}

static void path_send_ended(struct verbs_path *path, const struct ibv_wc *wc)
{
    uint64_t number = wc->wr_id >> 1;
    int fault;

    if (VERBS_UNLIKELY(path->state == VERBS_PATH_CLOSED))
        verbs_path_schedule(path);
    /* An earlier queue pair had the same number. */
    if (VERBS_UNLIKELY(!verbs_send_queue_has_number(&path->queue, number)))
        return;
    if (VERBS_LIKELY(wc->status == IBV_WC_SUCCESS)) {
        complete_path_sends(path, number + 1);
        return;
    }
    fault = verbs_fault_identify(path->rdm->domain, wc->status);
    complete_path_sends(path, number);
    complete_path_send(path, path->sends[verbs_send_queue_pop(&path->queue)], verbs_fault_find_error(fault),
                       verbs_code_of_fault(fault));
    fail_path_with_status(path, wc->status);
}

static void packet_receive_ended(struct verbs_rdm *rdm, struct verbs_path *path, const struct ibv_wc *wc)
{
    struct ofpi_packet *packet = (struct ofpi_packet *)(uintptr_t)wc->wr_id;

    verbs_packet_receive_complete(rdm, path, packet);
    if (VERBS_LIKELY(wc->status == IBV_WC_SUCCESS && path && path->state <= VERBS_PATH_FAILED)) {
        packet->length = wc->byte_len;
        path->received = true;
        rdm->channel->user->arrived(rdm->channel, path->base, packet, NULL, 0);
        return;
    }
    if (wc->status != IBV_WC_SUCCESS && path)
        fail_path_with_status(path, wc->status);
    verbs_packet_post_receive(rdm->channel, packet);
}

int verbs_rdm_poll(struct verbs_rdm *rdm, bool *empty)
{
    struct ibv_wc completions[BATCH];
    int count, total = 0;

    for (int batch = 0; batch < BATCHES; batch++) {
        count = ibv_poll_cq(rdm->cq, BATCH, completions);
        for (int i = 0; i < count; i++) {
            struct verbs_path *path = verbs_number_find(rdm, completions[i].qp_num);

            if (!(completions[i].wr_id & 1))
                packet_receive_ended(rdm, path, &completions[i]);
            else if (path)
                path_send_ended(path, &completions[i]);
        }
        total += count > 0 ? count : 0;
        *empty = count < BATCH;
        if (*empty)
            break;
    }
    return total;
}
