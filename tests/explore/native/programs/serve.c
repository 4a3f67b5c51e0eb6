/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Serve runs of the programs. A line of input, "PROGRAM/CARRIER SEED COUNT", is followed by COUNT lines of decisions,
 * separated by tabs: thread, function, occurrence, next thread. Each asks for one run, and gets one line of JSON.
 *
 * A run is a process of its own, which is forked from this one. Its addresses are those of each other run: this program
 * begins again without chance in its addresses.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

#define BUDGET (20 * MS)
#define CPU_SECONDS 10   /* of a run that takes some ms: it has no more points */
#define FEW_BUFFERS "64" /* of an endpoint of rdmfake, which posts each */
#define REAL_MS 120000   /* of a run that neither ends nor runs */

const char *program_carrier;

/* ---------------------------------------------------------------------------------------------------------- in the run */

static uint32_t count_descriptors(void)
{
    uint32_t count = 0;

    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

/* Values that make rare ways common, and few points of what is only many times the same. */
static void draw_parameters(void)
{
    static const struct {
        const char *name, *value;
    } rare[] = {{"SPIN_TIME", "0"}, {"SHM_RING_SIZE", "16"}, {"SHM_BOUNCE_COUNT", "1"}, {"TX_QUEUE", "4"}};

    ofp_param_set("RDMFAKE_RECEIVE_SIZE", FEW_BUFFERS);
    /* Otherwise endpoints of link do not listen to the network. */
    ofp_param_set("INTERFACE", "lo");
    for (unsigned i = 0; i < sizeof(rare) / sizeof(rare[0]); i++)
        if (schedule_draw(2))
            ofp_param_set(rare[i].name, rare[i].value);
}

static _Noreturn void make_run(const struct program *program, uint64_t seed)
{
    struct rlimit limit = {CPU_SECONDS, CPU_SECONDS + 1};
    uint32_t before;

    setrlimit(RLIMIT_CPU, &limit);
    side_warm();
    before = count_descriptors();
    schedule_begin(seed, program->budget ? program->budget : BUDGET);
    draw_parameters();
    program->run();
    schedule_end();
    if (count_descriptors() != before)
        schedule_fail("leak: %u descriptors before, %u behind", before, count_descriptors());
    schedule_board->ended = true;
    _exit(0);
}

/* -------------------------------------------------------------------------------------------------------- in the server */

static void print_text(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            putchar('\\');
        putchar(*text >= ' ' ? *text : ' ');
    }
    putchar('"');
}

static void print_decisions(void)
{
    for (uint32_t i = 0; i < schedule_board->decision_count; i++) {
        const struct schedule_decision *made = &schedule_board->decisions[i];

        printf("%s[\"%s\", \"%s\", %u, \"%s\"]", i ? ", " : "", made->thread, made->function, made->occurrence,
               made->next);
    }
}

static void print_story(void)
{
    uint32_t count = schedule_board->event_count;

    for (uint32_t i = count > SCHEDULE_STORY ? count - SCHEDULE_STORY : 0, first = i; i < count; i++) {
        const struct schedule_event *event = &schedule_board->events[i % SCHEDULE_STORY];

        printf("%s[\"%s\", \"%s\", \"%s\", %u, %llu, %llu]", i == first ? "" : ", ", event->thread, event->function,
               event->file ? event->file : "", event->line, (unsigned long long)(uintptr_t)event->caller,
               (unsigned long long)event->at);
    }
}

static uint32_t count_unused(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < schedule_board->given_count; i++)
        count += !schedule_board->given[i].used;
    return count;
}

static void print_outcome(void)
{
    printf("{\"verdict\": ");
    print_text(schedule_board->verdict);
    printf(", \"steps\": %llu, \"digest\": \"%016llx\", \"virtual\": %llu, \"unused\": %u, \"decisions\": [",
           (unsigned long long)schedule_board->steps, (unsigned long long)schedule_board->digest,
           (unsigned long long)schedule_board->virtual_ns, count_unused());
    print_decisions();
    printf("], \"story\": [");
    if (schedule_board->verdict[0])
        print_story();
    printf("]}\n");
    fflush(stdout);
}

