/* Clients that use the same replica whatever is decided below a state of the tree, added up. */
#ifndef EXACT_CLIENT_GROUPS_H
#define EXACT_CLIENT_GROUPS_H

#include "streamed_root.h"

/* A group is of clients who rank the free sites that they prefer to their nearest certain site alike. Its *cells* are these
 * sites, in this order. Under any set of replicas all of a group use the same cell, or each its own certain site: costs add up. */
typedef struct {
    int count;
    size_t *start;          /* count + 1: the first cell of each group */
    unsigned char *site;    /* of each cell */
    double *near;           /* of each cell: sum of A d */
    double *relay;          /* sum of B */
    double *weight;         /* sum of A + B */
    double *most;           /* cost at the certain sites, BIG: there is none */
    double *u;              /* multipliers */
} client_groups;

/* The groups of a leader under `state`, a FREE, IN or OUT per site, with multipliers `u` by client. Sums are rounded down
 * unless all are whole. NULL at the limit of the call or without memory; the answer does not depend on the number of threads. */
client_groups *group_clients(context *x, const client_stream *clients, const double *u, int leader, const unsigned char *state);

/* The groups of a state below that of `from`, under the same leader; NULL as above. */
client_groups *regroup_clients(context *x, const client_groups *from, int leader, const unsigned char *state);

void free_groups(client_groups *g);

/* Cost of the clients of all groups when the sites of `chosen` are replicas beside the certain ones. */
double cost_of_groups(const client_groups *g, const unsigned char *chosen, const double *relay);

/* A state of a tree, and what is found about it. */
typedef struct {
    unsigned char *state;       /* by site; bound_groups fixes more of them */
    int branched_site, branched_side; /* the decision that made the state; site -1: none */
    double parent_bound;        /* bound of the state it was made in */
    int set[MOST_STREAMED_SITES], size; /* the sites that the best multipliers select */
    double closed;              /* least bound at which a site was fixed */
    int open;                   /* 0: nothing is left */
    int branching_site;         /* where to branch, -1: no site is free */
} group_node;

/* Subgradient steps from the multipliers of the groups, which they improve, then fixing by reduced cost. Returns the bound. */
double bound_groups(context *x, client_groups *groups, int leader, int steps, int threads, group_node *node);

#endif
