/* SPDX-License-Identifier: BSD-3-Clause */
#include "queue/fault.h"

#include <errno.h>

#include "device/device.h"

static const struct {
    int status;
    int error;
    const char *text;
} faults[] = {
    {IBV_WC_LOC_LEN_ERR, EMSGSIZE,
     "local length error: a message was longer than the receive that it met; post receives of the length that the other side sends"},
    {IBV_WC_LOC_QP_OP_ERR, EIO,
     "local queue pair operation error: the device could not carry the work request out; Soft-RoCE says so of a message that was "
     "longer than the receive that it met"},
    {IBV_WC_LOC_PROT_ERR, EFAULT,
     "local protection error: memory of the operation is not registered for it, or was given back too early"},
    {IBV_WC_BAD_RESP_ERR, EPROTO, "bad response: the other side's device answered with something unexpected"},
    {IBV_WC_LOC_ACCESS_ERR, EACCES,
     "local access error: what came may not be written into the memory that is there for it"},
    {IBV_WC_REM_INV_REQ_ERR, OFP_EREMOTE,
     "remote invalid request: the message is longer than the receive at the peer, or its queue pair does not allow this"},
    {IBV_WC_REM_ACCESS_ERR, OFP_EREMOTE,
     "remote access error: the peer has no region with this key, or not these bytes and rights; see region.remote there"},
    {IBV_WC_REM_OP_ERR, OFP_EREMOTE,
     "remote operation error: the peer's device could not complete the operation; Soft-RoCE says so of a message "
     "longer than the receive there"},
    {IBV_WC_RETRY_EXC_ERR, ETIMEDOUT,
     "retry exceeded: the peer's device has stopped answering; is its process alive, its port up, and the path between (ping)?"},
    {IBV_WC_RNR_RETRY_EXC_ERR, OFP_ENORX, "receiver-not-ready retry exceeded: the peer has posted no receive"},
    {IBV_WC_REM_ABORT_ERR, ECONNABORTED, "remote abort"},
    {IBV_WC_FATAL_ERR, EIO, "fatal error of the device"},
    {IBV_WC_RESP_TIMEOUT_ERR, ETIMEDOUT, "the response took too long"},
    {IBV_WC_WR_FLUSH_ERR, ECONNRESET, "flushed: the queue pair failed before this work request was carried out"},
    {VERBS_FAULT_PORT_DOWN, ENETDOWN,
     "port down: the device's port here is not up; is its interface up (ip link), its cable in?"},
    {VERBS_FAULT_REMOVED, ENODEV, "the device was removed, or has failed; close what uses it"},
};
#define FAULTS (sizeof(faults) / sizeof(faults[0]))

/* The status of a packet that could not leave depends on the device, and on whether the packet stays in this host. */
int verbs_fault_identify(const struct verbs_domain *domain, enum ibv_wc_status status)
{
    bool of_the_way = status == IBV_WC_RETRY_EXC_ERR || status == IBV_WC_LOC_QP_OP_ERR || status == IBV_WC_FATAL_ERR ||
                      status == IBV_WC_WR_FLUSH_ERR;

    if (domain->removed)
        return VERBS_FAULT_REMOVED;
    return of_the_way && !verbs_port_is_up(domain->port) ? VERBS_FAULT_PORT_DOWN : (int)status;
}

int verbs_fault_find_error(int status)
{
    for (size_t i = 0; i < FAULTS; i++)
        if (faults[i].status == status)
            return faults[i].error;
    return EIO;
}

const char *verbs_fault_find_text(int status)
{
    for (size_t i = 0; i < FAULTS; i++)
        if (faults[i].status == status)
            return faults[i].text;
    return verbs_calls.wc_status_str ? verbs_calls.wc_status_str((enum ibv_wc_status)status) : NULL;
}

const char *verbs_code_find_text(int code)
{
    return code >= verbs_code_of_fault(IBV_WC_SUCCESS)
               ? verbs_fault_find_text(code - verbs_code_of_fault(IBV_WC_SUCCESS))
               : NULL;
}

const char *verbs_event_find_text(int event)
{
    switch (event) {
    case 0:
        return "the queue pair failed; the other side may have refused what was sent, or have ended";
    case IBV_EVENT_QP_ACCESS_ERR:
        return "the peer asked for memory that it may not have, so the device ended the connection";
    case IBV_EVENT_QP_REQ_ERR:
        return "the peer sent what no receive or region here could take, so the device ended the connection";
    case IBV_EVENT_PATH_MIG_ERR:
        return "the way to the peer changed, and the new one does not work";
    case IBV_EVENT_QP_FATAL:
        return "the device gave the queue pair up";
    default:
        return verbs_calls.event_type_str((enum ibv_event_type)event);
    }
}
