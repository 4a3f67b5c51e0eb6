/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that programs share: program.h. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "link/link_address.h"
#include "link/link_tables.h"
#include "ofipy/provider.h"
#include "ofipy/ways.h"
#include "program.h"
#include "provider/provider_registry.h"

/* Each provider's entry, renamed by an option of the compiler. */
const struct ofp_provider *fake_provider_entry(const struct ofp_core *core);
const struct ofp_provider *rdmfake_provider_entry(const struct ofp_core *core);
const struct ofp_provider *shm_provider_entry(const struct ofp_core *core);
const struct ofp_provider *tcp_provider_entry(const struct ofp_core *core);

/* A carrier of programs: the providers that are registered, and the one that a pair finds its infos of. */
struct carrier {
    const char *name;
    ofp_provider_entry_fn *entries[3]; /* the last one of them is asked for infos */
    const char *infos[2];              /* of the first and the second side; NULL: those of the provider's own name */
    const char *lane;                  /* a side knows the other one by this lane alone; often one side does, or both */
    const char *devices[3];            /* names of domains, of which a pair draws one; NULL: the first info */
};

static const struct carrier carriers[] = {
    {.name = "fake", .entries = {fake_provider_entry}},
    {.name = "shm", .entries = {shm_provider_entry}},
    {.name = "tcp", .entries = {tcp_provider_entry}},
    {.name = "rdm", .entries = {rdmfake_provider_entry}, .devices = {"packets", "puts", "gets"}},
    {.name = "link",
     .entries = {shm_provider_entry, tcp_provider_entry, link_provider_get},
     .infos = {"link:shm+tcp", "link:tcp+shm"},
     .lane = "tcp"},
    {.name = "link-rdm",
     .entries = {shm_provider_entry, rdmfake_provider_entry, link_provider_get},
     .infos = {"link:shm+rdmfake", "link:rdmfake+shm"},
     .lane = "rdmfake"},
};

static const struct carrier *find_carrier(void)
{
    for (unsigned i = 0; i < sizeof(carriers) / sizeof(carriers[0]); i++)
        if (strcmp(carriers[i].name, program_carrier) == 0)
            return &carriers[i];
    schedule_fail("wrong: there is no carrier %s", program_carrier);
}

static struct ofp_provider *find_provider(void)
{
    const struct carrier *carrier = find_carrier();
    struct ofp_provider *provider = NULL;
    char text[OFP_TEXT_MAX] = "";

    for (int i = 0; i < 3 && carrier->entries[i]; i++)
        if (ofpi_provider_register(carrier->entries[i], &provider, text, sizeof(text)) != 0)
            schedule_fail("wrong: carrier %s: %s", program_carrier, text);
    return provider;
}

static void find_info(struct ofp_provider *provider, const struct side *side, struct ofp_info *info)
{
    const char *name = side->infos ? side->infos : ofp_provider_name(provider);
    struct ofp_info infos[8];
    char text[OFP_TEXT_MAX] = "";
    int count = ofp_provider_getinfo_as(provider, name, infos, 8, text, sizeof(text));

    for (int i = 0; i < count; i++) {
        if (!infos[i].offloads_matching && infos[i].ep_types == OFP_EP_RDM &&
            (!side->device || strcmp(infos[i].domain, side->device) == 0)) {
            *info = infos[i];
            return;
        }
    }
    schedule_fail("wrong: carrier %s has no endpoint: %s", program_carrier, text);
}

