/* Rows along which cost is transferred between clients (cost_transfers.c says what a row is), and the steps that work on them. */
#ifndef EXACT_TRANSFER_ROWS_H
#define EXACT_TRANSFER_ROWS_H

#include "kernel.h"

#define MOST_SELECTED 64    /* sites of an answer: bits of a word */
#define LISTED 32           /* sites listed of a client at most */

typedef unsigned long long site_set;

/* The rows and amounts under work, and the cells they work on: of each client in its order, up to its nearest certain site. */
typedef struct {
    context *x;
    tree_node *f;
    int count;                  /* rows */
    int *giver, *place, *taker;
    int *next_given, *next_taken; /* the row before of the same giver, of the same taker; -1: none */
    double *amount, *move, *best;
    size_t *start;              /* count + 1: cells of the taker in T ... */
    int *cell;                  /* ... by place in its order */
    size_t cells_room;
    int *given, *taken;         /* by client: its last row as the giver, as the taker; -1: none */
    int *length;                /* by client: cells */
    double *cost;               /* clients x sites: after the transfers */
    double *limit;              /* cost at the nearest certain site */
    double *best_u;
    float *share, *window;      /* clients x sites: mean answer; sums since the last rows were made */
    int *listed_at, *listed;    /* sites + 1: clients that the mean answer serves by a site, in the order of clients ... */
    float *listed_share;        /* ... and by how much; clients x LISTED */
    double *served;             /* by client: by the first sites of one order */
    site_set *serves;           /* by client: the selected sites that serve it */
    int *rank_of_selected;      /* clients x MOST_SELECTED */
    double *by_place;           /* sites */
    int *where;                 /* sites: position of a free site, -1 */
    int *where_in_order;        /* clients x sites: the same in each client's order */
} transfer_steps;

/* transfer_rows.c */
int make_rows(transfer_steps *s);
void free_rows(transfer_steps *s);
void note_cells(transfer_steps *s);
void adopt_transfers(transfer_steps *s, const cost_transfers *from);
int make_violated_rows(transfer_steps *s, int steps);

#endif
