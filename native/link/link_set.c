/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/link_set.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/param.h"
#include "base/process_lock.h"
#include "link/link_objects.h"
#include "ofipy/atomics.h"
#include "provider/provider_registry.h"
#include "provider/provider_tables.h"
#include "base/check.h"

#define INFOS_MAX 64
#define DEVICES "verbs" /* a provider whose devices only some machines have */
#define NAME_SIZE sizeof(((struct ofp_info *)0)->provider)

/* The providers of the set `link`, as far as they are available. A peer is reached by the first one that it has too. */
static const char *const preferred[] = {"shm", DEVICES, "tcp"};

static struct link_set *sets; /* a list; guarded by OFPI_LOCK_LINK_SETS; sets are never freed */

/* ------------------------------------------------------------------------------------------------------------ names */

/* A provider that is named, and its infos that can be part of a set. */
struct candidate {
    char name[NAME_SIZE];
    const struct ofp_provider *provider;
    int count;
    struct ofp_info infos[INFOS_MAX];
};

struct candidates {
    uint32_t count;
    struct candidate each[LINK_PARTS_MAX];
};

static int refuse_part(char *text, size_t text_size, const char *name, const char *why)
{
    snprintf(text, text_size, "%s cannot be part of " LINK_NAME ": %s", name, why);
    return -EINVAL;
}

static int add_name(struct candidates *all, const char *name, size_t length, char *text, size_t text_size)
{
    struct candidate *candidate;
    char given[OFP_TEXT_MAX / 4];

    snprintf(given, sizeof(given), "%.*s", (int)length, name);
    if (!length || length >= NAME_SIZE)
        return refuse_part(text, text_size, length ? given : "\"\"", "there is no such provider");
    for (uint32_t i = 0; i < all->count; i++)
        if (strcmp(all->each[i].name, given) == 0)
            return refuse_part(text, text_size, given, "it is named twice");
    if (all->count == LINK_PARTS_MAX)
        return refuse_part(text, text_size, given, "three are the most");
    candidate = &all->each[all->count++];
    memcpy(candidate->name, given, length + 1);
    return 0;
}

/* Parse the parts of "link" or "link:shm+tcp". */
static int parse_name(struct candidates *all, const char *name, char *text, size_t text_size)
{
    const char *rest = strchr(name, ':');
    int result = 0;

    if (!rest) {
        for (size_t i = 0; i < sizeof(preferred) / sizeof(preferred[0]); i++)
            add_name(all, preferred[i], strlen(preferred[i]), text, text_size);
        return 0;
    }
    for (rest++; !result; rest++) {
        size_t length = strcspn(rest, "+");

        result = add_name(all, rest, length, text, text_size);
        rest += length;
        if (!*rest)
            break;
    }
    return result;
}

static const char unproven[] = LINK_UNPROVEN;

/* Why endpoints of this info cannot be part of link; NULL if they can. */
static const char *find_obstacle(const struct ofp_provider *provider, const struct ofp_info *info)
{
    const struct ofp_endpoint_ops *ops = ofpi_endpoint_ops_get(provider, info);

    if (strcmp(provider->name, LINK_NAME) == 0)
        return "it is made of others itself";
    if (!(info->ep_types & OFP_EP_RDM))
        return "it has no endpoints of type rdm";
    if (info->offloads_matching)
        return "its transport matches messages itself, so receives cannot be shared with another";
    if (!ops || ops->eager_peers)
        return "its peers are made before they are used";
    if (!ofpi_info_can_encrypt(info))
        return "it cannot encrypt, and OFIPY_ENCRYPTION=required";
    return link_info_is_unproven(info) ? unproven : NULL;
}

bool link_info_is_unproven(const struct ofp_info *info)
{
    const char *key_file = ofpi_param_get_string("AUTH_KEY_FILE");

    return key_file && key_file[0] && info->peer_proof == OFP_PROOF_NONE;
}

/* Warn once per process: messages to other hosts use a slower network, or cannot be sent. */
static void warn_of_unproven(const struct ofp_info *info)
{
    static _Atomic bool warned;

    if (!ofp_exchange(&warned, true))
        ofpi_log_write(OFP_LOG_WARNING, LINK_NAME, "%s, %s, is left out: %s", info->provider, info->domain, unproven);
}

static bool is_within_host(const struct ofp_info *info) { return info->address_format == OFP_ADDRESS_SHM; }

/*
 * Query the infos of one candidate. Of several infos within the host only the first counts; the network distinguishes
 * the others. 0 also if the provider is not available: then `count` is 0 and the text has the reason.
 */
