/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hook `fault`: fails or delays operations, or loses their peer, as its options say; without options it does
 * nothing. Random choices depend only on the seed, the endpoint's id and the hook's place, so that a run can be
 * repeated.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "in_tree.h"
#include "ofipy/operation.h"

#define MINUTE_NS 60000000000ll
#define ERROR_MAX 4095

struct fault {
    uint64_t random;
    uint64_t seen; /* operations that match its options */
    uint64_t nth;
    uint64_t delay; /* ns */
    double fail, lose;
    int64_t peer;        /* -1: any */
    uint32_t operations; /* a bit for each code */
    int error;
};

static const struct ofp_hook_core *core;

static const struct ofp_param options[] = {
    {"fail", OFP_PARAM_FRACTION, "0", "Share of operations that fail", 0, 0},
    {"errno", OFP_PARAM_STRING, "EIO", "What they fail with, by name or number", 0, 0},
    {"delay", OFP_PARAM_TIME, "0", "Time that operations other than receives wait before the transport gets them", 0,
     MINUTE_NS},
    {"lose", OFP_PARAM_FRACTION, "0", "Share of operations that lose their peer", 0, 0},
    {"nth", OFP_PARAM_INT, "0", "Every nth operation fails; 0: none", 0, OFP_COUNT_MAX},
    {"operation", OFP_PARAM_STRING, "",
     "Only these, joined by +: send, recv, tsend, trecv, read, write, atomic, fetch_atomic, compare_atomic; empty: all",
     0, 0},
    {"peer", OFP_PARAM_INT, "-1", "Only those of the peer with this index; -1: of any", -1, UINT32_MAX},
    {"seed", OFP_PARAM_INT, "0", "Another one draws others", 0, INT64_MAX},
    {NULL, OFP_PARAM_STRING, NULL, NULL, 0, 0},
};

/* ----------------------------------------------------------------------------------------------------------- options */

static const struct {
    const char *name;
    int value;
} errors[] = {
    {"EIO", EIO},
    {"EACCES", EACCES},
    {"EBUSY", EBUSY},
    {"ECANCELED", ECANCELED},
    {"ECONNABORTED", ECONNABORTED},
    {"ECONNREFUSED", ECONNREFUSED},
    {"ECONNRESET", ECONNRESET},
    {"EFAULT", EFAULT},
    {"EHOSTUNREACH", EHOSTUNREACH},
    {"EINVAL", EINVAL},
    {"EMSGSIZE", EMSGSIZE},
    {"ENETDOWN", ENETDOWN},
    {"ENETUNREACH", ENETUNREACH},
    {"ENOBUFS", ENOBUFS},
    {"ENOENT", ENOENT},
    {"ENOMEM", ENOMEM},
    {"ENOSPC", ENOSPC},
    {"ENOTCONN", ENOTCONN},
    {"EOPNOTSUPP", EOPNOTSUPP},
    {"EPEERLOST", OFP_EPEERLOST},
    {"EPERM", EPERM},
    {"EPIPE", EPIPE},
    {"EPROTO", EPROTO},
    {"ESHUTDOWN", ESHUTDOWN},
    {"ETIMEDOUT", ETIMEDOUT},
};

static int read_error(struct fault *fault, const char *said, char *text, size_t size)
{
    char *end;
    long number = strtol(said, &end, 10);
    size_t used;

    if (*said && !*end && number > 0 && number <= ERROR_MAX && number != EAGAIN) {
        fault->error = (int)number;
        return 0;
    }
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (strcmp(errors[i].name, said) == 0) {
            fault->error = errors[i].value;
            return 0;
        }
    }
    used = (size_t)snprintf(text, size, "errno=%.32s; a number, or one of these is meant:", said);
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]) && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, " %s", errors[i].name);
    return -EINVAL;
}

#define RECEIVES (1u << OFP_RECV | 1u << OFP_TRECV)

static bool is_named(uint32_t code, const char *said, size_t length)
{
    const char *name = ofp_operation_name(code);

    return ofp_operation_row(code)->capability && strlen(name) == length && memcmp(name, said, length) == 0;
}

