/* Shared declarations of the compiled search over replica sets of a quorum store.
 *
 * For one limit let a site be outside for client i when its latency exceeds the limit. For a set P of
 * sites, complete or still growing, O_k(P) are the clients for whom at least k sites of P are outside.
 * With M_j the clients for whom site j is outside,
 *
 *     O_k(P + j) = O_k(P) | (O_{k-1}(P) & M_j),
 *
 * and O_k only grows with P. With N replicas a client lacks a quorum of q iff it is in O_{N-q+1}; once
 * the replica at j is lost, iff it is in O_{N-q+1}, or in O_{N-q} with j inside. So these conditions
 * refute every set that contains P as soon as P breaks them (screening.c); slack = A - ceil(p A).
 *
 * 1. Normal operation: requests(O_{N-q+1}) <= slack.
 * 2. After losses a client in O_{N-q} lacks a quorum after the loss of some other site (q >= 2), so its
 *    requests may not exceed the slack.
 * 3. Summed over all C(N, F) ways to lose F replicas: a client with k replicas outside lacks its quorum
 *    in m(k) of them, in m'(k) even if it escapes whenever its own site is lost and its requests are
 *    redirected. Hence the sum of (m(k) - m(k-1)) requests(O_k) is at most C(N, F) slack.
 * 4. For F = 1, each lost replica j by itself, clients of a redirected j counted as within.
 * 5. For F = 1, a client whose requests exceed the slack must be in time when its own site is lost: it
 *    may not be in O_{N-q+1} of the latencies after redirection, whether its site holds a replica or not.
 *
 * Conventions:
 *
 * - a latency is its rank in the grid of all values a threshold can take, and a limit is the number of
 *   grid values it allows: a latency is within iff rank < limit.  No floating point decides anything
 *   but the last keys of the tie rule, which are formed as by the evaluator;
 * - clients (sites with requests) are bits of `words` 64-bit words, numbered in the order of sites;
 * - requests of a set of clients are summed by one table of 256 entries for every 8 of them.
 */
#ifndef QUORUM_H
#define QUORUM_H

#include <float.h>
#include <stddef.h>
#include <stdint.h>

#include "owned_memory.h"

/* The tie rule compares sums of doubles bit by bit with those of NumPy. */
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error "doubles are computed with excess precision"
#endif

typedef uint64_t word;

enum { READ = 0, WRITE = 1 };

/* Data that all keys of a store share. */
typedef struct {
    owned_memory owned;       /* all arrays */
    int sites, values;        /* n; number of grid values */
    double *grid;             /* values */
    int32_t *rank;            /* sites x sites: rank of the RTT of coordinator i to replica j */
    int variants;             /* rows of `moved` */
    int32_t *moved;           /* variants x sites: latency of some site's clients after redirection */
    int most_variants;        /* most of them for one site */
    int32_t *variant_of;      /* sites x most_variants: row of `moved`, -1 where there are fewer */
    int losses;
    int32_t *loss_begin;      /* losses + 1 */
    int32_t *loss_site;       /* sites lost, increasing */
    int32_t *loss_variant;    /* row of `moved` for the clients of that site; -1: they stay */
    int failures;             /* F; 0 where regions are lost */
    int only_full;            /* losses of fewer replicas than this are implied by others */
    int32_t *region;          /* sites */
} store;

/* A triple (N, R, W). */
typedef struct {
    int size, quorum[2];
    int region_cap;           /* most replicas that may share a region */
    double ways;              /* C(N, F); 0: conditions on losses do not apply */
    const double *steps[2][2];/* [side][0 normal, 1 after losses]: m(k) - m(k-1), N + 1 entries */
} quorums;

/* Limits as numbers of allowed grid values. */
typedef struct {
    int normal[2], worst[2];
} limits;

typedef struct {
    int limit, moved;         /* moved: number of the variant + 1; 0: the RTTs themselves */
    word *out;                /* sites x words: clients for whom the site is beyond the limit */
} ball;

