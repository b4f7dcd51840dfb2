/* The search over replica sets for operations with waits.

   Sites are in search order, so that a set is an increasing sequence of positions. One tree has a
   fixed leader, or none where no operation needs one. */
#ifndef WAITS_SETS_H
#define WAITS_SETS_H

#include <stddef.h>
#include <stdint.h>

/* One clone per instruction set, chosen when the module is loaded (needs glibc's ifunc). */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define VECTORISED __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define VECTORISED
#endif

enum { LEADER, NEAR, CLIENT };      /* who waits */
enum { VOTERS, REPLICAS };          /* for whom */
enum { EVERYWHERE, INSIDE, OUTSIDE };
enum { ALL = 0, MAJORITY_INSIDE = -1 }; /* needs that are no number */
enum { MOST_CLAUSES = 8, MOST_MEMBERS = 12, MOST_DOMAINS = 256, MOST_PAIRED_SITES = 64, MOST_PAIRED_WAITS = 400 };

typedef struct {
    int need, role, scope;
    const int32_t *label; /* domain of each site */
} clause;

typedef struct {
    int origin, clauses;
    clause clause[MOST_CLAUSES];
    double leader;        /* rounds in all, of a leader's wait */
    const double *weight; /* rounds by client, ... */
    double all;           /* ... and of all clients */
} term;

typedef struct {
    int voters; /* 1: a rule about voters, 0: about replicas */
    int cap, distinct, domain, least;
    const int32_t *label;
} rule;

/* A wait for the `need` nearest of all sites, of a client or (beyond the clients) a site; below a prefix, the first of
   its sites by distance with which there may be enough, and how far that is. */
typedef struct {
    double weight;
    int who, need, first;
    double least;
} one_wait;

/* The sets for which the waits were bounded last at some depth, and the `first` of each wait. */
typedef struct {
    int known, more;
    uint64_t held, coming;
    int *first;
} wait_prefix;

typedef struct {
    int a, b;
    double weight;
} wait_pair;

typedef struct {
    int known, count;
    wait_pair *pair;
} pairing;

/* The least RTTs of each client to some sites. */
typedef struct {
    int known, site[MOST_MEMBERS];
    double *value;        /* a row for each place */
} order_rows;

typedef struct {
    int sites, clients, size, voters, terms, rules;
    int32_t *original;                  /* site index of each position: ties */
    double *by_site;                    /* d(c, s), sites x clients */
    double *site_rtt;                   /* sites x sites: the row waits */
    int32_t *near_order, *client_order; /* positions by distance: of each site, of each client */
    double *reads, *relays, *weights;
    int32_t *labels;
    uint8_t *may_vote, *must_vote, *must_hold;
    double *paid, *spent; /* price of a replica at each site, >= 0; by depth, those of the chosen sites */
    int priced;
    term *term;
    rule *rule;
    int has_client, has_near;
    /* of the tree */
    int leader; /* position, or -1 */
    double constant;
    double *near_cost; /* sites x clients: near and relay */
    /* state by depth: nearest distance, position and cost of each client */
    double *distance;
    int32_t *nearest;
    int chosen[MOST_MEMBERS + 1];
    uint8_t *member;
    /* scratch */
    double *wait, *cost, *fixed, *price, *slope;
    double *nowhere;           /* clients: an infinite distance, that of the nearest of no sites */
    double *stay, *low, *high; /* of the sets that lack one site, by client; low, high by wait too */
    order_rows *rows;          /* by wait */
    double *lasts;             /* by site: the wait of a member */
    int32_t *held;
    int waits;                 /* of the tree, and which of the terms they are */
    uint8_t paired[1000];
    one_wait *one;
    wait_prefix *prefix;       /* by depth */
    int *first;                /* theirs */
    pairing *pairing;          /* by leader, first of none */
    double *client_gain;       /* of pairs of clients, once they were asked for */
    uint64_t *reach;           /* clients and sites x sites: the nearest ones, as bits */
    double *reached;           /* how far the last of them is */
    uint64_t held_bits, coming_bits; /* the sites of the present prefix, and those that may come */
    /* of the best bound at each depth: without the sites that come, and what each of them changes */
    double *base, *change, *later, *trial;
    uint8_t *out; /* sites that no set below the present prefix needs; then which of them each depth ruled out */
    /* best so far */
    double value;
    int best_leader, found;
    int32_t best_set[MOST_MEMBERS], best_voters[MOST_MEMBERS];
    long long nodes, leaves;
    /* sets that are listed instead: all within the value, site indices in ascending order */
    int listing, no_memory;
    int32_t *list;
    size_t listed, room;
} sets;

