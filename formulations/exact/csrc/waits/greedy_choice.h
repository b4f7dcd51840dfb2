/* Greedy over the free sites by ascending reduced cost: sites that a case needs, and others while these are of use. */
#ifndef EXACT_GREEDY_CHOICE_H
#define EXACT_GREEDY_CHOICE_H

#include "kernel.h"

typedef struct {
    int *chosen, size;         /* positions that are taken */
    int least, most;           /* sites beside those that the case needs: still needed, still allowed */
    double value, top, next;   /* sum of the keys taken, the largest of them, and the least key that is not taken */
} greedy_choice;

/* Take the next site, which is `needed` by the case, or else one more; `able`: it may be in. 1: it is taken. */
static inline int offer_site(greedy_choice *g, keyed one, int able, int needed)
{
    int more = able && !needed && g->most > 0 && (one.key < 0.0 || g->least > 0);
    g->most -= more;
    g->least -= more;
    if (needed || more) {
        g->chosen[g->size++] = one.position;
        g->value += one.key;
        g->top = one.key;
    } else if (one.key < g->next)
        g->next = one.key;
    return needed || more;
}

#endif
