/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Services. A person writes a port number or a name; a name stands for a port, the same one everywhere and for every provider, so
 * providers see numbers alone. What a provider itself calls an endpoint is neither: it begins with '~', or with "qp" and a digit.
 */
#ifndef OFPI_SERVICE_H
#define OFPI_SERVICE_H

#include <stddef.h>

/*
 * Ports of names: those that are nobody's by registration (49152 and above, RFC 6335) and that Linux does not hand out either (up to
 * 60999 by default), so that none is taken by chance.
 */
#define OFPI_SERVICE_PORT_LOW 61000
#define OFPI_SERVICE_PORT_HIGH 65535
#define OFPI_SERVICE_NAME_MAX 63

struct ofpi_service {
    const char *written; /* by the user; NULL: any service */
    const char *text;    /* for the provider: `written`, or `port` */
    char port[8];        /* of a name; empty: it is none */
};

/* For an endpoint of its own: -EINVAL with a text where it is no port and no name. `written` is kept, not copied. */
int ofpi_service_choose(struct ofpi_service *service, const char *written, char *text, size_t text_size);
/*
 * For a peer's: -EINVAL with a text where it is a number that no peer's port is. What is neither number nor name goes to the provider
 * as it is, which may have written it.
 */
int ofpi_service_find(struct ofpi_service *service, const char *written, char *text, size_t text_size);
/* A provider that refused one speaks of a number: put the name before its reason, and what to do where another has the port. */
void ofpi_service_describe_error(const struct ofpi_service *service, int error, char *text, size_t text_size);

#endif
