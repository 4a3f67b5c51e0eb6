/* SPDX-License-Identifier: BSD-3-Clause */
/* Any thread; own lock. The provider_error that stands for a sentence. */
#ifndef OFPI_REASON_H
#define OFPI_REASON_H

int ofpi_reason_store(const char *text);
/* The same, and what ofp_explained answers next in this thread. */
int ofpi_reason_report(const char *text);

#endif
