/* Shared declarations of the compiled kernel of the exact engine.
 *
 * The mathematics is written down once, in ../certificate.py (bound, inner problem, tree) and in
 * ../descent.py (swap search); the C code is the same thing made fast.  Conventions:
 *
 * - matrices over (site, client) are stored one *site* after another, each row padded to a multiple of
 *   PAD clients, so that one pass over a column of the model is one contiguous, vectorisable loop;
 *   padding clients have weight zero and multiplier zero and add exactly 0 to every sum;
 * - clients are ordered by `rank`: rank[j][c] < rank[k][c] says that c prefers j to k (RTT, then site
 *   order), so ties need no special case anywhere;
 * - leader -1 stands for "the leader does not matter" (no relayed, direct or quorum demand).
 */
#ifndef EXACT_KERNEL_H
#define EXACT_KERNEL_H

#include <stddef.h>
#include <stdlib.h>

#define PAD 8
#define BIG 1e300
#define MAX_LEVELS 16
#define MAX_ENUMERATED 6      /* sites still to choose when a leaf may be enumerated */
#define SPARSE_FROM 20000.0   /* free sites x clients below which dense frames are as good */
#define SPARSE_SHARE 0.2      /* share of these cells from which they are quicker */
#define UNIT_ROUNDOFF 1.1102230246251565e-16

/* One clone per instruction set, chosen when the module is loaded (needs glibc's ifunc). */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define VECTORISED
#endif

enum { FREE = 0, IN = 1, OUT = 2 };

typedef struct {
    int count;                 /* number of levels */
    int cap[MAX_LEVELS];
    int labels[MAX_LEVELS];    /* number of different labels */
    int *label[MAX_LEVELS];    /* site -> 0..labels-1 */
} levels;

typedef struct {
    int clients, padded, sites;
    double *rtt;               /* sites x padded */
    int *rank;                 /* sites x padded */
    double *near_weight;       /* A, padded */
    double *relay_weight;      /* B, padded */
    double *site_rtt;          /* sites x sites, row = the waiting side */
    double *direct;            /* sites: sum of G d(c, leader) */
    double quorum_weight;      /* D */
    double *price;             /* sites x sites (row = leader) or NULL */
    int replicas_min, replicas_max, voters, quorum;
    unsigned char *may_hold, *must_hold, *may_vote, *must_vote, *may_lead;
    levels replica_caps, voter_caps;
    int plain_voters;          /* 1: every site that may hold may vote, none must, no voter caps */
    double granularity;        /* every score is a multiple of it; 0 when unknown */
} problem;

/* One answer of the inner problem for one quorum radius (or for all of them when D = 0). */
typedef struct {
    double value;              /* D * radius + sum of the selected reduced costs */
    double top[3];             /* largest selected reduced cost, per relaxation */
    double next[3];            /* smallest reduced cost left out, per relaxation */
    double base[3];            /* value of the relaxation, D * radius included */
    int size[3];               /* how many free sites it selects */
} radius_answer;

/* Cells of a sparse frame, client by client, in each client's order; see sparse.c. */
typedef struct {
    size_t *start;             /* clients + 1 */
    int *site, *rank;
    double *weight;            /* w: the cost alone */
    double *cost;              /* w and the beta of the free sites that the client prefers */
    double *beta;
    size_t capacity;
} cells;

/* Several numbers of replicas at once; see span.c. */
#define MOST_SIZES 64
#define MOST_NEEDED 64        /* largest quorum of a search over several sizes */
typedef unsigned long long size_set;

typedef struct {
    int on;
    int count;
    int *size;                 /* ascending */
    int *at;                   /* by number of replicas: its place in `size`, -1: not asked for */
    double *shift;             /* what closes at this size, less x->cutoff */
    double *least;             /* inner minimum of the last evaluation, less the shift */
    double *loose;             /* the same without a quorum */
    double *bound;             /* bounds of the last evaluation, less the shift */
    double *score;             /* incumbents: score, leader, replicas (sites each) */
    int *leader, *replicas;
    size_set *open;            /* by leader (the last row: of leader -1): sizes that are not proven yet */
    size_set mask, focus;      /* sizes that are looked at now; that the steps are for */
    double *beta, *u;          /* multipliers of the last root that was tightened ... */
    int tightened;             /* ... under this leader, -2: nobody */
    double largest;            /* of the shifts and the cutoff, for the allowance for rounding */
} span;

