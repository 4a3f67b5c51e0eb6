/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion statuses of the device, as errors and texts. */
#ifndef VERBS_FAULT_H
#define VERBS_FAULT_H

#include "objects.h"

/* Codes beside libibverbs' statuses: the port was down, with any status of the device. */
#define VERBS_FAULT_PORT_DOWN 256
/* The device was removed. */
#define VERBS_FAULT_REMOVED 257

/* Find out why a work request failed: its status, or a code above if the device's state explains it. */
int verbs_fault_identify(const struct verbs_domain *domain, enum ibv_wc_status status);
/* The errno or OFP_E* code of a fault. */
int verbs_fault_find_error(int status);
/* A static text: what happened and what to do. */
const char *verbs_fault_find_text(int status);
/* The provider error of a fault, different from the core's codes. */
static inline int verbs_code_of_fault(int status) { return 1000 + status; }
/* The text of such a code; NULL: it is the core's. */
const char *verbs_code_find_text(int code);
/* Why the device ended the queue pair, from the number of an asynchronous event; 0: unknown. */
const char *verbs_event_find_text(int event);

#endif
