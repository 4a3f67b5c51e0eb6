/* SPDX-License-Identifier: BSD-3-Clause */
/* Store a sentence; returns its provider_error. Any thread; has its own lock. */
#ifndef OFPI_REASON_H
#define OFPI_REASON_H

int ofpi_reason_store(const char *text);
/* The same, and ofp_explained returns that number next in this thread. */
int ofpi_reason_report(const char *text);

#endif
