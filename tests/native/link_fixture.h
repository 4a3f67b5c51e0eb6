/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One endpoint of link over providers that do what the test says: "near" reaches this host only, "far" any, and so does "wide", which
 * few tests have. Nothing is sent; the test plays the providers, and with them the peer.
 */
#ifndef LINK_FIXTURE_H
#define LINK_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "link/link_objects.h"
#include "link/link_tables.h"
#include "object/domain.h"
#include "object/peer.h"
#include "ofipy/ofp.h"
#include "ofipy/services.h"
#include "ofipy/ways.h"
#include "provider/provider_registry.h"

struct scripted {
    const char *name;
    int open_results[4], connect_result, post_result, publish_result, withdraw_result;
    bool unreachable; /* what `reaches` answers */
    int places;       /* infos that it has; 0: one */
    uint32_t opens, closes, connects, downs, posts, withdrawals;
    uint64_t device_key; /* that it makes for each region, to be counted from DEVICE_BASE; 0: it makes none */
    int register_result;
    uint32_t peer_proof; /* enum ofp_peer_proof */
    char service[16];
    struct ofp_peer *called;
    struct ofp_pending *pending;
    struct ofp_receive *receive;
};

static struct scripted near = {.name = "near"}, far = {.name = "far"}, wide = {.name = "wide"};

static struct scripted *scripted(const struct ofp_info *info)
{
    if (strcmp(info->provider, "near") == 0)
        return &near;
    return strcmp(info->provider, "far") == 0 ? &far : &wide;
}

static int s_getinfo_of(struct scripted *self, struct ofp_info *infos)
{
    bool network = self != &near;
    int count = 0;

    do {
        infos[count] = (struct ofp_info){
            .ep_types = OFP_EP_RDM,
            .caps = OFP_CAP_MSG | OFP_CAP_TAGGED | OFP_CAP_RMA | (network ? OFP_CAP_REMOTE_COMM : OFP_CAP_LOCAL_COMM),
            .msg_order = OFP_ORDER_SAS | (network ? OFP_ORDER_RAR : OFP_ORDER_WAW),
            .max_msg_size = network ? 1000 : 2000,
            .max_rma_size = 1000,
            .inject_size = network ? 64 : 32,
            .tx_size = 16,
            .segment_limit = 4,
            .remote_segment_limit = 1,
            .address_format = network ? OFP_ADDRESS_OPAQUE : OFP_ADDRESS_SHM,
            .peer_proof = self->peer_proof,
        };
        strcpy(infos[count].provider, self->name);
        snprintf(infos[count].domain, sizeof(infos[count].domain), count ? "%s%d" : "%s", self->name, count);
    } while (++count < self->places);
    return count;
}

static int near_getinfo(struct ofp_info *infos, int max, char *text, size_t text_size)
{
    (void)max, (void)text, (void)text_size;
    return s_getinfo_of(&near, infos);
}

static int far_getinfo(struct ofp_info *infos, int max, char *text, size_t text_size)
{
    (void)max, (void)text, (void)text_size;
    return s_getinfo_of(&far, infos);
}

static int wide_getinfo(struct ofp_info *infos, int max, char *text, size_t text_size)
{
    (void)max, (void)text, (void)text_size;
    return s_getinfo_of(&wide, infos);
}

/* A node is named by the domains that are there, with spaces around them. */
static int s_at_node(struct ofp_info *info, const char *node, char *text, size_t text_size)
{
    char word[sizeof(info->domain) + 2];

    snprintf(word, sizeof(word), " %s ", info->domain);
    snprintf(text, text_size, "%s is not at%s", info->domain, node);
    return strstr(node, word) ? 0 : -EHOSTUNREACH;
}

static int s_resolve(const struct ofp_info *info, const char *node, const char *service, void *address, size_t *length,
                     char *text, size_t text_size)
{
    (void)info, (void)node, (void)text, (void)text_size;
    *length = strlen(service);
    memcpy(address, service, *length);
    return 0;
}