static void judge_status(pid_t child)
{
    struct pollfd entry = {.fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN};
    bool ended = entry.fd < 0 || poll(&entry, 1, REAL_MS) != 0;
    int status;

    if (!ended)
        kill(child, SIGKILL);
    waitpid(child, &status, 0);
    if (entry.fd >= 0)
        close(entry.fd);
    if (schedule_board->verdict[0])
        return;
    if (!ended)
        snprintf(schedule_board->verdict, SCHEDULE_VERDICT, "hang: the system does not let a thread go on");
    else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
        snprintf(schedule_board->verdict, SCHEDULE_VERDICT, "hang: %d s without a point", CPU_SECONDS);
    else if (WIFSIGNALED(status))
        snprintf(schedule_board->verdict, SCHEDULE_VERDICT, "crash: signal %d", WTERMSIG(status));
    else if (!schedule_board->ended)
        snprintf(schedule_board->verdict, SCHEDULE_VERDICT, "crash: exit status %d", WEXITSTATUS(status));
}

/* A program that provokes a verdict is right if it has it. */
static void judge_expected(const char *expected)
{
    char *verdict = schedule_board->verdict;

    if (expected && strncmp(verdict, expected, strlen(expected)) == 0)
        verdict[0] = '\0';
    else if (expected)
        snprintf(verdict, SCHEDULE_VERDICT, "wrong: the scheduler does not see what is provoked: %s", expected);
}

static const struct program *find_program(const char *name)
{
    size_t length = strcspn(name, "/");

    for (const struct program *const *each = programs; *each; each++)
        if (strlen((*each)->name) == length && strncmp((*each)->name, name, length) == 0)
            return *each;
    fprintf(stderr, "there is no program %s\n", name);
    exit(2);
}

static void read_decisions(uint32_t count)
{
    schedule_board->given_count = count < SCHEDULE_DECISIONS ? count : SCHEDULE_DECISIONS;
    for (uint32_t i = 0; i < count; i++) {
        struct schedule_decision ignored, *given = i < SCHEDULE_DECISIONS ? &schedule_board->given[i] : &ignored;

        if (scanf(" %15[^\t]\t%47[^\t]\t%u\t%15[^\n]", given->thread, given->function, &given->occurrence,
                  given->next) != 4) {
            fprintf(stderr, "decision %u cannot be read\n", i);
            exit(2);
        }
    }
}

static void clear_board(void)
{
    struct schedule_board *board = schedule_board;

    board->verdict[0] = '\0';
    board->ended = false;
    board->steps = board->digest = board->virtual_ns = board->budget_ns = 0;
    board->decision_count = board->given_count = board->event_count = 0;
    memset(board->given, 0, sizeof(board->given));
}

int main(int argc, char **argv)
{
    unsigned long long seed;
    unsigned count;
    char name[64];

    (void)argc;
    if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE) && personality(ADDR_NO_RANDOMIZE) >= 0)
        execv("/proc/self/exe", argv);
    schedule_board = mmap(NULL, sizeof(*schedule_board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (schedule_board == MAP_FAILED)
        return 2;
    while (scanf(" %63s %llu %u", name, &seed, &count) == 3) {
        const struct program *program = find_program(name);
        pid_t child;

        clear_board();
        read_decisions(count);
        program_carrier = strchr(name, '/') + 1;
        child = fork();
        if (child < 0) {
            fprintf(stderr, "fork: %s\n", strerror(errno));
            return 2;
        }
        if (child == 0)
            make_run(program, seed);
        judge_status(child);
        judge_expected(program->expected);
        print_outcome();
    }
    return 0;
}
