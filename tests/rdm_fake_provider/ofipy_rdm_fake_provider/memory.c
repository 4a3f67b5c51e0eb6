/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ofipy/list.h"
#include "ofipy/types.h"

struct memory {
    struct ofp_list node;
    const void *owner;
    char *base;
    uint64_t key, address, length;
    uint32_t access;
};

static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ofp_list memories = {&memories, &memories};
static uint32_t last_key;

/* Beyond the numbers that programs choose. */
#define DEVICE_KEY (UINT64_C(0xfa4e) << 48)

static struct memory *find_locked(const void *owner, uint64_t key)
{
    for (struct ofp_list *node = memories.next; node != &memories; node = node->next) {
        struct memory *memory = OFP_CONTAINER_OF(node, struct memory, node);

        if (memory->owner == owner && memory->key == key)
            return memory;
    }
    return NULL;
}

int rdmfake_memory_add(const void *owner, void *base, uint64_t address, uint64_t length, uint32_t access, uint64_t *key)
{
    struct memory *memory = calloc(1, sizeof(*memory));

    if (!memory)
        return -ENOMEM;
    pthread_mutex_lock(&memory_lock);
    if (!*key)
        *key = DEVICE_KEY | ++last_key;
    *memory = (struct memory){
        .owner = owner, .base = base, .key = *key, .address = address, .length = length, .access = access};
    ofp_list_append(&memories, &memory->node);
    pthread_mutex_unlock(&memory_lock);
    return 0;
}

void rdmfake_memory_remove(const void *owner, uint64_t key)
{
    struct memory *memory;

    pthread_mutex_lock(&memory_lock);
    memory = find_locked(owner, key);
    if (memory)
        ofp_list_remove(&memory->node);
    pthread_mutex_unlock(&memory_lock);
    free(memory);
}

bool rdmfake_memory_knows(const void *owner, uint64_t key)
{
    bool knows;

    pthread_mutex_lock(&memory_lock);
    knows = find_locked(owner, key) != NULL;
    pthread_mutex_unlock(&memory_lock);
    return knows;
}

/* NULL: it is not let in there. */
static char *reach_locked(const void *owner, uint64_t key, uint64_t address, uint64_t length, uint32_t right)
{
    const struct memory *memory = find_locked(owner, key);

    if (!memory || !(memory->access & right) || address < memory->address ||
        address - memory->address > memory->length || length > memory->length - (address - memory->address))
        return NULL;
    return memory->base + (address - memory->address);
}

int rdmfake_memory_copy(const void *owner, uint64_t key, uint64_t address, void *local, uint64_t length, bool put)
{
    char *there;

    pthread_mutex_lock(&memory_lock);
    there = reach_locked(owner, key, address, length, put ? OFP_ACCESS_REMOTE_WRITE : OFP_ACCESS_REMOTE_READ);
    if (there)
        memcpy(put ? there : local, put ? local : there, length);
    pthread_mutex_unlock(&memory_lock);
    return there ? 0 : OFP_EREMOTE;
}

int rdmfake_memory_change(const void *owner, const struct ofpi_word *word, void *before)
{
    uint64_t value;
    char *there;

    pthread_mutex_lock(&memory_lock);
    there = reach_locked(owner, word->key, word->address, sizeof(value), OFP_ACCESS_DEVICE_ATOMIC);
    if (there) {
        memcpy(&value, there, sizeof(value));
        memcpy(before, &value, sizeof(value));
        if (!word->compares)
            value += word->operand;
        else if (value == word->compare)
            value = word->operand;
        memcpy(there, &value, sizeof(value));
    }
    pthread_mutex_unlock(&memory_lock);
    return there ? 0 : OFP_EREMOTE;
}
