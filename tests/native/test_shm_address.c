/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses: what resolves, what is refused, what does not pass the check. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/address.h"
#include "base/core.h"
#include "object/domain.h"
#include "provider/provider_registry.h"

const struct ofp_provider *ofp_provider_entry(const struct ofp_core *core);

static int load(void **state)
{
    (void)state;
    return ofp_provider_entry(&ofpi_core) ? 0 : -1;
}

static int resolve(const char *node, const char *service, struct shm_address *address, char *text)
{
    size_t length = sizeof(*address);
    int result;

    text[0] = 0;
    result = shm_address_resolve(node, service, address, &length, text, OFP_TEXT_MAX);
    if (!result)
        assert_int_equal(length, sizeof(*address));
    return result;
}

static void test_this_host(void **state)
{
    static const char *const nodes[] = {NULL, "", "localhost", "127.0.0.1", "::1", "127.1.2.3"};
    struct shm_address first, other;
    char text[OFP_TEXT_MAX], host[256];

    (void)state;
    assert_int_equal(resolve(NULL, "7471", &first, text), 0);
    assert_int_equal(shm_address_check(&first, sizeof(first)), 0);
    assert_string_equal(first.name, "7471");
    assert_int_equal(first.uid, getuid());
    for (unsigned i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        int result = resolve(nodes[i], "7471", &other, text);

        /* A machine without IPv6 does not know the address. */
        if (i == 4 && result == -EHOSTUNREACH)
            continue;
        assert_int_equal(result, 0);
        /* Equal addresses are equal byte for byte. */
        assert_memory_equal(&first, &other, sizeof(first));
    }
    assert_int_equal(gethostname(host, sizeof(host)), 0);
    assert_int_equal(resolve(host, "7471", &other, text), 0);
    assert_memory_equal(&first, &other, sizeof(first));
}

static void test_other_hosts(void **state)
{
    struct shm_address address;
    char text[OFP_TEXT_MAX];

    (void)state;
    /* Reserved for documentation (RFC 5737): nobody's. */
    assert_int_equal(resolve("192.0.2.1", "7471", &address, text), -EHOSTUNREACH);
    assert_non_null(strstr(text, "192.0.2.1"));
    assert_int_equal(resolve("host.invalid", "7471", &address, text), -EHOSTUNREACH);
    assert_non_null(strstr(text, "host.invalid"));
}

static void test_services(void **state)
{
    static const char *const wrong[] = {NULL, "", "a/b", "a:b", "a b", "01234567890123456789012345678901234567890123"};
    struct shm_address address;
    char text[OFP_TEXT_MAX], small[8];
    size_t length = sizeof(small);

    (void)state;
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(resolve(NULL, wrong[i], &address, text), -EINVAL);
        assert_true(text[0]);
    }
    assert_int_equal(resolve(NULL, "0123456789012345678901234567890123456789012", &address, text), 0);
    assert_int_equal(shm_address_check(&address, sizeof(address)), 0);
    assert_int_equal(shm_address_resolve(NULL, "7471", small, &length, text, sizeof(text)), -OFP_ETOOSMALL);
}

static void test_check(void **state)
{
    struct shm_address address, changed;
    char text[OFP_TEXT_MAX];

    (void)state;
    assert_int_equal(resolve(NULL, "7471", &address, text), 0);
    assert_int_equal(shm_address_check(&address, sizeof(address) - 1), -EINVAL);
    changed = address;
    changed.magic++;
    assert_int_equal(shm_address_check(&changed, sizeof(changed)), -EINVAL);
    changed = address;
    changed.version++;
    assert_int_equal(shm_address_check(&changed, sizeof(changed)), -EINVAL);
    changed = address;
    changed.reserved = 1;
    assert_int_equal(shm_address_check(&changed, sizeof(changed)), -EINVAL);
    changed = address;
    changed.name[0] = 0;
    assert_int_equal(shm_address_check(&changed, sizeof(changed)), -EINVAL);
    changed = address;
    changed.name[SHM_NAME_SIZE - 1] = 'x';
    assert_int_equal(shm_address_check(&changed, sizeof(changed)), -EINVAL);
    changed = address;
    memset(changed.name, 'x', SHM_NAME_SIZE);
    assert_int_equal(shm_address_check(&changed, sizeof(changed)), -EINVAL);
    changed = address;
    changed.name[1] = '\n';
    assert_int_equal(shm_address_check(&changed, sizeof(changed)), -EINVAL);
}

