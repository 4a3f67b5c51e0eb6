/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What lives on one host in the targets of shm: the endpoint under test and a bystander, both of them the real provider and
 * core, each in a domain of its own as if in another process. The clock and all that is drawn at random is the target's, so the
 * same input always does the same; of a process' memory nothing is read or written by cross-memory attach but what the far
 * peer offers (shm_far.h).
 *
 * The bystander sends numbered messages. Whatever somebody else writes into the memory of the endpoint under test, they arrive
 * in order, once, whole; one that does not arrive is one whose sender has lost its peer; and soon after everything is quiet the
 * two reach each other.
 */
#ifndef FUZZ_SHM_WORLD_H
#define FUZZ_SHM_WORLD_H

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "input.h"
#include "object/domain.h"
#include "provider/provider_registry.h"
#include "shm.h"

#define WORLD_SENDS 48
#define WORLD_RECEIVES 4
#define WORLD_LONGEST 9000
#define WORLD_MILLISECOND UINT64_C(1000000)
/* Rounds of 0.1 s, after which the damage of the worst kind is mended and both sides have met anew. */
#define WORLD_QUIET 400

enum { WORLD_NUMBERED = 1, WORLD_OTHER, WORLD_FINAL };

const struct ofp_provider *ofp_provider_entry(const struct ofp_core *core);

struct world_operation {
    uint8_t *memory;           /* NULL: not in use */
    uint8_t *result, *compare; /* of atomics */
    uint16_t op;
    uint32_t number;
    uint64_t length, tag;
};

struct world_member {
    struct ofp_domain *domain;
    struct ofp_cq *cq;
    struct ofp_av *av;
    struct ofp_endpoint *endpoint;
    struct world_operation operations[WORLD_SENDS];
    bool finals;                     /* a final message has arrived */
    uint32_t ended[WORLD_FINAL + 1]; /* receives of each tag that were ended by an error, and are posted again later */
};

static struct {
    uint64_t now, random;
    struct world_member tested, bystander;
    uint32_t sent; /* numbers of the bystander's messages */
    bool failed[256];
    uint32_t arrived[256]; /* which of the receives it came to, in the order of their posts; 0: none */
    uint32_t receives;
    /* What may be reached by cross-memory attach. */
    char *memory;
    size_t memory_size;
    uint64_t *word;
} world;

/* ------------------------------------------------------------------------------------------------ in place of libc's */

ssize_t __wrap_getrandom(void *bytes, size_t length, unsigned flags);
uint64_t __wrap_ofpi_clock_read(void);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count,
                                const struct iovec *remote, unsigned long remote_count, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long local_count,
                                 const struct iovec *remote, unsigned long remote_count, unsigned long flags);

ssize_t __wrap_getrandom(void *bytes, size_t length, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < length; i++) {
        world.random = world.random * 6364136223846793005u + 1442695040888963407u;
        ((uint8_t *)bytes)[i] = (uint8_t)(world.random >> 56);
    }
    return (ssize_t)length;
}

uint64_t __wrap_ofpi_clock_read(void) { return world.now += 100; }

static inline bool world_within(const void *base, size_t size, const struct iovec *piece)
{
    uintptr_t offset = (uintptr_t)piece->iov_base - (uintptr_t)base;

    return base && offset <= size && piece->iov_len <= size - offset;
}