void side_open(struct side *side, uint32_t progress)
{
    struct ofp_provider *provider = find_provider();
    struct ofp_domain_attr domain_attr = {.progress = progress, .hooks = ""};
    struct ofp_cq_attr cq_attr = {.size = 64};
    struct ofp_eq_attr eq_attr = {0};
    struct ofp_av_attr av_attr = {.auto_insert = 1};
    struct ofp_endpoint_attr attr = {0};
    char text[OFP_TEXT_MAX] = "";
    struct ofp_info info;

    find_info(provider, side, &info);
    CHECK(ofp_domain_open(provider, &info, &domain_attr, &side->domain, text, sizeof(text)) == 0);
    CHECK(ofp_cq_open(side->domain, &cq_attr, &side->cq) == 0);
    CHECK(ofp_av_open(side->domain, &av_attr, &side->av) == 0);
    CHECK(ofp_eq_open(side->domain, &eq_attr, &side->eq) == 0);
    attr.eq = side->eq;
    attr.tx_cq = attr.rx_cq = side->cq;
    attr.av = side->av;
    CHECK(ofp_endpoint_open(side->domain, &attr, &side->endpoint, text, sizeof(text)) == 0);
}

void side_close_rest(struct side *side)
{
    CHECK(ofp_eq_close(side->eq) == 0);
    CHECK(ofp_av_close(side->av) == 0);
    CHECK(ofp_cq_close(side->cq) == 0);
    CHECK(ofp_domain_close(side->domain) == 0);
}

void side_close(struct side *side)
{
    CHECK(ofp_endpoint_close(side->endpoint, 1000 * MS) == 0);
    side_close_rest(side);
}

/* Leave out the lanes of an address of link but one. */
static size_t keep_lane(const char *lane, char *address, size_t length)
{
    char whole[OFP_ADDRESS_MAX];
    struct link_address read;
    struct link_entry entry;
    struct link_writer writer;
    const uint8_t *cursor = NULL;

    memcpy(whole, address, length);
    CHECK(link_address_read(&read, whole, length) == 0);
    CHECK(link_writer_init(&writer, address, OFP_ADDRESS_MAX, read.host, read.identity, read.connects_only) == 0);
    while (link_address_read_next(&read, &cursor, &entry))
        if (link_entry_is_of(&entry, lane, strlen(lane)))
            CHECK(link_address_add(&writer, lane, entry.address, entry.length) == 0);
    return writer.length;
}

static uint32_t insert_address(struct side *side, struct side *other)
{
    char address[OFP_ADDRESS_MAX];
    size_t length = sizeof(address);
    uint32_t index = 0;

    CHECK(ofp_endpoint_address(other->endpoint, address, &length) == 0);
    if (side->lane)
        length = keep_lane(side->lane, address, length);
    CHECK(ofp_av_insert(side->av, address, length, &index) == 0);
    return index;
}

void sides_meet(struct side *a, struct side *b)
{
    a->peer = insert_address(a, b);
    b->peer = insert_address(b, a);
}

void pair_open(struct side *a, struct side *b, uint32_t progress)
{
    const struct carrier *carrier = find_carrier();
    const char *device = carrier->devices[0] ? carrier->devices[schedule_draw(3)] : NULL;

    *a = (struct side){.infos = carrier->infos[0], .device = device};
    *b = (struct side){.infos = carrier->infos[1], .device = device};
    if (carrier->lane && schedule_draw(4))
        b->lane = carrier->lane;
    if (b->lane && schedule_draw(2))
        a->lane = carrier->lane;
    side_open(a, progress);
    side_open(b, progress);
    sides_meet(a, b);
}

/* --------------------------------------------------------------------------------------------------------------- threads */

pthread_t thread_start(const char *name, void *(*function)(void *argument), void *argument)
{
    pthread_t thread;

    schedule_name_next(name);
    CHECK(pthread_create(&thread, NULL, function, argument) == 0);
    return thread;
}

void thread_join(pthread_t thread) { CHECK(pthread_join(thread, NULL) == 0); }

/* -------------------------------------------------------------------------------------------------------------- messages */

void message_fill(uint8_t *bytes, uint64_t length, uint32_t number)
{
    for (uint64_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)(number * 31 + i * 7 + (i >> 8));
}

