/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdm/transfer/credit.h"

#include <string.h>

#include "ofipy/check.h"

bool ofpi_credit_open(struct ofpi_credits *credits, struct ofpi_credit_pool *pool)
{
    const uint32_t most = OFPI_CREDIT_CLASSES * OFPI_CREDIT_FIRST + OFPI_CREDIT_SPARE;
    uint32_t free = pool->posted - pool->granted;
    uint16_t window = free >= most + pool->posted / 2 ? OFPI_CREDIT_FIRST : OFPI_CREDIT_LEAST;

    OFP_CHECK(pool->granted <= pool->posted);
    if (free < OFPI_CREDIT_PATH_LEAST)
        return false;
    pool->granted += OFPI_CREDIT_CLASSES * window + OFPI_CREDIT_SPARE;
    memset(credits, 0, sizeof(*credits));
    for (int which = 0; which < OFPI_CREDIT_CLASSES; which++)
        credits->window[which] = credits->out[which] = window;
    return true;
}

void ofpi_credit_close(struct ofpi_credits *credits, struct ofpi_credit_pool *pool)
{
    OFP_CHECK(pool->granted <= pool->posted && pool->granted >= OFPI_CREDIT_SPARE);
    pool->granted -= OFPI_CREDIT_SPARE;
    for (int which = 0; which < OFPI_CREDIT_CLASSES; which++)
        pool->granted -= credits->window[which];
    memset(credits, 0, sizeof(*credits));
}

bool ofpi_credit_receive(struct ofpi_credits *credits, const uint16_t granted[OFPI_CREDIT_CLASSES])
{
    for (int which = 0; which < OFPI_CREDIT_CLASSES; which++) {
        if (granted[which] > UINT16_MAX - credits->left[which])
            return false;
        credits->left[which] += granted[which];
    }
    return true;
}

bool ofpi_credit_accept_packet(struct ofpi_credits *credits, enum ofpi_credit_class which)
{
    if (!credits->out[which])
        return false;
    credits->out[which]--;
    return true;
}

/* Half of a window: then at most two packets of a class that only grant credits are in flight. */
static bool is_half_owed(const struct ofpi_credits *credits, int which)
{
    return credits->owed[which] && 2u * credits->owed[which] >= credits->window[which];
}

bool ofpi_credit_is_due(const struct ofpi_credits *credits)
{
    for (int which = 0; which < OFPI_CREDIT_CLASSES; which++)
        if (is_half_owed(credits, which))
            return true;
    return false;
}

/*
 * Half of the pool is for windows that grow with their use, the other half for new paths, because an idle path
 * returns nothing. When new paths take more than half of their half, windows in use shrink. Only owed credits can be
 * withdrawn.
 */
static void update_window(struct ofpi_credits *credits, struct ofpi_credit_pool *pool, enum ofpi_credit_class which)
{
    uint32_t free = pool->posted - pool->granted, window = credits->window[which], change = window;

    if (free > pool->posted / 2) {
        change = change < free - pool->posted / 2 ? change : free - pool->posted / 2;
        change = change < OFPI_CREDIT_MOST - window ? change : OFPI_CREDIT_MOST - window;
        credits->window[which] += (uint16_t)change;
        credits->owed[which] += (uint16_t)change;
        pool->granted += change;
    } else if (free < pool->posted / 4) {
        change = credits->owed[which] / 2u;
        change = change < window - OFPI_CREDIT_LEAST ? change : window - OFPI_CREDIT_LEAST;
        credits->window[which] -= (uint16_t)change;
        credits->owed[which] -= (uint16_t)change;
        pool->granted -= change;
    }
    OFP_CHECK(credits->window[which] >= OFPI_CREDIT_LEAST && pool->granted <= pool->posted);
}

void ofpi_credit_grant(struct ofpi_credits *credits, struct ofpi_credit_pool *pool,
                       uint16_t granted[OFPI_CREDIT_CLASSES])
{
    for (int which = 0; which < OFPI_CREDIT_CLASSES; which++) {
        /* Update only a window that is used: an idle path grows no window by what the other class returns. */
        if (is_half_owed(credits, which))
            update_window(credits, pool, (enum ofpi_credit_class)which);
        granted[which] = credits->owed[which];
        credits->out[which] += credits->owed[which];
        credits->owed[which] = 0;
        OFP_CHECK(credits->out[which] <= credits->window[which]);
    }
}
