/* Threshold search over scenarios: is there a set of replicas R with X_s(R) < T_s for every scenario s?
 *
 * A scenario is a separate assignment problem: X_s(R) = rest_s + sum over clients c of cost_s[near(c, R \ lost_s)][c]. Here near
 * is the client's first replica in its order. `rest` is the part that the kind of question adds: a constant, the voters' part.
 * With multipliers u_s (one per client, any numbers) and weights lambda_s >= 0,
 *
 *   sum_s lambda_s (X_s - T_s) >= sum_s lambda_s [ rest_s - T_s + sum_c min(u_sc, fixed_sc) ] + sum_{j chosen} rho_j
 *   rho_j = sum_s lambda_s sum_{c: j before c's first fixed replica} min(0, cost_s[j][c] - u_sc)          (j not lost in s)
 *
 * A nearer site may cost more than the fixed one, and still serve the client. rho_j then also has a detour of j, >= 0 (threshold_bound.c).
 *
 * fixed_sc is the cost of c at its first fixed replica. Take the least sum of rho that the size and the rules allow. If the right
 * side is then >= 0, each set of this part of the search has a scenario s with X_s >= T_s, and the part is closed. An example of
 * three sites by hand is in ../../threshold_search.py.
 *
 * A scenario may have prices of sites as well, which count for every replica. rho_js then includes the price of j, of either sign,
 * and rest_s the prices of the fixed replicas. A budget is such a scenario.
 *
 * A kind of question gives the scenarios and its functions (`scenario_question`): losses.h, late.h. The tree branches on sites. It
 * calls `leaf` for every complete set that no bound excludes.
 *
 * Matrices over (site, client) are stored site after site. Rows are padded to a multiple of PAD clients; costs of padding are 0.
 */
#ifndef EXACT_SCENARIO_H
#define EXACT_SCENARIO_H

#include <stddef.h>

#include "kernel.h" /* PAD, BIG, FREE, IN, OUT, families of sites, the loops over clients */

typedef struct {
    const double *cost;         /* sites x padded, >= 0; NULL: the clients cost nothing */
    const double *price;        /* sites: price of a replica at each; NULL: nothing */
    const int *rank;            /* sites x padded: rank[j][c] < rank[k][c] says that c prefers j to k */
    const unsigned char *lost;  /* sites: 1 where the site serves no client; NULL: none */
    double threshold;           /* T_s; BIG: none, and the scenario gets no weight */
    double scale;               /* > 0: weights apply to (X_s - T_s) / scale; 1 when all scenarios have one unit */
    const double *discount;     /* sites: with fixed weights, rho of the free site j counts with weight - discount[j] >= 0;
                                   NULL: none */
    const double *first;        /* padded: multipliers to begin with; NULL: the mean cost of the free sites */
    const int *order;           /* clients x sites: sites as each client prefers them, where a nearer site may cost more
                                   (threshold_bound.c); NULL: none does */
} scenario;

typedef enum { VOTERS_NONE, VOTERS_FOUND, VOTERS_UNKNOWN } voters_found;

/* One question, for one tree. The functions get `self`; the tree never reads it. */
typedef struct {
    int sites, clients, padded;
    int replicas_min, replicas_max;
    const family_list *rules;   /* of replicas; of several families the one with the largest bound counts in a state */
    int scenarios;
    const scenario *scenario;   /* thresholds may fall while the tree runs: `leaf` lowers them */
    int votes;                  /* 1: a state has a second byte per site, FREE, IN or OUT as a voter, and the tree branches on
                                   these as well; a site that is IN as a voter is IN as a replica */
    int fixed_weights;          /* 1: `in_force` gives the weights, and they are not stepped */
    int weigh_selection;        /* 1: weights follow the costs of the selected sites, 0: the values of the multipliers, which
                                   needs fewer nodes where many scenarios are in force */
    double total;               /* with fixed weights: threshold of the weighted sum; the scenarios' thresholds are not read */
    void *self;
    /* Scenarios that count in a state (FREE, IN or OUT per site): writes their numbers, and fixed weights, and returns the number
     * of scenarios. A scenario that counts in a state must count in every state below. */
    int (*in_force)(void *self, const unsigned char *state, int *which, double *weight);
    /* Lower bound on rest_s for every set of the sites IN and at most `most` of the sites FREE, with the prices of the sites
     * IN; BIG: there is no such set, or X_s >= T_s for all of them by the prices alone. */
    double (*rest)(void *self, int s, const unsigned char *state, int most);
    /* Writes to `sites` the sites whose vote may lower `rest`, and returns their number. NULL: all sites. */
    int (*matter)(void *self, int s, const unsigned char *state, int most, int *sites);
    /* Looks for voters whose part of X_s is at most slack[s] in all scenarios at once. NONE closes the state; FOUND writes the
     * voters to `voters` and their number to `count`. `effort` is the allowed work, and on return the work done. NULL: no check. */
    voters_found (*fit)(void *self, const unsigned char *state, int most, const double *slack, double *effort, int *voters,
                        int *count);
    /* A complete set, ascending or not, that obeys size and rules. Returns 1 to stop the search (first success). */
    int (*leaf)(void *self, const int *replicas, int count);
    /* Looks for a good set near the one that the root selects, and hands it to `leaf`, whose answer it returns. NULL: none. */
    int (*propose)(void *self, const int *replicas, int count);
} scenario_question;

