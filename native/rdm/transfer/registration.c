/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdm/transfer/registration.h"

#include <stdlib.h>

static struct ofpi_rdm_registration *register_each_piece(struct ofpi_rdm_path *path,
                                                         struct ofpi_rdm_registration *registration, uint32_t access)
{
    for (uint32_t i = 0; i < registration->count; i++) {
        if (path->base.channel->ops->register_memory(&path->base, &registration->memory[i], access) != 0) {
            registration->count = i;
            return NULL;
        }
    }
    return registration;
}

struct ofpi_rdm_registration *ofpi_rdm_memory_register(struct ofpi_rdm_path *path, const struct iovec *iov,
                                                       struct ofp_region *const *regions, uint32_t count,
                                                       uint64_t length, uint32_t access)
{
    struct ofpi_rdm_registration *registration;

    /* A layout has too many pieces for a device: it leaves and arrives in packets. */
    if (count == OFP_LAYOUT || !(path->base.channel->ops->properties & (OFPI_CHANNEL_GET | OFPI_CHANNEL_PUT)))
        return NULL;
    registration = calloc(1, sizeof(*registration) + count * sizeof(registration->memory[0]));
    if (!registration)
        return NULL;
    for (uint32_t i = 0; i < count && length; i++) {
        uint64_t size = iov[i].iov_len < length ? iov[i].iov_len : length;

        if (size)
            registration->memory[registration->count++] =
                (struct ofpi_memory){.base = iov[i].iov_base, .length = size, .region = regions ? regions[i] : NULL};
        length -= size;
    }
    ofp_list_append(&path->registrations, &registration->node);
    if (registration->count && register_each_piece(path, registration, access))
        return registration;
    ofpi_rdm_memory_deregister(path, registration);
    return NULL;
}

static void deregister_pieces(struct ofpi_rdm_path *path, struct ofpi_rdm_registration *registration)
{
    while (registration->count)
        path->base.channel->ops->deregister_memory(&path->base, &registration->memory[--registration->count]);
}

void ofpi_rdm_memory_deregister(struct ofpi_rdm_path *path, struct ofpi_rdm_registration *registration)
{
    if (!registration)
        return;
    deregister_pieces(path, registration);
    ofp_list_remove(&registration->node);
    free(registration);
}

void ofpi_rdm_path_deregister_memory(struct ofpi_rdm_path *path)
{
    for (struct ofp_list *node = path->registrations.next; node != &path->registrations; node = node->next)
        deregister_pieces(path, OFP_CONTAINER_OF(node, struct ofpi_rdm_registration, node));
}

void ofpi_rdm_registration_fill_pieces(const struct ofpi_rdm_registration *registration, struct ofpi_rdm_packet *header)
{
    header->count = (uint8_t)(registration ? registration->count : 0);
    for (uint32_t i = 0; i < header->count; i++)
        header->pieces[i] = (struct ofpi_rdm_piece){registration->memory[i].address, registration->memory[i].length,
                                                    registration->memory[i].key};
}
