/* SPDX-License-Identifier: BSD-3-Clause */
/* The services for hooks: their options, their bytes, and the peers of their endpoint. */
#include "hook/hook_core.h"

#include <stdio.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/param_text.h"
#include "hook/hook_list.h"
#include "hook/hooked.h"
#include "object/peer.h"
#include "provider/provider_registry.h"

static const struct ofpi_hooks *hooks_of_hook(const struct ofp_hook_endpoint *hook)
{
    return ((const struct ofpi_endpoint *)hook->endpoint)->hooks;
}

static const struct ofpi_hook_use *use_of_hook(const struct ofp_hook_endpoint *hook)
{
    return &hooks_of_hook(hook)->list->uses[hook->number];
}

/* A request for an undeclared option is an error of the hook. */
static const struct ofpi_hook_value *find_option_value(const struct ofp_hook_endpoint *hook, const char *name)
{
    static const struct ofpi_hook_value none = {.text = ""};
    const struct ofp_param *options = hook->hook->options;

    for (size_t i = 0; options && options[i].name; i++)
        if (strcmp(options[i].name, name) == 0)
            return &use_of_hook(hook)->values[i];
    ofpi_log_write(OFP_LOG_ERROR, hook->hook->name, "the hook asks for its option %s and has not declared it", name);
    return &none;
}

static const char *get_string_option(const struct ofp_hook_endpoint *hook, const char *name)
{
    return find_option_value(hook, name)->text;
}

static int64_t get_int_option(const struct ofp_hook_endpoint *hook, const char *name)
{
    return find_option_value(hook, name)->number;
}

static double get_fraction_option(const struct ofp_hook_endpoint *hook, const char *name)
{
    return (double)find_option_value(hook, name)->number / OFPI_FRACTION_ONE;
}

static void *get_peer_private(const struct ofp_hook_endpoint *hook, const struct ofp_peer *peer)
{
    return (char *)peer->private + ofpi_peer_compute_private_size(peer->endpoint) + use_of_hook(hook)->at_peer;
}

static struct ofp_peer *find_peer_at(const struct ofp_hook_endpoint *hook, uint32_t index)
{
    struct ofpi_peer *peer = ofpi_peer_find_at((const struct ofpi_endpoint *)hook->endpoint, index);

    return peer ? &peer->base : NULL;
}

static void mark_peer_lost(const struct ofp_hook_endpoint *hook, struct ofp_peer *peer, const char *text)
{
    struct ofpi_hooks *hooks = ((struct ofpi_endpoint *)hook->endpoint)->hooks;

    if (!hooks->in_post || hooks->losing)
        return;
    hooks->losing = (struct ofpi_peer *)peer;
    snprintf(hooks->why, sizeof(hooks->why), "hook %s: %.400s", hook->hook->name, text);
}

static bool is_domain_lock_held(const struct ofp_hook_endpoint *hook)
{
    return ofpi_lock_is_held(&((struct ofpi_endpoint *)hook->endpoint)->domain->lock);
}

const struct ofp_hook_core ofpi_hook_core = {
    .core = &ofpi_core,
    .option_string = get_string_option,
    .option_int = get_int_option,
    .option_fraction = get_fraction_option,
    .peer_private = get_peer_private,
    .peer_lose = mark_peer_lost,
    .peer_at = find_peer_at,
    .lock_is_held = is_domain_lock_held,
};