void message_check(const uint8_t *bytes, uint64_t length, uint32_t number)
{
    for (uint64_t i = 0; i < length; i++)
        if (bytes[i] != (uint8_t)(number * 31 + i * 7 + (i >> 8)))
            schedule_fail("wrong: byte %llu of message %u is another one's", (unsigned long long)i, number);
}

void compute_a_while(void)
{
    uint64_t duration = schedule_draw_pause();
    struct timespec pause = {.tv_nsec = (long)duration};

    if (!duration)
        return;
    schedule_board->budget_ns += duration;
    nanosleep(&pause, NULL);
}

static ofp_request_t start_operation(struct side *side, uint16_t op, const void *bytes, uint64_t length, uint64_t tag)
{
    struct ofp_operation operation = {
        .op = op, .peer = side->peer, .tag = tag, .offset = (uint64_t)(uintptr_t)bytes, .length = length};
    ofp_request_t request;

    compute_a_while();
    /* As Python does: a call waits for a second at most. */
    while ((request = ofp_request_start(side->endpoint, &operation, 0, FOR_EVER)) == -EAGAIN || request == -EINTR)
        ;
    if (request < 0)
        schedule_fail("wrong: an operation is refused: %s", ofp_strerror((int)-request));
    return request;
}

ofp_request_t start_send(struct side *side, const void *bytes, uint64_t length, uint64_t tag)
{
    return start_operation(side, OFP_TSEND, bytes, length, tag);
}

ofp_request_t start_receive(struct side *side, void *bytes, uint64_t length, uint64_t tag)
{
    return start_operation(side, OFP_TRECV, bytes, length, tag);
}

struct ofp_completion take_completion(ofp_request_t request)
{
    struct ofp_completion completion = {0};
    int result;

    compute_a_while();
    while ((result = ofp_request_take(request, FOR_EVER, &completion)) == 0 || result == -EINTR)
        ;
    if (result < 0)
        completion.error = result;
    return completion;
}

void take_whole(ofp_request_t request, uint64_t length)
{
    struct ofp_completion completion;

    /* A send that ended while it was started. */
    if (!request)
        return;
    completion = take_completion(request);

    if (completion.error)
        schedule_fail("wrong: an operation ends with %d: %s", completion.error,
                      ofp_strerror(completion.error < 0 ? -completion.error : completion.error));
    CHECK(!length || completion.length == length);
}

void side_warm(void)
{
    struct side side = {.infos = find_carrier()->infos[0]};

    side_open(&side, OFP_PROGRESS_MANUAL);
    side_close(&side);
}

/* Nothing fails here, so there is nothing to warn of but that tcp has no key. */
static void check_no_warning(void)
{
    char provider[32], text[OFP_TEXT_MAX] = "";
    int level = 0;

    while (ofp_log_next(&level, provider, sizeof(provider), text, sizeof(text)))
        if (level >= OFP_LOG_WARNING && !strstr(text, "OFIPY_AUTH_KEY_FILE"))
            schedule_fail("wrong: %s warns: %s", provider, text);
}

static void *close_side(void *side)
{
    side_close(side);
    return NULL;
}

void sides_close(struct side *a, struct side *b)
{
    pthread_t closer = thread_start("closer", close_side, b);

    side_close(a);
    thread_join(closer);
}

void pair_close(struct side *a, struct side *b)
{
    struct side *ways[2][2] = {{a, b}, {b, a}};
    uint8_t sent[64], received[64];

    for (int i = 0; i < 2; i++) {
        ofp_request_t receive = start_receive(ways[i][1], received, sizeof(received), 999), send;

        message_fill(sent, sizeof(sent), 999);
        send = start_send(ways[i][0], sent, sizeof(sent), 999);
        while (ofp_request_wait(receive, 0) == 0)
            CHECK(!send || ofp_request_wait(send, 0) >= 0);
        take_whole(receive, sizeof(received));
        take_whole(send, 0);
        message_check(received, sizeof(received), 999);
    }
    sides_close(a, b);
    check_no_warning();
}
