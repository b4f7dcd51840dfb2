/* Data of the compiled kernel of the exact engine: constants, the problem, the search, the context.
 *
 * The mathematics is written down once, in ../certificate_events.py (bound, inner problem, tree); the C code is the
 * same thing made fast.  Conventions:
 *
 * - matrices over (site, client) are stored one *site* after another, each row padded to a multiple of
 *   PAD clients, so that one pass over a column of the model is one contiguous, vectorisable loop;
 *   padding clients have weight zero and multiplier zero and add exactly 0 to every sum;
 * - clients are ordered by `rank`: rank[j][c] < rank[k][c] says that c prefers j to k (RTT, then site
 *   order), so ties need no special case anywhere;
 * - leader -1 stands for "the leader does not matter" (no relayed, direct or quorum demand);
 * - a *cell* is a pair (client, site), a *size* a number of replicas, a *root* the node of everything under one leader.
 *
 * A context holds one problem and one search. Each part of it is a separate struct; the comment above the struct says
 * which file writes it. The other files only read it.
 */
#ifndef EXACT_CONTEXT_H
#define EXACT_CONTEXT_H

#include <stddef.h>
#include <stdlib.h>

#include "event_stream.h"
#include "owned_memory.h"
#include "site_families.h"
#include "tuning.h"
#include "waits/wait_data.h"

/* Constants on which correctness or the format of a certificate depends. */
#define PAD 8                 /* clients per padded block: the loops of client_loops.c add up so many at a time */
#define BIG 1e300             /* "no cost", "no bound"; what is at least _BIG = 1e299 of kernel.py is read as infinite */
#define MAX_ENUMERATED 6      /* sites still to choose when a leaf may be enumerated: length of some arrays */
#define CLOSE_BITS 16         /* bits of the largest multiplier in a recorded proof: length of certificates */
#define LEAST_SCALE 1e-30     /* least scale of a step: lengths stay far from overflow */
#define LEAF_ROUNDING 1e-9        /* share by which two sums of the same costs may differ: far more than rounding does */
#define UNIT_ROUNDOFF 1.1102230246251565e-16 /* 2^-53 */
#define BEYOND_CUTOFF 1e-9 /* relative: radii whose bound is so far above the cutoff are left out where sites are fixed */

/* One clone per instruction set, chosen when the module is loaded (needs glibc's ifunc). */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define VECTORISED
#endif

enum { FREE = 0, IN = 1, OUT = 2 };

/* Kinds of events, as ../certificate_events.py reads them. */
enum { FIX = 1, CLOSE = 2, ENUMERATE = 3, BRANCH = 4, BETA = 5, PART = 6, EVENTS_OF = 7, TRANSFER = 8 };

/* The question. Written when the context is made (python/module.c, context.c); only the range of |R| changes
 * afterwards (root_bounds.c). */
typedef struct {
    int clients, padded, sites;
    double *rtt;               /* sites x padded */
    int *rank;                 /* sites x padded */
    int *by_client;            /* clients x sites: sites in each client's order */
    double *near_weight;       /* A, padded */
    double *relay_weight;      /* B, padded */
    int relays;                /* 1: some B > 0, so closest-assignment multipliers can matter */
    double *step_scale;        /* (A + B) / the largest of these, padded: the metric of the steps */
    double *site_rtt;          /* sites x sites, row = the waiting side; of several scenarios, floors of the waits */
    int scenarios;             /* 1: the RTTs are the same at all times */
    int *scenario;             /* clients: the scenario of each, ascending */
    double *scenario_rtt;      /* scenarios x sites x sites, as site_rtt; of one scenario NULL */
    double *scenario_weight;   /* D of each scenario; quorum_weight is then 1 or 0 */
    double *direct;            /* sites: sum of G d(c, leader) */
    double quorum_weight;      /* D */
    double *price;             /* sites x sites (row = leader) or NULL */
    int replicas_min, replicas_max, voters, quorum;
    unsigned char *may_hold, *must_hold, *may_vote, *must_vote, *may_lead;
    family_list replica_families, voter_families;
    wait_cases cases;          /* quorum_weight is then 1 */
    int plain_voters;          /* 1: every site that may hold may vote, none must, no rules for voters */
    double granularity;        /* every score is a multiple of it; 0 when unknown */
} problem;

