/* SPDX-License-Identifier: BSD-3-Clause */
/* Load providers, check their tables once, and provide struct ofp_core to them. */
#include "provider/provider_registry.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "atomic/atomic.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/param.h"
#include "base/process_lock.h"
#include "base/reason.h"
#include "base/reactor.h"
#include "base/service.h"
#include "base/strerror.h"
#include "base/timer.h"
#include "completion/event_queue.h"
#include "memory/remote.h"
#include "object/region.h"
#include "ofipy/ofp.h"
#include "peer/passive.h"
#include "progress/progress.h"
#include "provider/provider_tables.h"

#define PROVIDERS_MAX 64

/*
 * Guarded by OFPI_LOCK_PROVIDERS; never removed. Each entry function is called once, since it sets variables that other
 * threads read.
 */
static struct {
    const struct ofp_provider *provider;
    ofp_provider_entry_fn *entry;
} registry[PROVIDERS_MAX];
static int registry_count;

/* ------------------------------------------------------------------------------------------ services for providers */

static struct ofpi_domain *engine_of_domain(struct ofp_domain *domain) { return (struct ofpi_domain *)domain->engine; }

static int watch_add(struct ofp_domain *domain, struct ofp_watch *watch)
{
    return ofpi_reactor_add(&engine_of_domain(domain)->reactor, watch);
}

static void watch_remove(struct ofp_domain *domain, struct ofp_watch *watch)
{
    ofpi_reactor_remove(&engine_of_domain(domain)->reactor, watch);
}

static void timer_start(struct ofp_domain *domain, struct ofp_timer *timer)
{
    ofpi_timer_start(engine_of_domain(domain), timer);
}

static void timer_stop(struct ofp_domain *domain, struct ofp_timer *timer)
{
    ofpi_timers_stop(&engine_of_domain(domain)->timers, timer);
}

static struct ofp_region *find_region_by_id(struct ofp_domain *domain, uint32_t id)
{
    struct ofpi_region *region = ofpi_regions_find(&engine_of_domain(domain)->regions, id);

    return region ? &region->base : NULL;
}

static void report_device_event(struct ofp_domain *domain, int error, const char *text)
{
    ofpi_log_write(error ? OFP_LOG_WARNING : OFP_LOG_INFO, domain->info->provider, "%s", text);
    ofpi_eq_report_device(engine_of_domain(domain), error, text);
}

const struct ofp_core ofpi_core = {
    .abi = OFP_PROVIDER_ABI,
    .size = sizeof(struct ofp_core),
    .log = ofpi_log_write,
    .param_string = ofpi_param_get_string,
    .param_int = ofpi_param_get_int,
    .param_size = ofpi_param_get_size,
    .param_bool = ofpi_param_get_bool,
    .now = ofpi_clock_read,
    .host_id = ofp_host_id,
    .connection_requested = ofpi_connection_requested,
    .remote_release = ofpi_remote_access_release,
    .atomic_execute = ofpi_remote_atomic_execute,
    .watch_add = watch_add,
    .watch_remove = watch_remove,
    .timer_start = timer_start,
    .timer_stop = timer_stop,
    .region_by_id = find_region_by_id,
    .atomic_is_direct = ofpi_atomic_is_direct,
    .explain = ofpi_reason_report,
    .device_event = report_device_event,
    .hold_in_fork = ofpi_process_lock_register,
};

/* ------------------------------------------------------------------------------------------------------- checking */

static const char *find_missing_endpoint_entry(const struct ofp_endpoint_ops *ops, const struct ofp_info *info)
{
    if (!ops)
        return "an endpoint table";
    if (!ops->open || !ops->close || !ops->name || !ops->connect || !ops->peer_down || !ops->post)
        return "open, close, name, connect, peer_down or post";
    if (!ops->progress || !ops->arm || !ops->disarm)
        return "progress, arm or disarm";
    if (!info->offloads_matching && !ops->receive_start)
        return "receive_start";
    if (info->ep_types & OFP_EP_MSG && !ops->accept)
        return "accept";
    return NULL;
}

