/* SPDX-License-Identifier: BSD-3-Clause */
/* As abi.h: the part of libfabric's binary interface that only connections use. */
#ifndef OFI_ABI_CONNECTION_H
#define OFI_ABI_CONNECTION_H

#include "abi.h"

enum lf_event { LF_EVENT_NOTIFY, LF_EVENT_REQUEST, LF_EVENT_CONNECTED, LF_EVENT_SHUTDOWN };

struct lf_eq_attr {
    size_t size;
    uint64_t flags;
    enum lf_wait_object wait_object;
    int signaling_vector;
    void *wait_set;
    uint64_t later[4];
};

/* Followed by what the other side said. */
struct lf_eq_entry {
    struct lf_fid *fid;
    struct lf_info *info; /* of a request; the reader's */
};

struct lf_eq_error {
    struct lf_fid *fid;
    void *context;
    uint64_t data;
    int error, provider_error;
    void *error_data;
    size_t error_data_size; /* in: room at error_data */
    uint64_t later[4];
};

struct lf_eq_ops {
    size_t size;
    ssize_t (*read)(struct lf_eq *eq, uint32_t *event, void *buffer, size_t length, uint64_t flags);
    ssize_t (*readerr)(struct lf_eq *eq, struct lf_eq_error *error, uint64_t flags);
};

struct lf_eq {
    struct lf_fid fid;
    struct lf_eq_ops *ops;
};

/* A listener. */
struct lf_pep {
    struct lf_fid fid;
    struct lf_ep_ops *ops;
    struct lf_cm_ops *cm;
};

#endif
