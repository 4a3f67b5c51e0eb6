/* SPDX-License-Identifier: BSD-3-Clause */
/* The address of an endpoint of several ways, as bytes: both versions, and all that is none of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "link/link_address.h"

static const uint8_t host[LINK_HOST_SIZE] = {1, 2, 3, 4, 5, 6, 7, 8};
static const uint8_t identity[OFP_IDENTITY_SIZE] = {9, 8, 7, 6, 5, 4, 3, 2, 1};
static const uint8_t zeros[OFP_IDENTITY_SIZE];

struct bytes {
    uint8_t bytes[OFP_ADDRESS_MAX];
    size_t length;
};

/* Entries "shm" and twice "tcp". */
static struct bytes written(const uint8_t *who, bool connects_only)
{
    struct bytes address;
    struct link_writer writer;

    assert_int_equal(link_writer_init(&writer, address.bytes, sizeof(address.bytes), host, who, connects_only), 0);
    assert_int_equal(link_address_add(&writer, "shm", "memory", 6), 0);
    assert_int_equal(link_address_add(&writer, "tcp", "one", 3), 0);
    assert_int_equal(link_address_add(&writer, "tcp", "other", 5), 0);
    address.length = writer.length;
    return address;
}

static struct bytes with_one_entry(const uint8_t *who, const char *name, const char *raw)
{
    struct bytes address;
    struct link_writer writer;

    link_writer_init(&writer, address.bytes, sizeof(address.bytes), zeros, who, false);
    assert_int_equal(link_address_add(&writer, name, raw, strlen(raw)), 0);
    address.length = writer.length;
    return address;
}

/* In memory of just that size, so that a sanitizer sees who reads on. */
static int read_exactly(const uint8_t *bytes, size_t length)
{
    uint8_t *copy = malloc(length ? length : 1);
    struct link_address read;
    int result;

    memcpy(copy, bytes, length);
    result = link_address_read(&read, copy, length);
    free(copy);
    return result;
}

static void check_entries(const struct link_address *read)
{
    static const char *const names[] = {"shm", "tcp", "tcp"}, *const raws[] = {"memory", "one", "other"};
    const uint8_t *cursor = NULL;
    struct link_entry entry;

    for (int i = 0; i < 3; i++) {
        assert_true(link_address_read_next(read, &cursor, &entry));
        assert_true(link_entry_is_of(&entry, names[i], 3));
        assert_int_equal(entry.length, strlen(raws[i]));
        assert_memory_equal(entry.address, raws[i], entry.length);
    }
    assert_false(link_address_read_next(read, &cursor, &entry));
}

static void test_what_was_written_is_read(void **state)
{
    struct bytes address = written(identity, true);
    struct link_address read;

    (void)state;
    assert_int_equal(link_address_read(&read, address.bytes, address.length), 0);
    assert_int_equal(read.count, 3);
    assert_true(read.connects_only);
    assert_memory_equal(read.host, host, sizeof(host));
    assert_memory_equal(read.identity, identity, sizeof(identity));
    check_entries(&read);
}

/* Version 1 has the host id where the flags are, and the entries behind it. */
static void test_version_1_is_read(void **state)
{
    struct bytes address = written(identity, false);
    uint8_t first[OFP_ADDRESS_MAX] = {'O', 'F', 'P', 'A', 1, 3};
    size_t length = 22 + address.length - LINK_HEAD_SIZE;
    struct link_address read;

    (void)state;
    memcpy(first + 6, host, sizeof(host));
    memcpy(first + 22, address.bytes + LINK_HEAD_SIZE, address.length - LINK_HEAD_SIZE);
    assert_int_equal(link_address_read(&read, first, length), 0);
    assert_false(read.connects_only);
    assert_memory_equal(read.host, host, sizeof(host));
    assert_true(link_is_zero(read.identity, OFP_IDENTITY_SIZE));
    check_entries(&read);
    for (size_t cut = 0; cut < length; cut++)
        assert_int_equal(read_exactly(first, cut), -EINVAL);
}

static void test_what_is_cut_off_or_longer_is_refused(void **state)
{
    struct bytes address = written(identity, false);

    (void)state;
    for (size_t cut = 0; cut < address.length; cut++)
        assert_int_equal(read_exactly(address.bytes, cut), -EINVAL);
    assert_int_equal(read_exactly(address.bytes, address.length + 1), -EINVAL);
}

static void test_other_heads_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < 8; i++) {
        struct bytes address = written(identity, false);

        address.bytes[i] ^= 0x40;
        assert_int_equal(read_exactly(address.bytes, address.length), -EINVAL);
    }
}