static int query_candidate(struct candidate *candidate, char *text, size_t text_size)
{
    size_t own_name = strcspn(candidate->name, ":");
    struct ofp_info *infos = candidate->infos;
    const char *why = "there is no such provider, or it was not loaded";
    int offered, stored = 0;

    candidate->provider = ofpi_provider_find(candidate->name, own_name);
    if (!candidate->provider)
        return refuse_part(text, text_size, candidate->name, why);
    if (strcmp(candidate->provider->name, LINK_NAME) == 0)
        return refuse_part(text, text_size, candidate->name, "it is made of others itself");
    offered = ofpi_provider_infos_get(candidate->provider, infos, INFOS_MAX, text, text_size);
    why = NULL;
    for (int i = 0; i < offered; i++) {
        const char *against;

        if (strcmp(infos[i].provider, candidate->name) != 0)
            continue;
        against = find_obstacle(candidate->provider, &infos[i]);
        if (against == unproven)
            warn_of_unproven(&infos[i]);
        if (against)
            why = against;
        else if (!stored || !is_within_host(&infos[i]))
            infos[stored++] = infos[i];
    }
    candidate->count = stored;
    return stored || !why ? 0 : refuse_part(text, text_size, candidate->name, why);
}

/*
 * Query all candidates and remove those that are not available, whose reasons the text collects. The missing device
 * of a provider that the user did not name needs no reason.
 */
static int query_candidates(struct candidates *all, bool chosen, char *text, size_t text_size)
{
    char why[OFP_TEXT_MAX] = "";
    uint32_t stored = 0;

    text[0] = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        size_t used = strlen(text);
        bool matters = chosen || strcmp(all->each[i].name, DEVICES) != 0;
        int result = query_candidate(&all->each[i], why, matters ? sizeof(why) : 1);

        if (result && chosen) {
            snprintf(text, text_size, "%s", why);
            return result;
        }
        if (!all->each[i].count && matters)
            snprintf(text + used, text_size - used, "%s%s: %.200s", used ? "; " : "", all->each[i].name, why);
        else if (all->each[i].count && stored++ < i)
            all->each[stored - 1] = all->each[i];
        why[0] = 0;
    }
    all->count = stored;
    return 0;
}

/*
 * Only the last network is combined with each of its infos. Of the others the first info is the best one; a node
 * selects another.
 */
static void remove_lesser_infos(struct candidates *all)
{
    bool is_last = true;

    for (uint32_t i = all->count; i-- > 0;) {
        if (is_within_host(&all->each[i].infos[0]))
            continue;
        if (!is_last)
            all->each[i].count = 1;
        is_last = false;
    }
}

/* False: it is no candidate. */
static bool remove_candidate(struct candidates *all, const char *name)
{
    uint32_t at = 0;

    while (at < all->count && strcmp(all->each[at].name, name) != 0)
        at++;
    if (at == all->count)
        return false;
    all->count--;
    memmove(&all->each[at], &all->each[at + 1], (all->count - at) * sizeof(all->each[0]));
    return true;
}

/* --------------------------------------------------------------------------------------------------------- composing */