static inline ssize_t world_attach(const struct iovec *local, unsigned long local_count, const struct iovec *remote,
                                   unsigned long remote_count, bool out)
{
    size_t skip = 0;
    ssize_t moved = 0;

    for (unsigned long i = 0; i < remote_count; i++) {
        size_t left = remote[i].iov_len;

        if (!world_within(world.memory, world.memory_size, &remote[i]) &&
            !world_within(world.word, sizeof(*world.word), &remote[i])) {
            errno = EFAULT;
            return moved ? moved : -1;
        }
        while (left && local_count) {
            size_t room = local->iov_len - skip, part = left < room ? left : room;
            char *there = (char *)remote[i].iov_base + remote[i].iov_len - left, *here = (char *)local->iov_base + skip;

            memcpy(out ? there : here, out ? here : there, part);
            left -= part;
            skip += part;
            moved += (ssize_t)part;
            if (skip == local->iov_len) {
                local++;
                local_count--;
                skip = 0;
            }
        }
    }
    return moved;
}

ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count,
                                const struct iovec *remote, unsigned long remote_count, unsigned long flags)
{
    check(pid == getpid() && !flags);
    return world_attach(local, local_count, remote, remote_count, false);
}

ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long local_count,
                                 const struct iovec *remote, unsigned long remote_count, unsigned long flags)
{
    check(pid == getpid() && !flags);
    return world_attach(local, local_count, remote, remote_count, true);
}

/* ------------------------------------------------------------------------------------------------ opening, closing */

static inline struct ofp_provider *world_provider(struct ofp_info *info)
{
    struct ofp_provider *provider;
    char text[OFP_TEXT_MAX];

    setenv("OFIPY_SHM_RING_SIZE", "16", 1);
    setenv("OFIPY_SHM_BOUNCE_SIZE", "4096", 1);
    setenv("OFIPY_SHM_BOUNCE_COUNT", "4", 1);
    check(ofpi_provider_register(ofp_provider_entry, &provider, text, sizeof(text)) == 0);
    check(ofp_provider_getinfo(provider, info, 1, text, sizeof(text)) == 1);
    ofp_log_set_level(getenv("FUZZ_LOG") ? OFP_LOG_DEBUG : OFP_LOG_ERROR);
    return provider;
}

/* Several of these programs may run at once, each with three ports of its own. */
static inline void world_service(const char *role, char service[40])
{
    int place = role[0] == 't' ? 0 : role[0] == 'b' ? 1 : 2;

    snprintf(service, 40, "%d", 20000 + (int)getpid() % 13000 * 3 + place);
}

static inline struct shm_address world_address(const char *role)
{
    struct shm_address address;
    char service[40], text[OFP_TEXT_MAX];
    size_t size = sizeof(address);

    world_service(role, service);
    check(shm_address_resolve(NULL, service, &address, &size, text, sizeof(text)) == 0);
    return address;
}

static inline uint32_t world_insert(struct world_member *member, const char *role)
{
    struct shm_address address = world_address(role);
    uint32_t index;

    check(ofp_av_insert(member->av, &address, sizeof(address), &index) == 0);
    return index;
}

static inline void world_member_open(struct world_member *member, const char *role, bool attach)
{
    struct ofp_info info;
    struct ofp_provider *provider = world_provider(&info);
    struct ofp_domain_attr domain_attr = {.progress = OFP_PROGRESS_MANUAL};
    struct ofp_cq_attr cq_attr = {.size = 64};
    struct ofp_av_attr av_attr = {.auto_insert = 1};
    struct ofp_endpoint_attr attr = {.unexpected_limit = 100000, .remote_events = 1};
    char service[40], text[OFP_TEXT_MAX];

    world_service(role, service);
    check(ofp_domain_open(provider, &info, &domain_attr, &member->domain, text, sizeof(text)) == 0);
    shm_domain_of(member->domain)->attach = attach;
    check(ofp_cq_open(member->domain, &cq_attr, &member->cq) == 0);
    check(ofp_av_open(member->domain, &av_attr, &member->av) == 0);
    attr.tx_cq = attr.rx_cq = member->cq;
    attr.av = member->av;
    attr.service = service;
    check(ofp_endpoint_open(member->domain, &attr, &member->endpoint, text, sizeof(text)) == 0);
}

/* Peer 0 of each is the other one. */
static inline void world_open(bool attach)
{
    memset(&world, 0, sizeof(world));
    world.now = 1000000000;
    world_member_open(&world.tested, "tested", attach);
    world_member_open(&world.bystander, "bystander", false);
    check(world_insert(&world.tested, "bystander") == 0);
    check(world_insert(&world.bystander, "tested") == 0);
}