static int s_address_check(const struct ofp_info *info, const void *address, size_t length)
{
    (void)info, (void)address;
    return length < 32 ? 0 : -EINVAL;
}

static int s_address_format(const struct ofp_info *info, const void *address, size_t length, char *text,
                            size_t text_size)
{
    snprintf(text, text_size, "%s:%.*s", info->provider, (int)length, (const char *)address);
    return 0;
}

static int s_reaches(const struct ofp_info *info, const void *address, size_t length, char *text, size_t text_size)
{
    (void)address, (void)length;
    snprintf(text, text_size, "not from here");
    return scripted(info)->unreachable ? -EHOSTUNREACH : 0;
}

static int s_open(struct ofp_endpoint *endpoint, const char *service, char *text, size_t text_size)
{
    struct scripted *self = scripted(endpoint->info);
    static int port = 7000;

    (void)text, (void)text_size;
    if (service)
        snprintf(self->service, sizeof(self->service), "%s", service);
    else
        snprintf(self->service, sizeof(self->service), "%d", port++);
    return self->open_results[self->opens++ % 4];
}

static void s_close(struct ofp_endpoint *endpoint, uint64_t deadline)
{
    (void)deadline;
    scripted(endpoint->info)->closes++;
}

static int s_name(struct ofp_endpoint *endpoint, void *address, size_t *length)
{
    *length = strlen(scripted(endpoint->info)->service);
    memcpy(address, scripted(endpoint->info)->service, *length);
    return 0;
}

static int s_connect(struct ofp_peer *peer, char *text, size_t text_size)
{
    struct scripted *self = scripted(peer->endpoint->info);

    self->connects++;
    self->called = peer;
    if (self->connect_result)
        snprintf(text, text_size, "no way over %s", self->name);
    return self->connect_result;
}

static void s_peer_down(struct ofp_peer *peer) { scripted(peer->endpoint->info)->downs++; }

static int s_post(struct ofp_endpoint *endpoint, struct ofp_peer *peer, const struct ofp_transfer *transfer)
{
    struct scripted *self = scripted(endpoint->info);

    self->posts++;
    if (self->post_result == OFP_POST_PENDING)
        self->pending = ofp_transfer_retain(endpoint, peer, transfer);
    return self->post_result;
}

static void s_receive_start(struct ofp_endpoint *endpoint, struct ofp_receive *receive)
{
    scripted(endpoint->info)->receive = receive;
}

static int s_progress(struct ofp_endpoint *endpoint)
{
    (void)endpoint;
    return 0;
}

static bool s_arm(struct ofp_endpoint *endpoint)
{
    (void)endpoint;
    return true;
}

static void s_disarm(struct ofp_endpoint *endpoint) { (void)endpoint; }

#define DEVICE_BASE 0x10000

static int s_region_open(struct ofp_domain *domain, struct ofp_region *region)
{
    struct scripted *self = scripted(domain->info);
    struct ofp_region_device *part = ofp_region_device(domain, region);

    if (self->device_key && !region->key_fixed) {
        part->key = self->device_key;
        part->remote_base = DEVICE_BASE;
    }
    return self->register_result;
}

static int s_publish(struct ofp_domain *domain, struct ofp_region *region)
{
    (void)region;
    return scripted(domain->info)->publish_result;
}

static int s_withdraw(struct ofp_domain *domain, struct ofp_region *region)
{
    struct scripted *self = scripted(domain->info);

    (void)region;
    /* The second time it lets go. */
    return ++self->withdrawals == 1 ? self->withdraw_result : 0;
}

static const struct ofp_endpoint_ops s_endpoint_ops = {
    .size = sizeof(struct ofp_endpoint_ops),
    .endpoint_size = 8,
    .peer_size = 8,
    .open = s_open,
    .close = s_close,
    .name = s_name,
    .connect = s_connect,
    .peer_down = s_peer_down,
    .post = s_post,
    .receive_start = s_receive_start,
    .progress = s_progress,
    .arm = s_arm,
    .disarm = s_disarm,
};

