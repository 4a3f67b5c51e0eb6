/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "ofipy/ofp.h"
#include "ofipy/operation.h"

/* The end of every document. The next endpoint's events overwrite it. */
#define TAIL "\n]}\n"

struct trace_file {
    struct trace_file *next;
    pid_t pid; /* a forked process opens its own file */
    FILE *stream;
    char name[];
};

/* A track of the viewer: slices that do not overlap. */
struct lane {
    uint64_t busy_until;
    uint32_t track;
};

struct lanes {
    struct lane *all;
    size_t count;
};

/* Guarded by trace_files_lock, as are writes to the files. */
pthread_mutex_t trace_files_lock = PTHREAD_MUTEX_INITIALIZER;
static struct trace_file *files;
static uint32_t tracks; /* of this process so far */

const char *trace_peer_state_describe(uint32_t state)
{
    static const char *const names[] = {"unused", "connecting", "up", "lost"};

    return names[state & 3];
}

/* ------------------------------------------------------------------------------------------------------------ opening */

/* Write only the characters that a JSON string may contain. */
static void write_text(FILE *stream, const char *text)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', stream);
        fputc((unsigned char)*text < ' ' ? '?' : *text, stream);
    }
}

/* CLOCK_MONOTONIC is the same for all processes of a boot, so a tool that merges files compares the boot id. */
static void read_boot(char *boot, size_t size)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    boot[0] = 0;
    if (!file)
        return;
    if (!fgets(boot, (int)size, file))
        boot[0] = 0;
    boot[strcspn(boot, "\n")] = 0;
    fclose(file);
}

static void write_head(FILE *stream)
{
    struct utsname host = {0};
    char boot[64];

    uname(&host);
    read_boot(boot, sizeof(boot));
    fprintf(stream, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"schema\":1,\"host\":\"");
    write_text(stream, host.nodename);
    fprintf(stream, "\",\"boot\":\"");
    write_text(stream, boot);
    fprintf(stream, "\",\"clock\":\"CLOCK_MONOTONIC\"},\"traceEvents\":[\n");
    fprintf(stream, "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%ld,\"tid\":0,\"args\":{\"name\":\"",
            (long)getpid());
    write_text(stream, program_invocation_short_name);
    fprintf(stream, "\"}}" TAIL);
}

/* The lock is held. */
static struct trace_file *create_file(const char *name)
{
    struct trace_file *file = calloc(1, sizeof(*file) + strlen(name) + 1);

    if (!file)
        return NULL;
    strcpy(file->name, name);
    file->pid = getpid();
    file->stream = fopen(name, "we");
    if (!file->stream) {
        free(file);
        return NULL;
    }
    write_head(file->stream);
    fflush(file->stream);
    file->next = files;
    return files = file;
}

