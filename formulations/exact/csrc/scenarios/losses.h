/* Placement that stays good when sites are lost, as a threshold question (scenario.h).
 *
 * Scenario 0 is the normal one, 1 + L the loss L. A site belongs to one loss at most. Under the leader l, a loss that spares
 * l is led by l; the loss L(l) that takes it is led by the best surviving voter, one of the group of successors of the tree:
 * min over a group costs A d(c, j) + B min_{a in group} d(j, a), and rest min_a [K_a + D q_a], which no successor undercuts.
 * Only losses that meet a fixed replica are in force, and for the goal "worst" those that take LARGE_LOSS sites or more: a set
 * that such a loss misses has its normal value there, which must be below the same threshold.
 *
 * Where clients of lost sites move, the loss L has separate costs and orders. It then counts without a replica at L as
 * well: its scenario holds for every set. So that it may be left out where no site of it is fixed, and come back where one
 * is, it has a second number there, 1 + losses + L.
 *
 * Where RTTs vary by interval, a client has one row for each interval, interval after interval. The wait of a leader is then
 * sum_k D_k q_k, and each q_k is bounded alone, over the sites that the state leaves: never below the floors of
 * placement/evaluation/waits/wait_floors.py. Sets are evaluated with the waits of every interval. */
#ifndef EXACT_LOSSES_H
#define EXACT_LOSSES_H

#include <stdint.h>

#include "scenario.h"

#define MOST_REPLICAS 64 /* bits of a mask of replicas */
#define MOST_HITS 192    /* losses that count for one set: each takes a replica, or moves clients */

enum { GOAL_WORST, GOAL_BOUNDED, GOAL_WEIGHTED };

typedef uint64_t replica_mask;

/* Clients that move after a loss, one row for each. */
typedef struct {
    int count;                 /* losses that move clients; 0: clients stay */
    unsigned char *moves;      /* losses; NULL: clients stay */
    int *start;                /* losses + 1: the first row of each */
    int *client;               /* rows: who moves */
    double *rtt;               /* rows x sites: afterwards */
    int *order;                /* rows x sites: sites as the client prefers them afterwards */
    double *direct;            /* losses x sites: sum of G d(c, leader) afterwards */
    int *slot;                 /* losses: number among those that move clients, -1 */
    int *rank;                 /* count x sites x padded */
    int **site_order;          /* count: clients x sites, as the order of all */
    double *cost;              /* the same, under the leader of the tree */
} moved_clients;

typedef struct {
    owned_memory owned;        /* all arrays but orders of sites and what the tree has */
    int sites, clients, padded, losses;
    double *rtt;               /* sites x padded */
    int *rank;                 /* sites x padded */
    int *site_order;           /* clients x sites: sites as each client prefers them */
    double *near_weight, *relay_weight; /* A, B: padded */
    int intervals;             /* whose RTTs differ */
    int *first_row;            /* intervals + 1: the first row of clients of each */
    double *hop;               /* intervals x sites x sites: RTTs between sites, row = the waiting side */
    double *rounds;            /* intervals: D_k */
    int *near_order;           /* intervals x sites x sites: by distance from the row's site, then by number */
    double *direct;            /* sites: sum of G d(c, leader) */
    int *loss_of;              /* sites: the loss that takes it, -1: none */
    unsigned char *lost;       /* losses x sites */
    double *probability;       /* losses */
    int replicas_min, replicas_max, voters, quorum, leader_may_move;
    unsigned char *may_hold, *must_hold, *may_vote, *must_vote, *may_lead;
    family_list replica_rules, voter_rules;
    moved_clients moved;

    /* goal, incumbent, bounds */
    int goal;
    double ceiling;            /* of GOAL_BOUNDED: a score after a loss may be as large */
    double value;              /* of the best configuration; it may also be set from outside, BIG: none */
    int leader, *replicas, *voter, count, voter_count;

    /* the tree */
    int opened;                /* 1: `tree` is in use */
    int tree_leader;
    unsigned char *successor;       /* sites: in the group of successors */
    int *successor_list, successors;     /* by constant part */
    int *mover_list, movers;   /* the same of all who may vote: leader_may_move */
    double *cost_leader, *cost_successors, *cost_movers; /* sites x padded */
    scenario *scenario;
    scenario_question question;
    scenario_tree tree;
    int *hits;                 /* losses: 1 where they meet a fixed replica (scratch) */
    int *taken;                /* losses: number of their sites */
    unsigned char *standing;   /* 2 x sites: who may vote in the state that is looked at, and whom it was asked for (scratch) */
    unsigned char *first_state; /* 2 x sites: of a tree that is opened (scratch) */
    double *discount;          /* sites: probability of the loss that takes it, where that is not in force */

    /* scratch of losses.c */
    double *read;              /* (MOST_HITS + 1): by loss that counts, 0: none */
    double *relay;             /* the same x intervals x MOST_REPLICAS: weight of relayed reads by replica */
    int *near_replica;         /* intervals x MOST_REPLICAS x MOST_REPLICAS: places of the replicas by distance from each */
    int *set;                  /* descents */
    int *counts;               /* of a family of rules */
    double effort, next_pause;
    int (*pause)(void *);
    void *pause_self;
    int paused;
} loss_problem;

/* losses.c */
int losses_prepare(loss_problem *x);                 /* orders and scratch; 0: no memory */
void losses_free(loss_problem *x);
/* Open the tree of a leader for the successors marked in `successor`, and with `fixed` (a site or -1) fixed in. 0: no memory. */
int losses_open(loss_problem *x, int leader, const unsigned char *successor, int fixed, const double *u);
/* Lower bound on the mean of every set of `most` replicas or fewer under a leader, normally or after a loss: pins are left
 * out. Multipliers go to `u`. */
double losses_floor(loss_problem *x, int leader, int most, int steps, double *u, int *memory);

/* Take the best configurations of a set of replicas under a leader (-1: any) if they beat the best so far; returns the
 * value of the best of them that is below `limit`, else BIG. */
double losses_evaluate(loss_problem *x, const int *replicas, int count, int leader, double limit);
double losses_below(double value); /* the largest value that is an improvement on `value` */

double losses_descend(loss_problem *x, const int *replicas, int count, int kicks, unsigned seed);

#endif
