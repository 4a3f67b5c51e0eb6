/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fake provider: endpoints of one process that put packets into each other's mailboxes. No network, but every rule
 * that a provider has to keep. This file: the entry point, discovery, addresses, the domain.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "fake.h"

#define ADDRESS_MAGIC 0x656b6166u /* "fake" */

const struct ofp_core *fake_core;

/* -------------------------------------------------------------------------------------------------------- discovery */

static const struct ofp_param params[] = {
    {"FAKE_EAGER_SIZE", OFP_PARAM_SIZE, "4k",
     "Messages of the fake provider beyond this length (bytes) are announced, not sent", 0, OFP_BYTES_MAX},
    {NULL, OFP_PARAM_STRING, NULL, NULL, 0, 0},
};

static void fill_info(struct ofp_info *info, uint32_t ep_type, bool offloads_matching)
{
    bool connects = ep_type == OFP_EP_MSG;

    *info = (struct ofp_info){
        .provider = "fake",
        .fabric = "fake",
        .protocol = "fake",
        .protocol_version = 1,
        .ep_types = ep_type,
        .caps = OFP_CAP_MSG | OFP_CAP_TAGGED | OFP_CAP_RMA | OFP_CAP_ATOMIC | OFP_CAP_RMA_EVENT |
                (connects ? 0 : OFP_CAP_DIRECTED_RECV | OFP_CAP_SOURCE) |
                /* The other kind leaves fences and multi-receive buffers to the core. */
                (offloads_matching ? OFP_CAP_FENCE | OFP_CAP_MULTI_RECV : 0),
        /* Everything passes through one inbox. */
        .msg_order = OFP_ORDER_RAR | OFP_ORDER_RAW | OFP_ORDER_RAS | OFP_ORDER_WAR | OFP_ORDER_WAW | OFP_ORDER_WAS |
                     OFP_ORDER_SAR | OFP_ORDER_SAW | OFP_ORDER_SAS,
        .rma_order = OFP_ORDER_RAR | OFP_ORDER_RAW | OFP_ORDER_WAR | OFP_ORDER_WAW,
        .atomic_order = OFP_ORDER_RAR | OFP_ORDER_RAW | OFP_ORDER_WAR | OFP_ORDER_WAW,
        .max_msg_size = 1u << 30,
        .max_rma_size = 1u << 30,
        .max_atomic_size = 1u << 20,
        .inject_size = 4096,
        .tx_size = fake_core->param_size("TX_QUEUE"),
        .rx_size = UINT32_MAX,
        .segment_limit = OFP_SEGMENT_LIMIT,
        .remote_segment_limit = OFP_SEGMENT_LIMIT,
        .max_private_data = connects ? FAKE_PRIVATE_DATA : 0,
        .mr_key_size = 8,
        .cq_data_size = 8,
        .address_format = OFP_ADDRESS_OPAQUE,
        .wait_fd = 1,
        .offloads_matching = offloads_matching,
        .rank = (connects ? 2 : 0) + offloads_matching,
    };
    snprintf(info->domain, sizeof(info->domain), "%s", offloads_matching ? "fake-offload" : "fake");
}

static int fake_getinfo(struct ofp_info *infos, int max, char *text, size_t text_size)
{
    int count = max < 4 ? max : 4;

    (void)text;
    (void)text_size;
    for (int i = 0; i < count; i++)
        fill_info(&infos[i], i < 2 ? OFP_EP_RDM : OFP_EP_MSG, i % 2 == 1);
    return count;
}

static const struct ofp_endpoint_ops *fake_endpoint_ops(const struct ofp_info *info)
{
    return info->offloads_matching ? &fake_offload_ops : &fake_matched_ops;
}

/* -------------------------------------------------------------------------------------------------------- addresses */

int fake_address_make(const char *service, struct fake_address *address, char *text, size_t text_size)
{
    size_t length = strlen(service);

    memset(address, 0, sizeof(*address));
    if (length == 0 || length >= FAKE_SERVICE_SIZE) {
        snprintf(text, text_size, "a service of the fake provider is 1 to %d characters long", FAKE_SERVICE_SIZE - 1);
        return -EINVAL;
    }
    address->magic = ADDRESS_MAGIC;
    address->process = (uint32_t)getpid();
    memcpy(address->service, service, length);
    return 0;
}