/* What is shown resolves to the same address again. */
static void test_format(void **state)
{
    struct shm_address address, again;
    char text[OFP_TEXT_MAX], shown[OFP_TEXT_MAX], *service;

    (void)state;
    assert_int_equal(resolve(NULL, "some.name_7", &address, text), 0);
    assert_int_equal(shm_address_format(&address, sizeof(address), shown, sizeof(shown)), 0);
    service = strrchr(shown, ':');
    assert_non_null(service);
    *service++ = 0;
    assert_int_equal(resolve(shown, service, &again, text), 0);
    assert_memory_equal(&address, &again, sizeof(address));
    assert_int_equal(shm_address_format(&address, sizeof(address), shown, 4), -OFP_ETOOSMALL);
    address.host++;
    assert_int_equal(shm_address_format(&address, sizeof(address), shown, sizeof(shown)), 0);
    assert_memory_equal(shown, "host-", 5);
    address.version++;
    assert_int_equal(shm_address_format(&address, sizeof(address), shown, sizeof(shown)), -EINVAL);
}

static void test_reaches(void **state)
{
    struct shm_address address;
    char text[OFP_TEXT_MAX];

    (void)state;
    assert_int_equal(resolve(NULL, "7471", &address, text), 0);
    assert_int_equal(shm_address_check_host(address.host, &address, text, sizeof(text)), 0);
    assert_int_equal(shm_address_check_host(address.host + 1, &address, text, sizeof(text)), -EHOSTUNREACH);
    assert_non_null(strstr(text, "7471 is on another host"));
}

static void test_socket_is_abstract(void **state)
{
    struct shm_address address;
    struct sockaddr_un socket_address;
    char text[OFP_TEXT_MAX], expected[64];
    socklen_t length;

    (void)state;
    assert_int_equal(resolve(NULL, "7471", &address, text), 0);
    length = shm_address_convert(&address, &socket_address);
    assert_int_equal(socket_address.sun_path[0], 0);
    snprintf(expected, sizeof(expected), "ofipy-shm/1/%u/7471", getuid());
    assert_int_equal(length, offsetof(struct sockaddr_un, sun_path) + 1 + strlen(expected));
    assert_memory_equal(socket_address.sun_path + 1, expected, strlen(expected));
}

static int no_host_id(uint64_t *id, char *text, size_t text_size)
{
    (void)id;
    snprintf(text, text_size, "it cannot be told which host this is");
    return -EACCES;
}

/* Who cannot know which addresses are of this host offers nothing, makes no address, and takes none for its own. */
static void test_unknown_host(void **state)
{
    const struct ofp_core *known = shm_core;
    struct ofp_core blind = *known;
    const struct ofp_provider *provider = ofp_provider_entry(known);
    struct shm_address address, other;
    char text[OFP_TEXT_MAX], shown[OFP_TEXT_MAX];
    struct ofp_info infos[2];

    (void)state;
    assert_int_equal(resolve(NULL, "7471", &address, text), 0);
    blind.host_id = no_host_id;
    shm_core = &blind;
    assert_int_equal(provider->getinfo(infos, 2, text, sizeof(text)), 0);
    assert_string_equal(text, "it cannot be told which host this is");
    assert_int_equal(resolve(NULL, "7471", &other, text), -EACCES);
    assert_string_equal(text, "it cannot be told which host this is");
    assert_int_equal(shm_address_format(&address, sizeof(address), shown, sizeof(shown)), 0);
    assert_memory_equal(shown, "host-", 5);
    shm_core = known;
    assert_int_equal(provider->getinfo(infos, 2, text, sizeof(text)), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_this_host),    cmocka_unit_test(test_other_hosts),
        cmocka_unit_test(test_services),     cmocka_unit_test(test_check),
        cmocka_unit_test(test_format),       cmocka_unit_test(test_socket_is_abstract),
        cmocka_unit_test(test_unknown_host), cmocka_unit_test(test_reaches),
    };

    return cmocka_run_group_tests(tests, load, NULL);
}
