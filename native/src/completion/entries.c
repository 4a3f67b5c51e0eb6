/* SPDX-License-Identifier: BSD-3-Clause */
#include "completion/entries.h"

#include <errno.h>

#include "base/log.h"
#include "object/endpoint.h"

static void set_endpoints_stopped(const struct ofp_list *endpoints, bool stop)
{
    for (const struct ofp_list *node = endpoints->next; node != endpoints; node = node->next) {
        struct ofpi_endpoint *endpoint = OFP_CONTAINER_OF(node, struct ofpi_endpoint, node);

        endpoint->stopped = stop || endpoint->refuses;
    }
}

static void stop_posts(struct ofpi_domain *domain, bool stop)
{
    set_endpoints_stopped(&domain->endpoints, stop);
    set_endpoints_stopped(&domain->receive_contexts, stop);
}

struct ofpi_entry *ofpi_entry_store(struct ofpi_domain *domain, const struct ofp_completion *completion)
{
    struct ofpi_entry *entry = ofpi_reserve_allocate(&domain->entries);

    if (!entry) {
        ofpi_log_write(OFP_LOG_ERROR, "core", "out of memory: a completion of context %#llx is lost",
                       (unsigned long long)completion->context);
        return NULL;
    }
    entry->completion = *completion;
    if (!ofpi_reserve_grow(&domain->entries))
        stop_posts(domain, true);
    return entry;
}

int ofpi_entries_resume(struct ofpi_domain *domain)
{
    if (!ofpi_reserve_grow(&domain->entries))
        return -ENOMEM;
    stop_posts(domain, false);
    return 0;
}
