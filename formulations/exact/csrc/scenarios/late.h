/* Does a plan under one leader keep the thresholds of a few functions: late operations, the mean, the cost? As a threshold
 * question (scenario.h).
 *
 * Each scenario is a sum over clients, prices of the replicas, a constant and a part of the voters: late operations that ask
 * the leader, D times the quorum-th least wait of the leader, and prices of votes. After a loss, without the
 * sites that it takes; where these are the leader's, for the best of those who may lead then. The mathematics:
 * formulations/tail, formulations/exact/measures. */
#ifndef EXACT_LATE_H
#define EXACT_LATE_H

#include <stdint.h>

#include "scenario.h"

/* Late operations that ask the leader, as a term of its voters, for one leader and one deadline. */
enum { FOUND_SETS = 16 };

typedef struct {
    owned_memory owned;
    int others;     /* sites that may vote, without the leader, by mean RTT from it */
    int leader;     /* a site that is none of them */
    int members;    /* v - 1, at most */
    int least;      /* so many of them at least: fewer than `members` after a loss */
    int needed;     /* m - 1 */
    int times;      /* t + 1 */
    int ordered;    /* each answers stochastically no later than the next */
    int kinds;      /* of operations that ask the leader, by their rounds of votes */
    int *site;      /* of each place, shape (others) */
    double *answered; /* P(answer by u), shape (others, times) */
    int *votes;     /* rounds of votes, rising, shape (kinds) */
    double *share;  /* of all operations, shape (kinds) */
    double *asked;  /* share that reaches the leader after t - u, shape (kinds, times) */
    double *one;    /* 1 everywhere, shape (times) ... */
    double *never;  /* ... and 0: the answer of a voter that is lost */
    int *place;     /* scratch, shape (others) */
    int *chosen;    /* scratch, shape (members) */
    const double **rows; /* scratch, shape (members) */
    double *beyond; /* scratch, shape (others, times): the highest of the places from each on ... */
    double *close;  /* ... and of those that are near */
    double *row;    /* scratch, shape (members + needed + 5, times) */
    struct late_memory *memory; /* values by the set of places; NULL with more than 128 of them */
    int *found;     /* voters that `find_voters` found before, the last ones, shape (FOUND_SETS, members) ... */
    double *found_late; /* ... and what is late with each of them, shape (FOUND_SETS) */
    int found_count, found_next; /* how many there are, and which is overwritten next */
    long computed;
} late_voters;

/* Least share that is late for voters out of the sites that are IN and at most `room` of those that are FREE;
   BIG where there are fewer than `least`. */
double least_late(late_voters *v, const unsigned char *state, int room);

/* 0 when memory ran out. */
int open_late_voters(late_voters *v);

/* What the voters beside a leader cost: the value at a place of a list of sites, or the sum up to it. */
typedef struct {
    int leader;                /* who may lead after a loss; -1: the leader of the tree */
    double constant;           /* of that leader */
    int able, place;           /* sites that may vote; m - 1, or all votes less 1, -1: there are none */
    int summed;                /* 1: the sum, of prices of votes */
    int *site;                 /* in order of their values, shape (able) */
    double *value;             /* D times the wait, or the price of a vote, of either sign; ascending */
} voter_costs;

typedef struct {
    double *cost;              /* sites x padded; NULL: the clients cost nothing */
    double *price;             /* of a replica at each site; NULL: nothing */
    double *first;             /* padded: half the cost at the leader */
    double constant;
    unsigned char *lost;       /* sites: 1 where a loss takes it, and the scenario counts where one of them is IN; NULL: none */
    late_voters **late;        /* the voters' part: the least of so many, one for each who may lead; ... */
    int lates;                 /* ... 0: it is the following */
    voter_costs *led;          /* the voters' part: the least of so many, one for each who may lead after a loss; ... */
    int leds;                  /* ... otherwise one; 0: it is late */
    voter_costs paid;          /* prices of votes besides */
} late_scenario;

typedef struct late_problem {
    owned_memory owned;        /* all arrays but the order of the sites and what the tree has */
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
    int falling;               /* so many of the last scenarios are minimised: the largest of them */
    int *proposed, *some;      /* of the search for a first plan: a set, and its other sites; ... */
    double *worth, *paid;      /* ... twice the sites: of the set with each; padded: what a client pays, ... */
    int *served;               /* ... and the rank of the site where */
} late_problem;

/* Begin the tree; sites, rank, may, must, rules and `given` with the thresholds and scales are set. 0: no memory. */
int late_open(late_problem *x);
void late_close(late_problem *x);

#endif
