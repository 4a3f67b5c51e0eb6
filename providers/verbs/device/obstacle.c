/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/obstacle.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device/device.h"

#define DEVICES "/sys/class/infiniband"
#define SOFT_ROCE "rdma link add rxe0 type rxe netdev eth0"

bool verbs_kernel_device_find(char *name, size_t size)
{
    DIR *folder = opendir(DEVICES);
    struct dirent *entry;
    bool found = false;

    while (folder && !found && (entry = readdir(folder)))
        if (entry->d_name[0] != '.') {
            snprintf(name, size, "%.63s", entry->d_name);
            found = true;
        }
    if (folder)
        closedir(folder);
    return found;
}

static void describe_device_obstacle(struct ibv_device *device, char *text, size_t text_size)
{
    const char *name = verbs_calls.get_device_name(device);
    struct ibv_context *context = verbs_calls.open_device(device);
    int error = errno;
    char state[64], path[96];

    snprintf(path, sizeof(path), "/dev/infiniband/%s", device->dev_name);
    /* Check permissions first: the library's error may belong to another path that it tried. */
    if (!context && access(path, F_OK) == 0 && access(path, R_OK | W_OK) != 0) {
        snprintf(text, text_size,
                 "no permission on %s, which is the device %s: chmod 666 it, or join the group that has "
                 "it (package rdma-core has rules for udev); in a container: --device /dev/infiniband",
                 path, name);
    } else if (!context) {
        snprintf(text, text_size, "the device %s cannot be opened (%s: %s): modprobe ib_uverbs", name, path,
                 strerror(error));
    } else if (verbs_device_read_line(name, "ports/1/state", state, sizeof(state)) && !strstr(state, "ACTIVE")) {
        snprintf(text, text_size, "no port of %s is up (port 1: %s): see ibv_devinfo, and `ip link` for its interface",
                 name, state);
    } else if (access("/dev/infiniband/rdma_cm", F_OK) != 0) {
        snprintf(text, text_size, "there is no connection manager (/dev/infiniband/rdma_cm): modprobe rdma_ucm");
    } else if (access("/dev/infiniband/rdma_cm", R_OK | W_OK) != 0) {
        snprintf(text, text_size,
                 "no permission on /dev/infiniband/rdma_cm: chmod 666 it, or join the group that has it");
    } else {
        snprintf(text, text_size,
                 "the interface of %s has no IP address, by which connections are made: ip address add", name);
    }
    if (context)
        verbs_calls.close_device(context);
}

void verbs_obstacle_describe(char *text, size_t text_size)
{
    int count = 0;
    struct ibv_device **list = verbs_calls.get_device_list(&count);
    char name[64];

    if (list && count)
        describe_device_obstacle(list[0], text, text_size);
    else if (verbs_kernel_device_find(name, sizeof(name)))
        snprintf(text, text_size,
                 "libibverbs has no driver for the device %s: install ibverbs-providers (Debian, Ubuntu) or rdma-core "
                 "(Fedora, RHEL), and modprobe ib_uverbs",
                 name);
    else
        snprintf(text, text_size,
                 "this machine has no RDMA device (%s is empty); any Ethernet interface can be one: " SOFT_ROCE,
                 DEVICES);
    if (list)
        verbs_calls.free_device_list(list);
}
