/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint of native/rdm, and a peer that sends it packets: of every kind, right, nearly right or noise, with the
 * ids that the endpoint waits for; it gives and takes credits as it likes, breaks lines and asks for new ones.
 * Receives, sends, RMA and atomics are there to meet that. The first byte says over which kind of channel.
 */
#include <string.h>
#include <unistd.h>

#include "channel.h"
#include "object/domain.h"
#include "provider/provider_registry.h"
#include "input.h"
#include "memory.h"
#include "rdm/transfer/endpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const struct ofp_provider *ofp_provider_entry(const struct ofp_core *core);

#define STEPS 300
#define REGION_SIZE 3000
#define FAR_SIZE 65536
#define FAR_KEY 5

/* The endpoint. */
static struct ofp_domain *domain;
static struct ofp_cq *cq;
static struct ofp_av *av;
static struct ofp_endpoint *endpoint;
static struct ofp_region_handle region;
static uint8_t *region_memory;
static uint32_t peer;
static uint64_t posted, ended;

/* Its peer, and what it has heard last. */
static struct rdmfake_port *port;
static struct rdmfake_line *line;
static uint64_t announced, receive, asked, budget[OFPI_CREDIT_CLASSES];
static uint8_t far_memory[FAR_SIZE];

/* --------------------------------------------------------------------------------------------------- the endpoint */

/* The context of an operation, and all its memory. */
struct job {
    uint64_t length;
    uint8_t bytes[];
};

static void post(uint16_t code, uint64_t tag, uint64_t length, uint64_t flags)
{
    struct job *job = calloc(1, sizeof(*job) + length);
    struct ofp_operation op = {.op = code, .peer = peer, .tag = tag, .length = length, .flags = flags};

    check(job != NULL);
    op.context = (uint64_t)(uintptr_t)job;
    op.offset = op.result_offset = (uint64_t)(uintptr_t)job->bytes;
    op.remote_key = FAR_KEY;
    op.atomic_op = OFP_ATOMIC_SUM;
    op.datatype = OFP_UINT64;
    if (ofp_post(endpoint, &op, 1) == 1)
        posted++;
    else
        free(job);
}

static void post_something(struct input *input)
{
    static const uint16_t codes[] = {OFP_TSEND, OFP_TRECV, OFP_TRECV, OFP_READ, OFP_WRITE, OFP_FETCH_ATOMIC};
    static const uint64_t lengths[] = {0, 8, 64, 800, 5000, 20000};
    static const uint64_t levels[] = {0, OFP_DELIVERY_COMPLETE, OFP_MATCH_COMPLETE};
    uint16_t code = codes[take(input) % 6];
    uint8_t rest = take(input);

    post(code, rest % 2, lengths[rest / 2 % 6] / 8 * 8, code == OFP_TSEND ? levels[rest / 16 % 3] : 0);
}

static void read_queue(void)
{
    struct ofp_completion row;

    while (ofp_cq_read(cq, &row, 1) == 1) {
        if (row.flags & (OFP_COMPLETED_REMOTE_READ | OFP_COMPLETED_REMOTE_WRITE))
            continue;
        ended++;
        free((void *)(uintptr_t)row.context);
    }
}

static void endpoint_open(enum rdmfake_kind kind)
{
    struct ofp_region_attr region_attr = {.length = REGION_SIZE,
                                          .access = OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE};
    struct ofp_endpoint_attr attr = {.unexpected_limit = 4000};
    struct ofp_domain_attr domain_attr = {0};
    struct ofp_cq_attr cq_attr = {.size = 64};
    struct ofp_av_attr av_attr = {.auto_insert = 1};
    struct ofp_info infos[RDMFAKE_KINDS];
    struct ofp_provider *provider;
    char text[OFP_TEXT_MAX];

    check(setenv("OFIPY_RDMFAKE_RECEIVE_SIZE", "64", 1) == 0);
    check(ofpi_provider_register(ofp_provider_entry, &provider, text, sizeof(text)) == 0);
    ofp_log_set_level(OFP_LOG_ERROR);
    check(ofp_provider_getinfo(provider, infos, RDMFAKE_KINDS, text, sizeof(text)) == RDMFAKE_KINDS);
    check(ofp_domain_open(provider, &infos[kind], &domain_attr, &domain, text, sizeof(text)) == 0);
    check(ofp_cq_open(domain, &cq_attr, &cq) == 0 && ofp_av_open(domain, &av_attr, &av) == 0);
    attr.tx_cq = attr.rx_cq = cq;
    attr.av = av;
    check(ofp_endpoint_open(domain, &attr, &endpoint, text, sizeof(text)) == 0);
    region_attr.base = region_memory = calloc(1, REGION_SIZE);
    check(ofp_region_register(domain, &region_attr, &region) == 0);
    posted = ended = 0;
}