/* Weights and multipliers of a node, shared by its children. */
typedef struct multiplier_block {
    int references, count;
    int *which;                 /* scenario numbers */
    double *weight, *u;         /* count; count x padded */
} multiplier_block;

typedef struct {
    unsigned char *state;       /* sites; with votes twice as many */
    multiplier_block *from;     /* of the parent; NULL: a root without any */
    double bound;               /* sum_s weight_s X_s (weights sum to 1) is at least this, by the parent */
    double normal_bound;        /* X_0 >= T_0 + this, by the parent, where the other thresholds stay as they are */
    int root;
} scenario_node;

typedef enum { TREE_OPEN, TREE_CLOSED, TREE_STOPPED, TREE_LIMIT, TREE_PAUSED, TREE_NO_MEMORY } tree_outcome;

typedef struct scenario_bound scenario_bound; /* threshold_bound.c */

typedef struct {
    const scenario_question *question;
    scenario_node *stack;
    int depth, capacity;
    scenario_bound *work;
    long nodes, bounds, leaves;
    int root_steps, node_steps; /* multiplier steps; set by tree_open, may be changed before tree_run */
    double first_step;          /* of the multipliers in every node, times the gap over the squared gradient; the same */
    event_stream record;        /* see threshold_tree.c */
    int (*pause)(void *);       /* asked about every 10 ms: 1 = the deadline passed or Ctrl-C */
    void *pause_self;
    double effort, next_pause;  /* elementary operations, about a nanosecond each */
    int paused;                 /* 1: the limit was reached; 2: out of memory */
    int *set;                   /* sites: a set that is enumerated */
    int *counts;                /* of a family */
    int *listed;                /* sites: those that matter, or voters */
    double *gain, *vote_gain, *vote_cost; /* sites: what the bound rises by without each as a replica, without and with it
                                   as a voter ... */
    double *slack;              /* ... scenarios: the remaining room for voters */
    int *only;                  /* scenarios: the only client that pays in it, -1: none or several */
    unsigned char *scratch_state;
    owned_memory owned;
} scenario_tree;

/* Start a tree from a state; `u` (padded) are first multipliers for all scenarios, or NULL. 0: no memory. */
int tree_open(scenario_tree *t, const scenario_question *q, const unsigned char *state, const double *u);
/* Go on until the tree is closed, `leaf` stops it, `nodes` more nodes were bounded (TREE_LIMIT) or `pause` says so
 * (TREE_PAUSED); after the last two it can be called again. */
tree_outcome tree_run(scenario_tree *t, long nodes);
/* Lower bound on sum_s weight_s X_s, so on max_s X_s, of everything that is still open; BIG when nothing is. */
double tree_least(const scenario_tree *t);
/* X_0 >= T_0 + this, of everything still open, for sets that keep all other thresholds; BIG when nothing is open. */
double tree_least_normal(const scenario_tree *t);
void tree_close(scenario_tree *t);
/* 1 when the limit of the call is reached. */
int tree_must_pause(scenario_tree *t);

