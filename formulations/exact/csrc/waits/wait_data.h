/* Data of the waits of leaders in a problem, and constants: a part of context.h. */
#ifndef EXACT_WAIT_DATA_H
#define EXACT_WAIT_DATA_H

#include <stddef.h>

enum { MOST_VOTERS = 64 };    /* replicas among which voters are searched: length of some arrays */
enum { MOST_BALL_SITES = 512 }; /* sites up to which cases of balls have a scan of their own: length of some arrays */
enum { MOST_WAITS = 2, MOST_BLOCKS = 7, FORBIDDEN = 1 << MOST_BLOCKS }; /* as in placement/evaluation/waits/wait_cases.py */

/* A free site in the order of reduced costs. */
typedef struct {
    double key;
    int position;
} keyed;

/* What a case asks of a replica set: so many sites of each block. A parent comes after its blocks, -1: none. */
typedef struct {
    int count, least[MOST_BLOCKS], parent[MOST_BLOCKS], family[MOST_BLOCKS];
} case_blocks;

/* A case of all waits of a leader together. */
typedef struct {
    double price;
    int families;
    case_blocks blocks;
    unsigned char member[];    /* by site: bits of the blocks that hold it, or FORBIDDEN */
} wait_case;

/* The cases of one wait of the leaders: for each radius `sizes` of them. */
typedef struct {
    double rounds;             /* D of the wait */
    int blocks, sizes;
    unsigned of_voters, near;  /* bits of the blocks of voters, and of those that hold only sites within the radius */
    int *start;                /* sites + 1: first radius of each leader */
    double *radius;            /* ascending for each leader */
    unsigned char *scope;      /* leaders x sites: bits of the blocks that may hold a site, FORBIDDEN: only within the radius */
    int *least;                /* sizes x blocks: sites that a block asks for */
    int votes;                 /* of a wait of balls: sites within its radius, the leader among them */
} leader_wait;

/* What a replica set without one of its sites tells of a wait of balls. */
typedef struct {
    double least, most;        /* the vote that is waited for, where the site is at the leader, and where it is far away */
    double far;                /* the farthest site that would be barred at a shorter radius */
} ball_rest;

/* Waits of the leaders beyond a quorum of votes, see placement/evaluation/waits/wait_cases.py. */
typedef struct {
    int count;                 /* 0: leaders wait for a quorum alone */
    leader_wait wait[MOST_WAITS];
    int shorter;               /* wait that is never the longer of two, -1: none is known */
    int bars;                  /* 1: a case forbids replicas somewhere: a wait for all of them */
    int nested;                /* 1: no blocks cross, so that the greedy of a case is exact */
    int radial;                /* 1: waits are those of balls around the leader, see waits/ball_cases.c: ... */
    int counting;              /* ... one that asks for votes within its radius, -1: none does */
    int barring;               /* ... one that bars replicas beyond its radius, at all sites or at some; -1: none does */
    int single;                /* 1: no other one asks for votes or bars replicas */
    int balls;                 /* 1: cases are balls, scanned from near to far: all sites are barred beyond one radius, and ... */
    int voting;                /* ... this other wait asks for votes; -1: none does */
    int **made;                /* by leader, NULL: none yet: by the cases of each wait, 1 + the place in `known`; 0: not made yet */
    wait_case **known;         /* the cases that were made, NULL: no replica set meets it */
    int count_known, capacity;
    size_t *last;              /* sites x MOST_WAITS: cases of each wait that were cheapest in the last inner minimum of a leader */
} wait_cases;

#endif