/* Every byte of the entries with every value: read or refused, and never read beyond. */
static void test_hostile_entries_are_read_within_their_bounds(void **state)
{
    struct bytes address = written(identity, false);

    (void)state;
    for (size_t i = LINK_HEAD_SIZE; i < address.length; i++)
        for (int value = 0; value < 256; value++) {
            struct bytes altered = address;
            size_t length = altered.length;
            struct link_address read;

            altered.bytes[i] = (uint8_t)value;
            read_exactly(altered.bytes, altered.length);
            if (link_address_read(&read, altered.bytes, altered.length) == 0)
                for (uint32_t key = 0; link_address_find_key(altered.bytes, &length, key); key++)
                    length = altered.length;
        }
}

static void test_no_entries_and_empty_ones_are_refused(void **state)
{
    struct bytes address = written(identity, false);

    (void)state;
    address.bytes[5] = 0;
    assert_int_equal(read_exactly(address.bytes, LINK_HEAD_SIZE), -EINVAL);
    address = with_one_entry(identity, "tcp", "");
    assert_int_equal(read_exactly(address.bytes, address.length), -EINVAL);
    address = with_one_entry(identity, "", "raw");
    assert_int_equal(read_exactly(address.bytes, address.length), -EINVAL);
}

static void test_what_does_not_fit_changes_nothing(void **state)
{
    uint8_t room[LINK_HEAD_SIZE + 12];
    struct link_writer writer;

    (void)state;
    assert_int_equal(link_writer_init(&writer, room, LINK_HEAD_SIZE - 1, host, identity, false), -OFP_ETOOSMALL);
    assert_int_equal(link_writer_init(&writer, room, sizeof(room), host, identity, false), 0);
    assert_int_equal(link_address_add(&writer, "tcp", "seven b", 7), -OFP_ETOOSMALL);
    assert_int_equal(writer.length, LINK_HEAD_SIZE);
    assert_int_equal(link_address_add(&writer, "tcp", "six by", 6), 0);
    assert_int_equal(read_exactly(room, writer.length), 0);
}

/* ------------------------------------------------------------------------------------------------------------- relations */

static enum ofp_address_relation relation(struct bytes known, struct bytes given)
{
    return link_address_compare(known.bytes, known.length, given.bytes, given.length);
}

static void test_keys_are_the_identity_and_each_entry(void **state)
{
    struct bytes known = written(identity, false), unknown = written(zeros, false);
    size_t length = known.length;

    (void)state;
    assert_memory_equal(link_address_find_key(known.bytes, &length, 0), identity, sizeof(identity));
    assert_int_equal(length, OFP_IDENTITY_SIZE);
    for (uint32_t i = 0; i < 3; i++) {
        size_t with = known.length, without = unknown.length;
        const void *a = link_address_find_key(known.bytes, &with, 1 + i),
                   *b = link_address_find_key(unknown.bytes, &without, i);

        assert_int_equal(with, without);
        assert_memory_equal(a, b, with);
    }
    length = known.length;
    assert_null(link_address_find_key(known.bytes, &length, 4));
    length = unknown.length;
    assert_null(link_address_find_key(unknown.bytes, &length, 3));
    length = 5;
    assert_null(link_address_find_key(known.bytes, &length, 0));
}

static void test_addresses_are_the_same_unless_identities_differ(void **state)
{
    uint8_t other[OFP_IDENTITY_SIZE] = {1};
    struct bytes whole = written(identity, false), text = with_one_entry(zeros, "tcp", "one"),
                 caller = with_one_entry(identity, "tcp", "one"), stranger = with_one_entry(other, "tcp", "one");

    (void)state;
    assert_int_equal(relation(text, whole), OFP_ADDRESS_BETTER);
    assert_int_equal(relation(whole, text), OFP_ADDRESS_SAME);
    assert_int_equal(relation(caller, whole), OFP_ADDRESS_BETTER);
    assert_int_equal(relation(whole, caller), OFP_ADDRESS_SAME);
    assert_int_equal(relation(whole, stranger), OFP_ADDRESS_OTHER);
    assert_int_equal(relation(text, stranger), OFP_ADDRESS_BETTER);
    assert_int_equal(relation(text, text), OFP_ADDRESS_BETTER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_was_written_is_read),
        cmocka_unit_test(test_version_1_is_read),
        cmocka_unit_test(test_what_is_cut_off_or_longer_is_refused),
        cmocka_unit_test(test_other_heads_are_refused),
        cmocka_unit_test(test_hostile_entries_are_read_within_their_bounds),
        cmocka_unit_test(test_no_entries_and_empty_ones_are_refused),
        cmocka_unit_test(test_what_does_not_fit_changes_nothing),
        cmocka_unit_test(test_keys_are_the_identity_and_each_entry),
        cmocka_unit_test(test_addresses_are_the_same_unless_identities_differ),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