static bool is_this_host(const char *node)
{
    char host[256] = "";

    if (!node || !node[0] || strcasecmp(node, "localhost") == 0 || strcmp(node, "127.0.0.1") == 0 ||
        strcmp(node, "::1") == 0)
        return true;
    return gethostname(host, sizeof(host) - 1) == 0 && strcasecmp(node, host) == 0;
}

static int fake_resolve(const struct ofp_info *info, const char *node, const char *service, void *address,
                        size_t *length, char *text, size_t text_size)
{
    struct fake_address made;
    size_t room = *length;
    int result;

    (void)info;
    if (!is_this_host(node)) {
        snprintf(text, text_size, "the fake provider reaches this process only, not %s", node);
        return -EHOSTUNREACH;
    }
    if (!service) {
        snprintf(text, text_size, "the fake provider needs the service of the peer");
        return -EINVAL;
    }
    result = fake_address_make(service, &made, text, text_size);
    if (result)
        return result;
    *length = sizeof(made);
    if (room < sizeof(made))
        return -OFP_ETOOSMALL;
    memcpy(address, &made, sizeof(made));
    return 0;
}

static int fake_at_node(struct ofp_info *info, const char *node, char *text, size_t text_size)
{
    (void)info;
    if (is_this_host(node))
        return 0;
    snprintf(text, text_size, "the fake provider knows this host as localhost and by its name, not as %s", node);
    return -EHOSTUNREACH;
}

static int fake_address_check(const struct ofp_info *info, const void *blob, size_t length)
{
    struct fake_address address;

    (void)info;
    if (length != sizeof(address))
        return -EINVAL;
    memcpy(&address, blob, sizeof(address));
    if (address.magic != ADDRESS_MAGIC || !address.service[0] || address.service[FAKE_SERVICE_SIZE - 1])
        return -EINVAL;
    return 0;
}

static int fake_address_format(const struct ofp_info *info, const void *blob, size_t length, char *text,
                               size_t text_size)
{
    struct fake_address address;
    int result = fake_address_check(info, blob, length);

    if (result)
        return result;
    memcpy(&address, blob, sizeof(address));
    result = snprintf(text, text_size, "localhost:%s", address.service);
    return (size_t)result < text_size ? 0 : -OFP_ETOOSMALL;
}

/* ----------------------------------------------------------------------------------------------------------- domain */

static int fake_domain_open(struct ofp_domain *domain, char *text, size_t text_size)
{
    (void)text;
    (void)text_size;
    ((struct fake_domain *)domain->private)->eager_size = fake_core->param_size("FAKE_EAGER_SIZE");
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------ entry */

static const struct ofp_domain_ops domain_ops = {
    .size = sizeof(struct ofp_domain_ops),
    .domain_size = sizeof(struct fake_domain),
    .open = fake_domain_open,
};

static const struct ofp_provider provider = {
    .abi = OFP_PROVIDER_ABI,
    .size = sizeof(struct ofp_provider),
    .info_size = sizeof(struct ofp_info),
    .version = 0 << 16 | 1,
    .name = "fake",
    .description = "endpoints of one process, for tests and as an example",
    .params = params,
    .getinfo = fake_getinfo,
    .resolve = fake_resolve,
    .address_check = fake_address_check,
    .address_format = fake_address_format,
    .at_node = fake_at_node,
    .domain_ops = &domain_ops,
    .endpoint_ops = fake_endpoint_ops,
    .passive_ops = &fake_passive_ops,
};

static void watch_forks(void) { pthread_atfork(NULL, NULL, mailboxes_forget); }

__attribute__((visibility("default"))) const struct ofp_provider *ofp_provider_entry(const struct ofp_core *core);

const struct ofp_provider *ofp_provider_entry(const struct ofp_core *core)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (core->abi != OFP_PROVIDER_ABI)
        return NULL;
    fake_core = core;
    pthread_once(&once, watch_forks);
    return &provider;
}