static uint64_t choose_smaller_limit(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* "shm+eth0" in place of "shm". */
static void append_part(char *to, size_t size, const char *text)
{
    size_t used = strlen(to);

    snprintf(to + used, size - used, "%s%s", used ? "+" : "", text);
}

/* The limits of a set are the smallest of its parts, but it reaches every peer that one of its parts reaches. */
static void add_part_limits(struct ofp_info *whole, const struct ofp_info *part)
{
    uint64_t reach = OFP_CAP_LOCAL_COMM | OFP_CAP_REMOTE_COMM;

    append_part(whole->fabric, sizeof(whole->fabric), part->fabric);
    append_part(whole->domain, sizeof(whole->domain), part->domain);
    append_part(whole->protocol, sizeof(whole->protocol), part->protocol);
    whole->caps = (whole->caps & part->caps & ~reach) | ((whole->caps | part->caps) & reach);
    whole->msg_order &= part->msg_order;
    whole->rma_order &= part->rma_order;
    whole->atomic_order &= part->atomic_order;
    whole->max_msg_size = choose_smaller_limit(whole->max_msg_size, part->max_msg_size);
    whole->max_rma_size = choose_smaller_limit(whole->max_rma_size, part->max_rma_size);
    whole->max_atomic_size = choose_smaller_limit(whole->max_atomic_size, part->max_atomic_size);
    whole->inject_size = choose_smaller_limit(whole->inject_size, part->inject_size);
    whole->tx_size = choose_smaller_limit(whole->tx_size, part->tx_size);
    whole->rx_size = choose_smaller_limit(whole->rx_size, part->rx_size);
    whole->segment_limit = choose_smaller_limit(whole->segment_limit, part->segment_limit);
    whole->remote_segment_limit = choose_smaller_limit(whole->remote_segment_limit, part->remote_segment_limit);
    whole->cq_data_size = choose_smaller_limit(whole->cq_data_size, part->cq_data_size);
    whole->wait_fd &= part->wait_fd;
    if (part->peer_proof < whole->peer_proof)
        whole->peer_proof = part->peer_proof;
    if (part->encryption < whole->encryption)
        whole->encryption = part->encryption;
}

static void build_set_info(struct link_set *set, const char *name, uint32_t rank)
{
    struct ofp_info *whole = &set->info;

    *whole = set->parts[0].info;
    whole->fabric[0] = whole->domain[0] = whole->protocol[0] = 0;
    snprintf(whole->provider, sizeof(whole->provider), "%s", name);
    for (uint32_t i = 0; i < set->count; i++)
        add_part_limits(whole, &set->parts[i].info);
    whole->protocol_version = 1;
    whole->ep_types = OFP_EP_RDM;
    whole->emulated_caps = 0;
    whole->max_private_data = 0;
    whole->mr_key_size =
        sizeof(((struct ofp_region_device *)0)->key); /* the core's key, whatever keys the devices have */
    whole->address_format = OFP_ADDRESS_OPAQUE;
    whole->rank = rank;
    whole->provider_data[0] = whole->provider_data[1] = 0;
}

static void compute_set_layout(struct link_set *set, const struct ofp_endpoint_ops *ops)
{
    size_t endpoint = link_size_compute_aligned(ops->endpoint_size), peer = link_size_compute_aligned(ops->peer_size);

    OFPI_CHECK(set->count > 0 && set->count <= LINK_PARTS_MAX);
    set->ops = *ops;
    for (uint32_t i = 0; i < set->count; i++) {
        struct link_part *part = &set->parts[i];

        part->ops = ofpi_endpoint_ops_get(part->provider, &part->info);
        part->within_host = is_within_host(&part->info);
        part->endpoint_offset = endpoint;
        part->lane_offset = peer;
        endpoint +=
            link_size_compute_aligned(sizeof(struct link_inner)) + link_size_compute_aligned(part->ops->endpoint_size);
        peer += link_size_compute_aligned(sizeof(struct link_lane)) + link_size_compute_aligned(part->ops->peer_size);
        set->ops.internal_channel &= part->ops->internal_channel;
        set->ops.moves_layouts &= part->ops->moves_layouts;
        set->ops.marks_packets &= part->within_host || part->ops->marks_packets;
    }
    set->ops.endpoint_size = endpoint;
    set->ops.peer_size = peer;
}

static bool is_same_set(const struct link_set *a, const struct link_set *b)
{
    if (a->count != b->count || a->info.rank != b->info.rank || strcmp(a->info.provider, b->info.provider) != 0)
        return false;
    for (uint32_t i = 0; i < a->count; i++)
        if (a->parts[i].provider != b->parts[i].provider ||
            memcmp(&a->parts[i].info, &b->parts[i].info, sizeof(a->parts[i].info)) != 0)
            return false;
    return true;
}

/* Find the stored set of this content, or store it. NULL: out of memory. */
static const struct link_set *store_set(const struct link_set *set)
{
    struct link_set *found;

    ofpi_process_lock_acquire(OFPI_LOCK_LINK_SETS);
    for (found = sets; found && !is_same_set(found, set); found = found->next)
        ;
    if (!found && (found = malloc(sizeof(*found)))) {
        *found = *set;
        found->number = sets ? sets->number + 1 : 1;
        found->info.provider_data[0] = found->number;
        found->next = sets;
        sets = found;
    }
    ofpi_process_lock_release(OFPI_LOCK_LINK_SETS);
    return found;
}

const struct link_set *link_set_of(const struct ofp_info *info)
{
    const struct link_set *set;

    if (!info)
        return NULL;
    ofpi_process_lock_acquire(OFPI_LOCK_LINK_SETS);
    for (set = sets; set && set->number != info->provider_data[0]; set = set->next)
        ;
    ofpi_process_lock_release(OFPI_LOCK_LINK_SETS);
    return set;
}

/* Choose combination number `which`, where the infos of the last part change fastest. False: there is none. */
static bool choose_combination(const struct candidates *all, uint32_t which, struct link_set *set)
{
    for (uint32_t i = all->count; i-- > 0;) {
        uint32_t count = (uint32_t)all->each[i].count;

        set->parts[i].provider = all->each[i].provider;
        set->parts[i].info = all->each[i].infos[which % count];
        which /= count;
    }
    set->count = all->count;
    return which == 0;
}

/* Append to `count` existing infos. Returns the new count. */
static int build_all_sets(const struct candidates *all, const char *name, const struct ofp_endpoint_ops *ops,
                          struct ofp_info *infos, int count, int max)
{
    for (uint32_t which = 0; all->count && count < max; which++) {
        struct link_set set = {0};
        const struct link_set *stored;

        if (!choose_combination(all, which, &set))
            break;
        build_set_info(&set, name, (uint32_t)count);
        compute_set_layout(&set, ops);
        stored = store_set(&set);
        if (!stored)
            return -ENOMEM;
        infos[count++] = stored->info;
    }
    return count;
}

int link_sets_find(const char *name, const struct ofp_endpoint_ops *ops, struct ofp_info *infos, int max, char *text,
                   size_t text_size)
{
    struct candidates *all = calloc(1, sizeof(*all));
    bool chosen = strchr(name, ':') != NULL;
    int result;

    if (!all)
        return -ENOMEM;
    result = parse_name(all, name, text, text_size);
    if (!result)
        result = query_candidates(all, chosen, text, text_size);
    if (result) {
        result = 0;
    } else {
        remove_lesser_infos(all);
        result = build_all_sets(all, name, ops, infos, 0, max);
        /* Add the sets without devices, for programs that need what endpoints over devices cannot do. */
        if (result >= 0 && !chosen && remove_candidate(all, DEVICES))
            result = build_all_sets(all, name, ops, infos, result, max);
    }
    free(all);
    return result;
}

/* ---------------------------------------------------------------------------------------------------- at a node of this host */

/* Restrict one part to the node: by its own info, or by another info of its provider. */
static int choose_part_at_node(struct link_part *part, const char *node, char *text, size_t text_size)
{
    struct candidate *candidate;
    struct ofp_info own = part->info;
    int result = -EOPNOTSUPP;

    if (!part->provider->at_node) {
        snprintf(text, text_size, "provider %s cannot be told at which address of this host to listen", own.provider);
        return result;
    }
    result = part->provider->at_node(&own, node, text, text_size);
    candidate = result ? calloc(1, sizeof(*candidate)) : NULL;
    if (candidate) {
        char ignored[OFP_TEXT_MAX];

        memcpy(candidate->name, own.provider, sizeof(candidate->name));
        if (query_candidate(candidate, ignored, sizeof(ignored)) != 0)
            candidate->count = 0;
        for (int i = 0; i < candidate->count && result; i++) {
            own = candidate->infos[i];
            result = part->provider->at_node(&own, node, ignored, sizeof(ignored));
        }
        free(candidate);
    }
    if (!result)
        part->info = own;
    return result;
}

static bool has_set_network(const struct link_set *set)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (!set->parts[i].within_host)
            return true;
    return false;
}

