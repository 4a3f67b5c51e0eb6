/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of datagram endpoints, as libfabric's provider hands them out too: 32 bytes, numbers in the host's order, the
 * partition key in the network's. As text "203.0.113.1:qp17", with what else is not as usual behind it: ".lid5.sl1.pkey8001".
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
    uint16_t service; /* of libfabric's name server; 0 */
    uint8_t sl;
    uint8_t unused[5];
};
_Static_assert(sizeof(struct verbs_datagram_address) == 32, "libfabric's size");
_Static_assert(offsetof(struct verbs_datagram_address, sl) == 26, "libfabric's places");

/* By these bytes in front an address is found: what tells of a message who sent it. */
#define VERBS_DATAGRAM_KEY_SIZE (sizeof(union ibv_gid) + sizeof(uint32_t))

/* From bytes of anywhere: 0, or -EINVAL. */
int verbs_datagram_address_decode(const void *bytes, size_t length, struct verbs_datagram_address *address);
int verbs_datagram_address_format(const struct verbs_datagram_address *address, char *text, size_t text_size);
/* Whether what is behind the host's name of a text is of such an address. */
static inline bool verbs_service_is_of_datagrams(const char *service) { return service[0] == 'q' && service[1] == 'p'; }
/* From the text of `verbs_datagram_address_format`, taken apart at its last colon. -EINVAL with a text. */
int verbs_datagram_address_parse(const char *node, const char *service, struct verbs_datagram_address *address,
                                 char *text, size_t text_size);

#endif
