/* SPDX-License-Identifier: BSD-3-Clause */
#include "provider/provider_tables.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/process_lock.h"

/* Completed copies of tables of earlier minor versions, one for each. Guarded by OFPI_LOCK_TABLES, never freed. */
struct completed {
    const void *given;
    struct completed *next;
    max_align_t whole[];
};

static const struct ofp_domain_ops no_domain_ops = {.size = sizeof(no_domain_ops)};

static struct completed *tables;

static struct completed *create_complete_table(const void *table, size_t known, size_t size)
{
    struct completed *made = calloc(1, sizeof(*made) + size);

    if (!made)
        return NULL;
    made->given = table;
    memcpy(made->whole, table, known);
    made->next = tables;
    tables = made;
    return made;
}

/* The completed copy of a table; the same copy in each call. NULL: out of memory. */
static void *get_table_copy(const void *table, size_t known, size_t size)
{
    struct completed *found;

    ofpi_process_lock_acquire(OFPI_LOCK_TABLES);
    for (found = tables; found && found->given != table; found = found->next)
        ;
    if (!found)
        found = create_complete_table(table, known < size ? known : size, size);
    ofpi_process_lock_release(OFPI_LOCK_TABLES);
    return found ? found->whole : NULL;
}

const void *ofpi_table_convert(const void *table, uint32_t known, size_t size)
{
    return !table || known >= size ? table : get_table_copy(table, known, size);
}

const struct ofp_endpoint_ops *ofpi_endpoint_ops_get(const struct ofp_provider *provider, const struct ofp_info *info)
{
    const struct ofp_endpoint_ops *ops = provider->endpoint_ops(info);

    return ops ? ofpi_table_convert(ops, ops->size, sizeof(*ops)) : NULL;
}

const struct ofp_provider *ofpi_provider_convert(const struct ofp_provider *given)
{
    const struct ofp_provider *whole = ofpi_table_convert(given, given->size, sizeof(*given));
    const struct ofp_domain_ops *domain_ops = whole && whole->domain_ops ? whole->domain_ops : &no_domain_ops;
    const struct ofp_passive_ops *passive_ops = whole ? whole->passive_ops : NULL;
    struct ofp_provider *mended;

    if (!whole)
        return NULL;
    domain_ops = ofpi_table_convert(domain_ops, domain_ops->size, sizeof(*domain_ops));
    passive_ops = passive_ops ? ofpi_table_convert(passive_ops, passive_ops->size, sizeof(*passive_ops)) : NULL;
    if (domain_ops == whole->domain_ops && passive_ops == whole->passive_ops)
        return whole;
    mended = domain_ops ? get_table_copy(given, given->size, sizeof(*given)) : NULL;
    if (mended) {
        mended->domain_ops = domain_ops;
        mended->passive_ops = passive_ops;
    }
    return mended;
}

int ofpi_provider_infos_get(const struct ofp_provider *provider, struct ofp_info *infos, int max, char *text,
                            size_t text_size)
{
    size_t size = provider->info_size, both = size < sizeof(*infos) ? size : sizeof(*infos);
    char *theirs;
    int count;

    if (size == sizeof(*infos))
        return provider->getinfo(infos, max, text, text_size);
    theirs = calloc((size_t)max, size);
    if (!theirs)
        return -ENOMEM;
    count = provider->getinfo((struct ofp_info *)theirs, max, text, text_size);
    for (int i = 0; i < count; i++)
        memcpy(&infos[i], theirs + size * (size_t)i, both);
    free(theirs);
    return count;
}
