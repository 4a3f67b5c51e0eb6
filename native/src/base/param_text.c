/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/param_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool parse_size(const char *text, int64_t *result)
{
    static const char suffixes[] = "kmg";
    const char *suffix;
    char *end;
    unsigned long long number;
    int shift = 0;

    /* Check this first: strtoull accepts spaces and signs. */
    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    number = strtoull(text, &end, 10);
    if (errno)
        return false;
    if (*end) {
        suffix = strchr(suffixes, tolower((unsigned char)*end));
        if (!suffix || end[1])
            return false;
        shift = 10 * (int)(suffix - suffixes + 1);
    }
    if (number > (unsigned long long)INT64_MAX >> shift)
        return false;
    *result = (int64_t)(number << shift);
    return true;
}

static bool parse_int(const char *text, int64_t *result)
{
    char *end;

    if (!isdigit((unsigned char)text[*text == '-']))
        return false;
    errno = 0;
    *result = strtoll(text, &end, 10);
    return !*end && !errno;
}

static bool parse_bool(const char *text, int64_t *result)
{
    static const char *const words[] = {"0", "1", "no", "yes", "false", "true", "off", "on"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *result = i % 2;
            return true;
        }
    }
    return false;
}

static bool parse_always(const char *text, int64_t *result)
{
    *result = 2;
    return strcasecmp(text, "always") == 0 || parse_bool(text, result);
}

/* The largest unit first: numbers are formatted with the first unit that divides them. */
static const struct {
    const char *name;
    int64_t nanoseconds;
} units[] = {{"s", 1000000000}, {"ms", 1000000}, {"us", 1000}, {"ns", 1}};

static bool parse_time(const char *text, int64_t *result)
{
    char *end;
    long long number;

    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    number = strtoll(text, &end, 10);
    if (errno)
        return false;
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(end, units[i].name) == 0 && number <= INT64_MAX / units[i].nanoseconds) {
            *result = number * units[i].nanoseconds;
            return true;
        }
    }
    *result = 0;
    return !number && !*end;
}

/* Not by strtod, whose decimal point depends on the locale. */
static bool parse_fraction(const char *text, int64_t *result)
{
    int64_t place = OFPI_FRACTION_ONE / 10;

    if ((*text != '0' && *text != '1') || (text[1] && text[1] != '.'))
        return false;
    *result = *text == '1' ? OFPI_FRACTION_ONE : 0;
    for (text += text[1] ? 2 : 1; isdigit((unsigned char)*text) && place; text++, place /= 10)
        *result += place * (*text - '0');
    return !*text;
}

bool ofpi_param_parse(const struct ofp_param *declaration, const char *text, int64_t *result)
{
    bool understood;

    switch (declaration->type) {
    case OFP_PARAM_SIZE:
        understood = parse_size(text, result);
        break;
    case OFP_PARAM_INT:
        understood = parse_int(text, result);
        break;
    case OFP_PARAM_TIME:
        understood = parse_time(text, result);
        break;
    case OFP_PARAM_FRACTION:
        return parse_fraction(text, result) && *result <= OFPI_FRACTION_ONE;
    case OFP_PARAM_BOOL:
        return parse_bool(text, result);
    case OFP_PARAM_ALWAYS:
        return parse_always(text, result);
    default:
        *result = 0;
        return true;
    }
    return understood && *result >= declaration->least && *result <= declaration->most;
}

static void format_size(int64_t number, char *text, size_t size)
{
    static const char *const suffixes[] = {"", "k", "m", "g"};
    int unit = 0;

    while (unit < 3 && number && number % 1024 == 0) {
        number /= 1024;
        unit++;
    }
    snprintf(text, size, "%lld%s", (long long)number, suffixes[unit]);
}

static void format_time(int64_t number, char *text, size_t size)
{
    int unit = 0;

    while (number % units[unit].nanoseconds)
        unit++;
    snprintf(text, size, "%lld%s", (long long)(number / units[unit].nanoseconds), number ? units[unit].name : "");
}

static void format_number(const struct ofp_param *declaration, int64_t number, char *text, size_t size)
{
    if (declaration->type == OFP_PARAM_SIZE)
        format_size(number, text, size);
    else if (declaration->type == OFP_PARAM_TIME)
        format_time(number, text, size);
    else
        snprintf(text, size, "%lld", (long long)number);
}

void ofpi_param_describe_range(const struct ofp_param *declaration, char *text, size_t size)
{
    char least[24], most[24];

    text[0] = 0;
    switch (declaration->type) {
    case OFP_PARAM_STRING:
        return;
    case OFP_PARAM_BOOL:
        snprintf(text, size, "yes or no");
        return;
    case OFP_PARAM_ALWAYS:
        snprintf(text, size, "no, yes or always");
        return;
    case OFP_PARAM_FRACTION:
        snprintf(text, size, "0 to 1");
        return;
    default:
        format_number(declaration, declaration->least, least, sizeof(least));
        format_number(declaration, declaration->most, most, sizeof(most));
        snprintf(text, size, "%s to %s", least, most);
    }
}

const char *ofpi_param_describe_type(const struct ofp_param *declaration)
{
    static const char *const types[] = {"string", "bool", "size", "int", "fraction", "time", "bool or always"};

    return types[declaration->type];
}