/* threshold_bound.c: the scenarios that count in a state */
scenario_bound *bound_alloc(const scenario_question *q);
void bound_free(scenario_bound *b);
/* The best weights and multipliers, for the children; NULL: no memory. */
multiplier_block *bound_block(const scenario_tree *t, const multiplier_block *from);

/* threshold_bound.c: the bound of a state, and steps on its multipliers */
/* Best value found of the right side above, less its rounding error; > 0 or = 0: closed. -BIG: no scenario has a weight.
 * Leaves rho, the selection and the multipliers in `b`. */
double bound_state(scenario_tree *t, const unsigned char *state, const multiplier_block *from, int steps);
/* t->slack: part of each threshold that the bound of its scenario alone, at the best multipliers, leaves for `rest`. */
void bound_slacks(scenario_tree *t, const unsigned char *state);

struct scenario_bound {
    owned_memory owned, of_rows; /* all arrays but those of the columns; those of the scenarios with a weight apart */
    int free_count, *free_site; /* free sites of the state */
    int in_count, most;         /* replicas, and how many more there may be */
    int active, asleep;         /* scenarios with a weight, and in force without one */
    int *which;
    double *weight, *rest;
    double *all_u;              /* active x padded: multipliers to begin with; of clients that are not live for good */
    double *fixed;              /* active x padded: cost at the first replica that is left, BIG: none */
    int *live, *live_count;     /* active x padded: the live clients (threshold_bound.c); active: how many */
    int *length;                /* active: of the following arrays, live_count as a multiple of PAD */
    double *u, *best_u, *live_fixed, *live_scale; /* active x padded: of the live clients alone; so are gradient and columns */
    double *best_weight;        /* active */
    double **column;            /* active x sites: cost columns of the free sites, BIG where a fixed replica comes first;
                                   NULL where the site is lost */
    double *block, *gathered;   /* memory of the columns, of all clients and of those that are live ... */
    size_t capacity;            /* ... in doubles */
    double *gradient;           /* active x padded */
    double *direction;          /* scratch */
    double *step_scale;         /* padded: of the multipliers of each client */
    double *settled;            /* active: what the clients that are not live pay */
    double *detour;             /* active x sites: detours of the free sites, by position */
    int unlost;                 /* a scenario without lost sites whose detours are known by fixed replica, -1: none; ... */
    double *by_fixed;           /* ... sites x sites: the detours of its clients, ... */
    unsigned char *of_fixed;    /* ... sites: whether it has any clients */
    double *base, *size;        /* active: X_s - T_s without free sites, and the size of its terms */
    double *served;             /* active: of those, what the clients pay at most */
    double *value;              /* active: X_s - T_s at the selection, scaled */
    double *kept_weight, *kept_value; /* active: scratch */
    double *part;               /* active x sites: rho by scenario */
    double *rho, *best_rho;     /* by position of the free site */
    int *selected, selected_count, best_count, *order, *candidate;
    unsigned char *chosen, *best_chosen; /* by position */
    double next;                /* least rho that was left out at the best multipliers, 0 if none */
    double last;                /* largest selected rho there */
    double error;               /* rounding error of the best value */
    int *rank_fixed;            /* active x padded: rank of that replica */
    int *ranks;                 /* scratch: padded */
    int *place;                 /* scratch: sites */
    int *in_force;
    double *force_weight;
    int *counts;                /* of a family */
    double total;               /* sum_s weight_s T_s / scale at the best multipliers */
    double weight_zero;         /* weight of scenario 0 there, over its scale */
    int rows;                   /* scenarios that the arrays have room for */
};

/* `order` where some client pays more at a site than at one that it prefers less, else NULL. */
const int *order_of_detours(const scenario_question *q, const double *cost, const int *order);
/* Sites in the order of each client, clients x sites, from their ranks; NULL: no memory. */
int *sites_in_order(const int *rank, int clients, int sites, size_t padded);
/* The best multipliers of every client, into `out` (padded). */
void best_multipliers(const scenario_question *q, const scenario_bound *b, int a, double *out);

/* Serve each client by one more site: rank and cost of the first of its sites. */
void serve(const double *cost, const int *rank, int padded, int *fixed, double *paid);

multiplier_block *block_make(int count, int padded);
multiplier_block *block_hold(multiplier_block *m);
void block_release(multiplier_block *m);

#endif
