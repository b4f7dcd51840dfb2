/* Does a plan under one leader keep the thresholds of a few functions: late operations, the mean, the cost? As a threshold
 * question (scenario.h).
 *
 * Each scenario is a sum over clients, prices of the replicas, a constant and a part of the voters: late operations that ask
 * the leader (late_voters.h), D times the quorum-th least wait of the leader, and prices of votes. After a loss, without the
 * sites that it takes; where these are the leader's, for the best of those who may lead then. The mathematics:
 * formulations/tail, formulations/exact/limits. */
#ifndef EXACT_LATE_H
#define EXACT_LATE_H

#include "late_voters.h"

typedef struct {
    double *cost;              /* sites x padded; NULL: the clients cost nothing */
    int borrowed;              /* 1: the cost belongs to an earlier scenario */
    double *price;             /* of a replica at each site; NULL: nothing */
    double *first;             /* padded: half the cost at the leader */
    double constant;
    unsigned char *lost;       /* sites: 1 where a loss takes it, and the scenario counts where one of them is IN; NULL: none */
    late_voters **late;        /* the voters' part: the least of so many, one for each who may lead; ... */
    int lates;                 /* ... 0: it is the following */
    int intervals;             /* of each of them so many, one after the other, whose shares are added up */
    int able, place;           /* sites that may vote; m - 1, or all voters beside the leader less 1 */
    int summed;                /* 1: the voters' part is the sum of the waits up to that place, which are prices of votes */
    int *site;                 /* in order of their waits, shape (able) */
    double *wait;              /* D times the wait, in this order */
    int paid, votes;           /* prices of votes besides: sites that may vote, how many of them do; 0: none */
    int *paid_site;            /* in order of these prices, shape (paid) */
    double *vote;              /* the prices, of either sign, in this order */
} late_scenario;

typedef struct late_problem {
    int sites, clients, padded, leader;
    int *rank;                 /* sites x padded */
    int *site_order;           /* clients x sites: sites as each client prefers them */
    unsigned char *may, *must; /* hold a replica */
    family_list rules;         /* of replicas */
    int scenarios;
    late_scenario *given;      /* scenarios */
    scenario *scenario;
    scenario_question question;
    scenario_tree tree;
    int opened;
    int (*keeps)(struct late_problem *x, const int *replicas, int count); /* of a set that the kernel does not rule out:
                                                                             1 ends the search; may lower thresholds */
    void *caller;
    unsigned char *state, *near; /* scratch: sites */
    double *left;              /* scratch: scenarios */
    unsigned char *surviving;  /* scratch: sites */
    double *cheapest;          /* scratch: sites */
    int *voters;               /* scratch: sites */
} late_problem;

/* Begin the tree; sites, rank, may, must, rules and `given` with the thresholds and scales are set. 0: no memory. */
int late_open(late_problem *x);
void late_close(late_problem *x);

#endif
