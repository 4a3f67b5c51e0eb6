/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes of peers: identity and death. */
#ifndef SHM_PROCESS_H
#define SHM_PROCESS_H

#include "shm.h"

/*
 * Get a reference to the process of the domain with that token. Owns `event_fd` afterwards. `connection`: a socket to
 * the process. `keep`: a duplicate of the socket stays open in place of a pidfd. NULL with *error: -ESRCH when the
 * process is dead, -ENOMEM, -EMFILE.
 */
struct shm_process *shm_process_acquire(struct shm_domain *domain, uint64_t token, int connection, uint64_t start_time,
                                        int event_fd, bool keep, int *error);
void shm_process_release(struct shm_process *process);
/* Whether the process is dead, even if progress has not noticed it yet. */
bool shm_process_has_died(const struct shm_process *process);
/* Whether the process at the other end of a connection can be watched without the connection. */
bool shm_peer_is_watchable(const struct shm_domain *domain, int connection);
/*
 * Whether attach can read the link's incarnation at its address in the process: then the pid still belongs to the peer.
 */
bool shm_process_is_same(const struct shm_link *link);
/* Field 22 of /proc/<pid>/stat (0: ourselves); 0: unknown. */
uint64_t shm_process_read_start_time(int32_t pid);
/*
 * Find the pid at the other end, as this pid namespace numbers it. 0, or -EACCES if the process belongs to another
 * user.
 */
int shm_connection_identify(int connection, int32_t *pid);

/* Whether the process at the other end of a connection is the one of the link. */
bool shm_connection_is_of_link(const struct shm_link *link, int connection);

#endif