static const struct ofp_endpoint_ops *s_ops(const struct ofp_info *info)
{
    (void)info;
    return &s_endpoint_ops;
}

static const struct ofp_domain_ops s_domain_ops = {
    .size = sizeof(struct ofp_domain_ops),
    .region_open = s_region_open,
    .region_publish = s_publish,
    .region_withdraw = s_withdraw,
};

/* An entry is called once, so the tables stay while a test resets what its providers do. */
#define SCRIPTED_PROVIDER(provider)                                                                                    \
    static const struct ofp_provider *provider##_entry(const struct ofp_core *core)                                    \
    {                                                                                                                  \
        static const struct ofp_provider table = {                                                                     \
            .abi = OFP_PROVIDER_ABI,                                                                                   \
            .size = sizeof(struct ofp_provider),                                                                       \
            .info_size = sizeof(struct ofp_info),                                                                      \
            .name = #provider,                                                                                         \
            .description = "does what a test says",                                                                    \
            .getinfo = provider##_getinfo,                                                                             \
            .resolve = s_resolve,                                                                                      \
            .at_node = s_at_node,                                                                                      \
            .address_check = s_address_check,                                                                          \
            .address_format = s_address_format,                                                                        \
            .reaches = s_reaches,                                                                                      \
            .domain_ops = &s_domain_ops,                                                                               \
            .endpoint_ops = s_ops,                                                                                     \
        };                                                                                                             \
                                                                                                                       \
        (void)core;                                                                                                    \
        return &table;                                                                                                 \
    }

SCRIPTED_PROVIDER(near)
SCRIPTED_PROVIDER(far)
SCRIPTED_PROVIDER(wide)

/* --------------------------------------------------------------------------------------------------------- one endpoint */

struct fixture {
    struct ofp_provider *provider;
    struct ofp_info info;
    struct ofp_domain *domain;
    struct ofp_cq *cq;
    struct ofp_eq *eq;
    struct ofp_av *av;
    struct ofp_endpoint *endpoint;
};

static struct fixture fixture;

static inline int infos_of(const char *name, struct ofp_info *infos, char *text)
{
    struct ofp_provider *ignored;

    assert_int_equal(ofpi_provider_register(near_entry, &ignored, text, OFP_TEXT_MAX), 0);
    assert_int_equal(ofpi_provider_register(far_entry, &ignored, text, OFP_TEXT_MAX), 0);
    assert_int_equal(ofpi_provider_register(wide_entry, &ignored, text, OFP_TEXT_MAX), 0);
    assert_int_equal(ofp_provider_link(&fixture.provider, text, OFP_TEXT_MAX), 0);
    return ofp_provider_getinfo_as(fixture.provider, name, infos, 4, text, OFP_TEXT_MAX);
}

static inline int try_endpoint(const char *service, char *text)
{
    struct ofp_endpoint_attr attr = {
        .tx_cq = fixture.cq, .rx_cq = fixture.cq, .av = fixture.av, .eq = fixture.eq, .service = service};

    return ofp_endpoint_open(fixture.domain, &attr, &fixture.endpoint, text, OFP_TEXT_MAX);
}

static inline int open_domain_of(const char *name)
{
    struct ofp_domain_attr domain_attr = {0};
    struct ofp_cq_attr cq_attr = {0};
    struct ofp_eq_attr eq_attr = {0};
    struct ofp_av_attr av_attr = {.auto_insert = 1};
    struct ofp_info infos[4];
    char text[OFP_TEXT_MAX];

    near = (struct scripted){.name = "near"};
    far = (struct scripted){.name = "far"};
    wide = (struct scripted){.name = "wide"};
    fixture = (struct fixture){0};
    assert_int_equal(infos_of(name, infos, text), 1);
    fixture.info = infos[0];
    assert_int_equal(
        ofp_domain_open(fixture.provider, &fixture.info, &domain_attr, &fixture.domain, text, sizeof(text)), 0);
    assert_int_equal(ofp_cq_open(fixture.domain, &cq_attr, &fixture.cq), 0);
    assert_int_equal(ofp_eq_open(fixture.domain, &eq_attr, &fixture.eq), 0);
    assert_int_equal(ofp_av_open(fixture.domain, &av_attr, &fixture.av), 0);
    return 0;
}

