/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of a peer that lies: its region table holds what the input says and changes at any time, its arenas are what was
 * promised or not, its answers to requests are wrong, late or twice. The endpoint under test reads, writes and combines there,
 * and touches nothing beside what the peer has offered.
 */
#include "shm_far.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS 200
#define KEYS 4
#define ARENA_SIZE 65536

static struct far far;
static int table_fd, arena_fd, short_fd, unsealed_fd;
static struct shm_region_entry *table;

static int memory_file(uint64_t size, int seals)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    check(fd >= 0 && ftruncate(fd, (off_t)size) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0);
    return fd;
}

static void open_memory(void)
{
    table_fd = memory_file(SHM_TABLE_SIZE, F_SEAL_SHRINK);
    arena_fd = memory_file(ARENA_SIZE, F_SEAL_SHRINK);
    short_fd = memory_file(100, F_SEAL_SHRINK);
    unsealed_fd = memory_file(SHM_TABLE_SIZE, F_SEAL_GROW);
    table = mmap(NULL, SHM_TABLE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, table_fd, 0);
    check(table != MAP_FAILED);
}

static void close_memory(void)
{
    munmap(table, SHM_TABLE_SIZE);
    close(table_fd);
    close(arena_fd);
    close(short_fd);
    close(unsealed_fd);
}

/* Where a key's entry is looked for: table.c. */
static struct shm_region_entry *entry_of(uint64_t key, uint32_t probe)
{
    uint64_t first = (key * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - SHM_TABLE_SHIFT);

    return &table[(first + probe) % (1u << SHM_TABLE_SHIFT)];
}

/* ----------------------------------------------------------------------------------------------------- what the peer does */

static void enter(struct input *input)
{
    uint8_t how = take(input);
    struct shm_region_entry *entry = entry_of(how % KEYS, take(input) % 9u);

    ofp_store_relaxed(&entry->key, how % KEYS);
    ofp_store_relaxed(&entry->address, (uint64_t)(uintptr_t)far.memory + (take(input) << (how >> 4)));
    ofp_store_relaxed(&entry->length, UINT64_MAX >> take(input) % 64);
    ofp_store_relaxed(&entry->arena, take(input) % 4u);
    ofp_store_relaxed(&entry->arena_offset, how & 8 ? UINT64_MAX >> take(input) % 64 : take(input));
    ofp_store_relaxed(&entry->access, take(input) | (how & 4 ? SHM_ENTRY_EVENTS : 0));
    ofp_store_relaxed(&entry->id, take(input));
    ofp_store_release(&entry->serial, take(input));
}

static void scribble(struct input *input)
{
    uint64_t value = take(input);
    char *place = (char *)entry_of(take(input) % KEYS, 0);

    value <<= take(input) % 64;
    memcpy(place + take(input) % (sizeof(struct shm_region_entry) - 7), &value, sizeof(value));
}

/* Somebody asks for an arena, or for the table. */
static void answer_question(uint8_t how)
{
    struct shm_packet packet, answer = far_packet(&far, SHM_ARENA_ANSWER);
    int fd = accept4(far.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), fds[2];
    int choices[] = {table_fd, arena_fd, short_fd, unsealed_fd, far.event_fd};

    if (fd < 0)
        return;
    if (far_receive(fd, &packet, fds)) {
        far_close_descriptors(fds);
        answer.arena = how & 64 ? how : packet.arena;
        if (how & 32)
            answer.type = how % 10;
        choices[0] = how & 16 ? choices[how % 5] : packet.arena == SHM_TABLE_NUMBER ? table_fd : arena_fd;
        far_send(fd, &answer, sizeof(answer), choices, how & 8 ? how % 3u : 1);
    }
    world_progress(&world.tested);
    close(fd);
}

/* An answer to a request, most likely of the right buffer. */
static void answer_request(struct input *input)
{
    uint8_t how = take(input);
    struct shm_content content = {.kind = how & 1 ? SHM_ANSWER : SHM_NOTICE};

    if (how & 2)
        content = far_content(&far, input);
    else
        content.control = (struct shm_control_fields){.id = take(input),
                                                      .receive = far.ids[how >> 4 & 7],
                                                      .length = take(input),
                                                      .error = how & 4 ? (int32_t)take(input) - 10 : 0,
                                                      .completed = how & 8 ? OFP_COMPLETED_REMOTE_READ : take(input)};
    far_publish(&far, &content, far.number, true);
}

