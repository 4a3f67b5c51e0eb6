/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of shm endpoints: which host (as far as an abstract socket reaches), which user, which name.
 * Fixed size, unused bytes zero, so that equal addresses are equal byte for byte.
 */
#ifndef SHM_ADDRESS_H
#define SHM_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define SHM_ADDRESS_MAGIC 0x41534d41u /* "AMSA" in memory */
#define SHM_ADDRESS_VERSION 1
#define SHM_NAME_SIZE 44
/* First character of random names; services that users choose do not begin with it. */
#define SHM_RANDOM_NAME '~'

struct shm_address {
    uint32_t magic;
    uint16_t version;
    uint16_t reserved;
    uint64_t host; /* core->host_id: endpoints with different values cannot connect */
    uint32_t uid;
    char name[SHM_NAME_SIZE]; /* ends with a zero */
};
_Static_assert(offsetof(struct shm_address, version) == 4, "layout");
_Static_assert(offsetof(struct shm_address, host) == 8, "layout");
_Static_assert(offsetof(struct shm_address, uid) == 16, "layout");
_Static_assert(offsetof(struct shm_address, name) == 20, "layout");
_Static_assert(sizeof(struct shm_address) == 64, "layout");

/*
 * Build the address of this user's endpoint of `service` on `host` (core->host_id). -EINVAL with a text if the name is
 * not allowed.
 */
int shm_address_build(struct shm_address *address, uint64_t host, const char *service, char *text, size_t text_size);
/* Whether an endpoint on `host` can connect to the address. 0, or -EHOSTUNREACH with a text. */
int shm_address_check_host(uint64_t host, const struct shm_address *address, char *text, size_t text_size);
/* Entries of the provider's table. */
int shm_address_resolve(const char *node, const char *service, void *address, size_t *length, char *text,
                        size_t text_size);
/* 0: the node is this host, by name or address. Otherwise a negative errno with a text. */
int shm_address_check_node(const char *node, char *text, size_t text_size);
int shm_address_check(const void *address, size_t length);
int shm_address_format(const void *address, size_t length, char *text, size_t text_size);
/*
 * Explain why no endpoint answers at an address of this host and user. The socket's name is visible in this network
 * namespace only, so the text says no more than is known here.
 */
void shm_address_describe_absence(const void *address, char *text, size_t text_size);
/* Fill in the abstract socket address; returns its length. */
socklen_t shm_address_convert(const struct shm_address *address, struct sockaddr_un *socket_address);

#endif
