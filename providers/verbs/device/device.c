/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/device.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device/limits.h"

#define NEAR 10

pthread_mutex_t verbs_ports_lock = PTHREAD_MUTEX_INITIALIZER;
static struct verbs_port *ports;           /* guarded by verbs_ports_lock */
static pid_t opener;                       /* the process that opened the ports; 0: no process yet */
static struct rdma_event_channel *channel; /* for ids that receive no events */

/* --------------------------------------------------------------------------------------------------- from the kernel */

static bool read_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "re");
    bool found;

    if (!file)
        return false;
    found = fgets(line, (int)size, file) != NULL;
    fclose(file);
    if (found)
        line[strcspn(line, "\n")] = 0;
    return found;
}

bool verbs_device_read_line(const char *device, const char *name, char *line, size_t size)
{
    char path[256];

    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/%s", device, name);
    return read_line(path, line, size);
}

static int read_numa_node(const char *device)
{
    char line[32];

    return verbs_device_read_line(device, "device/numa_node", line, sizeof(line)) ? atoi(line) : -1;
}

/* By the system call: glibc has the function from 2.29 on, and musl has it not. */
static bool find_own_node(unsigned *node) { return syscall(SYS_getcpu, NULL, node, NULL) == 0; }

int verbs_port_compute_distance(const struct verbs_port *port)
{
    char path[64], line[4096], *next = line;
    unsigned node;
    long distance = NEAR;

    if (port->numa_node < 0 || !find_own_node(&node))
        return NEAR;
    snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/distance", node);
    if (!read_line(path, line, sizeof(line)))
        return NEAR;
    for (int i = 0; i <= port->numa_node; i++)
        distance = strtol(next, &next, 10);
    return distance > 0 ? (int)distance : NEAR;
}

/* Speed per link, in units of 100 Mbit/s, by the bits of ibv_port_attr.active_speed. */
static const struct {
    uint32_t bit, speed;
} link_speeds[] = {{1, 25}, {2, 50}, {4, 100}, {8, 100}, {16, 140}, {32, 250}, {64, 500}, {128, 1000}};

uint64_t verbs_port_compute_speed(const struct ibv_port_attr *attr)
{
    /* The number of links, by the bits of ibv_port_attr.active_width. */
    uint64_t width = attr->active_width == 16  ? 2
                     : attr->active_width == 8 ? 12
                     : attr->active_width == 4 ? 8
                     : attr->active_width == 2 ? 4
                                               : 1;

    for (size_t i = 0; i < sizeof(link_speeds) / sizeof(link_speeds[0]); i++)
        if (attr->active_speed == link_speeds[i].bit)
            return width * link_speeds[i].speed * 100000000 / 8;
    return 0;
}

/* ------------------------------------------------------------------------------------------------------------ ports */

/* The driver fills the whole structure. ibv_query_port, used for older drivers, ends with the link layer. */
static int query_port(struct ibv_context *context, uint8_t number, struct ibv_port_attr *attr)
{
    struct verbs_context *whole = VERBS_EXTENSION(context, query_port);

    memset(attr, 0, sizeof(*attr));
    if (whole && whole->query_port)
        return whole->query_port(context, number, attr, sizeof(*attr));
    return verbs_calls.query_port(context, number, (struct _compat_ibv_port_attr *)(void *)attr);
}

static struct verbs_port *create_port(struct rdma_cm_id *id, char *text, size_t text_size)
{
    struct verbs_port *port = calloc(1, sizeof(*port));
    int error;

    if (!port)
        return NULL;
    port->context = id->verbs;
    port->number = id->port_num;
    port->numa_node = read_numa_node(verbs_device_name_of(port));
    error = verbs_calls.query_device(port->context, &port->device);
    if (!error)
        error = query_port(port->context, port->number, &port->attr);
    if (error)
        snprintf(text, text_size, "%s cannot be asked what it can do: %s", verbs_device_name_of(port), strerror(error));
    else
        error = verbs_limits_probe(port, text, text_size);
    if (error) {
        free(port);
        return NULL;
    }
    port->anchor = id;
    port->next = ports;
    ports = port;
    return port;
}

/* Find or create the port of an id. A new port keeps the id as its anchor; otherwise the id is destroyed. */
static struct verbs_port *find_or_create_port(struct rdma_cm_id *id, char *text, size_t text_size)
{
    struct verbs_port *port = ports;

    while (port && (port->context != id->verbs || port->number != id->port_num))
        port = port->next;
    if (port)
        query_port(port->context, port->number, &port->attr);
    else
        port = create_port(id, text, text_size);
    if (!port || port->anchor != id)
        verbs_calls.destroy_id(id);
    return port;
}

static bool open_event_channel(void)
{
    if (!channel)
        channel = verbs_calls.create_event_channel();
    if (channel && !opener)
        opener = getpid();
    return channel;
}

static struct verbs_port *find_port(const union tcp_address *address, char *text, size_t text_size)
{
    union tcp_address any_port = *address;
    struct rdma_cm_id *id;

    if (!open_event_channel() || verbs_calls.create_id(channel, &id, NULL, RDMA_PS_TCP) != 0)
        return NULL;
    tcp_address_set_port(&any_port, 0);
    if (verbs_calls.bind_addr(id, &any_port.any) == 0 && id->verbs)
        return find_or_create_port(id, text, text_size);
    verbs_calls.destroy_id(id);
    return NULL;
}

struct verbs_port *verbs_port_find(const union tcp_address *address, char *text, size_t text_size)
{
    struct verbs_port *port;

    pthread_mutex_lock(&verbs_ports_lock);
    port = find_port(address, text, text_size);
    pthread_mutex_unlock(&verbs_ports_lock);
    return port;
}

bool verbs_port_is_up(const struct verbs_port *port)
{
    struct ibv_port_attr attr;

    return query_port(port->context, port->number, &attr) == 0 && attr.state == IBV_PORT_ACTIVE;
}

bool verbs_devices_are_of_parent(void)
{
    bool inherited;

    pthread_mutex_lock(&verbs_ports_lock);
    inherited = opener && opener != getpid();
    pthread_mutex_unlock(&verbs_ports_lock);
    return inherited;
}