/* The best configuration so far. Written by incumbent.c. */
typedef struct {
    double score;              /* BIG: there is none */
    int leader, *replicas, count;
    double cutoff;             /* a node whose bound reaches it is closed */
    double tolerance;          /* relative: how far below the score a bound closes */
} incumbent;

/* Amounts that move from one client's costs to another's, at the first sites in the order of the one that gives:
 * see closest_assignment.c. */
typedef struct {
    int count;
    int *giver, *place, *taker; /* the sites are those at the places 0 to `place` */
    double *amount;
    double *lift;               /* clients: by how much they raised the multipliers of the root */
    owned_memory owned;
} cost_transfers;

/* The problem under the leader who is bounded now. Written by leader_costs.c and closest_assignment.c, and from memory by root_bounds.c. */
typedef struct {
    int leader;
    double *costs;             /* sites x padded: A d(c, j) + B d(j, leader), after the transfers of a tree: for bounds */
    double *paid;              /* the same before the transfers, where there are some */
    double moved;              /* sum of the transfers, 0: none */
    int costed_leader;         /* leader whose costs are all there, -2: none */
    unsigned char *costed;     /* sites whose costs are there */
    int *near_order;           /* sites by distance from the leader */
    double *ordered;           /* clients x sites: the costs in each client's order ... */
    int ordered_is_current;    /* ... 1: of this leader */
} leader_view;

/* Work done so far: the counters that a plan shows, and the work by which searches alternate. Every loop that
 * is worth counting adds to `work`. */
typedef struct {
    double work;               /* elementary operations, about a nanosecond each */
    long evaluations;          /* of the bound */
} effort;

/* The limits of the call from Python. Written by python/module.c; `paused` and `next_pause` by
 * lagrangean_bound.c; `out_of_memory` by the function that finds none left. */
typedef struct {
    int paused;                /* 1: the limit was reached in the middle of something */
    double next_pause;         /* ask `pause` when the work passes this */
    int (*pause)(void *);
    void *caller;              /* what `pause` is asked with */
    int out_of_memory;
} control;

/* Answer of the inner problem for one quorum radius (or for all of them when D = 0). */
typedef struct {
    double value;              /* D * radius + sum of the selected reduced costs */
    double top[3];             /* largest selected reduced cost, per relaxation */
    double next[3];            /* smallest reduced cost left out, per relaxation */
    double base[3];            /* value of the relaxation, D * radius included */
    int size[3];               /* how many free sites it selects */
    const unsigned char *member; /* of its case: bits by site; NULL: there are none */
    const unsigned char *decided; /* of a search for near sites: by site, IN and OUT where it decides; NULL: there is none */
    double reach;              /* no replica that may be barred is farther from the leader; BIG: there is no such limit */
} radius_minimum;

/* What the rules for replicas say beside the sites that are in: it changes with these sites, not with reduced costs.
 * Written by inner_minimum.c. */
typedef struct {
    int *in, in_count, least, most; /* sites that are in, -1: none were counted yet; range of |R| */
    int possible;              /* 1: the sites that are in can be completed */
    int *counts;               /* MOST_FAMILIES x length of a count: the sites that are in */
    unsigned char *blocked;    /* by site: 1 when the rules leave no room for it */
} rule_room;

/* The inner problem. `rho` is written by the functions that compute reduced costs (lagrangean_bound.c, tree_node.c,
 * closest_assignment.c, root_bounds.c), the rest by inner_minimum.c. */
