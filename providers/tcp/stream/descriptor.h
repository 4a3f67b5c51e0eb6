/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The descriptors of the provider. A forked child gets copies that it cannot use. They would keep connections open after
 * the parent has closed them, and keep its port in use. So the child closes them at once.
 */
#ifndef TCP_DESCRIPTOR_H
#define TCP_DESCRIPTOR_H

#include <stddef.h>

/*
 * Register a new descriptor. Negative values are returned as they are, with errno unchanged. Close it with
 * tcp_descriptor_close only. Any thread may call both.
 */
int tcp_descriptor_register(int fd);
void tcp_descriptor_close(int fd);
/* Whether a descriptor can be opened. 0: yes; EMFILE: the process has none left; ENFILE: the host has none left. */
int tcp_descriptors_probe_shortage(void);
/* Text for the errno of a system call. For a shortage of descriptors it names the limit and what to do. */
void tcp_error_describe(int error, char *text, size_t text_size);
/* Install the fork handler. Call this before the first descriptor is registered. */
void tcp_descriptors_watch_forks(void);

#endif
