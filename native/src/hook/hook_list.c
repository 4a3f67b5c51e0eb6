/* SPDX-License-Identifier: BSD-3-Clause */
#include "hook/hook_list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/param_text.h"
#include "hook/hooks.h"
#include "ofipy/ofp.h"

struct refusal {
    char *text;
    size_t size;
};

static size_t count_options(const struct ofp_hook *hook)
{
    size_t count = 0;

    while (hook->options && hook->options[count].name)
        count++;
    return count;
}

/* ----------------------------------------------------------------------------------------------------------- refusals */

static int refuse_hook(const char *name, struct refusal refusal)
{
    char known[OFP_TEXT_MAX / 2];

    ofpi_hook_names_format(known, sizeof(known));
    snprintf(refusal.text, refusal.size, "there is no hook \"%.64s\"; known are %s", name, known);
    return -EINVAL;
}

static int refuse_option(const struct ofp_hook *hook, const char *name, struct refusal refusal)
{
    int used = snprintf(refusal.text, refusal.size, "hook %s has no option \"%.64s\"; it has ", hook->name, name);
    size_t count = count_options(hook);

    for (size_t i = 0; i < count && (size_t)used < refusal.size; i++)
        used +=
            snprintf(refusal.text + used, refusal.size - (size_t)used, "%s%s", i ? ", " : "", hook->options[i].name);
    if (!count && (size_t)used < refusal.size)
        snprintf(refusal.text + used, refusal.size - (size_t)used, "none");
    return -EINVAL;
}

static int refuse_value(const struct ofp_hook *hook, const struct ofp_param *option, const char *value,
                        struct refusal refusal)
{
    char range[64];

    ofpi_param_describe_range(option, range, sizeof(range));
    snprintf(refusal.text, refusal.size, "hook %s: %s=%.64s; %s is meant", hook->name, option->name, value, range);
    return -EINVAL;
}

/* ------------------------------------------------------------------------------------------------------------ reading */

/* Cut off the part before the first `separator`, which is overwritten; *rest is NULL behind the last part. */
static char *pop_part(char **rest, char separator)
{
    char *part = *rest, *end = strchr(part, separator);

    *rest = end ? end + 1 : NULL;
    if (end)
        *end = 0;
    return part;
}

/* Parse an option of a hook, "name=value". */
static int read_option(struct ofpi_hook_use *use, char *text, struct refusal refusal)
{
    char *value = text, *name = pop_part(&value, '=');

    for (size_t i = 0; i < count_options(use->hook); i++) {
        const struct ofp_param *option = &use->hook->options[i];

        if (strcmp(option->name, name) != 0)
            continue;
        if (!value || !ofpi_param_parse(option, value, &use->values[i].number))
            return refuse_value(use->hook, option, value ? value : "", refusal);
        use->values[i].text = value;
        return 0;
    }
    return refuse_option(use->hook, name, refusal);
}

/* Parse one hook of a list: "name" or "name:option=value,…". */
static int read_use(struct ofpi_hook_use *use, char *text, struct refusal refusal)
{
    char *options = text, *name = pop_part(&options, ':');
    size_t count;
    int result = 0;

    use->hook = ofpi_hook_find(name, strlen(name));
    if (!use->hook)
        return refuse_hook(name, refusal);
    count = count_options(use->hook);
    use->values = calloc(count + 1, sizeof(*use->values));
    if (!use->values)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        use->values[i].text = use->hook->options[i].default_value;
        ofpi_param_parse(&use->hook->options[i], use->values[i].text, &use->values[i].number);
    }
    while (!result && options)
        result = read_option(use, pop_part(&options, ','), refusal);
    return result;
}

/* Reserve the next `size` bytes of a block, aligned for any type; returns their offset. */
static size_t reserve_bytes(size_t *block, size_t size)
{
    size_t offset = *block;

    *block += (size + 15) & ~(size_t)15;
    return offset;
}

static int read_uses(struct ofpi_hook_list *list, char *rest, struct refusal refusal)
{
    while (rest) {
        struct ofpi_hook_use *use = &list->uses[list->count++];
        int result = read_use(use, pop_part(&rest, ';'), refusal);

        if (result)
            return result;
        use->at_endpoint = reserve_bytes(&list->endpoint_size, use->hook->endpoint_size);
        use->at_peer = reserve_bytes(&list->peer_size, use->hook->peer_size);
        use->at_operation = reserve_bytes(&list->operation_size, use->hook->operation_size);
    }
    return 0;
}

int ofpi_hook_list_read(const char *text, struct ofpi_hook_list **result, char *reason, size_t reason_size)
{
    struct ofpi_hook_list *list;
    size_t count = 1;
    int error = -ENOMEM;

    *result = NULL;
    if (!text || !*text)
        return 0;
    for (const char *each = text; *each; each++)
        count += *each == ';';
    list = calloc(1, sizeof(*list));
    if (list) {
        list->text = strdup(text);
        list->uses = calloc(count, sizeof(*list->uses));
        if (list->text && list->uses)
            error = read_uses(list, list->text, (struct refusal){reason, reason_size});
    }
    if (error)
        ofpi_hook_list_free(list);
    else
        *result = list;
    return error;
}

void ofpi_hook_list_free(struct ofpi_hook_list *list)
{
    if (!list)
        return;
    for (uint32_t i = 0; i < list->count; i++)
        free(list->uses[i].values);
    free(list->uses);
    free(list->text);
    free(list);
}
