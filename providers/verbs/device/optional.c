/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/optional.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PAGE 4096

/* Registration must fail without a descriptor. A kernel that has the call reports EBADF. */
const char *verbs_dmabuf_probe(const struct verbs_port *port)
{
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    int error;

    if (!verbs_reg_dmabuf_mr)
        return "not known to this libibverbs";
    pd = verbs_calls.alloc_pd(port->context);
    if (!pd)
        return "not known";
    errno = 0;
    mr = verbs_reg_dmabuf_mr(pd, 0, PAGE, 0, -1, IBV_ACCESS_LOCAL_WRITE);
    error = errno;
    if (mr)
        verbs_calls.dereg_mr(mr);
    verbs_calls.dealloc_pd(pd);
    return error == EBADF || mr ? "yes" : "no";
}

static const struct {
    uint32_t bit;
    const char *name;
} on_demand[] = {
    {IBV_ODP_SUPPORT_SEND, "send"}, {IBV_ODP_SUPPORT_RECV, "receive"},  {IBV_ODP_SUPPORT_WRITE, "write"},
    {IBV_ODP_SUPPORT_READ, "read"}, {IBV_ODP_SUPPORT_ATOMIC, "atomic"},
};

void verbs_on_demand_describe(const struct verbs_port *port, char *text, size_t text_size)
{
    struct verbs_context *whole = VERBS_EXTENSION(port->context, query_device_ex);
    struct ibv_device_attr_ex attr = {0};
    size_t used = 0;

    if (whole && whole->query_device_ex && whole->query_device_ex(port->context, NULL, &attr, sizeof(attr)) == 0 &&
        attr.odp_caps.general_caps & IBV_ODP_SUPPORT)
        for (size_t i = 0; i < sizeof(on_demand) / sizeof(on_demand[0]) && used < text_size; i++)
            if (attr.odp_caps.per_transport_caps.rc_odp_caps & on_demand[i].bit)
                used += (size_t)snprintf(text + used, text_size - used, "%s%s", used ? ", " : "", on_demand[i].name);
    if (!used)
        snprintf(text, text_size, "no");
}

const char *verbs_atomicity_describe(const struct verbs_port *port)
{
    switch (port->device.atomic_cap) {
    case IBV_ATOMIC_NONE:
        return "none";
    case IBV_ATOMIC_HCA:
        return "64-bit add, compare and swap; one step against those of this device";
    default:
        return "64-bit add, compare and swap; one step against the processor's too";
    }
}