static const char *find_missing_passive_entry(const struct ofp_passive_ops *ops, const struct ofp_info *info)
{
    if (!(info->ep_types & OFP_EP_MSG))
        return NULL;
    if (!ops)
        return "a table of listeners";
    return ops->open && ops->name && ops->listen && ops->reject && ops->close ? NULL : "an entry for listeners";
}

static int check_provider(const struct ofp_provider *provider, char *text, size_t text_size)
{
    const char *wrong;

    if (!provider) {
        snprintf(text, text_size,
                 "it was built for another ABI of providers than this ofipy has, %d.%d; build it again",
                 OFP_PROVIDER_ABI, OFP_PROVIDER_ABI_MINOR);
        return -ENOTSUP;
    }
    if (provider->abi != OFP_PROVIDER_ABI) {
        snprintf(text, text_size, "it was built for ABI %u of providers, and this ofipy has %d.%d; build it again",
                 provider->abi, OFP_PROVIDER_ABI, OFP_PROVIDER_ABI_MINOR);
        return -ENOTSUP;
    }
    if (!provider->name || !provider->description || !provider->getinfo || !provider->resolve ||
        !provider->address_check || !provider->address_format || !provider->endpoint_ops) {
        snprintf(text, text_size, "the provider's table lacks a mandatory entry");
        return -EINVAL;
    }
    wrong = provider->params ? ofpi_param_find_misdeclared(provider->params) : NULL;
    if (wrong) {
        snprintf(text, text_size, "provider %s declares OFIPY_%s with a default that is not in its range",
                 provider->name, wrong);
        return -EINVAL;
    }
    return 0;
}

/* OFPI_LOCK_PROVIDERS is held. Returns the provider's index in the registry, or a negative errno. */
static int add_provider(ofp_provider_entry_fn *entry, char *text, size_t text_size)
{
    const struct ofp_provider *provider = entry(&ofpi_core);
    int error = check_provider(provider, text, text_size);
    int i;

    if (error)
        return error;
    provider = ofpi_provider_convert(provider);
    if (!provider)
        return -ENOMEM;
    if (provider->params)
        ofpi_param_register(provider->params);
    for (i = 0; i < registry_count; i++)
        if (strcmp(registry[i].provider->name, provider->name) == 0)
            return i;
    if (i == PROVIDERS_MAX)
        return -ENOSPC;
    registry[i].provider = provider;
    registry[i].entry = entry;
    return registry_count++;
}

int ofpi_provider_register(ofp_provider_entry_fn *entry, struct ofp_provider **result, char *text, size_t text_size)
{
    int place = 0;

    ofpi_process_lock_acquire(OFPI_LOCK_PROVIDERS);
    while (place < registry_count && registry[place].entry != entry)
        place++;
    if (place == registry_count)
        place = add_provider(entry, text, text_size);
    if (place >= 0)
        /* Callers pass the pointer back and do not write to it. */
        *result = (struct ofp_provider *)(uintptr_t)registry[place].provider;
    ofpi_process_lock_release(OFPI_LOCK_PROVIDERS);
    return place < 0 ? place : 0;
}

const struct ofp_provider *ofpi_provider_find(const char *name, size_t length)
{
    const struct ofp_provider *found = NULL;

    ofpi_process_lock_acquire(OFPI_LOCK_PROVIDERS);
    for (int i = 0; i < registry_count && !found; i++)
        if (strlen(registry[i].provider->name) == length && memcmp(registry[i].provider->name, name, length) == 0)
            found = registry[i].provider;
    ofpi_process_lock_release(OFPI_LOCK_PROVIDERS);
    return found;
}

int ofp_provider_load(const char *path, struct ofp_provider **provider, char *text, size_t text_size)
{
    ofp_provider_entry_fn *entry;
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    text[0] = 0;
    if (!object) {
        snprintf(text, text_size, "%s", dlerror());
        return -ENOENT;
    }
    entry = (ofp_provider_entry_fn *)(uintptr_t)dlsym(object, "ofp_provider_entry");
    if (!entry) {
        snprintf(text, text_size, "%s does not export ofp_provider_entry", path);
        dlclose(object);
        return -EINVAL;
    }
    return ofpi_provider_register(entry, provider, text, text_size);
}

/* ----------------------------------------------------------------------------------------------------- public calls */

const char *ofp_provider_name(struct ofp_provider *provider) { return provider->name; }

