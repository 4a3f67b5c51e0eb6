/* SPDX-License-Identifier: BSD-3-Clause */
#include "connection/reaper.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

struct verbs_closing_id {
    struct verbs_closing_id *next;
    struct rdma_cm_id *id;
    struct ibv_qp *qp; /* NULL: none, or closed already */
};

void verbs_qp_close(struct ibv_qp *qp)
{
    struct verbs_qp_context *context = qp->qp_context;
    struct verbs_qp_end *end = context->end;
    _Atomic bool *some = end ? end->some : NULL;

    /* The owner may free `end` as soon as it is written. */
    if (verbs_calls.destroy_qp(qp) == 0 && end) {
        atomic_store_explicit(&end->destroyed, true, memory_order_release);
        atomic_store_explicit(some, true, memory_order_release);
    }
    free(context);
}

/*
 * The caller holds the lock, which is released while the device works. Returns false if every queue pair is closed, or
 * being closed.
 */
static bool close_next_pair(struct verbs_reaper *reaper)
{
    struct verbs_closing_id *closing = reaper->closing;
    struct ibv_qp *qp;

    while (closing && !closing->qp)
        closing = closing->next;
    if (!closing)
        return false;
    qp = closing->qp;
    closing->qp = NULL;
    reaper->ending++;
    pthread_mutex_unlock(&reaper->lock);
    verbs_qp_close(qp);
    pthread_mutex_lock(&reaper->lock);
    OFP_CHECK(reaper->ending > 0);
    reaper->ending--;
    pthread_cond_broadcast(&reaper->changed);
    return true;
}

static bool close_next_id(struct verbs_reaper *reaper)
{
    struct verbs_closing_id *closing = reaper->closing;

    if (!closing)
        return false;
    reaper->closing = closing->next;
    pthread_mutex_unlock(&reaper->lock);
    verbs_calls.destroy_id(closing->id);
    free(closing);
    pthread_mutex_lock(&reaper->lock);
    return true;
}

/* Queue pairs are closed first, since verbs_reaper_drain_pairs may wait for them. */
static void *run_reaper(void *argument)
{
    struct verbs_reaper *reaper = argument;

    pthread_mutex_lock(&reaper->lock);
    while (close_next_pair(reaper) || close_next_id(reaper) || !reaper->stop)
        if (!reaper->closing && !reaper->stop)
            pthread_cond_wait(&reaper->changed, &reaper->lock);
    pthread_mutex_unlock(&reaper->lock);
    return NULL;
}

/* All signals are blocked, as in every thread of the library. */
static bool start_reaper(struct verbs_reaper *reaper)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    reaper->running = pthread_create(&reaper->thread, NULL, run_reaper, reaper) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return reaper->running;
}

void verbs_reaper_open(struct verbs_domain *domain)
{
    pthread_mutex_init(&domain->reaper.lock, NULL);
    pthread_cond_init(&domain->reaper.changed, NULL);
}

void verbs_id_close_later(struct verbs_domain *domain, struct rdma_cm_id *id, struct ibv_qp *qp)
{
    struct verbs_reaper *reaper = &domain->reaper;
    struct verbs_closing_id *closing = malloc(sizeof(*closing));

    id->context = NULL;
    if (!closing || (!reaper->running && !start_reaper(reaper))) {
        free(closing);
        if (qp)
            verbs_qp_close(qp);
        verbs_calls.destroy_id(id);
        return;
    }
    closing->id = id;
    closing->qp = qp;
    pthread_mutex_lock(&reaper->lock);
    closing->next = reaper->closing;
    reaper->closing = closing;
    pthread_cond_broadcast(&reaper->changed);
    pthread_mutex_unlock(&reaper->lock);
}

void verbs_reaper_drain_pairs(struct verbs_domain *domain)
{
    struct verbs_reaper *reaper = &domain->reaper;

    pthread_mutex_lock(&reaper->lock);
    while (close_next_pair(reaper))
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
