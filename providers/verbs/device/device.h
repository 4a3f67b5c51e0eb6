/* SPDX-License-Identifier: BSD-3-Clause */
/* The ports of this machine's RDMA devices. All functions may be called by any thread. */
#ifndef VERBS_DEVICE_H
#define VERBS_DEVICE_H

#include <pthread.h>

#include "objects.h"

/* Guards the list of ports. */
extern pthread_mutex_t verbs_ports_lock;

/*
 * Find the port of a local address and query its state again. NULL: no port, or it cannot be used; `text` may have the
 * reason.
 */
struct verbs_port *verbs_port_find(const union tcp_address *address, char *text, size_t text_size);
/* Query the device for the state of the port. */
bool verbs_port_is_up(const struct verbs_port *port);
static inline const char *verbs_device_name_of(const struct verbs_port *port)
{
    return verbs_calls.get_device_name(port->context->device);
}
/* Bytes per second in one direction. */
uint64_t verbs_port_compute_speed(const struct ibv_port_attr *attr);
/*
 * The NUMA distance between the device and the calling thread's processor, as the kernel counts; 10 is near. Returns
 * 10 if it is unknown.
 */
int verbs_port_compute_distance(const struct verbs_port *port);
/* Read one line of a file below /sys/class/infiniband/DEVICE. Returns false if there is none. */
bool verbs_device_read_line(const char *device, const char *name, char *line, size_t size);
/* Whether a parent process opened the devices before it forked this one. */
bool verbs_devices_are_of_parent(void);

#endif
