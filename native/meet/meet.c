/* SPDX-License-Identifier: BSD-3-Clause */
#include "meet.h"

#include <assert.h>
#include <errno.h>

/* Short names for the table. */
#define NOTHING 0
#define CLOSE OFPI_MEET_DO_CLOSE
#define LOSE OFPI_MEET_DO_LOSE
#define DRAIN OFPI_MEET_DO_DRAIN
#define PROBE OFPI_MEET_DO_PROBE
#define PUT_OFF OFPI_MEET_DO_PUT_OFF
#define ACCEPT OFPI_MEET_DO_ACCEPT
#define CONNECT OFPI_MEET_DO_CONNECT
#define USE OFPI_MEET_DO_USE

#define OURS_WINS OFPI_MEET_OURS_WINS
#define RENEWED OFPI_MEET_RENEWED
#define OPENED OFPI_MEET_OPENED
#define UNREAD OFPI_MEET_UNREAD
#define WANTED OFPI_MEET_WANTED
#define GIVEN_UP OFPI_MEET_GIVEN_UP

/* A row that always fits, and a row that fits if these facts apply. */
#define ALWAYS(state, event, acts, next) {OFPI_MEET_##state, OFPI_MEET_##event, 0, acts, OFPI_MEET_##next}
#define IF(state, event, facts, acts, next) {OFPI_MEET_##state, OFPI_MEET_##event, facts, acts, OFPI_MEET_##next}

const struct ofpi_meet_row ofpi_meet_table[] = {
    ALWAYS(IDLE, CONNECT, CONNECT, CONNECTING),
    ALWAYS(IDLE, REQUEST, ACCEPT, ACCEPTED),

    /* Crossing requests: both sides decide alike, by the order of the addresses. */
    IF(CONNECTING, REQUEST, OURS_WINS, PUT_OFF, CONNECTING),
    ALWAYS(CONNECTING, REQUEST, CLOSE | ACCEPT, ACCEPTED),
    ALWAYS(CONNECTING, ACCEPT, USE, UP),
    ALWAYS(CONNECTING, FAIL, CLOSE | LOSE, IDLE),

    /*
     * Operations that waited for our replaced request wait for the next one. They also wait after the core was told
     * of the connection attempt.
     */
    ALWAYS(ACCEPTED, CONFIRM, USE, UP),
    IF(ACCEPTED, SHORTAGE, WANTED, CLOSE | CONNECT, CONNECTING),
    ALWAYS(ACCEPTED, SHORTAGE, CLOSE, IDLE),
    ALWAYS(ACCEPTED, BROKEN, CLOSE | CONNECT, CONNECTING),
    IF(ACCEPTED, REQUEST, RENEWED, DRAIN | PUT_OFF, DRAINING),
    IF(ACCEPTED, REQUEST, GIVEN_UP, CLOSE | ACCEPT, ACCEPTED),
    ALWAYS(ACCEPTED, REQUEST, PUT_OFF, ACCEPTED),
    ALWAYS(ACCEPTED, CLOSED, DRAIN, DRAINING),

    /*
     * A request from a connected peer means that the peer has lost the connection, unless the request crossed our
     * accept.
     */
    IF(UP, REQUEST, RENEWED | UNREAD, DRAIN | PUT_OFF, DRAINING),
    IF(UP, REQUEST, RENEWED, LOSE | ACCEPT, ACCEPTED),
    IF(UP, REQUEST, OPENED, PUT_OFF, DOUBTED),
    IF(UP, REQUEST, UNREAD, PUT_OFF, DOUBTED),
    ALWAYS(UP, REQUEST, LOSE | ACCEPT, ACCEPTED),
    ALWAYS(UP, BROKEN, PROBE, DOUBTED),
    IF(UP, CLOSED, UNREAD, DRAIN, DRAINING),
    ALWAYS(UP, CLOSED, LOSE, IDLE),

    IF(DOUBTED, REQUEST, RENEWED | UNREAD, DRAIN | PUT_OFF, DRAINING),
    IF(DOUBTED, REQUEST, UNREAD, PUT_OFF, DOUBTED),
    ALWAYS(DOUBTED, REQUEST, LOSE | ACCEPT, ACCEPTED),
    ALWAYS(DOUBTED, BROKEN, PROBE, DOUBTED),
    IF(DOUBTED, CLOSED, UNREAD, DRAIN, DRAINING),
    ALWAYS(DOUBTED, CLOSED, LOSE, IDLE),

    ALWAYS(DRAINING, REQUEST, PUT_OFF, DRAINING),
    ALWAYS(DRAINING, DRAINED, LOSE, IDLE),
    ALWAYS(DRAINING, BROKEN, NOTHING, DRAINING),
    ALWAYS(DRAINING, CLOSED, NOTHING, DRAINING),
};
const uint32_t ofpi_meet_rows = sizeof(ofpi_meet_table) / sizeof(ofpi_meet_table[0]);

struct ofpi_meet_decision ofpi_meet_decision_find(enum ofpi_meet_state state, enum ofpi_meet_event event,
                                                  unsigned facts)
{
    for (uint32_t i = 0; i < ofpi_meet_rows; i++) {
        const struct ofpi_meet_row *row = &ofpi_meet_table[i];

        if (row->state == state && row->event == event && (facts & row->facts) == row->facts)
            return (struct ofpi_meet_decision){row->next, row->acts, i};
    }
    assert(!"an event that this state cannot have");
    return (struct ofpi_meet_decision){(uint8_t)state, 0, ofpi_meet_rows};
}

bool ofpi_meet_is_shortage(int error)
{
    /* ETOOMANYREFS: descriptors in flight count against the limit of open files. */
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS || error == ETOOMANYREFS;
}
