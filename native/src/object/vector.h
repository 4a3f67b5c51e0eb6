/* SPDX-License-Identifier: BSD-3-Clause */
/* Address vectors, as endpoints use them. The domain's lock guards all members. */
#ifndef OFPI_VECTOR_H
#define OFPI_VECTOR_H

#include "object/domain.h"

struct ofpi_av_table;

struct ofp_av {
    struct ofpi_domain *domain;
    struct ofp_list node; /* in domain->vectors */
    uint32_t uses;
    bool auto_insert;
    struct ofpi_av_table *table; /* NULL: retired */
};

/* As ofpi_domain_enter; -ECANCELED also when the vector is retired. */
static inline int ofpi_av_enter(struct ofp_av *av)
{
    int result = ofpi_domain_enter(av->domain);

    if (!result && !av->table) {
        ofpi_domain_refuse(av->domain);
        result = -ECANCELED;
    }
    return result;
}
/* Endpoints with connections have no address vector; other endpoints have one of the same domain. */
static inline bool ofpi_vector_is_usable(const struct ofpi_domain *domain, const struct ofp_av *av)
{
    return ofpi_domain_has_connections(domain) ? !av : av && av->domain == domain;
}

#endif
