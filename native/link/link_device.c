/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "link/link_objects.h"
#include "base/log.h"
#include "base/param.h"
#include "ofipy/ofp.h"
#include "link/link_device.h"
#include "link/link_user_key.h"

/* ------------------------------------------------------------------------------------------------------------- devices */

static int open_device(struct ofp_domain *outer, uint32_t number, char *text, size_t text_size)
{
    struct link_domain *own = link_domain_of(outer);
    const struct link_part *part = &own->set->parts[number];
    const struct ofp_domain_ops *ops = part->provider->domain_ops;
    struct ofp_domain *device = &own->devices[number];
    int result;

    own->infos[number] = part->info;
    *device = (struct ofp_domain){
        .provider = part->provider, .info = &own->infos[number], .device = LINK_DEVICE(number), .engine = outer};
    device->private = calloc(1, ops->domain_size ? ops->domain_size : 1);
    if (!device->private)
        return -ENOMEM;
    result = ops->open ? ops->open(device, text, text_size) : 0;
    if (result)
        free(device->private);
    if (!ops->region_disowned)
        device->keeps_above = 0;
    return result;
}

/*
 * The outer domain reports to all devices, so its threshold is the smallest of theirs. Other devices ignore the
 * reports.
 */
static void update_keeps_above(struct ofp_domain *outer)
{
    const struct link_domain *own = link_domain_of(outer);

    for (uint32_t i = 0; i < own->set->count; i++) {
        uint64_t above = own->devices[i].keeps_above;

        if (above && (!outer->keeps_above || above < outer->keeps_above))
            outer->keeps_above = above;
    }
}

/* A peer that connects only may come back by any lane, so the longest time holds. */
static void update_absence_limit(struct ofp_domain *outer)
{
    const struct link_domain *own = link_domain_of(outer);

    for (uint32_t i = 0; i < own->set->count; i++)
        if (own->devices[i].absence_limit > outer->absence_limit)
            outer->absence_limit = own->devices[i].absence_limit;
}

static void close_device(struct ofp_domain *device)
{
    if (device->provider->domain_ops->close)
        device->provider->domain_ops->close(device);
    free(device->private);
}

static void store_host_id(struct link_domain *own)
{
    char why[OFP_TEXT_MAX];
    uint64_t id;

    if (ofp_host_id(&id, why, sizeof(why)) != 0) {
        ofpi_log_write(OFP_LOG_WARNING, LINK_NAME, "%s: processes of this host are reached over the network", why);
        return;
    }
    for (int i = 0; i < 8; i++)
        own->host[i] = (uint8_t)(id >> 8 * i);
}

static bool has_domain_network(const struct link_set *set)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (!set->parts[i].within_host)
            return true;
    return false;
}

/* Without the key file the key is random, so no process of this host is accepted by the network. */
static void set_local_key(struct link_domain *own)
{
    const char *configured = ofpi_param_get_string("AUTH_KEY_FILE");
    char why[OFP_TEXT_MAX];

    if (!has_domain_network(own->set) || (configured && configured[0]))
        return;
    own->has_local_key = true;
    if (link_user_key_read(own->local_key, why, sizeof(why)) == 0)
        return;
    ofpi_log_write(OFP_LOG_WARNING, LINK_NAME,
                   "%s: processes of this host cannot prove over the network that they are this user's", why);
    if (getrandom(own->local_key, OFP_KEY_SIZE, 0) != OFP_KEY_SIZE)
        ofpi_log_write(OFP_LOG_ERROR, LINK_NAME, "there are no random numbers for a key");
}

/* A set that was built before a key was set may have a part whose peers do not prove it. */
static int check_proofs(const struct link_set *set, char *text, size_t text_size)
{
    for (uint32_t i = 0; i < set->count; i++)
        if (link_info_is_unproven(&set->parts[i].info)) {
            snprintf(text, text_size, "%s cannot be part of " LINK_NAME ": " LINK_UNPROVEN "; get the info again",
                     set->parts[i].info.provider);
            return -EACCES;
        }
    return 0;
}

int link_domain_open(struct ofp_domain *outer, char *text, size_t text_size)
{
    struct link_domain *own = link_domain_of(outer);
    int result = 0;
    uint32_t i;

    own->set = link_set_of(outer->info);
    if (!own->set) {
        snprintf(text, text_size, "the info is of another process: ask for one here");
        return -EINVAL;
    }
    result = check_proofs(own->set, text, text_size);
    if (result)
        return result;
    store_host_id(own);
    set_local_key(own);
    for (i = 0; i < own->set->count && !result; i++)
        result = open_device(outer, i, text, text_size);
    if (!result) {
        update_keeps_above(outer);
        update_absence_limit(outer);
        return 0;
    }
    for (i--; i-- > 0;)
        close_device(&own->devices[i]);
    return result;
}

void link_domain_close(struct ofp_domain *outer)
{
    struct link_domain *own = link_domain_of(outer);

    for (uint32_t i = own->set->count; i-- > 0;)
        close_device(&own->devices[i]);
}
