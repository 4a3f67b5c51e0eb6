/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The codec of the tcp provider as a shared object for test_tcp_wire.py: what its header has inline, the vectors that the native
 * tests have, and memory whose end is the end of all memory, so that a read beyond it does not go unnoticed.
 */
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tcp_vectors.h"

size_t wire_sizes(size_t which);
size_t wire_header_length(const uint8_t *bytes);
bool wire_is_offer(uint64_t offer);
const struct control_vector *wire_control_vector(size_t index);
const struct header_vector *wire_header_vector(size_t index);
uint8_t *wire_end_of_memory(void);

/* What the declarations in Python must agree with. */
size_t wire_sizes(size_t which)
{
    static const size_t sizes[] = {sizeof(struct tcp_control),   sizeof(struct tcp_rdm),
                                   sizeof(struct tcp_header),    sizeof(struct control_vector),
                                   sizeof(struct header_vector), offsetof(struct tcp_header, remote)};

    return sizes[which];
}

size_t wire_header_length(const uint8_t *bytes) { return tcp_header_decode_length(bytes); }

bool wire_is_offer(uint64_t offer) { return tcp_magic_is_extension(offer); }

const struct control_vector *wire_control_vector(size_t index)
{
    return index < sizeof(control_vectors) / sizeof(control_vectors[0]) ? &control_vectors[index] : NULL;
}

const struct header_vector *wire_header_vector(size_t index)
{
    return index < sizeof(header_vectors) / sizeof(header_vectors[0]) ? &header_vectors[index] : NULL;
}

/* The page before it can be written; NULL: there is none to be had. */
uint8_t *wire_end_of_memory(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0)
        return NULL;
    return pages + page;
}
