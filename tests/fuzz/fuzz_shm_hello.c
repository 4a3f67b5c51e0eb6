/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is said on the sockets at which peers meet: several callers at once, and callers that the endpoint calls itself. Packets
 * are right, nearly right, short or noise, with descriptors of good segments, of damaged ones and of other things, in any order,
 * and time passes between them. Every descriptor is closed in the end, and the calls under way stay below their bound.
 */
#include <dirent.h>

#include "shm_far.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEPS 200
#define OTHERS 4

static struct far far;
static int others[OTHERS]; /* connections; -1: none */
static int damaged_fd, short_fd;
static char *damaged;

static uint32_t descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    uint32_t count = 0;

    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

/* As large as a segment, and what the input makes of it. */
static void open_damaged(void)
{
    damaged_fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    check(damaged_fd >= 0 && ftruncate(damaged_fd, (off_t)far.own.size) == 0 &&
          fcntl(damaged_fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    damaged = mmap(NULL, far.own.size, PROT_READ | PROT_WRITE, MAP_SHARED, damaged_fd, 0);
    check(damaged != MAP_FAILED);
    memcpy(damaged, far.own.base, sizeof(struct shm_header));
    short_fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    check(short_fd >= 0 && ftruncate(short_fd, 100) == 0 && fcntl(short_fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
}

static void close_damaged(void)
{
    munmap(damaged, far.own.size);
    close(damaged_fd);
    close(short_fd);
}

static void damage(struct input *input)
{
    uint8_t where = take(input);

    damaged[where % offsetof(struct shm_header, tail)] = (char)take(input);
}

static void say_packet(struct input *input, int fd)
{
    /* Not the bystander: all of them are one process here, which may well come back under its name. */
    static const char *const roles[] = {"far", "far", "far", "other", "other", "tested"};
    uint8_t how = take(input), twist = take(input);
    struct shm_packet packet = far_packet(&far, how % 10);
    int choices[] = {far.own_fd, damaged_fd, short_fd, far.event_fd, 0};
    int fds[FAR_DESCRIPTORS] = {far.own_fd, far.event_fd, 0};
    uint8_t *bytes = (uint8_t *)&packet;
    size_t length = sizeof(packet);
    unsigned count = packet.type == SHM_HELLO || packet.type == SHM_WELCOME ? 2 : packet.type == SHM_ARENA_ANSWER;

    packet.address = world_address(roles[twist % 6]);
    packet.flags = how & 128 ? SHM_KEEP : 0;
    packet.stamp = twist;
    if (twist & 64) {
        uint8_t *byte = &bytes[take(input) % sizeof(packet)];

        *byte ^= take(input);
    }
    if (twist & 128)
        count = take(input) % (FAR_DESCRIPTORS + 1u);
    if (how & 64)
        fds[twist & 1] = choices[take(input) % 5];
    if (how & 32)
        length = take(input) % (sizeof(packet) + 1);
    far_send(fd, &packet, length, fds, count);
}

/* Whatever it answers. */
static void hear(int fd)
{
    struct shm_packet packet;
    int fds[2];

    if (far_receive(fd, &packet, fds)) {
        if (packet.type == SHM_HELLO || packet.type == SHM_WELCOME)
            far_take(&far, &packet, fds);
        far_close_descriptors(fds);
    }
}

static void hang_up(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void call(struct input *input)
{
    struct world_operation *operation = world_operation(&world.tested, WORLD_SENDS / 2);

    if (operation)
        world_post(&world.tested, operation, OFP_TSEND, 1, WORLD_OTHER, take(input), NULL);
}

static void step(struct input *input)
{
    uint8_t what = take(input);
    int *fd = &others[what >> 4 & 3];

    switch (what % 10) {
    case 0:
        hang_up(fd);
        *fd = far_connect();
        break;
    case 1:
        hang_up(fd);
        *fd = accept4(far.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        break;
    case 2:
    case 3:
        say_packet(input, *fd);
        break;
    case 4:
        hear(*fd);
        break;
    case 5:
        damage(input);
        break;
    case 6:
        call(input);
        break;
    case 7:
        world.now += WORLD_MILLISECOND << (what / 10 % 14);
        break;
    case 8:
        hang_up(fd);
        break;
    default:
        break;
    }
    world_progress(&world.tested);
    if (what & 128)
        world_progress(&world.bystander);
    check(shm_endpoint_of(world.tested.endpoint)->calls <= SHM_CALLS_MAX);
}

/* The statistics page that the first endpoint of the process opens stays open, and is no leak of an input. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    world_open(false);
    world_close();
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    uint32_t before = descriptors();

    world_open(false);
    far_open(&far);
    far_listen(&far);
    open_damaged();
    memset(others, -1, sizeof(others));
    check(world_insert(&world.tested, "far") == 1);
    world_receives();
    for (int i = 0; i < STEPS && input.size; i++)
        step(&input);
    for (int i = 0; i < OTHERS; i++)
        hang_up(&others[i]);
    far_close(&far);
    world_recover();
    world_close();
    close_damaged();
    far_free(&far);
    check(descriptors() == before);
    return 0;
}