typedef struct frame {
    unsigned char *state;      /* sites: FREE, IN, OUT */
    int free_count;
    int *free_site;            /* sites that are still free */
    double **column;           /* their cost columns, BIG where the client has a nearer fixed replica */
    double *block;             /* memory of the columns */
    int in_count;
    int *in_site;
    double *fixed_cost;        /* padded: cost at the nearest fixed replica, BIG if none */
    int *fixed_rank;           /* padded: its rank, INT_MAX if none */
    double *u;                 /* padded: best multipliers so far */
    double *frequency;         /* sites: how often selected, exponentially smoothed */
    double bound;              /* proven lower bound of everything below this frame */
    double *base;              /* sites: sum of beta of each free column */
    const double *beta;        /* sites x padded; NULL: none. Shared with the parent ... */
    double *own_beta;          /* ... unless improved here */
    double *offset;            /* padded: sum of the beta in force */
    size_t capacity;           /* doubles in `block` */
    double constant;           /* direct demand and prices of the fixed replicas */
    long tightened;            /* node count when beta was last improved here */
    int decided;               /* site whose decision made this frame, -1: nothing to learn */
    int side;                  /* IN or OUT */
    double before;             /* bound of the frame it was decided in */
    int fresh;                 /* 1: not bounded yet */
    int root;
    int warm;                  /* 1: a root that began with the beta of another tree */
    int shared;                /* 1: the columns are the costs, see frame_root */
    int sparse;                /* 1: `cells` stand in for columns and beta, see sparse.c */
    int stale;                 /* 1: the cells are those of an earlier state */
    int charged;               /* 1: some of the cells have a beta */
    cells cells;
    double *plain;             /* padded: cost at the nearest fixed replica without any beta */
    double *reach;             /* padded: the most that u may be, <= fixed_cost */
    size_set open;             /* sizes that are not proven yet, when there are several */
} frame;

typedef struct {
    double *data;
    size_t length, capacity;
    int failed;
} stream;

typedef struct {
    problem p;
    /* incumbent */
    double score;
    int leader, *replicas, replica_count;
    double cutoff;             /* a node whose bound reaches it is closed */
    double tolerance;
    /* leader under work */
    int current;
    double *costs;             /* sites x padded: A d(c, j) + B d(j, leader) */
    int costed;                /* leader whose costs are all there, -2: of nobody */
    int *near_order;           /* sites by distance from the leader */
    int *near_free;            /* scratch */
    frame *stack;
    int depth, stack_size;
    double closed;             /* least bound at which something was closed */
    double work;               /* elementary operations spent */
    long nodes, iterations, leaves;
    int recording;
    stream record;
    /* scratch */
    double *rho, *trial, *direction, *best_u;
    int *selected, *pick, *order;
    double *key;
    radius_answer *radii;
    int radius_count;
    int *counts;
    double *enum_cost;
    int *enum_rank;
    double *level_cost;        /* (MAX_ENUMERATED + 1) x padded */
    int *level_rank;
    int stop;
    int *by_client;            /* clients x sites: sites in each client's order */
    double *ordered;           /* clients x sites: their costs under the current leader ... */
    int ordered_is_current;    /* ... if they were asked for since it changed */
    double *by_site;           /* sites: scratch of sparse frames */
    double *charge;            /* sites: a client's beta while its cells are gathered, else 0 */
    cells spare;
    double *together;          /* multipliers of the leaders that are glanced at together */
    double sparse_from, sparse_share; /* SPARSE_FROM and SPARSE_SHARE, but for tests */
    double *item_cost, *item_beta, *item_move, *item_best;
    int *item_free, *item_site, *item_start;
    signed char *item_step;
    int paused;                /* 1: the limit was reached in the middle of something */
    double next_pause;         /* ask `pause` when `work` passes this */
    int (*pause)(void *);
    void *thread;              /* saved by the binding while the kernel runs */
    double deadline;
    int raised;
    int relays;                /* 1: closest-assignment multipliers can matter */
    double *forced[3];         /* per site: bound with it IN or OUT, of the last fixing */
    double *gain[3], *tries[3]; /* per site and side: what its decisions raised bounds by */
    double gain_sum[3], tries_sum[3];
    double served;             /* sum of min(u, fixed_cost) at the last evaluation */
    long best_at;              /* `iterations` after the evaluation that improve_bound took its answer from */
    /* what is remembered of the leaders, by leader (the last row: of leader -1); see recall.c */
    double *known_rho;         /* by site, at the multipliers of the last look */
    int *known_near;           /* sites by distance from the leader */
    double *known_served;      /* sum of min(u, fixed_cost) */
    unsigned char *known;
    span span;
} context;

/* context.c */
int context_prepare(context *x);
void context_free(context *x);

/* vector.c */
double total(const double *value, int padded);
void gains(double *const *column, int n, const double *u, int padded, double *rho);
double gain_from_rtts(const double *rtt, const double *near, const double *weight, double relay,
                      const double *u, int padded);
double paid(const double *u, const double *fixed, int padded);
void uncover(const double *column, const double *u, int padded, double *cover);
double step_norm(const double *u, const double *fixed, int padded, double *g);
void move(const double *from, double *to, const double *g, double *direction,
                            double keep, double step, const double *fixed, int padded);
void without(double *value, const int *rank, const int *dropped, const double *beta,
                               int padded);
void stop_at(const int *rank, const double *cost, int padded, int *fixed_rank,
                               double *fixed_cost, double *offset);
void mask(double *column, const int *rank, const int *fixed_rank, int padded);
double remaining(const double *beta, const int *rank, const int *fixed_rank,
                            const int *site_rank, int padded, double *fixed_cost, double *offset,
                            double *scratch);
