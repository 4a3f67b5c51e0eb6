/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/service.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ofipy/types.h"

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static bool is_port(const char *written)
{
    size_t length = strlen(written);

    return length > 0 && length <= 5 && strspn(written, DIGITS) == length && atoi(written) <= UINT16_MAX;
}

/* The form of datagram endpoints of devices, which have no ports. */
static bool is_queue_pair(const char *written)
{
    return strncmp(written, "qp", 2) == 0 && strspn(written + 2, DIGITS) > 0;
}

static bool is_name(const char *written)
{
    size_t length = strlen(written);

    return length > 0 && length <= OFPI_SERVICE_NAME_MAX && strspn(written, LETTERS) > 0 &&
           strspn(written, LETTERS DIGITS "._-") == length && !is_queue_pair(written);
}

/* FNV-1a. Must not change: different versions of ofipy, on different hosts, must compute the same port of a name. */
static unsigned compute_port(const char *name)
{
    uint32_t hash = 2166136261u;

    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return OFPI_SERVICE_PORT_LOW + hash % (OFPI_SERVICE_PORT_HIGH - OFPI_SERVICE_PORT_LOW + 1);
}

static void parse_service(struct ofpi_service *service, const char *written)
{
    service->written = service->text = written;
    service->port[0] = 0;
    if (!written || !is_name(written))
        return;
    snprintf(service->port, sizeof(service->port), "%u", compute_port(written));
    service->text = service->port;
}

/* Whether a text can only be a number: names begin with letters. */
static bool is_number(const char *written) { return strspn(written + strspn(written, "+-"), DIGITS) > 0; }

int ofpi_service_find(struct ofpi_service *service, const char *written, char *text, size_t text_size)
{
    parse_service(service, written);
    if (!written || !is_number(written) || (is_port(written) && atoi(written) > 0))
        return 0;
    snprintf(text, text_size, "service %.80s: the port of a peer is a number, 1 to %d", written, UINT16_MAX);
    return -EINVAL;
}

int ofpi_service_choose(struct ofpi_service *service, const char *written, char *text, size_t text_size)
{
    parse_service(service, written);
    if (!written || service->port[0] || is_port(written))
        return 0;
    snprintf(text, text_size,
             "service %.80s: a port number is meant, 0 to %d, or a name: a letter, then letters, digits, dots, dashes "
             "and underscores, %d characters at most, not qp and a number",
             written, UINT16_MAX, OFPI_SERVICE_NAME_MAX);
    return -EINVAL;
}

void ofpi_service_describe_error(const struct ofpi_service *service, int error, char *text, size_t text_size)
{
    char reason[OFP_TEXT_MAX];

    if (!service->port[0])
        return;
    snprintf(reason, sizeof(reason), "%s", text);
    snprintf(text, text_size, "service %s, which is port %s: %.300s%s", service->written, service->port, reason,
             error == -EADDRINUSE
                 ? "; it is the service's own, that of another name with the same port, or of another program: "
                   "choose another name, or a number"
                 : "");
}