static void endpoint_close(void)
{
    check(ofp_endpoint_close(endpoint, 0) == 0);
    read_queue();
    check(posted == ended);
    check(ofp_region_close(domain, region.id) == 0);
    free(region_memory);
    check(ofp_av_close(av) == 0 && ofp_cq_close(cq) == 0 && ofp_domain_close(domain) == 0);
}

/* -------------------------------------------------------------------------------------------------------- the peer */

/* What the endpoint sends is well formed, and no more than it was granted. */
static void hear_packet(const struct rdmfake_event *event)
{
    struct ofpi_rdm_packet packet;

    rdmfake_port_posted(port);
    check(ofpi_rdm_decode(event->bytes, event->length, &packet) == NULL);
    switch (packet.kind) {
    case OFPI_RDM_ANNOUNCE:
        announced = packet.id;
        break;
    case OFPI_RDM_PULL:
        receive = packet.receive;
        break;
    case OFPI_RDM_REMOTE:
        asked = packet.id;
        break;
    default:
        break;
    }
    if (packet.kind == OFPI_RDM_CREDIT)
        return;
    bool request = packet.kind == OFPI_RDM_EAGER || packet.kind == OFPI_RDM_ANNOUNCE || packet.kind == OFPI_RDM_REMOTE;
    uint64_t *left = &budget[request ? OFPI_CREDIT_REQUEST : OFPI_CREDIT_ANSWER];

    check(*left > 0);
    --*left;
}

static void hear(void)
{
    struct rdmfake_event *event;

    ofp_domain_progress(domain);
    while ((event = rdmfake_port_take(port))) {
        if (event->line == line && event->kind == RDMFAKE_PACKET)
            hear_packet(event);
        else if (event->kind == RDMFAKE_PACKET)
            rdmfake_port_posted(port);
        else if (event->line == line && event->kind == RDMFAKE_ACCEPT)
            rdmfake_line_notify(line, 1, RDMFAKE_CONFIRM, 0);
        else if (event->kind == RDMFAKE_ASK)
            rdmfake_line_notify(event->line, 0, RDMFAKE_REFUSE, EAGAIN);
        rdmfake_event_free(event);
    }
    read_queue();
}

static void leave(void)
{
    if (line)
        rdmfake_line_close(line, 0);
    line = NULL;
}

static void ask(struct input *input)
{
    struct ofpi_rdm_hello hello = {.version = OFPI_RDM_VERSION, .oldest = OFPI_RDM_OLDEST, .credits = {20, 20}};
    uint8_t bytes[OFPI_RDM_HELLO_SIZE];
    struct rdmfake_address address;
    size_t length = sizeof(address);
    uint8_t how = take(input);
    int error;

    leave();
    hello.packet_size = how % 2 ? 8192 : OFPI_RDM_PACKET_MIN;
    hello.incarnation = 1 + how / 2 % 3;
    /* A later release, which may not speak this version any more. */
    if (how / 8 % 8 == 1) {
        hello.version = OFPI_RDM_VERSION + 1 + how / 64;
        hello.oldest = OFPI_RDM_OLDEST + how / 128;
    }
    ofpi_rdm_hello_encode(&hello, bytes);
    if (how > 200)
        bytes[take(input) % sizeof(bytes)] ^= take(input);
    check(ofp_endpoint_address(endpoint, &address, &length) == 0);
    line = rdmfake_line_ask(port, &address, bytes, sizeof(bytes), &error);
    check(line != NULL);
    budget[0] = budget[1] = bytes[12] | (uint64_t)bytes[13] << 8;
    budget[1] = bytes[14] | (uint64_t)bytes[15] << 8;
    hear();
}

static void say(const uint8_t *bytes, uint32_t length)
{
    if (line)
        rdmfake_line_put(line, 1, RDMFAKE_PACKET, false, bytes, length);
}

static uint64_t some_length(struct input *input)
{
    static const uint64_t lengths[] = {0, 8, 64, 600, 800, 5000, 20000, UINT64_MAX};

    return lengths[take(input) % 8];
}

