/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of peers, and their deaths. A pidfd becomes readable when the process has ended. The hang-up of a socket is
 * less reliable, since a forked child keeps sockets open. It is used only where the process is not visible from here
 * (another pid namespace).
 */
#include "link/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "link/link.h"
#include "memory/arena.h"

/* Since Linux 6.5: the pidfd of the process at the other end, safe against a reused pid. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

uint64_t shm_process_read_start_time(int32_t pid)
{
    char path[64], text[1024], *field;
    ssize_t length;
    int fd;

    if (pid)
        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    else
        snprintf(path, sizeof(path), "/proc/self/stat");
    fd = open(path, O_RDONLY | O_CLOEXEC);
    length = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    if (length <= 0)
        return 0;
    text[length] = 0;
    /* The name, in parentheses, may contain any character. Behind it: field 3 and on; the start time is field 22. */
    field = strrchr(text, ')');
    for (int i = 2; field && i < 22; i++) {
        field = strchr(field, ' ');
        field += field != NULL;
    }
    return field ? strtoull(field, NULL, 10) : 0;
}

int shm_connection_identify(int connection, int32_t *pid)
{
    struct ucred credentials;
    socklen_t length = sizeof(credentials);

    if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
        return -errno;
    *pid = credentials.pid;
    return credentials.uid == getuid() ? 0 : -EACCES;
}

bool shm_connection_is_of_link(const struct shm_link *link, int connection)
{
    int32_t pid = 0;

    shm_connection_identify(connection, &pid);
    return pid == link->process->pid;
}

bool shm_process_is_same(const struct shm_link *link)
{
    uint64_t word = 0;
    struct iovec local = {&word, sizeof(word)};
    struct iovec remote = {(void *)(uintptr_t)link->probe_address, sizeof(word)};

    return link->process->pid > 0 && process_vm_readv(link->process->pid, &local, 1, &remote, 1, 0) == sizeof(word) &&
           word == link->segment.incarnation;
}

/* A pidfd, or a negative error: -ESRCH when the process is dead. `start_time` 0: not compared. */
static int open_pidfd(int connection, int32_t pid, uint64_t start_time)
{
    socklen_t length = sizeof(int);
    uint64_t found;
    int fd;

    if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &fd, &length) == 0) {
        fcntl(fd, F_SETFD, FD_CLOEXEC);
        return fd;
    }
    if (errno == EMFILE || errno == ENFILE)
        return -errno;
    if (!pid)
        return -ENOTSUP;
    fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0)
        return -errno;
    /* Checked after the open: a pid that was reused before has another start time. */
    found = shm_process_read_start_time(pid);
    if (start_time && found && found != start_time) {
        close(fd);
        return -ESRCH;
    }
    return fd;
}

static bool is_readable(int fd)
{
    struct pollfd entry = {.fd = fd, .events = POLLIN};

    return poll(&entry, 1, 0) == 1;
}

bool shm_peer_is_watchable(const struct shm_domain *domain, int connection)
{
    int32_t pid = 0;
    int fd;

    if (!domain->pidfd)
        return false;
    shm_connection_identify(connection, &pid);
    fd = open_pidfd(connection, pid, 0);
    if (fd >= 0)
        close(fd);
    /* A dead process or a shortage of descriptors is no reason to keep the connection. */
    return fd >= 0 || fd == -ESRCH || fd == -EMFILE || fd == -ENFILE;
}

bool shm_process_has_died(const struct shm_process *process)
{
    return process->dead || (process->watch.fd >= 0 && is_readable(process->watch.fd));
}

/* ---------------------------------------------------------------------------------------------------------- deaths */

static void end_process_links(struct shm_endpoint *endpoint, const struct shm_process *process)
{
    for (uint32_t i = 1; i < endpoint->link_capacity; i++)
        if (endpoint->links[i] && endpoint->links[i]->process == process)
            shm_link_mark_ended(endpoint->links[i], SHM_END_DEAD);
}

static void process_died(struct ofp_watch *watch, uint32_t events)
{
    struct shm_process *process = OFP_CONTAINER_OF(watch, struct shm_process, watch);
    struct shm_domain *domain = process->domain;
    struct ofp_list *node, *following;

    (void)events;
    process->dead = true;
    shm_core->watch_remove(domain->base, watch);
    close(watch->fd);
    watch->fd = -1;
    OFP_LIST_EACH(node, following, &domain->endpoints)
        end_process_links(OFP_CONTAINER_OF(node, struct shm_endpoint, node), process);
}

/* Watch by pidfd, or by a duplicate of the connection, which then stays open. */
static int watch_process(struct shm_process *process, int connection, uint64_t start_time, bool keep)
{
    int fd = keep ? fcntl(connection, F_DUPFD_CLOEXEC, 0) : open_pidfd(connection, process->pid, start_time);
    int error;

    if (fd < 0)
        return keep ? -errno : fd;
    if (!keep && is_readable(fd)) {
        close(fd);
        return -ESRCH;
    }
    /* Not EPOLLIN on the connection: data that may still arrive there belongs to the meeting. */
    process->watch = (struct ofp_watch){.fd = fd, .events = keep ? EPOLLRDHUP : EPOLLIN, .ready = process_died};
    error = shm_core->watch_add(process->domain->base, &process->watch);
    if (error)
        close(fd);
    return error;
}

/* ------------------------------------------------------------------------------------------------------- processes */

static struct shm_process *find_process(const struct shm_domain *domain, uint64_t token, int32_t pid)
{
    for (const struct ofp_list *node = domain->processes.next; node != &domain->processes; node = node->next) {
        const struct shm_process *process = OFP_CONTAINER_OF(node, const struct shm_process, node);

        if (process->token == token && process->pid == pid && !process->dead)
            return (struct shm_process *)(uintptr_t)process;
    }
    return NULL;
}

struct shm_process *shm_process_acquire(struct shm_domain *domain, uint64_t token, int connection, uint64_t start_time,
                                        int event_fd, bool keep, int *error)
{
    struct shm_process *process;
    int32_t pid = 0;

    shm_connection_identify(connection, &pid);
    process = token == domain->token && pid == getpid() ? &domain->self : find_process(domain, token, pid);
    if (process) {
        close(event_fd);
        process->uses++;
        return process;
    }
    process = calloc(1, sizeof(*process));
    *error = -ENOMEM;
    if (process) {
        *process = (struct shm_process){
            .uses = 1, .token = token, .pid = pid, .event_fd = event_fd, .domain = domain, .watch.fd = -1};
        ofp_list_init(&process->arenas);
        *error = watch_process(process, connection, start_time, keep);
    }
    if (*error) {
        free(process);
        close(event_fd);
        return NULL;
    }
    ofp_list_append(&domain->processes, &process->node);
    return process;
}

void shm_process_release(struct shm_process *process)
{
    OFP_CHECK(process->uses > 0);
    if (--process->uses || process == &process->domain->self)
        return;
    if (process->watch.fd >= 0) {
        shm_core->watch_remove(process->domain->base, &process->watch);
        close(process->watch.fd);
    }
    shm_foreign_arenas_close(process);
    close(process->event_fd);
    ofp_list_remove(&process->node);
    free(process);
}
