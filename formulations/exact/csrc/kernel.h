/* Functions of the compiled kernel of the exact engine, by the file that defines them; context.h has its data. */
#ifndef EXACT_KERNEL_H
#define EXACT_KERNEL_H

#include <string.h>

#include "context.h"

/* context.c */
void find_heavy(context *x, double demand, double most);
int context_prepare(context *x);
void context_free(context *x);
int round_multipliers(double *u, int clients);
void record_event(context *x, double kind, double value);
void record_vector(context *x, const double *u);
void record_beta(context *x, const tree_node *f);
void record_transfers(context *x, const cost_transfers *t);
void record_number(context *x, double value);

/* client_loops.c */
double sum_of(const double *value, int padded);
void reduced_costs(double *const *column, int n, const double *u, int padded, double *rho);
double reduced_cost_from_rtts(const double *rtt, const double *near, const double *weight, double relay,
                      const double *u, int padded);
double served_cost(const double *u, const double *fixed, int padded);
void subtract_covered(const double *column, const double *u, int padded, double *cover);
double scaled_gradient(const double *u, const double *fixed, const double *scale, int padded, double *g);
void subgradient_step(const double *from, double *to, const double *g, double *direction,
                            double keep, double step, const double *fixed, int padded);
void lower_choice_bounds(double base, double top, double next, const double *rho, int n, double *with, double *without);
void raise_choice_bounds(double base, double top, double next, const double *rho, int n, double *with, double *without);
void lower_to(const double *value, int n, double *least);
void subtract_beta(double *value, const int *rank, const int *dropped, const double *beta,
                               int padded);
void stop_at_site(const int *rank, const double *cost, int padded, int *fixed_rank,
                               double *fixed_cost, double *offset);
void mask_column(double *column, const int *rank, const int *fixed_rank, int padded);
double remaining_beta(const double *beta, const int *rank, const int *fixed_rank,
                            const int *site_rank, int padded, double *fixed_cost, double *offset,
                            double *scratch);
double cost_with_site(const int *rank, const double *cost, const int *nearest,
                              const double *served_now, int padded, double *scratch);
void join_site(const int *rank, const double *cost, const int *nearest, const double *paid,
                            int padded, int *nearest_out, double *paid_out);
int client_loops_are_right(void);

/* Prices of replicas under a leader, by site; NULL: there are none. */
static inline const double *prices_under(const problem *p, int leader)
{
    return p->price ? p->price + (size_t)(leader < 0 ? 0 : leader) * (size_t)p->sites : NULL;
}
/* Fewest and most of its free sites that complete a node. */
static inline void sizes_left(const problem *p, const tree_node *f, int *lo, int *hi)
{
    *lo = (p->replicas_min > p->voters ? p->replicas_min : p->voters) - f->in_count;
    *hi = p->replicas_max - f->in_count;
    *lo = *lo > 0 ? *lo : 0;
    *hi = *hi < f->free_count ? *hi : f->free_count;
}
/* The replicas of a node with `count` sites that the last inner minimum has selected, into `set`; how many they are. */
static inline int selected_set(const context *x, const tree_node *f, int count, int *set)
{
    int size = f->in_count;
    memcpy(set, f->in_site, (size_t)size * sizeof(int));
    for (int i = 0; i < count; i++)
        set[size++] = f->free_site[x->inner.selected[i]];
    return size;
}

/* Put `i` among the `limit` positions of least key in a list, ascending (ties: as they come), of which there are `found`; how many
 * there are then. */
static inline int insert_position(const double *key, int *list, int found, int limit, int i)
{
    if (found >= limit && (limit <= 0 || key[i] >= key[list[found - 1]]))
        return found;
    int at = found < limit ? found++ : limit - 1;
    for (; at > 0 && key[list[at - 1]] > key[i]; at--)
        list[at] = list[at - 1];
    list[at] = i;
    return found;
}
/* The same with the keys themselves. */
static inline int insert_key(double *least, int found, int limit, double key)
{
    if (found >= limit && (limit <= 0 || key >= least[found - 1]))
        return found;
    int at = found < limit ? found++ : limit - 1;
    for (; at > 0 && least[at - 1] > key; at--)
        least[at] = least[at - 1];
    least[at] = key;
    return found;
}

/* inner_minimum.c */
void merge_runs(keyed *sorted, int n, keyed *room);
void sort_positions(const double *key, int n, keyed *sorted, keyed *room);
static inline double distance_of(const context *x, int leader, int site)
{
    return site == leader ? 0.0 : x->p.site_rtt[(size_t)leader * x->p.sites + site];
}
/* The wait of the leader under work for a site, in the state whose inner minimum is sought. */
static inline double site_wait(const context *x, int site)
{
    return site == x->view.leader ? 0.0 : x->inner.wait[site];
}
/* The inner minimum that closes a node whose other parts are these, BIG without a cutoff; kept for the next inner minimum,
 * which looks at more than floors of waits where that may help to reach it. */
static inline double closing_minimum(context *x, double served, double constant)
{
    x->inner.closing = x->best.cutoff < BIG ? x->best.cutoff * (1.0 + BEYOND_CUTOFF) - served - constant : BIG;
    return x->inner.closing;
}
double relay_rtt(const problem *p, int client, int site, int leader);
int smallest(const double *key, int n, int limit, int *out);
void clear_answer(radius_minimum *a);
void keep_larger(radius_minimum *a, int k, double value, double top, double next, const int *chosen, int size, int *kept,
                 int *kept_count);
double inner_minimum(context *x, tree_node *f, int all_radii, double slack, int *count);

