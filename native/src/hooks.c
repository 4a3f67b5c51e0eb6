/* SPDX-License-Identifier: BSD-3-Clause */
#include "hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "hooked.h"
#include "param_text.h"

#define HOOKS_MAX 32

/* In the tree, in the order of `ofipy info --hooks`. */
static ofp_hook_entry_fn *const in_tree[] = {ofpi_hook_debug, ofpi_hook_fault, ofpi_hook_profile, ofpi_hook_trace};

static pthread_mutex_t hooks_lock = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by hooks_lock. Copies, so that the table of an older header has NULL where it has no entry. */
static struct ofp_hook hooks[HOOKS_MAX];
static int hook_count;

static const struct ofp_hook *find(const char *name, size_t length)
{
    for (int i = 0; i < hook_count; i++)
        if (strlen(hooks[i].name) == length && memcmp(hooks[i].name, name, length) == 0)
            return &hooks[i];
    return NULL;
}

/* -------------------------------------------------------------------------------------------------------- entering */

static int check(const struct ofp_hook *hook, char *text, size_t text_size)
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
    wrong = hook->options ? ofpi_param_misdeclared(hook->options) : NULL;
    if (wrong) {
        snprintf(text, text_size, "hook %s declares %s with a default that is not in its range", hook->name, wrong);
        return -EINVAL;
    }
    return 0;
}

/* The lock is held. The first of a name stays. */
static int add(const struct ofp_hook *hook, char *text, size_t text_size)
{
    int error = check(hook, text, text_size);

    if (error || find(hook->name, strlen(hook->name)))
        return error;
    if (hook_count == HOOKS_MAX) {
        snprintf(text, text_size, "there are %d hooks already", HOOKS_MAX);
        return -ENOSPC;
    }
    memcpy(&hooks[hook_count++], hook, hook->size < sizeof(*hook) ? hook->size : sizeof(*hook));
    return 0;
}

static void enter(void)
{
    char text[OFP_TEXT_MAX];

    pthread_mutex_lock(&hooks_lock);
    if (hook_count)
        return;
    for (size_t i = 0; i < sizeof(in_tree) / sizeof(in_tree[0]); i++)
        if (add(in_tree[i](&ofpi_hook_core), text, sizeof(text)) != 0)
            ofpi_log(OFP_LOG_ERROR, "core", "%s", text);
}

static void leave(void) { pthread_mutex_unlock(&hooks_lock); }

int ofpi_hook_register(ofp_hook_entry_fn *entry, char *text, size_t text_size)
{
    const struct ofp_hook *hook = entry(&ofpi_hook_core);
    int error;

    enter();
    error = add(hook, text, text_size);
    leave();
    return error;
}

int ofp_hook_load(const char *path, char *text, size_t text_size)
{
    ofp_hook_entry_fn *entry;
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int error;

    text[0] = 0;
    if (!object) {
        snprintf(text, text_size, "%s", dlerror());
        return -ENOENT;
    }
    entry = (ofp_hook_entry_fn *)(uintptr_t)dlsym(object, "ofp_hook_entry");
    if (!entry)
        snprintf(text, text_size, "%s does not export ofp_hook_entry", path);
    error = entry ? ofpi_hook_register(entry, text, text_size) : -EINVAL;
    if (error)
        dlclose(object);
    return error;
}

/* --------------------------------------------------------------------------------------------------------- looking */

const struct ofp_hook *ofpi_hook_find(const char *name, size_t length)
{
    const struct ofp_hook *hook;

    enter();
    hook = find(name, length);
    leave();
    return hook;
}

void ofpi_hook_names(char *text, size_t text_size)
{
    size_t used = 0;

    enter();
    text[0] = 0;
    for (int i = 0; i < hook_count && used < text_size; i++)
        used += (size_t)snprintf(text + used, text_size - used, "%s%s", i ? ", " : "", hooks[i].name);
    leave();
}

int ofp_hook_count(void)
{
    int count;

    enter();
    count = hook_count;
    leave();
    return count;
}

int ofp_hook_get(int index, const char **name, const char **description)
{
    if (index < 0 || index >= ofp_hook_count())
        return -EINVAL;
    *name = hooks[index].name;
    *description = hooks[index].description;
    return 0;
}

int ofp_hook_option(int index, int option, struct ofp_hook_option_info *info)
{
    const struct ofp_param *options;

    if (index < 0 || index >= ofp_hook_count())
        return -EINVAL;
    options = hooks[index].options;
    for (int i = 0; options && options[i].name; i++) {
        if (i == option) {
            info->name = options[i].name;
            info->type = ofpi_param_type(&options[i]);
            info->default_value = options[i].default_value;
            info->help = options[i].help;
            ofpi_param_range(&options[i], info->range, sizeof(info->range));
            return 0;
        }
    }
    return -ENOENT;
}
