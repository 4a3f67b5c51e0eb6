/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The core's functions as ofipy/requests calls them: each call is a step. Python passes the core's addresses, and binds the
 * addresses of the functions here in their place. Loaded into the interpreter, not preloaded.
 *
 * A call that fails here was not made: the answers that scenarios choose are those that the core may give without having
 * done anything (native/include/ofipy/request.h).
 */
#include "core.h"

#include "steps.h"

static struct core_calls real;

#define CALL(result, name, parameters, arguments)                                                                      \
    static result step_##name parameters                                                                               \
    {                                                                                                                  \
        struct step_answer answer = step_reach(STEP_CALL, #name, STEP_CALLER);                                         \
                                                                                                                       \
        return answer.action == STEP_FAIL ? (result)answer.value : real.name arguments;                                \
    }

/* The answer -ENOLCK is for calls alone that must not wait for the lock. */
#define CALL_AT_ONCE(result, name, parameters, arguments, at_once)                                                     \
    static result step_##name parameters                                                                               \
    {                                                                                                                  \
        struct step_answer answer = step_reach(STEP_CALL, #name, STEP_CALLER);                                         \
                                                                                                                       \
        if (answer.action == STEP_FAIL && (answer.value != -ENOLCK || (at_once)))                                      \
            return (result)answer.value;                                                                               \
        return real.name arguments;                                                                                    \
    }

/* Whether the core may answer a start so: only operations that may find the transmit queue full are tried again later. */
static bool is_start_answer_legal(const struct ofp_operation *operation, uint32_t how, int64_t timeout, int64_t answer)
{
    bool is_receive = operation->op == OFP_RECV || operation->op == OFP_TRECV;

    if (answer == -ENOLCK)
        return how & OFP_START_AT_ONCE;
    return !is_receive && (answer != -EINTR || timeout != 0);
}

static ofp_request_t step_ofp_request_start(struct ofp_endpoint *endpoint, const struct ofp_operation *operation,
                                            uint32_t how, int64_t timeout)
{
    struct step_answer answer = step_reach(STEP_CALL, "ofp_request_start", STEP_CALLER);

    if (answer.action == STEP_FAIL && is_start_answer_legal(operation, how, timeout, answer.value))
        return answer.value;
    return real.ofp_request_start(endpoint, operation, how, timeout);
}

CALL(int, ofp_request_finished, (ofp_request_t request), (request))
CALL(int, ofp_request_take, (ofp_request_t request, int64_t timeout, struct ofp_completion *completion),
     (request, timeout, completion))
CALL(int, ofp_request_take_finished, (ofp_request_t request, struct ofp_completion *completion), (request, completion))
CALL(int, ofp_request_take_at_once, (ofp_request_t request, struct ofp_completion *completion), (request, completion))
CALL(int, ofp_request_cancel, (ofp_request_t request), (request))
CALL(int, ofp_request_claim,
     (ofp_request_t request, uint32_t region, uint64_t offset, uint64_t length, struct ofp_completion *completion),
     (request, region, offset, length, completion))
CALL_AT_ONCE(int, ofp_request_accept, (ofp_request_t request, bool at_once), (request, at_once), at_once)
CALL(int, ofp_request_discard, (ofp_request_t request), (request))
CALL(int, ofp_request_unclaim, (ofp_request_t request), (request))
CALL_AT_ONCE(int, ofp_request_notify, (ofp_request_t request, bool at_once), (request, at_once), at_once)
CALL(int, ofp_request_spin, (ofp_request_t request, uint64_t duration), (request, duration))
CALL(int64_t, ofp_cq_finished, (struct ofp_cq * cq, ofp_request_t *requests, uint64_t max), (cq, requests, max))
CALL(int64_t, ofp_cq_take_finished, (struct ofp_cq * cq, ofp_request_t *requests, uint64_t max), (cq, requests, max))
CALL(int, ofp_cq_arm, (struct ofp_cq * cq), (cq))
CALL(int, ofp_cq_arm_at_once, (struct ofp_cq * cq), (cq))
CALL(int, ofp_cq_spin, (struct ofp_cq *const *queues, uint32_t count, uint64_t duration), (queues, count, duration))
CALL(int, ofp_request_abandon, (ofp_request_t request, bool cancel), (request, cancel))
CALL(ofp_request_t, ofp_reach_request, (struct ofp_endpoint * endpoint, uint32_t peer, uint64_t patience),
     (endpoint, peer, patience))
CALL(ofp_request_t, ofp_prepare, (struct ofp_endpoint * endpoint, const struct ofp_operation *operation),
     (endpoint, operation))
CALL(ofp_request_t, ofp_collective_start,
     (struct ofp_group * group, const struct ofp_collective *call, uint32_t how, int64_t timeout),
     (group, call, how, timeout))
CALL(uint64_t, ofp_reduction_size, (uint32_t atomic_op, uint32_t datatype), (atomic_op, datatype))
CALL(ofp_request_t, ofp_collective_prepare, (struct ofp_group * group, const struct ofp_collective *call),
     (group, call))
CALL(ofp_request_t, ofp_group_agree,
     (struct ofp_group * group, uint64_t flags, uint32_t value, struct ofp_agreement_result *result),
     (group, flags, value, result))
CALL(int, ofp_log_waiting, (void), ())

/* A short answer starts the first operation alone. */
static int step_ofp_start_many(const ofp_request_t *requests, uint64_t count, uint32_t how, int64_t timeout)
{
    struct step_answer answer = step_reach(STEP_CALL, "ofp_start_many", STEP_CALLER);

    if (answer.action == STEP_FAIL && (answer.value != -ENOLCK || how & OFP_START_AT_ONCE))
        return (int)answer.value;
    return real.ofp_start_many(requests, answer.action == STEP_SHORT && count > 1 ? 1 : count, how, timeout);
}

/* Replace the addresses of the core's functions, in the order of OFIPY_CALLS, by those of the steps. */
STEP_EXPORT void step_calls_replace(void **addresses)
{
    uint32_t i = 0;

#define REPLACE(result, name, parameters)                                                                              \
    real.name = (result(*) parameters)addresses[i];                                                                    \
    addresses[i++] = (void *)step_##name;
    OFIPY_CALLS(REPLACE)
}
