/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet/log.h"

#include <inttypes.h>

#include "connection/channel.h"

#define PAUSE VERBS_SECOND

/* The level now, if the last of its kind was logged at `*last`. */
static enum ofp_log_level compute_level(enum ofp_log_level level, uint64_t *last)
{
    uint64_t now = verbs_core->now();

    if (*last && now - *last < PAUSE)
        return OFP_LOG_DEBUG;
    *last = now;
    return level;
}

static const char *describe_caller(struct rdma_cm_id *id, char shown[TCP_ADDRESS_TEXT])
{
    union tcp_address address;

    verbs_id_get_peer_address(id, &address);
    tcp_address_describe(&address, shown);
    return shown;
}

void verbs_key_difference_log(struct verbs_rdm *rdm, struct rdma_cm_id *id, const char *why)
{
    char shown[TCP_ADDRESS_TEXT];

    verbs_core->log(compute_level(OFP_LOG_WARNING, &rdm->refused_at), VERBS_NAME, "endpoint %u refuses %s: %s",
                    rdm->channel->endpoint->id, describe_caller(id, shown), why);
}

void verbs_deferral_log(struct verbs_rdm *rdm, struct rdma_cm_id *id, const char *why)
{
    char shown[TCP_ADDRESS_TEXT];

    rdm->deferred++;
    verbs_core->log(compute_level(OFP_LOG_INFO, &rdm->deferred_at), VERBS_NAME,
                    "endpoint %u puts %s off: %s; so far %" PRIu64, rdm->channel->endpoint->id,
                    describe_caller(id, shown), why, rdm->deferred);
}
