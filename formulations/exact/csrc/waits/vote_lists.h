/* The free sites by class and by the side of a radius, where a wait counts votes (vote_sums.c), for its search (vote_search.c). */
#ifndef EXACT_VOTE_LISTS_H
#define EXACT_VOTE_LISTS_H

#include "kernel.h"

/* Of class k: 2k within the radius, 2k + 1 beyond it. Then those of no class, and those that the radius bars. */
enum { VOTE_LISTS = 2 * MOST_BLOCKS + 2 };

typedef struct {
    const context *x;
    const tree_node *f;
    const keyed *sorted;       /* free sites by reduced cost */
    int n, lo, hi;             /* so many of them, and so many to be taken */
    int classes, all, lists;   /* all: classes whose sites count at any distance too */
    int near[MOST_BLOCKS], held[MOST_BLOCKS]; /* sites in of each class, within the radius and in all */
    int count[VOTE_LISTS];
    keyed *list[VOTE_LISTS];   /* by ascending reduced cost */
    double last, size;         /* of the row summed up last: cost of its last site, sum of absolute costs, ... */
    double top, next;          /* ... the largest cost of its sites, the least of the others */
    int taken, *chosen;        /* ... its sites */
} class_lists;

void begin_lists(class_lists *c, const context *x, const tree_node *f, const keyed *sorted, int n, int lo, int hi, int *chosen);
int fill_lists(class_lists *c, double radius);
double sum_of_row(class_lists *c, const int *least);
void add_within(const int *within, int near, int most, const double *cost, int rows, double *sum);
void add_both(const int *within, const int *any, int near, int held, int most_near, int most_any, const double *cost, int rows,
              double *sum);
void bound_rows(const class_lists *c, const vote_rows *rows, double *sum);

#endif
