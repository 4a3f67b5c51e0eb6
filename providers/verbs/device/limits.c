/* SPDX-License-Identifier: BSD-3-Clause */
/* The limits of a device. The inline size cannot be queried, so it is found by creating a queue pair. */
#include "device/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define PROBE_DEPTH 16
#define PROBE_BYTES (256u << 10)

static uint32_t choose_smaller_limit(uint64_t a, uint64_t b) { return (uint32_t)(a < b ? a : b); }

void verbs_memlock_describe(char *text, size_t text_size)
{
    struct rlimit limit = {0};

    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur == RLIM_INFINITY)
        snprintf(
            text, text_size,
            "RLIMIT_MEMLOCK is unlimited, so the machine has no more memory for it, or its device takes no region as long");
    else
        snprintf(
            text, text_size,
            "RLIMIT_MEMLOCK is %" PRIu64 " KiB: raise it (ulimit -l unlimited; `* - memlock unlimited` in "
            "/etc/security/limits.conf; LimitMEMLOCK=infinity of a systemd unit; --ulimit memlock=-1 of a container)",
            (uint64_t)limit.rlim_cur >> 10);
}

static int probe_memory(struct ibv_pd *pd)
{
    void *memory = mmap(NULL, PROBE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ibv_mr *mr;
    int error = 0;

    if (memory == MAP_FAILED)
        return errno;
    mr = verbs_calls.reg_mr(pd, memory, PROBE_BYTES, IBV_ACCESS_LOCAL_WRITE);
    if (!mr)
        error = errno;
    else
        verbs_calls.dereg_mr(mr);
    munmap(memory, PROBE_BYTES);
    return error;
}

/* Find the largest power of two that the device grants. Some devices grant more than was requested. */
static int probe_inline(struct verbs_port *port, struct ibv_pd *pd, struct ibv_cq *cq)
{
    int error = EINVAL;

    for (uint32_t size = VERBS_INLINE_MAX; error; size = size > 32 ? size / 2 : 0) {
        struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC};
        struct ibv_qp *qp;

        attr.cap.max_send_wr = attr.cap.max_recv_wr = PROBE_DEPTH;
        attr.cap.max_send_sge = port->limits.segments;
        attr.cap.max_recv_sge = port->limits.segments + 1;
        attr.cap.max_inline_data = size;
        qp = verbs_calls.create_qp(pd, &attr);
        if (qp) {
            port->limits.inline_size = choose_smaller_limit(attr.cap.max_inline_data, VERBS_INLINE_MAX);
            verbs_calls.destroy_qp(qp);
            return 0;
        }
        error = errno;
        if (!size)
            return error;
    }
    return error;
}

static int probe_limits(struct verbs_port *port, struct ibv_pd *pd)
{
    struct ibv_cq *cq = verbs_calls.create_cq(port->context, 2 * PROBE_DEPTH, NULL, NULL, 0);
    int error;

    if (!cq)
        return errno;
    error = probe_inline(port, pd, cq);
    verbs_calls.destroy_cq(cq);
    return error ? error : probe_memory(pd);
}

static void describe_limits_error(const struct verbs_port *port, int error, char *text, size_t text_size)
{
    const char *name = verbs_calls.get_device_name(port->context->device);
    char memlock[OFP_TEXT_MAX];

    verbs_memlock_describe(memlock, sizeof(memlock));
    if (error == ENOMEM || error == EAGAIN)
        snprintf(text, text_size, "%s may not lock memory: %s", name, memlock);
    else
        snprintf(text, text_size, "%s does not let a queue pair be made: %s", name, strerror(error));
}

int verbs_limits_probe(struct verbs_port *port, char *text, size_t text_size)
{
    const struct ibv_device_attr *device = &port->device;
    struct verbs_limits *limits = &port->limits;
    struct ibv_pd *pd = verbs_calls.alloc_pd(port->context);
    int error = pd ? 0 : errno;

    limits->message_size = port->attr.max_msg_sz;
    limits->segments =
        device->max_sge > VERBS_SEGMENTS ? VERBS_SEGMENTS : choose_smaller_limit((uint64_t)device->max_sge, 2) - 1;
    limits->depth = choose_smaller_limit((uint64_t)device->max_qp_wr, (uint64_t)device->max_cqe / 2);
    limits->responder_resources = (uint8_t)choose_smaller_limit((uint64_t)device->max_qp_rd_atom, UINT8_MAX);
    limits->initiator_depth = (uint8_t)choose_smaller_limit((uint64_t)device->max_qp_init_rd_atom, UINT8_MAX);
    if (!limits->segments)
        limits->segments = 1;
    if (!error)
        error = probe_limits(port, pd);
    if (pd)
        verbs_calls.dealloc_pd(pd);
    if (error)
        describe_limits_error(port, error, text, text_size);
    return error;
}