/* leader_costs.c */
int end_of_run(const problem *p, int first, int end);
void select_leader(context *x, int leader);
void costs_for_leader(context *x, int leader);
void costs_of_tree(context *x, int leader);
const double *paid_costs(const context *x);
void costs_of_fixed_sites(context *x, int leader);
const double *costs_at(context *x, int site);
void complete_costs(context *x);
void leader_without_costs(context *x, int leader);
int order_costs(context *x);

/* closest_assignment.c */
void free_transfers(cost_transfers *t);
int transfer_costs(context *x, const cost_transfers *t);
void find_transfers(context *x, tree_node *f, double proven, cost_transfers *kept);
void node_rebuild_columns(context *x, tree_node *f);
double improve_closest_assignment(context *x, tree_node *f, int iterations, double *error);

/* tree_node.c */
int node_alloc(context *x, tree_node *f, int columns);
void node_free(tree_node *f);
void node_make_root(context *x, tree_node *f, int leader, int shared, const unsigned char *state);
void update_detours(context *x, tree_node *f);
void node_make_child(context *x, tree_node *child, const tree_node *parent, int site);
void node_fix_in(context *x, tree_node *f, int site);
void node_drop_site(context *x, tree_node *f, int position, int adjust);
void own_columns(context *x, tree_node *f);
void cells_release(sparse_cells *m);
int sparse_alloc(context *x, tree_node *f);
void make_sparse(context *x, tree_node *f);
void update_cells(context *x, tree_node *f, const sparse_cells *from);
void sparse_reduced_costs(context *x, const tree_node *f, const double *u);
void sparse_subtract_covered(context *x, const tree_node *f, const int *selected, int count, const double *u, double *cover);
void sparse_set_beta(context *x, tree_node *f, const int *start, const int *item_site, const double *item_beta);
int make_sparse_from_state(context *x, tree_node *f, const beta_list *beta);

/* lagrangean_bound.c */
int must_pause(context *x);
double evaluate_bound(context *x, tree_node *f, const double *u, int all_radii, int *count, double *error);
double improve_bound(context *x, tree_node *f, int iterations, double *error);
int heavy_prepare(context *x);
void set_light(context *x, tree_node *f);
void find_some_costs(context *x, const tree_node *f, const int *set, int size);
int fix_by_reduced_cost(context *x, tree_node *f, double base, double error);
double bound_error(const context *x, const tree_node *f, double served, double least, int count);

/* waits/wait_cases.c */
void free_cases(wait_cases *cases);
int radii_of(const wait_cases *cases, int wait, int leader);
int sizes_of(const wait_cases *cases, int wait);
size_t cells_of_leader(const wait_cases *cases, int leader);
const wait_case *case_of(context *x, int leader, const size_t *at);
int wait_of_cases(const context *x, int leader, const int *replicas, int count, double *wait);
int cheapest_of_case(const tree_node *f, const keyed *sorted, int n, const wait_case *one, int family, int lo, int hi,
                     double *value, double *top, double *next, int *chosen);

/* waits/ball_cases.c */
void find_balls(problem *p);
void rest_of_balls(const context *x, int leader, const int *replicas, int count, int without, ball_rest *rest);
double wait_with_site(const context *x, int leader, const ball_rest *rest, int site);
double wait_of_balls(const context *x, int leader, const int *replicas, int count);
int is_barred(const context *x, int site, double reach);
int cheapest_of_balls(const context *x, const tree_node *f, const keyed *sorted, int n, double within, double reach, int lo,
                      int hi, double *value, double *top, double *next, int *chosen);
double minimum_over_balls(context *x, const tree_node *f, int lo, int hi, int all, double slack, int *count);

/* waits/interval_waits.c */
static inline int has_interval_waits(const context *x)
{
    return x->p.scenarios > 1 && x->view.leader >= 0 && x->p.quorum_weight > 0.0 && x->p.quorum > 1;
}
void find_waits(context *x, const tree_node *f);
int raise_by_intervals(context *x, const tree_node *f, int lo, int hi, int all, double slack, int *count, double *least);

/* waits/case_search.c */
int fix_far_sites(context *x, tree_node *f);
void cheapest_case_of(context *x, tree_node *f, const keyed *sorted, int n, int lo, int hi, int all, double slack,
                      const radius_minimum *common, double floor_value, cheapest_case *best);

/* incumbent.c */
double least_wait_of_set(context *x, const int *replicas, int count);
void offer_incumbent(context *x, double score, const int *replicas, int count);
void forget_incumbent(context *x);
void set_tolerance(context *x, double tolerance);
double score_of(context *x, const int *replicas, int count, double *radius);
double swap_descent(context *x, int *replicas, int count, int limit);
int start_set(context *x, int *set);
void start_multipliers(context *x, tree_node *f, const int *set, int count);

/* leader_tree.c */
void open_root(context *x, const double *u, int shared, const unsigned char *state);
double record_close(context *x, tree_node *f, double bound);
void open_parts_prepare(context *x);
void open_parts_free(context *x);
void open_trees(context *x, const int *leader, const double *u, const double *bound, int count);
leader_tree *tree_of(const context *x, int leader);
leader_tree *current_tree(const context *x);
void leader_bounds(const context *x, const int *leader, double *bound, int count);
int run_search(context *x, double work);

/* root_bounds.c */
int bound_roots(context *x, const int *leader, int count, double *u, const unsigned char *warm,
                 int iterations, int swaps, int full, double work, double *bounds, long long *ends);
void set_replica_range(context *x, int least, int most);
int quick_bounds(context *x, const int *leader, int count, double *u, double work, double *bounds);
size_t memory_row(const context *x, int leader);
void memory_prepare(context *x);
double bound_from_memory(context *x, int leader, int *count);
int bounds_from_memory(context *x, const int *leader, int count, int swaps, double *bounds);

/* shared_bounds.c */
int shared_bounds(context *x, int reference, double *u, const int *leader, int count, int *serving, double *bounds);

#endif
