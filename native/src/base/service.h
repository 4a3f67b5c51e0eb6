/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Services. A user writes a port number or a name. A name is translated to a port, the same one on all hosts and for
 * all providers, so providers receive only numbers. A provider's own form of service is neither: it begins with '~', or
 * with "qp" and a digit.
 */
#ifndef OFPI_SERVICE_H
#define OFPI_SERVICE_H

#include <stddef.h>

/*
 * Ports of names. These ports are not registered to anybody (49152 and above, RFC 6335), and Linux does not assign them
 * automatically (it assigns up to 60999 by default), so that no process gets one by chance.
 */
#define OFPI_SERVICE_PORT_LOW 61000
#define OFPI_SERVICE_PORT_HIGH 65535
#define OFPI_SERVICE_NAME_MAX 63

struct ofpi_service {
    const char *written; /* as the user wrote it; NULL: any service */
    const char *text;    /* for the provider: `written`, or `port` */
    char port[8];        /* port of a name; empty: not a name */
};

/*
 * The service of a local endpoint. -EINVAL with a text if it is neither a port nor a name. `written` is stored, not
 * copied.
 */
int ofpi_service_choose(struct ofpi_service *service, const char *written, char *text, size_t text_size);
/*
 * The service of a peer. -EINVAL with a text if it is a number that is no valid port. A text that is neither number nor
 * name is passed to the provider unchanged, because it may be the provider's own form.
 */
int ofpi_service_find(struct ofpi_service *service, const char *written, char *text, size_t text_size);
/*
 * A provider's error text contains only the port number: prepend the name, and say what to do if another process has
 * the port.
 */
void ofpi_service_describe_error(const struct ofpi_service *service, int error, char *text, size_t text_size);

#endif
