/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider's descriptors. A forked child gets copies, which nobody there can use, and which would keep connections open that the
 * parent, or its death, has ended, and its port taken: so the child closes them at once.
 */
#ifndef TCP_DESCRIPTOR_H
#define TCP_DESCRIPTOR_H

#include <stddef.h>

/* A new one, or -1, which is handed through with its errno. Close it with tcp_descriptor_close only. Any thread. */
int tcp_descriptor_register(int fd);
void tcp_descriptor_close(int fd);
/* EMFILE: this process has none left; ENFILE: this host; 0. */
int tcp_descriptors_probe_shortage(void);
/* What the error of a system call means; a lack of descriptors with the limit, and after "; " what to do about it. */
void tcp_error_describe(int error, char *text, size_t text_size);
/* Once, before the first. */
void tcp_descriptors_watch_forks(void);

#endif