typedef struct {
    double *rho;               /* reduced cost, by position of the free site */
    unsigned char *blocked;    /* by position: 1 when the rules leave no room for the site beside those that are in */
    rule_room room;
    int *selected;             /* positions selected by the last inner minimum; behind them 4 x sites of scratch */
    radius_minimum *radii;     /* answers by radius, when all were asked for */
    int radius_count;
    unsigned char *blocks;     /* sites: scratch for the bits of a wait */
    const double *wait;        /* sites: what the leader under work waits for each, at the state under work */
    double *floors;            /* sites: the same of several scenarios */
    int *interval_order, ordered_leader; /* scenarios x sites: by distance from this leader, -2: none yet */
    int *voter;                /* scenarios x sites: those of a state that may vote, nearest first ... */
    double *voter_wait;        /* ... and D times their RTTs */
    int listed;                /* how many these are in each scenario */
    unsigned char *floors_state; /* sites: the state that the floors are of ... */
    int floors_leader;         /* ... and the leader, -2: none */
    int searches;              /* 1: the last search for near sites was short */
    double closing;            /* inner minimum that closes the node under work, BIG: unknown */
    int *members;              /* scenarios x sites: scratch for sites near the leader ... */
    double *missed;            /* ... and what the leader waits longer without each */
    unsigned char *decided;    /* sites x sites: states of the answers of a search for near sites */
    int *places;               /* sites x voters: scratch for the sites of radii, where cases are balls */
    int from[MOST_WAITS];      /* first radius of each wait whose cases count, 0 but while far sites are tried */
} inner_problem;

/* The cheapest case of an inner minimum. */
typedef struct {
    double value;              /* BIG: there is none */
    int own;                   /* 1: its sites decide, not the rules that hold for all cases */
    int count, *chosen;        /* positions of its sites */
    int *trial;                /* scratch for those of another case */
} cheapest_case;

/* The last evaluation of a bound. Written by lagrangean_bound.c; root_bounds.c forgets `best_at`. */
typedef struct {
    double *forced[3];         /* per side and site: bound with it IN or OUT, of the last fixing */
    double served;             /* sum of min(u, fixed_cost) */
    long best_at;              /* `evaluations` after that which improve_bound took its answer from */
} evaluation;

/* Cells of a sparse node, client by client, in each client's order; see tree_node.c. */
typedef struct {
    owned_memory owned;
    size_t *start;             /* clients + 1 */
    int *site, *rank;
    double *weight;            /* w: the cost alone */
    double *cost;              /* w and the beta of the free sites that the client prefers */
    double *beta;
    size_t capacity;
} sparse_cells;

/* Multipliers beta > 0 of a node, client by client, in each client's order. */
typedef struct {
    int *start;                /* clients + 1; NULL: there are none */
    int *site;
    double *value;
    owned_memory owned;
} beta_list;

/* Rows (client, site) of closest assignment that the steps on (u, beta) work on. Written by closest_assignment.c. */
typedef struct {
    double *cost, *beta, *move, *best;
    int *position, *site, *start;
    signed char *step;
} assignment_rows;

/* Rise of bounds by past decisions in the tree of a leader. Written by leader_tree.c. */
typedef struct {
    double *gain[3], *tries[3]; /* per side and site; NULL: nothing was decided yet */
    double gain_sum[3], tries_sum[3];
    owned_memory owned;
} pseudo_costs;

/* Roots as they were when each leader was last bounded, by leader (the last row: of leader -1). Written by
 * root_bounds.c and shared_bounds.c. */
typedef struct {
    double *rho;               /* by site, at the last multipliers */
    int *near_order;           /* sites by distance from the leader, written by leader_costs.c ... */
    unsigned char *ordered;    /* ... 1: they are there */
    double *served;            /* sum of min(u, fixed_cost) */
    unsigned char *stored;     /* 1: the leader has been bounded */
} root_memory;

/* A state of the tree. Written by tree_node.c and tree_node.c, its bound and multipliers by the steps. */
#define MOST_DETOURS 8         /* detours of a client that are listed: one for every cost that falls below those before */

/* A part of a client's detours, see tree_node.c. */
typedef struct {
    int setter;                /* site whose cost is the M of the parts ... */
    int charged;               /* ... and the last free site before the next M, whose price it is */
    double amount;
} detour;

