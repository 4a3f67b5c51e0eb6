/* SPDX-License-Identifier: BSD-3-Clause */
#include "datagram/finder.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct verbs_search {
    struct verbs_search *next;
    struct ofp_peer *peer;   /* guarded by the domain's lock; NULL: the search was abandoned */
    struct ibv_ah_attr attr; /* constant */
    struct ibv_ah
        *handle; /* written by the thread, read after it is found; NULL then: not resolved, for the reason `error` */
    int error;
};

/* ---------------------------------------------------------------------------------------------------------- the thread */

static void append_search(struct verbs_search **list, struct verbs_search *search)
{
    while (*list)
        list = &(*list)->next;
    search->next = NULL;
    *list = search;
}

static void *run_finder(void *argument)
{
    struct verbs_domain *domain = argument;
    struct verbs_finder *finder = &domain->finder;

    pthread_mutex_lock(&finder->lock);
    while (!finder->stop) {
        struct verbs_search *search = finder->requested;

        if (!search) {
            pthread_cond_wait(&finder->changed, &finder->lock);
            continue;
        }
        finder->requested = search->next;
        pthread_mutex_unlock(&finder->lock);
        search->handle = verbs_calls.create_ah(domain->pd, &search->attr);
        search->error = errno;
        pthread_mutex_lock(&finder->lock);
        append_search(&finder->found, search);
        eventfd_write(finder->watch.fd, 1);
    }
    pthread_mutex_unlock(&finder->lock);
    return NULL;
}

/* -------------------------------------------------------------------------------------------------------------- telling */

static void report_search(struct verbs_search *search)
{
    struct verbs_datagram_peer *known = search->peer->private;
    char text[OFP_TEXT_MAX];

    known->search = NULL;
    known->handle = search->handle;
    if (known->handle) {
        /* The host was resolved. Only an answer would show that the endpoint exists. */
        ofp_peer_up(search->peer);
        return;
    }
    snprintf(text, sizeof(text), "no way there: %s; is the host up, and in the network (ping)?",
             strerror(search->error));
    ofp_peer_lost(search->peer, search->error, false, text);
}

static void free_search(struct verbs_search *search)
{
    if (search->handle)
        verbs_calls.destroy_ah(search->handle);
    free(search);
}

static struct verbs_search *collect_searches(struct verbs_finder *finder)
{
    struct verbs_search *found;

    pthread_mutex_lock(&finder->lock);
    found = finder->found;
    finder->found = NULL;
    pthread_mutex_unlock(&finder->lock);
    return found;
}

static void searches_ended(struct ofp_watch *watch, uint32_t events)
{
    struct verbs_finder *finder = OFP_CONTAINER_OF(watch, struct verbs_finder, watch);
    struct verbs_search *search, *next;
    eventfd_t ignored;

    (void)events;
    eventfd_read(watch->fd, &ignored);
    for (search = collect_searches(finder); search; search = next) {
        next = search->next;
        if (search->peer) {
            report_search(search);
            search->handle = NULL;
        }
        free_search(search);
    }
}

/* --------------------------------------------------------------------------------------------------------------- asking */

static int start_finder_thread(struct verbs_domain *domain)
{
    sigset_t all, before;
    int error;

    /* All signals are blocked, as in every thread of the library. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&domain->finder.thread, NULL, run_finder, domain);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

static int start_finder(struct verbs_domain *domain)
{
    struct verbs_finder *finder = &domain->finder;
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), result;

    if (fd < 0)
        return -errno;
    finder->watch = (struct ofp_watch){.fd = fd, .events = EPOLLIN, .ready = searches_ended};
    result = verbs_core->watch_add(domain->base, &finder->watch);
    if (!result) {
        result = start_finder_thread(domain);
        if (result)
            verbs_core->watch_remove(domain->base, &finder->watch);
    }
    if (result)
        close(fd);
    finder->running = !result;
    return result;
}

void verbs_finder_open(struct verbs_domain *domain)
{
    pthread_mutex_init(&domain->finder.lock, NULL);
    pthread_cond_init(&domain->finder.changed, NULL);
}

int verbs_search_start(struct verbs_domain *domain, struct ofp_peer *peer, const struct ibv_ah_attr *attr)
{
    struct verbs_finder *finder = &domain->finder;
    struct verbs_search *search;
    int result = finder->running ? 0 : start_finder(domain);

    if (result)
        return result;
    search = calloc(1, sizeof(*search));
    if (!search)
        return -ENOMEM;
    search->peer = peer;
    search->attr = *attr;
    ((struct verbs_datagram_peer *)peer->private)->search = search;
    pthread_mutex_lock(&finder->lock);
    append_search(&finder->requested, search);
    pthread_cond_signal(&finder->changed);
    pthread_mutex_unlock(&finder->lock);
    return 0;
}

void verbs_search_abandon(struct verbs_search *search) { search->peer = NULL; }

static void free_searches(struct verbs_search *search)
{
    while (search) {
        struct verbs_search *next = search->next;

        free_search(search);
        search = next;
    }
}

void verbs_finder_close(struct verbs_domain *domain)
{
    struct verbs_finder *finder = &domain->finder;

    if (finder->running) {
        pthread_mutex_lock(&finder->lock);
        finder->stop = true;
        pthread_cond_signal(&finder->changed);
        pthread_mutex_unlock(&finder->lock);
        pthread_join(finder->thread, NULL);
        verbs_core->watch_remove(domain->base, &finder->watch);
        close(finder->watch.fd);
    }
    free_searches(finder->requested);
    free_searches(finder->found);
    pthread_cond_destroy(&finder->changed);
    pthread_mutex_destroy(&finder->lock);
}
