/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint and one peer, from the handshake to the end. The input says what kind of both (stock or ofipy's, with a key or
 * not, either byte order, who connects), and then step by step what they do: see play.h.
 */
#include "play.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define GOOD_PORT 1235
#define GOOD_TAG 4242

static struct session session;

/* Somebody who behaves is served, whatever the other one did. */
static void serve(struct session *self)
{
    struct sockaddr_in address;
    struct ofp_operation op = {.op = OFP_TRECV, .tag = GOOD_TAG};
    struct side_operation *operation;
    uint32_t kept = self->side.operation_count;
    static struct far good;

    if (self->kind & (KIND_MSG | KIND_KEY))
        return;
    far_address(&address, GOOD_PORT);
    check(ofp_av_insert(self->side.av, &address, sizeof(address), &op.peer) == 0);
    /* There is always room for this one. */
    if (kept == SIDE_OPERATIONS)
        return;
    operation = side_operation(&self->side, &op, 8, 1);
    check(side_post(&self->side, operation, &op));
    memset(&good, 0, offsetof(struct far, out));
    good.out_begin = good.out_end = 0;
    good.fd = network_arrive(GOOD_PORT);
    check(good.fd >= 0);
    far_rdm(&good, TCP_CONNREQ, false, false, &(struct tcp_rdm){.version = 1, .port = GOOD_PORT, .pid = 5});
    far_header(&good, &(struct tcp_header){.op = TCP_TAG, .tag = GOOD_TAG, .payload = 8});
    far_put(&good, "whatever", 8);
    good.meeting = true;
    check(far_write(&good, FAR_ROOM));
    for (int i = 0; i < 3; i++)
        side_progress(&self->side);
    side_completions(&self->side);
    check(operation->done);
    far_close(&good);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct session *self = &session;

    self->input = (struct input){data, size};
    self->kind = take(&self->input);
    self->pid = 77;
    self->far.fd = -1;
    far_close(&self->far);
    network_begin();
    network.connect = NETWORK_CONNECTS;
    network.buffer = self->kind & KIND_SMALL ? 1 : 0;
    /* Of the other byte order there are only stock peers. */
    if (self->kind & KIND_SWAPPED)
        self->kind &= (uint8_t)~(KIND_EXTENDED | KIND_KEY);
    side_open(&self->side, self->kind & KIND_MSG, self->kind & KIND_KEY, true);
    begin(self);
    for (int i = 0; i < STEPS && self->input.size; i++)
        step(self);
    for (int i = 0; i < 4 && far_write(&self->far, FAR_ROOM); i++)
        side_progress(&self->side);
    serve(self);
    far_read(&self->far, FAR_ROOM);
    if (self->pid & 1)
        far_close(&self->far);
    side_close(&self->side, 20000);
    far_read(&self->far, FAR_ROOM);
    far_close(&self->far);
    return 0;
}