double joined_cost(const int *rank, const double *cost, const int *nearest,
                              const double *paid_now, int padded, double *scratch);
void join(const int *rank, const double *cost, const int *nearest, const double *paid,
                            int padded, int *nearest_out, double *paid_out);
int vectors_are_right(void);

/* frame.c */
void costs_of_site(context *x, int leader, int j);
void turn_to(context *x, int leader);
void costs_for_leader(context *x, int leader);
int frame_alloc(context *x, frame *f, int columns);
void frame_release(frame *f);
void frame_root(context *x, frame *f, int leader, int shared);
void frame_copy(context *x, frame *child, const frame *parent, int site);
void frame_fix_in(context *x, frame *f, int site);
void frame_drop(context *x, frame *f, int position, int adjust);

/* bound.c */
int must_pause(context *x);
double evaluate_bound(context *x, frame *f, const double *u, int all_radii, int *count, double *error);
double improve_bound(context *x, frame *f, int iterations, double *error);
int fix_by_reduced_cost(context *x, frame *f, double base, double error);
double bound_error(const context *x, const frame *f, double served, double least, int count);

/* sparse.c */
void cells_release(cells *m);
int sparse_alloc(context *x, frame *f);
void sparsify(context *x, frame *f);
void settle(context *x, frame *f);
void settle_child(context *x, frame *child, const frame *parent);
void sparse_gains(context *x, const frame *f, const double *u);
void sparse_uncover(context *x, const frame *f, const int *selected, int count, const double *u, double *cover);
void sparse_charge(context *x, frame *f, const int *start, const int *item_site, const double *item_beta);
void record_cells(context *x, const frame *f);

/* tighten.c */
void frame_rebuild(context *x, frame *f);
double tighten(context *x, frame *f, int iterations, double *error);

/* inner.c */
double distance_of(const context *x, int leader, int site);
int smallest(const double *key, int n, int limit, int *out);
void clear_answer(radius_answer *a);
double inner_minimum(context *x, frame *f, int all_radii, double slack, int *count);

/* voters.c */
int quorum_radius(context *x, int leader, const int *replicas, int count, double *radius);
int caps_allow(const levels *caps, const int *sites, int count, int *scratch);
int any_leader(context *x, const int *replicas, int count);

/* descent.c */
double score_of(context *x, const int *replicas, int count, double *radius);
double descend(context *x, int *replicas, int count, int limit);
double cutoff_of(const context *x, double score);
void set_cutoff(context *x);
void offer(context *x, double score, const int *replicas, int count);
int first_set(context *x, int *replicas);
int start_set(context *x, int *set);
void start_multipliers(context *x, frame *f, const int *set, int count);

/* branch.c */
void branch_forget(context *x);
void branch_learn(context *x, frame *f, double value);
int branch_site(const context *x, const frame *f, double value);

/* tree.c */
void tree_open(context *x, int leader, const double *u);
void root_open(context *x, const double *u, int shared);
int tree_run(context *x, double work);
double tree_bound(const context *x);

/* leaders.c */
double scan_leader(context *x, int leader, double *u, int warm, int iterations, int swaps);
int scan_leaders(context *x, const int *leader, int count, double *u, const unsigned char *warm,
                 int iterations, int swaps, int full, double work, double *bounds, long long *ends);
void resize(context *x, int least, int most);

/* glance.c */
double glance_leader(context *x, int leader, double *u);
void adapt(context *x, const double *from, int other, int leader, double *u);
int glance_leaders(context *x, const int *leader, int count, double *u, double work, double *bounds);

/* recall.c */
int memory_prepare(context *x);
void memory_free(context *x);
void remember(context *x, const frame *f, double served);
void remember_root(context *x, double served);
double recall_leader(context *x, int leader);
void descend_under(context *x, int leader, int swaps);
int recall_leaders(context *x, const int *leader, int count, int swaps, double *bounds);

/* span.c */
size_t row_of(const context *x, int leader);
size_set span_open(const context *x, int leader);
void span_note(context *x, int leader, size_set open);
void span_free(context *x);
double span_minimum(context *x, frame *f, int all, double slack, int *count);
int span_close(context *x, frame *f, double rest, double error);
int span_count(size_set sizes);
double span_shift(const context *x, int count);
void span_offer(context *x, double score, const int *replicas, int count);
void span_keep(context *x, const frame *f);
int span_warm(context *x, frame *f);
void span_range(const context *x, frame *f, int *lo, int *hi);
int span_prepare(context *x, const int *size, int count);
void span_begin(context *x);

/* sizes.c */
int span_search(context *x, const int *size, int count, const int *leader, int leaders, int steps, int swaps,
                double work);

/* record of the proof */
int coarsen(double *u, int clients);
double record_close(context *x, frame *f, double bound);
void record_event(context *x, double kind, double value);
void record_vector(context *x, const double *u);
void record_beta(context *x, const double *beta);
void record_number(context *x, double value);

#endif