/* Whether its name still is that of the file: a program may remove or rename it between two endpoints. */
static bool is_at_its_name(const struct trace_file *file)
{
    struct stat opened, named;

    return fstat(fileno(file->stream), &opened) == 0 && stat(file->name, &named) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

struct trace_file *trace_file_open(const char *name, char *text, size_t text_size)
{
    struct trace_file *file;
    pid_t pid = getpid();

    pthread_mutex_lock(&trace_files_lock);
    for (file = files; file; file = file->next)
        if (file->pid == pid && strcmp(file->name, name) == 0 && is_at_its_name(file))
            break;
    if (!file)
        file = create_file(name);
    if (!file)
        snprintf(text, text_size, "file=%.256s cannot be written: %s; name another place", name, strerror(errno));
    pthread_mutex_unlock(&trace_files_lock);
    return file;
}

/* ------------------------------------------------------------------------------------------------------------- events */

static void write_timestamp(FILE *stream, const char *key, uint64_t ns)
{
    fprintf(stream, ",\"%s\":%llu.%03u", key, (unsigned long long)(ns / 1000), (unsigned)(ns % 1000));
}

/* Write the members that all events have. */
static void write_begin(const struct trace_file *file, const char *phase, uint32_t track, uint64_t time)
{
    fprintf(file->stream, ",\n{\"ph\":\"%s\",\"pid\":%ld,\"tid\":%u", phase, (long)file->pid, track);
    write_timestamp(file->stream, "ts", time);
}

static void write_peer(FILE *stream, uint32_t peer)
{
    if (peer == OFP_PEER_ANY)
        fprintf(stream, "\"peer\":\"any\"");
    else if (peer == OFP_PEER_UNKNOWN)
        fprintf(stream, "\"peer\":\"unknown\"");
    else
        fprintf(stream, "\"peer\":%u", peer);
}

/* The tag is written as text: most JSON readers lose bits of 64-bit numbers. */
static void write_message(FILE *stream, const struct trace_event *event)
{
    fprintf(stream, ",\"tag\":\"%#llx\",\"bytes\":%llu", (unsigned long long)event->tag,
            (unsigned long long)event->length);
}

static void write_operation(const struct trace_file *file, const struct trace_event *event, uint32_t track)
{
    FILE *stream = file->stream;

    write_begin(file, "X", track, event->begin);
    write_timestamp(stream, "dur", event->end - event->begin);
    fprintf(stream, ",\"cat\":\"operation\",\"name\":\"%s\",\"args\":{\"operation\":%llu,",
            ofp_operation_name(event->code), (unsigned long long)event->number);
    write_peer(stream, event->peer);
    write_message(stream, event);
    fprintf(stream, ",\"error\":");
    if (event->error) {
        fputc('"', stream);
        write_text(stream, ofp_strerror(event->error));
        fprintf(stream, "\"}}");
    } else {
        fprintf(stream, "null}}");
    }
    if (event->flow) {
        write_begin(file, "s", track, event->begin);
        fprintf(stream, ",\"cat\":\"message\",\"name\":\"message\",\"id\":\"%#llx\"}", (unsigned long long)event->flow);
    }
}

/* A slice of one nanosecond: an arrow must end in a slice. */
static void write_arrival(const struct trace_file *file, const struct trace_event *event, uint32_t track)
{
    static const char *const how[] = {"whole", "begun", "announced"};

    write_begin(file, "X", track, event->begin);
    fprintf(file->stream, ",\"dur\":0.001,\"cat\":\"arrival\",\"name\":\"arrival\",\"args\":{");
    write_peer(file->stream, event->peer);
    write_message(file->stream, event);
    fprintf(file->stream, ",\"how\":\"%s\"}}", how[event->code]);
    if (event->flow) {
        write_begin(file, "f", track, event->begin);
        fprintf(file->stream, ",\"bp\":\"e\",\"cat\":\"message\",\"name\":\"message\",\"id\":\"%#llx\"}",
                (unsigned long long)event->flow);
    }
}

const char *trace_method_describe(uint32_t how)
{
    static const char *const ways[] = {
        [OFP_MOVED_MAPPED] = "mapped", [OFP_MOVED_PIPELINED] = "pipeline", [OFP_MOVED_ATTACHED] = "attach"};

    return ways[how];
}

static void write_move(const struct trace_file *file, const struct trace_event *event, uint32_t track)
{
    write_begin(file, "i", track, event->begin);
    fprintf(file->stream, ",\"s\":\"t\",\"cat\":\"payload\",\"name\":\"payload\",\"args\":{");
    write_peer(file->stream, event->peer);
    write_message(file->stream, event);
    fprintf(file->stream, ",\"way\":\"%s\"}}", trace_method_describe(event->code));
}

static void write_peer_change(const struct trace_file *file, const struct trace_event *event, uint32_t track)
{
    write_begin(file, "i", track, event->begin);
    fprintf(file->stream, ",\"s\":\"t\",\"cat\":\"peer\",\"name\":\"peer %s\",\"args\":{",
            trace_peer_state_describe(event->code));
    write_peer(file->stream, event->peer);
    fprintf(file->stream, "}}");
}

/* -------------------------------------------------------------------------------------------------------------- lanes */

static uint32_t create_track(const struct trace_file *file, const char *title, const char *what)
{
    uint32_t track = ++tracks;

    fprintf(file->stream, ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%ld,\"tid\":%u,\"args\":{\"name\":\"",
            (long)file->pid, track);
    write_text(file->stream, title);
    write_text(file->stream, what);
    fprintf(file->stream,
            "\"}},\n{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":%ld,\"tid\":%u,\"args\":{\"sort_index\":%u}}",
            (long)file->pid, track, track);
    return track;
}

/* The first track that is free: slices of one track must not overlap. NULL: out of memory. */
static struct lane *find_track(struct lanes *lanes, const struct trace_file *file, const char *title, uint64_t time)
{
    struct lane *grown;
    char what[24] = "";

    for (size_t i = 0; i < lanes->count; i++)
        if (lanes->all[i].busy_until < time)
            return &lanes->all[i];
    grown = realloc(lanes->all, (lanes->count + 1) * sizeof(*grown));
    if (!grown)
        return NULL;
    if (lanes->count)
        snprintf(what, sizeof(what), " +%zu", lanes->count);
    lanes->all = grown;
    grown[lanes->count] = (struct lane){.track = create_track(file, title, what)};
    return &grown[lanes->count++];
}

static int compare_events(const void *a, const void *b)
{
    const struct trace_event *one = a, *other = b;

    return (one->begin > other->begin) - (one->begin < other->begin);
}

static int write_events(struct trace_file *file, const char *title, const struct trace_events *events)
{
    struct lanes lanes = {0};
    /* Create the first track of operations before the track of arrivals, so that it is above. */
    int result = find_track(&lanes, file, title, 1) ? 0 : -ENOMEM;
    uint32_t arrivals = create_track(file, title, ": arrivals, peers");

    for (size_t i = 0; !result && i < events->count; i++) {
        const struct trace_event *event = &events->all[i];
        struct lane *lane;

        if (event->kind == TRACE_ARRIVAL) {
            write_arrival(file, event, arrivals);
        } else if (event->kind == TRACE_MOVE) {
            write_move(file, event, arrivals);
        } else if (event->kind == TRACE_PEER) {
            write_peer_change(file, event, arrivals);
        } else if ((lane = find_track(&lanes, file, title, event->begin))) {
            lane->busy_until = event->end;
            write_operation(file, event, lane->track);
        } else {
            result = -ENOMEM;
        }
    }
    free(lanes.all);
    return result;
}

int trace_file_add(struct trace_file *file, const char *title, struct trace_events *events)
{
    int result;

    if (events->count)
        qsort(events->all, events->count, sizeof(events->all[0]), compare_events);
    pthread_mutex_lock(&trace_files_lock);
    result = fseek(file->stream, -(long)strlen(TAIL), SEEK_END) == 0 ? 0 : -errno;
    if (!result) {
        result = write_events(file, title, events);
        fputs(TAIL, file->stream);
        if (fflush(file->stream) != 0 || ferror(file->stream))
            result = result ? result : -(errno ? errno : EIO);
        clearerr(file->stream);
    }
    pthread_mutex_unlock(&trace_files_lock);
    return result;
}
