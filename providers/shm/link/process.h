/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes of peers: who they are, and whether they live. */
#ifndef SHM_PROCESS_H
#define SHM_PROCESS_H

#include "shm.h"

/*
 * The process of the domain with that token, with one more use. Takes over `event_fd`. `connection`: a socket that leads to it; with
 * `keep` a duplicate stays open in place of a pidfd. NULL with *error: -ESRCH when the process is dead, -ENOMEM, -EMFILE.
 */
struct shm_process *shm_process_acquire(struct shm_domain *domain, uint64_t token, int connection, uint64_t start_time,
                                        int event_fd, bool keep, int *error);
void shm_process_release(struct shm_process *process);
/* Whether its process is dead, also when no progress has noticed it. */
bool shm_process_has_died(const struct shm_process *process);
/* Whether the process at the other end of a connection can be watched without it. */
bool shm_peer_is_watchable(const struct shm_domain *domain, int connection);
/* Whether the memory of the process of that pid can be read, and has the link's incarnation where only it has. */
bool shm_process_is_same(const struct shm_link *link);
/* Field 22 of /proc/<pid>/stat (0: ourselves); 0: unknown. */
uint64_t shm_process_read_start_time(int32_t pid);
/* The pid at the other end, as seen from here, and whether it is the same user's. */
int shm_connection_identify(int connection, int32_t *pid);

/* Whether the process at the other end of a connection is the one of the link. */
bool shm_connection_is_of_link(const struct shm_link *link, int connection);

#endif
