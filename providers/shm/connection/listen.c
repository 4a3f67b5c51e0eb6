/* SPDX-License-Identifier: BSD-3-Clause */
/* The listening socket of an endpoint: its name, and the acceptance of callers. */
#include "connection/listen.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/address.h"
#include "connection/hello.h"
#include "connection/meet.h"

/* After a shortage of descriptors, or with too many calls, no caller is accepted for this time, ns. */
#define LISTENER_PAUSE UINT64_C(50000000)
/* Connections accepted per call, so that a flood of them does not stop everything else. */
#define ACCEPT_BATCH 32
/* Times after which a waiting caller may end a call: until its HELLO, which arrives at once, and until its ACK, ns. */
#define HELLO_PATIENCE UINT64_C(100000000)
#define ACK_PATIENCE UINT64_C(1000000000)

static void unwatch_listener(struct shm_endpoint *endpoint)
{
    /* The socket would stay readable: unwatch it until descriptors or calls may be free again. */
    shm_core->watch_remove(endpoint->domain->base, &endpoint->listener);
    endpoint->listener_timer.deadline = shm_core->now() + LISTENER_PAUSE;
    shm_core->timer_start(endpoint->domain->base, &endpoint->listener_timer);
}

static void resume_listener(struct ofp_timer *timer, uint64_t now)
{
    struct shm_endpoint *endpoint = OFP_CONTAINER_OF(timer, struct shm_endpoint, listener_timer);

    (void)now;
    if (shm_core->watch_add(endpoint->domain->base, &endpoint->listener) != 0) {
        endpoint->listener_timer.deadline = shm_core->now() + LISTENER_PAUSE;
        shm_core->timer_start(endpoint->domain->base, &endpoint->listener_timer);
    }
}

/*
 * There are as many calls as allowed: end the oldest one whose time is over. Its caller tries again, and a caller that
 * was answered is called from here. False: none is overdue, and new callers wait in the backlog.
 */
static bool end_overdue_call(struct shm_endpoint *endpoint)
{
    struct ofp_list *node, *following;
    uint64_t now = shm_core->now();

    OFP_LIST_EACH(node, following, &endpoint->meetings) {
        struct shm_meeting *meeting = OFP_CONTAINER_OF(node, struct shm_meeting, node);
        uint64_t began = meeting->deadline - endpoint->domain->connect_ns;

        if (meeting->role != SHM_CALLED || now - began < (meeting->link ? ACK_PATIENCE : HELLO_PATIENCE))
            continue;
        shm_meeting_disconnected(meeting);
        return true;
    }
    return false;
}

static void accept_callers(struct ofp_watch *watch, uint32_t events)
{
    struct shm_endpoint *endpoint = OFP_CONTAINER_OF(watch, struct shm_endpoint, listener);

    (void)events;
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        int fd;

        if (endpoint->calls >= SHM_CALLS_MAX && !end_overdue_call(endpoint)) {
            unwatch_listener(endpoint);
            return;
        }
        fd = accept4(watch->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
            shm_caller_accept(endpoint, fd);
            continue;
        }
        if (errno == EINTR || errno == ECONNABORTED)
            continue;
        if (errno != EAGAIN)
            unwatch_listener(endpoint);
        return;
    }
}

static int bind_name(struct shm_endpoint *endpoint, int fd, const char *name, char *text, size_t text_size)
{
    struct sockaddr_un address;
    socklen_t length;
    int error = shm_address_build(&endpoint->address, endpoint->domain->host, name, text, text_size);

    if (error)
        return error;
    length = shm_address_convert(&endpoint->address, &address);
    if (bind(fd, (struct sockaddr *)&address, length) == 0)
        return 0;
    error = -errno;
    snprintf(text, text_size, "service %s: %s", name,
             error == -EADDRINUSE ? "another endpoint of this user and host has it" : strerror(-error));
    return error;
}

static int bind_random_name(struct shm_endpoint *endpoint, int fd, char *text, size_t text_size)
{
    char name[SHM_NAME_SIZE];
    uint64_t number;
    int error = -EADDRINUSE;

    for (int tries = 0; tries < 8 && error == -EADDRINUSE; tries++) {
        if (getrandom(&number, sizeof(number), 0) != sizeof(number))
            return -EIO;
        snprintf(name, sizeof(name), "%c%016llx", SHM_RANDOM_NAME, (unsigned long long)number);
        error = bind_name(endpoint, fd, name, text, text_size);
    }
    return error;
}

int shm_listener_open(struct shm_endpoint *endpoint, const char *service, char *text, size_t text_size)
{
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int error;

    if (fd < 0) {
        error = -errno;
        snprintf(text, text_size, "cannot make a socket: %s%s", strerror(-error),
                 error == -EMFILE ? "; raise the limit of open files (ulimit -n)" : "");
        return error;
    }
    if (service && service[0] == SHM_RANDOM_NAME) {
        snprintf(text, text_size, "service %s: names that begin with %c are drawn, not chosen", service,
                 SHM_RANDOM_NAME);
        error = -EINVAL;
    } else {
        error = service ? bind_name(endpoint, fd, service, text, text_size)
                        : bind_random_name(endpoint, fd, text, text_size);
    }
    if (!error && listen(fd, SOMAXCONN) != 0)
        error = -errno;
    endpoint->listener = (struct ofp_watch){.fd = fd, .events = EPOLLIN, .ready = accept_callers};
    endpoint->listener_timer.expired = resume_listener;
    if (!error)
        error = shm_core->watch_add(endpoint->domain->base, &endpoint->listener);
    if (error) {
        close(fd);
        endpoint->listener.fd = -1;
    }
    return error;
}

void shm_listener_close(struct shm_endpoint *endpoint)
{
    if (endpoint->listener_timer.position)
        shm_core->timer_stop(endpoint->domain->base, &endpoint->listener_timer);
    else
        shm_core->watch_remove(endpoint->domain->base, &endpoint->listener);
    close(endpoint->listener.fd);
}
