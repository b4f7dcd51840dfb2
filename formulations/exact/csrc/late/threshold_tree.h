/* Is there a plan under one leader that keeps several thresholds? The mathematics: ../../scenario_search.py. */
#ifndef EXACT_THRESHOLD_TREE_H
#define EXACT_THRESHOLD_TREE_H

#include "kernel.h"
#include "late_voters.h"

/* A term of the voters: its least value over a part of the search, infinite where none is possible. */
typedef double (*voter_term)(void *term, const unsigned char *state, int room);

typedef struct {
    double *costs;          /* w, sites x padded */
    double constant, threshold, scale;
    voter_term voters;
    void *term;
    late_voters *late;      /* the term, where it is one of late operations; else NULL ... */
    const struct quorum_term *wait; /* ... and the term is this */
    const int *first;       /* sites in the order in which the term prefers them, shape (firsts) */
    int firsts, tried;      /* so many of the first that are open are tried for branching */
} scenario;

/* D times the m-th least wait of the mean. */
typedef struct quorum_term {
    int able, place;        /* sites that may vote; m - 1 */
    int *site;              /* in order of their waits, shape (able) */
    double *wait;           /* times D, in this order */
} quorum_term;

double least_quorum_wait(void *term, const unsigned char *state, int room);

enum { GO_ON = 0, STOP = 1 };

typedef struct threshold_tree {
    int sites, clients, padded, leader;
    int least, most;        /* replicas */
    int *rank;              /* sites x padded */
    unsigned char *may, *must; /* hold a replica, shape (sites) */
    cap_levels caps;        /* of replicas */
    int scenarios;
    scenario *scenario;
    int root_steps, steps;
    int (*leaf)(struct threshold_tree *t, const unsigned char *inside); /* STOP: that is the answer; may lower thresholds */
    int (*pause)(struct threshold_tree *t);                            /* STOP: time is up, or Ctrl-C */
    void *caller;
    int out_of_memory;
    long nodes, bounds, leaves;
    double work;            /* since the last pause */
    struct part *part;      /* of each depth */
    struct tree_scratch *scratch;
} threshold_tree;

/* STOP when a leaf or a pause stopped the search, GO_ON when every part of it is closed. */
int search_threshold_tree(threshold_tree *t);

#endif
