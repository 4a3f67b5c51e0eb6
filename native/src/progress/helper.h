/* SPDX-License-Identifier: BSD-3-Clause */
/* The helper thread of progress="auto"; helper.c describes its states. */
#ifndef OFPI_HELPER_H
#define OFPI_HELPER_H

#include "object/domain.h"

int ofpi_helper_start(struct ofpi_domain *domain, char *text, size_t text_size);
void ofpi_helper_stop(struct ofpi_domain *domain);
/* The application becomes active: wake the helper if it is ARMED or PARKED. The domain's lock is held. */
void ofpi_helper_wake(struct ofpi_domain *domain);
/* See struct ofp_services. */
void ofpi_progress_schedule(struct ofp_endpoint *endpoint);

#endif
