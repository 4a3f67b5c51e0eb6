/* SPDX-License-Identifier: BSD-3-Clause */
/* What the device says went wrong, as an error and in words. */
#ifndef VERBS_FAULT_H
#define VERBS_FAULT_H

#include "objects.h"

/* Beside the statuses of libibverbs: the port was down, whatever the device made of that. */
#define VERBS_FAULT_PORT_DOWN 256
/* And: the device was removed. */
#define VERBS_FAULT_REMOVED 257

/* Why a work request failed: its status, or one of those above where the device's state explains it. */
int verbs_fault_identify(const struct verbs_domain *domain, enum ibv_wc_status status);
/* The errno or OFP_E… of that. */
int verbs_fault_find_error(int status);
/* What happened, and what to do; static. */
const char *verbs_fault_find_text(int status);
/* Its provider_error, which is none of the core's codes. */
static inline int verbs_code_of_fault(int status) { return 1000 + status; }
/* The text of such a code; NULL: it is the core's. */
const char *verbs_code_find_text(int code);
/* Why the device gave the queue pair up, by the number of an asynchronous event; 0: it did not say. */
const char *verbs_event_find_text(int event);

#endif