typedef struct {
    int ball, side, first;
    int terms;
    int *level;               /* terms */
    double *factor;           /* terms */
    word *counted;            /* terms x words */
    double budget;
    int must_level;           /* 0: no such condition */
    word *must;               /* words */
} condition;

/* Figures of the tie rule in their order; then come N, the set and R. */
typedef struct {
    double largest, sum, mean;
} figures;

typedef struct search search;

struct search {
    owned_memory owned;       /* all arrays but `rows` */
    const store *s;
    int clients, words, lanes;
    int32_t *client;          /* clients: its site */
    int32_t *number;          /* sites: its client, or -1 */
    int64_t *count[2];        /* clients */
    int64_t needed[2], slack[2];
    double requests;
    int64_t *table[2];        /* lanes x 256 */
    int contingency, moving[4];
    limits caps;
    int pairs;
    quorums *pair;
    double *steps;
    int largest;              /* largest N */

    /* incumbent: number of allowed grid values; values + 1: nothing found */
    int best, best_pair, *best_set;

    /* the screen in force */
    int now;                  /* pair */
    limits limit;
    int balls, conditions, most_conditions, hopeless;
    ball *ball;
    condition *condition;
    long epoch;               /* grows with every new screen */

    /* the tree */
    int depth;                /* levels O_k kept for each ball */
    int *path, *region_count, *candidates;
    const word **level;       /* largest + 1: O_k of the prefix of each length */
    word *base, *children;    /* where those are kept: of one prefix, of all sites that may follow */
    size_t stride;            /* words of one prefix */
    int64_t *far;             /* sites: requests for whom it is far */
    int listing;              /* 0: find better sets; 1: list; 2: keep the first under the tie rule */
    int tie_cap;              /* listing 2: allowed values in normal operation */
    int settled;              /* listing 2: whether the larger threshold is the same in all ties ... */
    int either;               /* ... so that at least one side has to be below the best sum: */
                              /* two more conditions behind the others, of which one must hold */
    int other_cap;            /* values that side is allowed */
    figures tie;
    int tie_pair, *tie_set;
    int *loss_order[2];       /* the loss that refuted the last set comes first ... */
    int refuting;             /* ... and the side that did */
    int32_t *rank;            /* sites x clients: rank of the RTT of each client to that replica */
    int32_t *ranks;           /* largest x clients: scratch of set_figures */
    word *masks;              /* scratch of set_within: members, levels, late clients by replicas lost */
    int64_t *sums;            /* largest + 2: requests of those clients */
    unsigned char *known;     /* largest + 2: which of them have been worked out */
    int *place, *taken;       /* sites: place in the set or -1; largest: whether it is lost */
    int *sorted;              /* largest: scratch of leaves */
    uint16_t *rows;           /* listed sets, N each */
    size_t row_count, row_capacity;

    /* interruption */
    int64_t since;
    int (*pause)(void *);     /* now and then, with `caller`; not 0: stop */
    void *caller;             /* NULL: the search does not run */
    int stop, failed, paused;
};

/* Sites that hold replicas are passed in increasing order. */

/* exact_figures.c: exact figures of one set */
int64_t requests_of(const search *x, int side, const word *bits);
int set_within(search *x, const int *set, const limits *at);
int set_value(search *x, const int *set, int known);
int set_figures(search *x, const int *set, figures *out);

/* screening.c */
void limits_at(const search *x, int value, limits *out);
void screen_build(search *x);

/* prefix_tree.c */
int tree_run(search *x, int first);     /* 0: stopped */

/* set_search.c */
search *search_new(const store *s, const int64_t *counts[2], const int64_t needed[2], int pairs,
                   const int32_t *shapes, const double *ways, const double *steps);
void search_free(search *x);
void store_free(store *s);
int search_find(search *x);
int search_choose(search *x);
int search_list(search *x, int pair, int first);
void search_probe(search *x, int pair, const int32_t *rows, size_t count);

#endif
