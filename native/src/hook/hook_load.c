/* SPDX-License-Identifier: BSD-3-Clause */
/* Register the built-in hooks, and load others from shared objects. */
#include "hook/hook_load.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "base/log.h"
#include "base/param_text.h"
#include "hook/hook_core.h"
#include "hook/hook_list.h"
#include "hook/hooks.h"
#include "hooks/in_tree.h"
#include "ofipy/ofp.h"

static void add_tree_hooks(void)
{
    /* In the order of `ofipy info --hooks`. */
    static ofp_hook_entry_fn *const in_tree[] = {ofpi_hook_debug_get, ofpi_hook_fault_get, ofpi_hook_profile_get,
                                                 ofpi_hook_trace_get};
    char text[OFP_TEXT_MAX];

    for (size_t i = 0; i < sizeof(in_tree) / sizeof(in_tree[0]); i++)
        if (ofpi_hook_add(in_tree[i](&ofpi_hook_core), text, sizeof(text)) != 0)
            ofpi_log_write(OFP_LOG_ERROR, "core", "%s", text);
}

void ofpi_hooks_enter_tree(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, add_tree_hooks);
}

int ofpi_hook_register(ofp_hook_entry_fn *entry, char *text, size_t text_size)
{
    ofpi_hooks_enter_tree();
    return ofpi_hook_add(entry(&ofpi_hook_core), text, text_size);
}

int ofp_hook_load(const char *path, char *text, size_t text_size)
{
    ofp_hook_entry_fn *entry;
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    text[0] = 0;
    if (!object) {
        snprintf(text, text_size, "%s", dlerror());
        return -ENOENT;
    }
    entry = (ofp_hook_entry_fn *)(uintptr_t)dlsym(object, "ofp_hook_entry");
    if (!entry) {
        snprintf(text, text_size, "%s does not export ofp_hook_entry", path);
        dlclose(object);
        return -EINVAL;
    }
    /* The entry function may have registered locks: keep the library loaded, even if it failed. */
    return ofpi_hook_register(entry, text, text_size);
}

int ofp_hooks_check(const char *text, char *reason, size_t reason_size)
{
    struct ofpi_hook_list *list;
    int error;

    ofpi_hooks_enter_tree();
    error = ofpi_hook_list_read(text, &list, reason, reason_size);
    ofpi_hook_list_free(list);
    return error;
}

/* ------------------------------------------------------------------------------------------------------- listing */

static const struct ofp_hook *find_known_hook(int index)
{
    ofpi_hooks_enter_tree();
    return ofpi_hook_find_at(index);
}

int ofp_hook_count(void)
{
    int count = 0;

    while (find_known_hook(count))
        count++;
    return count;
}

int ofp_hook_get(int index, const char **name, const char **description)
{
    const struct ofp_hook *hook = find_known_hook(index);

    if (!hook)
        return -EINVAL;
    *name = hook->name;
    *description = hook->description;
    return 0;
}

int ofp_hook_option(int index, int option, struct ofp_hook_option_info *info)
{
    const struct ofp_hook *hook = find_known_hook(index);
    const struct ofp_param *options;

    if (!hook)
        return -EINVAL;
    options = hook->options;
    for (int i = 0; options && options[i].name; i++) {
        if (i == option) {
            info->name = options[i].name;
            info->type = ofpi_param_describe_type(&options[i]);
            info->default_value = options[i].default_value;
            info->help = options[i].help;
            ofpi_param_describe_range(&options[i], info->range, sizeof(info->range));
            return 0;
        }
    }
    return -ENOENT;
}
