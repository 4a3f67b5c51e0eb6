/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer out of bytes: what it sends to an endpoint of native/rdm, and what it hears. */
#ifndef TEST_RDM_ATTACKER_H
#define TEST_RDM_ATTACKER_H

#include "rdm_fixture.h"

#define ROOM 8192

struct attacker {
    struct side victim, other;
    struct rdmfake_port *port;
    struct rdmfake_line *line;
    uint32_t peer;               /* the attacker, in the victim's vector */
    uint32_t length;             /* bytes of the last event */
    struct ofpi_rdm_packet last; /* that the victim sent; without its payload */
};

/* ---------------------------------------------------------------------------------------------------- the attacker */

/* The next thing of a kind that the victim sends. False: none is there. */
static inline bool hear(struct attacker *attacker, enum rdmfake_event_kind kind)
{
    struct rdmfake_event *event;
    bool found = false;

    while (!found && (event = rdmfake_port_take(attacker->port))) {
        found = event->kind == kind;
        attacker->length = event->length;
        if (found && kind == RDMFAKE_PACKET)
            assert_null(ofpi_rdm_decode(event->bytes, event->length, &attacker->last));
        rdmfake_event_free(event);
    }
    return found;
}

static inline void progress(struct attacker *attacker) { rdm_settle(&attacker->victim, &attacker->other); }

static inline bool hear_packet(struct attacker *attacker, enum ofpi_rdm_kind kind)
{
    progress(attacker);
    while (hear(attacker, RDMFAKE_PACKET))
        if (attacker->last.kind == kind)
            return true;
    return false;
}

static inline void say(struct attacker *attacker, const void *bytes, uint32_t length)
{
    assert_int_equal(rdmfake_line_put(attacker->line, 1, RDMFAKE_PACKET, false, bytes, length), 0);
}

static inline void say_packet(struct attacker *attacker, const struct ofpi_rdm_packet *packet, uint32_t payload)
{
    static uint8_t bytes[2 * ROOM];
    uint32_t length = ofpi_rdm_encode(packet, bytes);

    memset(bytes + length, 'x', payload);
    say(attacker, bytes, length + payload);
}

static inline struct ofpi_rdm_hello greeting(void)
{
    return (struct ofpi_rdm_hello){.version = OFPI_RDM_VERSION,
                                   .oldest = OFPI_RDM_OLDEST,
                                   .packet_size = ROOM,
                                   .credits = {100, 100},
                                   .incarnation = 4711};
}

static inline void ask(struct attacker *attacker, const uint8_t *hello, size_t length)
{
    struct rdmfake_address address;
    size_t size = sizeof(address);
    int error;

    assert_int_equal(ofp_endpoint_address(attacker->victim.endpoint, &address, &size), 0);
    attacker->line = rdmfake_line_ask(attacker->port, &address, hello, length, &error);
    assert_non_null(attacker->line);
    progress(attacker);
}

static inline void meet(struct attacker *attacker)
{
    struct ofpi_rdm_hello hello = greeting();
    uint8_t bytes[OFPI_RDM_HELLO_SIZE];

    ofpi_rdm_hello_encode(&hello, bytes);
    ask(attacker, bytes, sizeof(bytes));
    assert_true(hear(attacker, RDMFAKE_ACCEPT));
    rdmfake_line_notify(attacker->line, 1, RDMFAKE_CONFIRM, 0);
    progress(attacker);
}

static inline void begin(struct attacker *attacker, enum rdmfake_kind kind)
{
    struct rdmfake_address address = {.magic = 0x666d6472u, .process = (uint32_t)getpid(), .service = "attacker"};

    memset(attacker, 0, sizeof(*attacker));
    rdm_side_open(&attacker->victim, kind, 0);
    rdm_side_open(&attacker->other, kind, 0);
    sides_meet(&attacker->victim, &attacker->other);
    assert_int_equal(rdmfake_port_open(&address, false, -1, NULL, &attacker->port), 0);
    for (int i = 0; i < 1000; i++)
        rdmfake_port_posted(attacker->port);
    assert_int_equal(ofp_av_insert(attacker->victim.av, &address, sizeof(address), &attacker->peer), 0);
    forget_warnings();
}

static inline void check_good_peer(struct attacker *attacker)
{
    uint64_t out = 42, in = 0;
    struct ofp_operation receive = tagged(OFP_TRECV, attacker->victim.peer, 99, &in, sizeof(in), 99);
    struct ofp_operation send = tagged(OFP_TSEND, attacker->other.peer, 99, &out, sizeof(out), 98);
    struct ofp_completion row;

    assert_int_equal(ofp_post(attacker->victim.endpoint, &receive, 1), 1);
    assert_int_equal(ofp_post(attacker->other.endpoint, &send, 1), 1);
    do
        row = next_completion(&attacker->victim, &attacker->other);
    while (row.context != 99);
    assert_int_equal(row.error, 0);
    assert_int_equal(in, 42);
    while (ofp_cq_read(attacker->other.cq, &row, 1) == 1)
        ;
}

static inline void end(struct attacker *attacker)
{
    check_good_peer(attacker);
    if (attacker->line)
        rdmfake_line_close(attacker->line, 0);
    rdmfake_port_close(attacker->port);
    progress(attacker);
    forget_warnings();
    side_close(&attacker->victim);
    side_close(&attacker->other);
}

#endif
