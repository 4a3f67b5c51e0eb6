/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OFPI_HOOKS_SERVICES_H
#define OFPI_HOOKS_SERVICES_H

struct ofpi_hooks;

/* Bind the services that notify the hooks to the endpoint. */
void ofpi_hooks_services_bind(struct ofpi_hooks *hooks);

#endif