const char *ofp_provider_description(struct ofp_provider *provider) { return provider->description; }

uint32_t ofp_provider_version(struct ofp_provider *provider) { return provider->version; }

/* Add the capabilities that the core emulates on any transport. */
static void add_emulated(struct ofp_info *info)
{
    uint64_t added = OFP_CAP_FENCE | OFP_CAP_ANY_INJECT | OFP_CAP_TRIGGER;

    if (!info->offloads_matching)
        added |= OFP_CAP_MULTI_RECV | OFP_CAP_SHARED_CONTEXT;
    if (info->inject_size >= info->max_msg_size)
        info->caps |= OFP_CAP_ANY_INJECT;
    added &= ~info->caps;
    info->caps |= added;
    info->emulated_caps |= added;
}

static int prepare_infos(const struct ofp_provider *provider, struct ofp_info *infos, int count, char *text,
                         size_t text_size)
{
    for (int i = 0; i < count; i++) {
        const char *missing = find_missing_endpoint_entry(ofpi_endpoint_ops_get(provider, &infos[i]), &infos[i]);

        if (!missing)
            missing = find_missing_passive_entry(provider->passive_ops, &infos[i]);
        if (missing) {
            snprintf(text, text_size, "the provider's table for %s lacks %s", infos[i].domain, missing);
            return -EINVAL;
        }
        add_emulated(&infos[i]);
    }
    return count;
}

int ofp_provider_getinfo(struct ofp_provider *provider, struct ofp_info *infos, int max, char *text, size_t text_size)
{
    text[0] = 0;
    memset(infos, 0, sizeof(*infos) * (size_t)max);
    return prepare_infos(provider, infos, ofpi_provider_infos_get(provider, infos, max, text, text_size), text,
                         text_size);
}

int ofp_provider_getinfo_as(struct ofp_provider *provider, const char *name, struct ofp_info *infos, int max,
                            char *text, size_t text_size)
{
    if (!provider->getinfo_as)
        return ofp_provider_getinfo(provider, infos, max, text, text_size);
    text[0] = 0;
    memset(infos, 0, sizeof(*infos) * (size_t)max);
    return prepare_infos(provider, infos, provider->getinfo_as(name, infos, max, text, text_size), text, text_size);
}

/* Whether `node` is an address text of a foreign library. Its last part may look like a port and is none. */
static bool is_foreign_name(const struct ofp_info *info, const char *node)
{
    return info && info->offloads_matching && info->address_format == OFP_ADDRESS_OPAQUE && node && strchr(node, ':');
}

int ofp_provider_resolve(struct ofp_provider *provider, const struct ofp_info *info, const char *node,
                         const char *service, void *address, size_t *length, char *text, size_t text_size)
{
    struct ofpi_service found;
    int error;

    text[0] = 0;
    error = ofpi_service_find(&found, service, text, text_size);
    if (error && !is_foreign_name(info, node))
        return error;
    text[0] = 0;
    return provider->resolve(info, node, found.text, address, length, text, text_size);
}

int ofp_provider_address_check(struct ofp_provider *provider, const struct ofp_info *info, const void *address,
                               size_t length)
{
    return provider->address_check(info, address, length);
}

int ofp_provider_address_format(struct ofp_provider *provider, const struct ofp_info *info, const void *address,
                                size_t length, char *text, size_t text_size)
{
    int result = provider->address_check(info, address, length);

    return result ? result : provider->address_format(info, address, length, text, text_size);
}

int ofp_provider_describe(struct ofp_provider *provider, const struct ofp_info *info, char *text, size_t text_size)
{
    text[0] = 0;
    return provider->describe ? provider->describe(info, text, text_size) : -EOPNOTSUPP;
}

const char *ofp_provider_error_text(struct ofp_provider *provider, int provider_error)
{
    const char *own = provider->error_text ? provider->error_text(provider_error) : NULL;

    return own ? own : ofpi_refusal_describe(provider_error);
}

bool ofpi_info_can_encrypt(const struct ofp_info *info)
{
    return info->encryption != OFP_ENCRYPTION_NONE || strcmp(ofpi_param_get_string("ENCRYPTION"), "required") != 0;
}
