/* Late operations that ask the leader, as a term of its voters, for one leader and one deadline. */
#ifndef EXACT_LATE_VOTERS_H
#define EXACT_LATE_VOTERS_H

#include <stdint.h>

#include "scenario.h"

enum { FOUND_SETS = 16 };

typedef struct {
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

/* Are there voters out of those sites with at most `cutoff` late, of whom at most `far` are not `near` (bytes by
   site; NULL: all are)? Their sites go to `voters`, shape (members). UNKNOWN after so many `evaluations`. */
voters_found find_voters(late_voters *v, const unsigned char *state, int room, double cutoff,
                         const unsigned char *near, int far, long evaluations, int *voters);

/* 0 when memory ran out; the arrays that were handed over are freed by close_late_voters in any case. */
int open_late_voters(late_voters *v);
void close_late_voters(late_voters *v);

#endif