typedef struct tree_node {
    unsigned char *state;      /* sites: FREE, IN, OUT */
    int free_count;
    int *free_site;            /* sites that are still free */
    double **column;           /* their cost columns, BIG where the client has a nearer fixed replica */
    double *block;             /* memory of the columns */
    const double *light;       /* by site: what the light clients add to rho, see lagrangean_bound.c; NULL: all are in the columns */
    int in_count;
    int *in_site;
    double *fixed_cost;        /* padded: cost at the nearest fixed replica, BIG if none */
    int *fixed_rank;           /* padded: its rank, INT_MAX if none */
    double *u;                 /* padded: best multipliers so far */
    double *frequency;         /* sites: how often selected, exponentially smoothed */
    double bound;              /* proven lower bound of everything below this node */
    double *base;              /* sites: sum of beta of each free column */
    double *detour;            /* sites: detours of the free columns, where has_detours; see tree_node.c */
    detour *detours;           /* clients x MOST_DETOURS: what they are made of */
    unsigned char *detour_count; /* clients: number of them */
    int *detour_rank;          /* clients: fixed_rank when they were found */
    double detour_scale;       /* no less than the sum of the costs that they are made of */
    int has_detours;           /* 1: they are prices of the bound */
    const double *beta;        /* sites x padded; NULL: none. Shared with the parent ... */
    double *own_beta;          /* ... unless improved here */
    double *offset;            /* padded: sum of the beta in force */
    size_t capacity;           /* doubles in `block` */
    double constant;           /* direct demand and prices of the fixed replicas */
    long tightened;            /* node count when beta was last improved here */
    int branched_site;         /* site whose decision made this node, -1: nothing to learn */
    int branched_side;         /* IN or OUT */
    double parent_bound;       /* bound of the node it was decided in */
    int is_new;                /* 1: not bounded yet */
    int root;
    int shared;                /* 1: the columns are the costs, see node_make_root */
    int sparse;                /* 1: `cells` stand in for columns and beta, see tree_node.c */
    int outdated;              /* 1: the cells belong to an earlier state */
    int has_beta;              /* 1: some of the cells have a beta */
    int own_record;            /* 1: beta was improved below the root, here or above */
    sparse_cells cells;
    double *plain_cost;        /* padded: cost at the nearest fixed replica without any beta */
    double *max_multiplier;    /* padded: the most that u may be, <= fixed_cost */
} tree_node;

/* The heaviest clients, and their costs in a state; all others are light. Written by context.c and lagrangean_bound.c, `light` by
 * leader_tree.c. */
typedef struct {
    int count, padded, *client; /* 0: demand is not heavy enough at few clients */
    double *near, *relay, *rtt; /* A, B, sites x padded: RTTs; made when they are first wanted */
    int *rank;                 /* sites x padded */
    double *block, **column;   /* sites x padded: costs, BIG where the client has a nearer fixed replica; by listed site */
    unsigned char *known;      /* by site: 1 where the block has its costs */
    int by_column;             /* 1: the listed sites have columns */
    int leader, in_count, *in; /* state of the block; leader -2: none yet */
    int *fixed_rank;           /* padded: as in tree_node */
    double *u, *most, *scale;  /* padded: best multipliers so far, what they are at most, step_scale */
    double served;             /* what the light clients add to the cost served */
    const tree_node *node;     /* node whose steps are under way, else NULL: then all multipliers are `u` */
    int listed, *position;     /* free sites whose rho an evaluation follows; their positions ... */
    double *listed_rho;        /* ... and rho */
    double *light;             /* by site: `light` of the nodes on the stack */
} heavy_clients;

/* The tree on the stack: of one open part. Written by leader_tree.c; root_bounds.c uses
 * the first node for their roots and leave no tree open. */
typedef struct {
    tree_node *stack;
    int depth, capacity;
    double closed;             /* least bound at which something was closed */
    long nodes, leaves;
    double enough;             /* a node whose bound reaches it is put off; BIG: none is */
} search_tree;

/* A part of a tree that is open: see leader_tree.c. */
typedef struct {
    int leader, number;
    double bound;
    unsigned char *state;      /* sites: FREE, IN, OUT; NULL: the start state of the leader */
    float *u;                  /* clients */
    int own_beta;              /* 1: where it was put off, the record had another beta than at the root */
    double bytes;
} open_part;

