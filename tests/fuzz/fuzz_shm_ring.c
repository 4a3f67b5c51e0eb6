/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The segment of an endpoint under a process that writes there what it wants: slots of every kind, its own or in somebody
 * else's name, and stray bytes in the header, in the states of slots and in those of buffers. Beside it a bystander sends, and
 * must not be fooled (shm_world.h).
 */
#include "link/bounce.h"
#include "shm_far.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS 200

static struct far far;
static uint32_t regions[2];
static uint8_t memory[2][4096]; /* the second of them may be read only */

/* Slots as a peer sends them, and nearly. */
static void say(struct input *input)
{
    uint8_t how = take(input);
    struct shm_content content = far_content(&far, input);

    if (content.kind == SHM_REMOTE) {
        struct shm_request *request = (struct shm_request *)(void *)shm_bounce_resolve(&far.own, how % 4u);

        *request = (struct shm_request){.offset = take(input),
                                        .length = take(input),
                                        .piece_count = take(input) % 4u,
                                        .op = (uint8_t)(OFP_READ + take(input) % 6),
                                        .atomic_op = take(input) % 24,
                                        .datatype = take(input) % 20};
        for (uint32_t i = 0; i < 3; i++)
            shm_pieces_of(request)[i] = (struct shm_remote_piece){take(input), take(input), 1 + take(input) % 3u};
        content.bounce.index = how % 4u;
    }
    /* In another's name without the stamp that only he knows. */
    if (how & 0xc0)
        far_publish(&far, &content, far.number, true);
    else
        far_publish(&far, &content, how % 6u, false);
}

/* Eight bytes anywhere but in what others say: payload has no checksum. */
static void scribble(struct input *input)
{
    uint8_t where = take(input);
    uint64_t value = take(input);
    struct shm_header *header = far.theirs.header;
    struct shm_slot *slot = &far.theirs.slots[where % 16u];

    value |= (uint64_t)take(input) << 8;
    value = where & 128 ? value << take(input) % 64 : ~value;
    switch (take(input) % 6) {
    case 0:
        ofp_store_release(&header->tail, ofp_load_acquire(&header->tail) + value % 40 - 20);
        break;
    case 1:
        ofp_store_release(&header->tail, value);
        break;
    case 2:
        ofp_store_release(&header->status, value);
        break;
    case 3:
        memcpy((char *)header + where % (sizeof(*header) - 8), &value, sizeof(value));
        break;
    case 4:
        ofp_store_release(&far.theirs.bounce_states[where % 4u].freed, (uint32_t)value);
        break;
    default:
        ofp_store_release(&slot->state,
                          where & 64 ? value
                                     : shm_state_build(shm_lap_of(ofp_load_acquire(&slot->state)) + value % 3 - 1,
                                                       value / 4 % 5, value >> 8 & 3));
        break;
    }
}

static void claim(struct input *input)
{
    struct shm_ring ring = far_ring(&far.theirs);
    uint8_t how = take(input);
    uint64_t state;

    shm_ring_claim(&ring, how & 0x80 ? far.number : how % 8u, &state);
}

static void send_to_far(struct input *input)
{
    static const uint64_t lengths[] = {0, 8, 96, 97, 3000, WORLD_LONGEST};
    struct world_operation *operation = world_operation(&world.tested, WORLD_SENDS / 2);
    uint8_t how = take(input);
    struct ofp_operation rest = {.flags = how & 128 ? OFP_DELIVERY_COMPLETE : 0};

    if (operation)
        world_post(&world.tested, operation, OFP_TSEND, 1, WORLD_OTHER, lengths[how % 6], &rest);
}

static void step(struct input *input)
{
    static const uint64_t lengths[] = {8, 8, 96, 3000, WORLD_LONGEST};
    uint8_t what = take(input);

    if (!far.theirs.base)
        far_meet(&far);
    switch (what % 9) {
    case 0:
        if (far.theirs.base)
            say(input);
        break;
    case 1:
        if (far.theirs.base)
            scribble(input);
        break;
    case 2:
        if (far.theirs.base && what & 128)
            claim(input);
        break;
    case 3:
        world_send_numbered(lengths[what / 9 % 5]);
        world_progress(&world.bystander);
        break;
    case 4:
        send_to_far(input);
        break;
    case 5:
        far_read(&far, what & 128);
        break;
    case 6:
        world.now += WORLD_MILLISECOND << (what / 9 % 11);
        ofp_cq_arm(world.tested.cq);
        break;
    case 7:
        if (what & 128)
            far_meet(&far);
        break;
    default:
        world_progress(&world.tested);
        world_progress(&world.bystander);
        break;
    }
}

static void open_regions(void)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct ofp_region_attr attr = {.base = memory[i],
                                       .length = sizeof(memory[i]),
                                       .access = OFP_ACCESS_REMOTE_READ | (i ? 0 : OFP_ACCESS_REMOTE_WRITE),
                                       .has_key = 1,
                                       .key = i + 1};
        struct ofp_region_handle handle;

        memset(memory[i], 0x5a, sizeof(memory[i]));
        check(ofp_region_register(world.tested.domain, &attr, &handle) == 0);
        regions[i] = handle.id;
    }
}

static void close_regions(void)
{
    for (uint32_t i = 0; i < 2; i++)
        check(ofp_region_close(world.tested.domain, regions[i]) == 0);
    for (size_t i = 0; i < sizeof(memory[1]); i++)
        check(memory[1][i] == 0x5a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};

    world_open(false);
    far_open(&far);
    check(world_insert(&world.tested, "far") == 1);
    open_regions();
    world_receives();
    for (int i = 0; i < STEPS && input.size; i++)
        step(&input);
    far_close(&far);
    world_recover();
    close_regions();
    world_close();
    far_free(&far);
    return 0;
}