static inline int open_domain(void **state)
{
    (void)state;
    return open_domain_of("link:near+far");
}

static inline int open_endpoint(void **state)
{
    char text[OFP_TEXT_MAX];

    open_domain(state);
    assert_int_equal(try_endpoint(NULL, text), 0);
    return 0;
}

static inline int close_all(void **state)
{
    (void)state;
    if (fixture.endpoint)
        assert_int_equal(ofp_endpoint_close(fixture.endpoint, 0), 0);
    assert_int_equal(ofp_av_close(fixture.av), 0);
    assert_int_equal(ofp_eq_close(fixture.eq), 0);
    assert_int_equal(ofp_cq_close(fixture.cq), 0);
    assert_int_equal(ofp_domain_close(fixture.domain), 0);
    return 0;
}

static inline void lock(void) { ofpi_lock_acquire(&((struct ofpi_domain *)fixture.domain)->lock); }
static inline void unlock(void) { ofpi_lock_release(&((struct ofpi_domain *)fixture.domain)->lock); }

/* ---------------------------------------------------------------------------------------------------------------- peers */

static const uint8_t nobody[16], somebody[16] = {7, 7, 7}, other[16] = {8};

/* Insert a peer that is at these raw addresses, NULL: not there. */
static inline uint32_t insert_at(const uint8_t *host, const uint8_t *identity, const char *at_near, const char *at_far,
                                 const char *at_wide)
{
    uint8_t bytes[OFP_ADDRESS_MAX];
    struct link_writer writer;
    uint32_t index = UINT32_MAX;

    link_writer_init(&writer, bytes, sizeof(bytes), host, identity, false);
    if (at_near)
        link_address_add(&writer, "near", at_near, strlen(at_near));
    if (at_far)
        link_address_add(&writer, "far", at_far, strlen(at_far));
    if (at_wide)
        link_address_add(&writer, "wide", at_wide, strlen(at_wide));
    assert_int_equal(ofp_av_insert(fixture.av, bytes, writer.length, &index), 0);
    return index;
}

static inline uint32_t insert(const uint8_t *host, const uint8_t *identity, const char *at_near, const char *at_far)
{
    return insert_at(host, identity, at_near, at_far, NULL);
}

static inline uint32_t neighbour(void) { return insert(nobody, somebody, "n", "f"); }

static inline struct ofp_peer *inner_of(uint32_t index, uint32_t device)
{
    const struct ofpi_peer *peer = ofpi_peer_find_at((struct ofpi_endpoint *)fixture.endpoint, index);

    assert_non_null(peer);
    return &link_lane_find(&peer->base, device)->base;
}

static inline void send_to(uint32_t peer, uint64_t context)
{
    static char out[8];
    struct ofp_operation op = {.op = OFP_TSEND,
                               .peer = peer,
                               .tag = 1,
                               .offset = (uint64_t)(uintptr_t)out,
                               .length = sizeof(out),
                               .context = context};

    assert_int_equal(ofp_post(fixture.endpoint, &op, 1), 1);
}

static inline void goes_over(uint32_t peer, const char *name)
{
    char way[32];

    assert_int_equal(ofp_peer_way(fixture.endpoint, peer, way, sizeof(way)), 0);
    assert_string_equal(way, name);
}

static inline struct ofp_completion completion(void)
{
    struct ofp_completion row = {0};

    assert_int_equal(ofp_cq_read(fixture.cq, &row, 1), 1);
    return row;
}

static inline void nothing_completed(void)
{
    struct ofp_completion row;

    assert_true(ofp_cq_read(fixture.cq, &row, 1) <= 0);
}

#endif