/*
 * If the set has networks, the node selects where they listen; shared memory is at every address of the host. A
 * network that cannot listen at the node is left out, unless none can.
 */
static int choose_parts_at_node(struct link_set *set, const char *node, char *text, size_t text_size)
{
    bool networks = has_set_network(set), found = false;
    uint32_t stored = 0;
    int result = 0;

    for (uint32_t i = 0; i < set->count; i++) {
        struct link_part part = set->parts[i];
        bool is_asked = !part.within_host || !networks;

        result = is_asked ? choose_part_at_node(&part, node, text, text_size) : 0;
        if (!result)
            set->parts[stored++] = part;
        else
            ofpi_log_write(OFP_LOG_INFO, LINK_NAME, "endpoints at %s have no way over %s: %s", node, part.info.provider,
                           text);
        found |= is_asked && !result;
    }
    set->count = stored;
    return found ? 0 : result;
}

int link_set_choose_at_node(struct ofp_info *info, const char *node, char *text, size_t text_size)
{
    const struct link_set *given = link_set_of(info), *stored;
    struct ofp_endpoint_ops ops;
    struct link_set set;
    uint64_t emulated;
    int result = given ? 0 : -EINVAL;

    if (result)
        return result;
    set = *given;
    result = choose_parts_at_node(&set, node, text, text_size);
    if (result)
        return result;
    ops = given->ops;
    ops.endpoint_size = sizeof(struct link_endpoint);
    ops.peer_size = sizeof(struct link_peer);
    build_set_info(&set, given->info.provider, given->info.rank);
    compute_set_layout(&set, &ops);
    stored = store_set(&set);
    if (!stored)
        return -ENOMEM;
    emulated = info->emulated_caps;
    *info = stored->info;
    info->caps |= emulated;
    info->emulated_caps = emulated;
    return 0;
}
