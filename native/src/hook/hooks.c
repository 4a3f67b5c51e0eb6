/* SPDX-License-Identifier: BSD-3-Clause */
#include "hook/hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/param.h"
#include "base/process_lock.h"
#include "ofipy/ofp.h"

#define HOOKS_MAX 32

/* Guarded by OFPI_LOCK_HOOKS. Copies: entries that a table of an older header lacks are NULL. */
static struct ofp_hook hooks[HOOKS_MAX];
static int hook_count;

static const struct ofp_hook *find_hook(const char *name, size_t length)
{
    for (int i = 0; i < hook_count; i++)
        if (strlen(hooks[i].name) == length && memcmp(hooks[i].name, name, length) == 0)
            return &hooks[i];
    return NULL;
}

/* ---------------------------------------------------------------------------------------------------------- adding */

static int check_hook(const struct ofp_hook *hook, char *text, size_t text_size)
{
    const char *wrong;

    if (!hook || hook->abi != OFP_HOOK_ABI) {
        snprintf(text, text_size, "the hook was not built for version %d of the core's hooks: build it again",
                 OFP_HOOK_ABI);
        return -ENOTSUP;
    }
    if (hook->size < offsetof(struct ofp_hook, open) || !hook->name || !hook->name[0] || !hook->description ||
        strpbrk(hook->name, ":;,=")) {
        snprintf(text, text_size, "the hook's table lacks name or description, or its name has one of :;,= in it");
        return -EINVAL;
    }
    wrong = hook->options ? ofpi_param_find_misdeclared(hook->options) : NULL;
    if (wrong) {
        snprintf(text, text_size, "hook %s declares %s with a default that is not in its range", hook->name, wrong);
        return -EINVAL;
    }
    return 0;
}

/* The lock is held. A second hook of the same name is ignored. */
static int add_hook(const struct ofp_hook *hook, char *text, size_t text_size)
{
    int error = check_hook(hook, text, text_size);

    if (error || find_hook(hook->name, strlen(hook->name)))
        return error;
    if (hook_count == HOOKS_MAX) {
        snprintf(text, text_size, "there are %d hooks already", HOOKS_MAX);
        return -ENOSPC;
    }
    memcpy(&hooks[hook_count++], hook, hook->size < sizeof(*hook) ? hook->size : sizeof(*hook));
    return 0;
}

int ofpi_hook_add(const struct ofp_hook *hook, char *text, size_t text_size)
{
    int error;

    ofpi_process_lock_acquire(OFPI_LOCK_HOOKS);
    error = add_hook(hook, text, text_size);
    ofpi_process_lock_release(OFPI_LOCK_HOOKS);
    return error;
}

/* --------------------------------------------------------------------------------------------------------- finding */

const struct ofp_hook *ofpi_hook_find(const char *name, size_t length)
{
    const struct ofp_hook *hook;

    ofpi_process_lock_acquire(OFPI_LOCK_HOOKS);
    hook = find_hook(name, length);
    ofpi_process_lock_release(OFPI_LOCK_HOOKS);
    return hook;
}

void ofpi_hook_names_format(char *text, size_t text_size)
{
    size_t used = 0;

    ofpi_process_lock_acquire(OFPI_LOCK_HOOKS);
    text[0] = 0;
    for (int i = 0; i < hook_count && used < text_size; i++)
        used += (size_t)snprintf(text + used, text_size - used, "%s%s", i ? ", " : "", hooks[i].name);
    ofpi_process_lock_release(OFPI_LOCK_HOOKS);
}

const struct ofp_hook *ofpi_hook_find_at(int index)
{
    const struct ofp_hook *hook;

    ofpi_process_lock_acquire(OFPI_LOCK_HOOKS);
    hook = index >= 0 && index < hook_count ? &hooks[index] : NULL;
    ofpi_process_lock_release(OFPI_LOCK_HOOKS);
    return hook;
}