/* The tree of one leader. */
typedef struct {
    double closed;             /* as in search_tree */
    long nodes;                /* since it began, the last time */
    int begun;                 /* 1: its root was taken from the list */
    int tight;                 /* 1: it takes steps on (u, beta) too */
    int transferred;           /* 1: it has looked for transfers of cost */
    pseudo_costs pseudo;
    float *root_u;             /* clients: multipliers of its root, once that was branched on */
    cost_transfers transfers;
    beta_list beta;            /* beta of its root */
} leader_tree;

/* All trees, and what of them is not on the stack. Written by leader_tree.c. */
typedef struct {
    open_part *part;
    int count, capacity, next_number;
    double kept;               /* bytes of all parts */
    leader_tree *tree;         /* by leader (the last row: of leader -1) */
    const cost_transfers *pattern; /* those of the last leader where they paid; NULL: none */
    double began;              /* work when the trees were opened */
    double gap;                /* bounds are to come this near to the cutoff, relatively; < 0: not yet, 0: the end */
    int puts_off;              /* 1: parts that are so near are put off */
    int last;                  /* the leader who was worked on last, -2: none */
    long burst;                /* ... and the nodes since then */
} open_parts;

/* From when on something is large: the tuning constants, but for tests. */
typedef struct {
    double sparse_from, sparse_share; /* cells from which, and share of them below which, a node becomes sparse */
    int large;                 /* whether sites x clients make a large question: see LARGE_FROM */
    long tight_nodes;          /* nodes after which a tree takes steps on (u, beta) ... */
    long tight_nodes_few;      /* ... with one number of replicas, a small one */
    long burst_nodes;          /* nodes that a leader gets before the others had the steps of their roots */
    double patience;           /* work from which parts are put off */
    long transfer_nodes;       /* nodes after which a tree with such steps looks for transfers of cost, 0: never */
    double interval_gain;      /* share of the gap that a search for near sites may close at least, so that there is one */
    double transfer_pays;      /* share of the gap left that they have to close to be kept */
} size_limits;

/* Scratch memory whose content no caller may rely on: a function that calls another must not keep anything in what
 * the other uses. Sizes in elements. */
typedef struct {
    double *u;                 /* padded: multipliers that are tried; recorded or rounded ones */
    double *direction;         /* padded: of the steps */
    double *gradient;          /* padded */
    int *pick;                 /* sites + 2: cheapest positions (inner minimum), voters by distance */
    int *order;                /* sites + 2: cheapest positions within a radius */
    double *key;               /* 4 sites + 8: sorted reduced costs, prefix sums, losses of swaps */
    int *family_counts;        /* 2 MOST_FAMILIES + 2 counts of families */
    int count_length;          /* numbers in the longest of them */
    int *set_counts;           /* MOST_FAMILIES counts of a set that swaps start from */
    int *sites;                /* 3 sites + 8: a replica set, positions by site; behind it a second set */
    double *cost;              /* 2 padded: costs of a set, limits of u */
    int *rank;                 /* 4 padded: ranks of a set, clients of swaps */
    double *level_cost;        /* (MAX_ENUMERATED + 1) x padded: costs by depth of an enumeration */
    int *level_rank;           /* the same of ranks */
    double *by_site;           /* sites: sums of sparse nodes */
    double *beta_by_site;      /* sites: a client's beta while its cells are gathered, else 0 */
    sparse_cells cells;        /* cells that replace a node's columns */
    double *block_u;           /* LEADERS_PER_PASS x padded: multipliers of leaders that are bounded together */
} scratch;

typedef struct {
    owned_memory owned;        /* all arrays but those that grow */
    problem p;
    incumbent best;
    leader_view view;
    search_tree tree;
    open_parts open;
    inner_problem inner;
    evaluation evaluated;
    assignment_rows rows;
    root_memory memory;
    event_stream proof;        /* the events of a certificate, written by context.c */
    effort effort;
    control control;
    size_limits limits;
    heavy_clients heavy;
    scratch scratch;
} context;

#endif