/* ------------------------------------------------------------------------------------------------ what is done to it */

static void reach(struct input *input)
{
    struct world_operation *operation = world_operation(&world.tested, WORLD_SENDS / 2);
    uint8_t how = take(input);
    uint16_t code = (uint16_t)(OFP_READ + how % 5);
    struct ofp_remote_segment pieces[2];
    struct ofp_operation rest = {.flags = how & 128 ? OFP_REMOTE_CQ_DATA : 0, .remote_key = take(input) % KEYS};
    uint64_t length = take(input) * (how & 64 ? 60u : 8u);

    if (!operation)
        return;
    rest.remote_offset = how & 32 ? UINT64_MAX >> take(input) % 64 : take(input);
    if (code >= OFP_ATOMIC) {
        rest.flags = 0;
        rest.datatype = OFP_UINT64;
        rest.atomic_op = OFP_ATOMIC_SUM;
        length -= length % 8;
        if (code == OFP_COMPARE_ATOMIC)
            rest.atomic_op = OFP_ATOMIC_CSWAP;
    } else if (how & 16) {
        pieces[0] = (struct ofp_remote_segment){rest.remote_offset, length / 2, rest.remote_key};
        pieces[1] = (struct ofp_remote_segment){take(input), length - length / 2, take(input) % KEYS};
        rest.remote_segments = (uint64_t)(uintptr_t)pieces;
        rest.remote_segment_count = 2;
    }
    operation->number = 1;
    world_post(&world.tested, operation, code, 1, 0, length, &rest);
}

/* Table and arena as they should be, and mapped: the first read asks for the one, the second for the other. */
static void open_table(void)
{
    for (uint32_t key = 1; key <= 2; key++) {
        struct shm_region_entry *entry = entry_of(key, 0);

        ofp_store_relaxed(&entry->key, key);
        ofp_store_relaxed(&entry->address, (uint64_t)(uintptr_t)far.memory);
        ofp_store_relaxed(&entry->length, FAR_MEMORY);
        ofp_store_relaxed(&entry->arena, key - 1);
        ofp_store_relaxed(&entry->access, OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE);
        ofp_store_release(&entry->serial, key);
    }
    for (int i = 0; i < 2; i++) {
        struct world_operation *operation = world_operation(&world.tested, WORLD_SENDS);
        struct ofp_operation rest = {.remote_key = 2};
        struct shm_content content = {.kind = SHM_ANSWER};

        operation->number = 1;
        world_post(&world.tested, operation, OFP_READ, 1, 0, 8, &rest);
        answer_question(0);
        if (!far_read(&far, false))
            continue;
        content.control.receive = far.ids[(far.id_count - 1) % FAR_KEPT];
        far_publish(&far, &content, far.number, true);
        world_progress(&world.tested);
    }
}

static void step(struct input *input)
{
    uint8_t what = take(input);

    if (!far.theirs.base && !far_meet(&far))
        return;
    switch (what % 9) {
    case 0:
        enter(input);
        break;
    case 1:
        scribble(input);
        break;
    case 2:
    case 3:
        reach(input);
        break;
    case 4:
        answer_question(take(input));
        break;
    case 5:
        far_read(&far, what & 128);
        break;
    case 6:
        answer_request(input);
        break;
    case 7:
        world.now += WORLD_MILLISECOND << (what / 9 % 11);
        if (what & 128)
            far_meet(&far);
        break;
    default:
        world_progress(&world.tested);
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};

    world_open(true);
    far_open(&far);
    far_listen(&far);
    open_memory();
    check(world_insert(&world.tested, "far") == 1);
    world_receives();
    if (take(&input) & 1 && far_meet(&far))
        open_table();
    for (int i = 0; i < STEPS && input.size; i++)
        step(&input);
    far_close(&far);
    world_recover();
    world_close();
    close_memory();
    far_free(&far);
    return 0;
}