/* Least value of a wait of an origin when `free` more sites from position `from` on are chosen. */
double least_wait(const sets *x, const term *t, int origin, int depth, int from, int free);
double least_client_wait(const sets *x, const term *t, int client, int from, int free);
/* The wait itself, for complete voters and replicas. */
double exact_wait(const sets *x, const term *t, int origin, const int *voters, int v);
double exact_client_wait(const sets *x, const term *t, int client);

/* Lower bound on the waits that may be paired, each alone; then what pairs of them add, or a part of it beyond `enough`. */
double waits_alone(sets *x, int depth, int from, int more);
double pair_gains(sets *x, int more, double enough);
void begin_reach(sets *x);
void begin_waits(sets *x);

/* Loops over `count` clients: see client_loops.c. */
double sum_of(const double *value, int count);
double reduced_cost(const double *cost, const double *price, int count);
void add_wait(double *cost, const double *weight, double wait, int count);
void take_nearer(double *cost, const double *distance, const double *before, double *least, int count);
void subtract_served(const double *cost, const double *price, double *slope, int count);
double hold_slopes(const double *price, const double *most, double *slope, int count);
void step_prices(double *price, const double *slope, double length, const double *most, int count);
double joined_cost(const double *d, const double *distance, const double *cost, const double *stay, int count);
double capped_waits(const double *weight, const double *d, const double *low, const double *high, int count);
double waits_of_nearest(const double *weight, const int32_t *nearest, const double *lasts, const double *d,
                        const double *distance, double joined, int count);
void least_values(const double *by_site, const int *site, int sites, int need, double *row, int count);
void order_statistics(const double *row, const double *more, int need, double *low, double *high, int count);
int client_loops_are_right(void);

/* Make a depth's state out of the one before it and the site chosen there. */
void push(sets *x, int depth, int site);
void pop(sets *x, int depth);
/* Lower bound on the value of all sets that complete the first `depth` sites from position `from` on. */
double prefix_bound(sets *x, int depth, int from);
/* Value of the complete set of the state, which becomes the best if it is; a part of it beyond the cutoff. */
double leaf(sets *x);
double cutoff(const sets *x);
/* 1 if the counts of domains allow the set so far: caps, and at a leaf everything. */
int allowed(const sets *x, int depth, int complete);
/* Caps of a client's wait with one clause after one more site: the old value, capped from both sides;
   0 where the wait is none of that kind. The rows are those of all sites but the last. */
int client_caps(sets *x, const term *t, double *low, double *high, order_rows *rows);
/* The same of the waits of the members for the nearest replica: how many they wait for, or 0; then the sum of these waits
   over the clients with one more site, which may become the nearest, or a bound on it beyond `enough`. Ties go to the
   shorter wait. */
int near_caps(const sets *x, const term *t, double *low, double *high);
double near_sum(sets *x, const term *t, int need, const double *low, const double *high, int site, double enough);
/* Search below the present prefix; 0 when `stop` said so. */
int search_below(sets *x, int depth, int from, int (*stop)(void *), void *context);
/* Swap sites as long as that is better, from the present complete set. */
void descend(sets *x);

#endif
