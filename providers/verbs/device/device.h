/* SPDX-License-Identifier: BSD-3-Clause */
/* The ports of this machine's devices, as far as an address leads to them. Any thread. */
#ifndef VERBS_DEVICE_H
#define VERBS_DEVICE_H

#include <pthread.h>

#include "objects.h"

/* Of the ports that are known. */
extern pthread_mutex_t verbs_ports_lock;

/* The port behind an address of this host; NULL: none, or it cannot be used. `found`: its state is looked up anew. */
struct verbs_port *verbs_port_find(const union tcp_address *address, char *text, size_t text_size);
/* Ask the device whether it is up. */
bool verbs_port_is_up(const struct verbs_port *port);
static inline const char *verbs_device_name_of(const struct verbs_port *port)
{
    return verbs_calls.get_device_name(port->context->device);
}
/* Bytes per second, both directions apart. */
uint64_t verbs_port_compute_speed(const struct ibv_port_attr *attr);
/* How far memory of the calling thread's processor is, as the kernel counts: 10 is near; 10 too where nobody knows. */
int verbs_port_compute_distance(const struct verbs_port *port);
/* Read one line below /sys/class/infiniband/DEVICE; false: there is none. */
bool verbs_device_read_line(const char *device, const char *name, char *line, size_t size);
/* The devices were opened by the process that this one was forked from. */
bool verbs_devices_are_of_parent(void);

#endif
