/* Memory with one owner: taken in pieces, and given back all at once. */
#ifndef OWNED_MEMORY_H
#define OWNED_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Stands before a piece, and leaves it as aligned as calloc makes it. */
typedef union piece {
    union piece *before;
    double alignment[2];
} piece;

typedef struct {
    piece *last;
    int failed;                /* 1: a piece was asked for when no memory was left */
} owned_memory;

/* A piece of `count` elements of `bytes` bytes, all 0; NULL: no memory. */
static inline void *own(owned_memory *m, size_t count, size_t bytes)
{
    piece *made = bytes && count > (SIZE_MAX - sizeof(piece)) / bytes ? NULL : calloc(1, sizeof(piece) + count * bytes);
    if (!made) {
        m->failed = 1;
        return NULL;
    }
    made->before = m->last;
    m->last = made;
    return made + 1;
}

static inline void release(owned_memory *m)
{
    while (m->last) {
        piece *last = m->last;
        m->last = last->before;
        free(last);
    }
}

#endif