/* A packet as it should be, more or less; one byte may be another. */
static void say_packet(struct input *input)
{
    static uint8_t bytes[8192];
    uint8_t kind = take(input), how = take(input);
    uint16_t given[] = {take(input) % 4, take(input) % 4};
    uint64_t payload = some_length(input) % 7000;
    struct ofpi_rdm_packet packet = {
        .kind = kind % OFPI_RDM_KINDS,
        .receive = receive,
        .offset = some_length(input),
        .length = some_length(input),
        .error = how % 5 == 0,
    };
    bool message = packet.kind == OFPI_RDM_EAGER || packet.kind == OFPI_RDM_ANNOUNCE;
    bool pieces = packet.kind == OFPI_RDM_ANNOUNCE || packet.kind == OFPI_RDM_PULL || packet.kind == OFPI_RDM_REMOTE;
    uint32_t length;

    packet.channel = message ? OFP_CHANNEL_TAGGED : 0;
    packet.tag = how / 8 % 2;
    packet.id = packet.kind == OFPI_RDM_ANSWER ? asked : packet.kind == OFPI_RDM_REMOTE ? how : announced;
    packet.flags = packet.kind == OFPI_RDM_ANNOUNCE && how & 1 ? OFPI_RDM_FETCH : 0;
    packet.count = pieces ? how / 16 % 3 : 0;
    packet.pieces[0] = (struct ofpi_rdm_piece){how & 64 ? 100 : 0, packet.length, FAR_KEY};
    if (packet.kind == OFPI_RDM_REMOTE) {
        packet.count = 1;
        packet.op = OFP_READ + how % 5;
        packet.atomic_op = OFP_ATOMIC_SUM;
        packet.datatype = OFP_UINT64;
        packet.offset = 0;
        packet.pieces[0].key = region.key;
        packet.length %= 8000;
        packet.pieces[0].length = packet.length;
        payload = packet.op == OFP_READ ? 0 : packet.op == OFP_COMPARE_ATOMIC ? 2 * packet.length : packet.length;
    }
    length = ofpi_rdm_encode(&packet, bytes);
    ofpi_rdm_encode_credits(bytes, given, how & 128);
    if (packet.kind != OFPI_RDM_EAGER && packet.kind != OFPI_RDM_DATA && packet.kind != OFPI_RDM_REMOTE &&
        packet.kind != OFPI_RDM_ANSWER)
        payload = 0;
    if (payload > sizeof(bytes) - length)
        payload = sizeof(bytes) - length;
    if (kind > 200)
        bytes[take(input) % length] ^= take(input);
    else {
        budget[0] += given[0];
        budget[1] += given[1];
    }
    /* What a damaged one gives is not known. */
    if (kind > 200)
        budget[0] = budget[1] = UINT64_MAX / 2;
    say(bytes, length + (uint32_t)payload);
}

static void say_noise(struct input *input)
{
    uint8_t bytes[64];
    uint32_t length = take(input) % sizeof(bytes);

    for (uint32_t i = 0; i < length; i++)
        bytes[i] = take(input);
    budget[0] = budget[1] = UINT64_MAX / 2;
    say(bytes, length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rdmfake_address address = {.magic = 0x666d6472u, .process = (uint32_t)getpid(), .service = "far"};
    struct input input = {data, size};
    uint64_t key = FAR_KEY;

    endpoint_open((enum rdmfake_kind)(take(&input) % RDMFAKE_KINDS));
    check(rdmfake_port_open(&address, false, -1, &port, &port) == 0);
    check(rdmfake_memory_add(&port, far_memory, 0, FAR_SIZE, OFP_ACCESS_REMOTE_READ | OFP_ACCESS_REMOTE_WRITE, &key) ==
          0);
    for (int i = 0; i < 2000; i++)
        rdmfake_port_posted(port);
    check(ofp_av_insert(av, &address, sizeof(address), &peer) == 0);
    for (int step = 0; input.size && step < STEPS; step++) {
        uint8_t what = take(&input);

        if (!line || what % 32 == 0)
            ask(&input);
        else if (what % 8 < 3)
            say_packet(&input);
        else if (what % 8 < 5)
            post_something(&input);
        else if (what % 8 == 5)
            say_noise(&input);
        else
            hear();
    }
    leave();
    hear();
    rdmfake_port_close(port);
    rdmfake_memory_remove(&port, FAR_KEY);
    endpoint_close();
    return 0;
}