static int read_operations(struct fault *fault, const char *said, char *text, size_t size)
{
    fault->operations = *said ? 0 : UINT32_MAX;
    while (*said) {
        size_t length = strcspn(said, "+"), code = 0;

        while (code < OFP_OPERATION_COUNT && !is_named((uint32_t)code, said, length))
            code++;
        if (code == OFP_OPERATION_COUNT) {
            snprintf(
                text, size,
                "operation=%.32s; send, recv, tsend, trecv, read, write, atomic, fetch_atomic and compare_atomic are "
                "known, joined by +",
                said);
            return -EINVAL;
        }
        fault->operations |= 1u << code;
        said += length + (said[length] == '+');
    }
    return 0;
}

/* One step of splitmix64. */
static uint64_t advance_random(struct fault *fault)
{
    uint64_t mixed = fault->random += 0x9e3779b97f4a7c15u;

    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return mixed ^ mixed >> 31;
}

static int fault_open(struct ofp_hook_endpoint *hook, char *text, size_t text_size)
{
    struct fault *fault = hook->private;
    int result = read_error(fault, core->option_string(hook, "errno"), text, text_size);

    if (!result)
        result = read_operations(fault, core->option_string(hook, "operation"), text, text_size);
    fault->fail = core->option_fraction(hook, "fail");
    fault->lose = core->option_fraction(hook, "lose");
    fault->nth = (uint64_t)core->option_int(hook, "nth");
    fault->delay = (uint64_t)core->option_int(hook, "delay");
    fault->peer = core->option_int(hook, "peer");
    fault->random = (uint64_t)core->option_int(hook, "seed") + ((uint64_t)hook->endpoint->id << 32) + hook->number;
    advance_random(fault);
    if (!result && fault->delay && fault->operations & RECEIVES && fault->operations != UINT32_MAX) {
        snprintf(text, text_size,
                 "delay with operation=%.64s: a receive that waits here is no later than its message; delay the sends",
                 core->option_string(hook, "operation"));
        return -EINVAL;
    }
    return result;
}

/* -------------------------------------------------------------------------------------------------------------- faults */

static bool is_selected(const struct fault *fault, const struct ofp_hook_operation *operation)
{
    return fault->operations & 1u << operation->code && (fault->peer < 0 || operation->index == fault->peer);
}

static bool choose_by_share(struct fault *fault, double share)
{
    return share > 0 && (double)(advance_random(fault) >> 11) < share * (double)(1ull << 53);
}

static int fail_operation(struct ofp_hook_endpoint *hook, const struct ofp_hook_operation *operation,
                          const char *option, struct ofp_hook_verdict *verdict)
{
    const struct fault *fault = hook->private;

    snprintf(verdict->text, sizeof(verdict->text), "a %s failed on purpose, as %s=%s asks",
             ofp_operation_name(operation->code), option, core->option_string(hook, option));
    return -fault->error;
}

static int fail_peer(struct ofp_hook_endpoint *hook, struct ofp_peer *peer, struct ofp_hook_verdict *verdict)
{
    snprintf(verdict->text, sizeof(verdict->text), "the peer was lost on purpose, as lose=%s asks",
             core->option_string(hook, "lose"));
    if (peer)
        core->peer_lose(hook, peer, verdict->text);
    return -OFP_EPEERLOST;
}

static int fault_post(struct ofp_hook_endpoint *hook, struct ofp_hook_operation *operation,
                      struct ofp_hook_verdict *verdict)
{
    struct fault *fault = hook->private;

    if (!is_selected(fault, operation))
        return 0;
    fault->seen++;
    if (choose_by_share(fault, fault->fail))
        return fail_operation(hook, operation, "fail", verdict);
    if (fault->nth && fault->seen % fault->nth == 0)
        return fail_operation(hook, operation, "nth", verdict);
    if (operation->index != OFP_PEER_ANY && choose_by_share(fault, fault->lose))
        return fail_peer(hook, operation->peer, verdict);
    if (!fault->delay)
        return 0;
    verdict->retry_at = core->core->now() + fault->delay;
    return -EAGAIN;
}

static const struct ofp_hook fault = {
    .abi = OFP_HOOK_ABI,
    .size = sizeof(fault),
    .name = "fault",
    .description = "Fails operations, holds them back or loses their peers, as asked",
    .options = options,
    .endpoint_size = sizeof(struct fault),
    .open = fault_open,
    .post = fault_post,
};

const struct ofp_hook *ofpi_hook_fault_get(const struct ofp_hook_core *services)
{
    core = services;
    return &fault;
}
