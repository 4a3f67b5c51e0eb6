/* SPDX-License-Identifier: BSD-3-Clause */
#include "connection/reaper.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct verbs_doomed {
    struct verbs_doomed *next;
    struct rdma_cm_id *id;
    struct ibv_qp *qp; /* NULL: none, or no more */
};

/* With what asynchronous events find, which none of them needs any more. */
static void destroy_pair(struct ibv_qp *qp)
{
    struct verbs_told *told = qp->qp_context;

    verbs_calls.destroy_qp(qp);
    free(told);
}

/* The lock is held, but not meanwhile. False: there is no queue pair that nobody destroys yet. */
static bool end_a_pair(struct verbs_reaper *reaper)
{
    struct verbs_doomed *doomed = reaper->doomed;
    struct ibv_qp *qp;

    while (doomed && !doomed->qp)
        doomed = doomed->next;
    if (!doomed)
        return false;
    qp = doomed->qp;
    doomed->qp = NULL;
    reaper->ending++;
    pthread_mutex_unlock(&reaper->lock);
    destroy_pair(qp);
    pthread_mutex_lock(&reaper->lock);
    reaper->ending--;
    pthread_cond_broadcast(&reaper->changed);
    return true;
}

static bool end_an_id(struct verbs_reaper *reaper)
{
    struct verbs_doomed *doomed = reaper->doomed;

    if (!doomed)
        return false;
    reaper->doomed = doomed->next;
    pthread_mutex_unlock(&reaper->lock);
    verbs_calls.destroy_id(doomed->id);
    free(doomed);
    pthread_mutex_lock(&reaper->lock);
    return true;
}

/* Queue pairs first: somebody may wait for them. */
static void *reap(void *argument)
{
    struct verbs_reaper *reaper = argument;

    pthread_mutex_lock(&reaper->lock);
    while (end_a_pair(reaper) || end_an_id(reaper) || !reaper->stop)
        if (!reaper->doomed && !reaper->stop)
            pthread_cond_wait(&reaper->changed, &reaper->lock);
    pthread_mutex_unlock(&reaper->lock);
    return NULL;
}

/* With all signals blocked, as every thread of the library. */
static bool start(struct verbs_reaper *reaper)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    reaper->running = pthread_create(&reaper->thread, NULL, reap, reaper) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return reaper->running;
}

void verbs_reaper_open(struct verbs_domain *domain)
{
    pthread_mutex_init(&domain->reaper.lock, NULL);
    pthread_cond_init(&domain->reaper.changed, NULL);
}

void verbs_reap(struct verbs_domain *domain, struct rdma_cm_id *id, struct ibv_qp *qp)
{
    struct verbs_reaper *reaper = &domain->reaper;
    struct verbs_doomed *doomed = malloc(sizeof(*doomed));

    id->context = NULL;
    if (!doomed || (!reaper->running && !start(reaper))) {
        free(doomed);
        if (qp)
            destroy_pair(qp);
        verbs_calls.destroy_id(id);
        return;
    }
    doomed->id = id;
    doomed->qp = qp;
    pthread_mutex_lock(&reaper->lock);
    doomed->next = reaper->doomed;
    reaper->doomed = doomed;
    pthread_cond_broadcast(&reaper->changed);
    pthread_mutex_unlock(&reaper->lock);
}

void verbs_reaper_settle(struct verbs_domain *domain)
{
    struct verbs_reaper *reaper = &domain->reaper;

    pthread_mutex_lock(&reaper->lock);
    while (end_a_pair(reaper))
        ;
    while (reaper->ending)
        pthread_cond_wait(&reaper->changed, &reaper->lock);
    pthread_mutex_unlock(&reaper->lock);
}

void verbs_reaper_close(struct verbs_domain *domain)
{
    struct verbs_reaper *reaper = &domain->reaper;

    if (reaper->running) {
        pthread_mutex_lock(&reaper->lock);
        reaper->stop = true;
        pthread_cond_broadcast(&reaper->changed);
        pthread_mutex_unlock(&reaper->lock);
        pthread_join(reaper->thread, NULL);
    }
    pthread_cond_destroy(&reaper->changed);
    pthread_mutex_destroy(&reaper->lock);
}