/* ------------------------------------------------------------------------------------------------------- operations */

/* One of the first `limit`, so that some are left for what comes last. */
static inline struct world_operation *world_operation(struct world_member *member, int limit)
{
    for (int i = 0; i < limit; i++)
        if (!member->operations[i].memory)
            return &member->operations[i];
    return NULL;
}

static inline void world_free(struct world_operation *operation)
{
    free(operation->memory);
    free(operation->result);
    free(operation->compare);
    operation->memory = operation->result = operation->compare = NULL;
}

/* Memory of its own, so that what is written beside it is seen, or after its end. */
static inline bool world_post(struct world_member *member, struct world_operation *operation, uint16_t op,
                              uint32_t peer, uint64_t tag, uint64_t length, struct ofp_operation *rest)
{
    struct ofp_operation record = rest ? *rest : (struct ofp_operation){0};

    operation->memory = malloc(length ? length : 1);
    memset(operation->memory, (int)operation->number, length ? length : 1);
    operation->op = op;
    operation->length = length;
    operation->tag = tag;
    record.op = op;
    record.peer = peer;
    record.tag = tag;
    record.length = length;
    record.offset = (uint64_t)(uintptr_t)operation->memory;
    record.context = (uint64_t)(operation - member->operations);
    if (op == OFP_FETCH_ATOMIC || op == OFP_COMPARE_ATOMIC) {
        operation->result = malloc(length ? length : 1);
        operation->compare = calloc(1, length ? length : 1);
        record.result_offset = (uint64_t)(uintptr_t)operation->result;
        record.compare_offset = (uint64_t)(uintptr_t)operation->compare;
    }
    if (ofp_post(member->endpoint, &record, 1) == 1)
        return true;
    world_free(operation);
    return false;
}

static inline void world_post_receive(struct world_member *member, uint64_t tag)
{
    struct world_operation *operation = world_operation(member, WORLD_SENDS);

    if (!operation)
        return;
    operation->number = ++world.receives;
    world_post(member, operation, OFP_TRECV, tag == WORLD_OTHER ? OFP_PEER_ANY : 0, tag, WORLD_LONGEST, NULL);
}

static inline void world_send_numbered(uint64_t length)
{
    struct world_operation *operation = world_operation(&world.bystander, WORLD_SENDS / 2);

    if (!operation || world.sent == 255)
        return;
    operation->number = world.sent + 1;
    if (world_post(&world.bystander, operation, OFP_TSEND, 0, WORLD_NUMBERED, length, NULL))
        world.sent++;
}

static inline void world_numbered(const struct world_operation *operation, const struct ofp_completion *row)
{
    uint32_t number = operation->memory[0];

    check(row->source == 0 && row->length && row->length <= WORLD_LONGEST);
    check(number && number <= world.sent && !world.arrived[number]);
    for (uint64_t i = 0; i < row->length; i++)
        check(operation->memory[i] == number);
    world.arrived[number] = operation->number;
    for (uint32_t other = 1; other <= world.sent; other++)
        check(!world.arrived[other] || (other < number) == (world.arrived[other] < operation->number) ||
              other == number);
}

static inline void world_ended(struct world_member *member, const struct ofp_completion *row)
{
    struct world_operation *operation = &member->operations[row->context];
    uint64_t tag = operation->tag;
    bool receive = operation->op == OFP_TRECV;

    if (row->flags & (OFP_COMPLETED_REMOTE_READ | OFP_COMPLETED_REMOTE_WRITE))
        return;
    check(row->error >= 0 && row->context < WORLD_SENDS && operation->memory);
    if (receive && !row->error && tag == WORLD_NUMBERED)
        world_numbered(operation, row);
    if (receive && !row->error && tag == WORLD_FINAL)
        member->finals = true;
    if (!receive && row->error && tag == WORLD_NUMBERED)
        world.failed[operation->number] = true;
    world_free(operation);
    /* A receive from a peer that is gone ends when it is posted: it is posted again in the next round only. */
    if (receive && row->error)
        member->ended[tag]++;
    else if (receive && member->endpoint)
        world_post_receive(member, tag);
}

