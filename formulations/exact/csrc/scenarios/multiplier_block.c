/* Weights and multipliers that a node hands to both of its children: counted, and freed with the last of them. */
#include "scenario.h"

multiplier_block *block_make(int count, int padded)
{
    multiplier_block *m = calloc(1, sizeof(multiplier_block));
    if (!m)
        return NULL;
    m->references = 1;
    m->count = count;
    m->padded = padded;
    m->which = malloc((size_t)(count + 1) * sizeof(int));
    m->weight = malloc((size_t)(count + 1) * sizeof(double));
    m->u = malloc(((size_t)count * (size_t)padded + 1) * sizeof(double));
    if (!m->which || !m->weight || !m->u) {
        block_release(m);
        return NULL;
    }
    return m;
}

multiplier_block *block_hold(multiplier_block *m)
{
    if (m)
        m->references++;
    return m;
}

void block_release(multiplier_block *m)
{
    if (!m || --m->references > 0)
        return;
    free(m->which);
    free(m->weight);
    free(m->u);
    free(m);
}
