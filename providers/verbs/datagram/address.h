/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of datagram endpoints, in the format of libfabric's verbs provider: 32 bytes, integers in host order, the
 * partition key in network order. The text is "203.0.113.1:qp17", with values other than the usual ones behind it:
 * ".lid5.sl1.pkey8001".
 */
#ifndef VERBS_DATAGRAM_ADDRESS_H
#define VERBS_DATAGRAM_ADDRESS_H

#include "objects.h"
#include "ofipy/types.h"

struct verbs_datagram_address {
    union ibv_gid gid;
    uint32_t qpn;
    uint16_t lid;
    uint16_t pkey;
    uint16_t service; /* of libfabric's name server; always 0 here */
    uint8_t sl;
    uint8_t unused[5];
};
_Static_assert(sizeof(struct verbs_datagram_address) == 32, "libfabric's size");
_Static_assert(offsetof(struct verbs_datagram_address, sl) == 26, "libfabric's places");

/*
 * Length of the key, which is the front of an address: a received message contains GID and queue pair number of its
 * sender.
 */
#define VERBS_DATAGRAM_KEY_SIZE (sizeof(union ibv_gid) + sizeof(uint32_t))

/* Check bytes from outside and copy them. Returns 0 or -EINVAL. */
int verbs_datagram_address_decode(const void *bytes, size_t length, struct verbs_datagram_address *address);
int verbs_datagram_address_format(const struct verbs_datagram_address *address, char *text, size_t text_size);
/* Whether a service, which is the text behind the host, belongs to a datagram address. */
static inline bool verbs_service_is_of_datagrams(const char *service) { return service[0] == 'q' && service[1] == 'p'; }
/* Parse the text that verbs_datagram_address_format writes, split at its last colon. Returns -EINVAL with a text. */
int verbs_datagram_address_parse(const char *node, const char *service, struct verbs_datagram_address *address,
                                 char *text, size_t text_size);

#endif