static inline void world_post_ended(struct world_member *member)
{
    for (uint64_t tag = WORLD_NUMBERED; tag <= WORLD_FINAL; tag++) {
        uint32_t count = member->endpoint ? member->ended[tag] : 0;

        member->ended[tag] -= count;
        for (; count; count--)
            world_post_receive(member, tag);
    }
}

static inline void world_completions(struct world_member *member)
{
    struct ofp_completion rows[16];
    int64_t count;

    while ((count = ofp_cq_read(member->cq, rows, 16)) > 0)
        for (int64_t i = 0; i < count; i++)
            world_ended(member, &rows[i]);
    check(count == 0);
}

static inline void world_progress(struct world_member *member)
{
    world.now += 1000;
    ofp_domain_progress(member->domain);
    world_post_ended(member);
    world_completions(member);
}

/* ----------------------------------------------------------------------------------------------------------- the end */

static inline void world_receives(void)
{
    for (int i = 0; i < WORLD_RECEIVES; i++) {
        world_post_receive(&world.tested, WORLD_NUMBERED);
        world_post_receive(&world.tested, WORLD_OTHER);
    }
    world_post_receive(&world.tested, WORLD_FINAL);
    world_post_receive(&world.bystander, WORLD_FINAL);
}

static inline void world_final(struct world_member *member)
{
    struct world_operation *operation = world_operation(member, WORLD_SENDS);

    if (operation)
        world_post(member, operation, OFP_TSEND, 0, WORLD_FINAL, 8, NULL);
}

/* What was sent well and is not there: the sender knows that it lost its peer. */
static inline bool world_is_settled(void)
{
    struct ofp_endpoint_statistics statistics;
    bool settled = true;

    check(ofp_endpoint_statistics(world.bystander.endpoint, &statistics) == 0);
    for (uint32_t number = 1; number <= world.sent; number++)
        settled &= world.arrived[number] || world.failed[number] || statistics.peers_lost;
    return settled && world.tested.finals && world.bystander.finals;
}

/* Nobody writes any more where he should not. */
static inline void world_recover(void)
{
    world.tested.finals = world.bystander.finals = false;
    for (int i = 0; i < WORLD_QUIET && !world_is_settled(); i++) {
        world.now += 100 * WORLD_MILLISECOND;
        if (i % 20 == 0) {
            world_final(&world.tested);
            world_final(&world.bystander);
        }
        for (int k = 0; k < 4; k++) {
            world_progress(&world.tested);
            world_progress(&world.bystander);
        }
        /* As one who goes to sleep. */
        ofp_cq_arm(world.tested.cq);
        ofp_cq_arm(world.bystander.cq);
    }
    check(world_is_settled());
}

static inline void world_member_close(struct world_member *member)
{
    check(ofp_endpoint_close(member->endpoint, 1000) == 0);
    member->endpoint = NULL;
    world_completions(member);
    for (int i = 0; i < WORLD_SENDS; i++)
        check(!member->operations[i].memory);
    check(ofp_av_close(member->av) == 0);
    check(ofp_cq_close(member->cq) == 0);
    check(ofp_domain_close(member->domain) == 0);
}

/* No impossible change of state, nothing that was given up. */
static inline void world_check_log(void)
{
    char provider[32], text[OFP_TEXT_MAX];
    int level;

    while (ofp_log_next(&level, provider, sizeof(provider), text, sizeof(text))) {
        fprintf(stderr, "%s: %s\n", provider, text);
        check(level < OFP_LOG_ERROR);
    }
}

static inline void world_close(void)
{
    world_member_close(&world.tested);
    world_member_close(&world.bystander);
    world_check_log();
}

#endif
