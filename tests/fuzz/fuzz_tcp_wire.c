/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The codec on any bytes: it stays within them, and what it takes for a message it writes back as it was. The first byte
 * says in which byte order to read, and whether the extension was agreed; the rest is a control message or a stream.
 */
#include <stdlib.h>
#include <string.h>

#include "stream/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
    if (!condition)
        abort();
}

static void read_control(const uint8_t *data)
{
    struct tcp_control control, again;
    struct tcp_rdm rdm;
    uint8_t bytes[TCP_CONTROL_SIZE];

    if (tcp_control_decode(data, &control) != 0)
        return;
    check(control.private_size <= TCP_PRIVATE_MAX);
    tcp_control_encode(&control, bytes);
    check(tcp_control_decode(bytes, &again) == 0 && again.type == control.type && again.magic == control.magic &&
          again.capabilities == control.capabilities && again.private_size == control.private_size);
    tcp_rdm_decode(data, &rdm);
    tcp_rdm_encode(&rdm, bytes);
    check(memcmp(bytes, data, TCP_RDM_SIZE) == 0);
}

/* One message of a stream; returns how much of it there is, 0: none. */
static size_t read_message(const uint8_t *data, size_t size, bool swapped, bool extended)
{
    uint8_t exact[TCP_HEADER_MAX], bytes[TCP_HEADER_MAX];
    uint8_t *copy;
    struct tcp_header header;
    size_t length;
    uint64_t sum = 0;

    if (size < TCP_HEADER_BASE)
        return 0;
    length = tcp_header_decode_length(data);
    if (!length || length > size)
        return 0;
    /* Of exactly this length, so that a read beyond is found. */
    copy = malloc(length);
    check(copy != NULL);
    memcpy(copy, data, length);
    if (tcp_header_decode(copy, swapped, extended, &header)) {
        free(copy);
        return 0;
    }
    check(header.header_size == length && header.payload <= INT64_MAX && header.remote_count <= TCP_REMOTE_MAX);
    for (unsigned i = 0; i < header.remote_count; i++)
        sum += header.remote[i].length;
    check(!header.remote_count || sum == header.length);
    check(header.op != TCP_WRITE || sum == header.payload);
    memcpy(exact, copy, length);
    free(copy);
    check(tcp_header_encode(&header, exact[7], swapped, bytes) == length);
    /* The version is not looked at, and the count is a leftover in most operations. */
    exact[0] = bytes[0];
    exact[5] = bytes[5];
    check(memcmp(exact, bytes, length) == 0);
    return header.payload < size - length ? length + header.payload : size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t options = size ? data[0] : 0;
    size_t used;

    if (!size)
        return 0;
    data++;
    size--;
    if (options & 4) {
        if (size >= TCP_CONTROL_SIZE)
            read_control(data);
        return 0;
    }
    while ((used = read_message(data, size, options & 1, options & 2)) != 0) {
        data += used;
        size -= used;
    }
    return 0;
}
