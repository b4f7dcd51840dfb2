/* Depth-first branch and bound under one leader, resumable after a given amount of work. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

/* ---- leaves that are enumerated ---- */

/* 1 when a complete set whose clients and prices cost `part` may be better than the incumbent: the score itself adds up
 * the same terms in another order. */
static int may_win(context *x, double part, const int *set, int size)
{
    if (part >= x->best.score)
        return 0;
    double wait = least_wait_of_set(x, set, size);
    return part + wait - LEAF_ROUNDING * (fabs(part) + wait) < x->best.score;
}

/* Enumerate the completions of a node, depth first over positions; the score is only computed in
 * full where the clients' part and the least wait could still win. */
static void enumerate_leaf(context *x, tree_node *f, int lo, int hi)
{
    const problem *p = &x->p;
    int n = f->free_count, depth = 0, padded = p->padded;
    int *set = x->scratch.sites, at[MAX_ENUMERATED + 2], *nearest = x->scratch.level_rank;
    double radius, prices[MAX_ENUMERATED + 2], *paid = x->scratch.level_cost;
    const double *price = p->price ? p->price + (size_t)(x->view.leader < 0 ? 0 : x->view.leader) * p->sites : NULL;
    memcpy(set, f->in_site, (size_t)f->in_count * sizeof(int));
    memcpy(nearest, f->fixed_rank, (size_t)padded * sizeof(int));
    for (int c = 0; c < padded; c++)
        paid[c] = c < p->clients ? BIG : 0.0;
    for (int i = 0; i < f->in_count; i++) {
        const int *rank = p->rank + (size_t)f->in_site[i] * padded;
        const double *cost = paid_costs(x) + (size_t)f->in_site[i] * padded;
        for (int c = 0; c < p->clients; c++)
            paid[c] = rank[c] == nearest[c] ? cost[c] : paid[c];
    }
    prices[0] = f->constant;
    at[0] = 0;
    if (lo <= 0)
        offer_incumbent(x, score_of(x, set, f->in_count, &radius), set, f->in_count);
    if (hi == 0)
        return;
    while (depth >= 0) {
        if (at[depth] >= n) {
            if (--depth >= 0)
                at[depth]++;
            continue;
        }
        int site = f->free_site[at[depth]], size = f->in_count + depth + 1;
        const int *rank = p->rank + (size_t)site * padded;
        const double *cost = paid_costs(x) + (size_t)site * padded;
        set[size - 1] = site;
        prices[depth + 1] = prices[depth] + (price ? price[site] : 0.0);
        if (depth + 1 >= lo) {
            double part = prices[depth + 1] + cost_with_site(rank, cost, nearest + (size_t)depth * padded,
                                                          paid + (size_t)depth * padded, padded, x->scratch.u);
            if (may_win(x, part, set, size)) {
                double score = score_of(x, set, size, &radius);
                if (score < x->best.score)
                    offer_incumbent(x, score, set, size);
            }
        }
        if (depth + 1 < hi) {
            join_site(rank, cost, nearest + (size_t)depth * padded, paid + (size_t)depth * padded, padded,
                 nearest + (size_t)(depth + 1) * padded, paid + (size_t)(depth + 1) * padded);
            at[depth + 1] = at[depth] + 1;
            depth++;
        } else
            at[depth]++;
        x->effort.work += 0.5 * padded;
    }
}

static double count_completions(int n, int lo, int hi)
{
    double total = 0.0, choose = 1.0;
    for (int k = 0; k <= hi; k++) {
        if (k >= lo)
            total += choose * (k > 0 ? k : 1);
        choose = choose * (n - k) / (k + 1.0);
        if (total > 1e12)
            break;
    }
    return total;
}

/* ---- the tree ---- */

static void push_node(context *x, const tree_node *parent, int site)
{
    tree_node *f = &x->tree.stack[x->tree.depth];
    if (!node_alloc(x, f, parent->sparse ? 0 : parent->free_count) || (parent->sparse && !sparse_alloc(x, f))) {
        x->control.out_of_memory = 1;
        return;
    }
    node_make_child(x, f, parent, site);
    f->tightened = x->tree.nodes;
    f->branched_site = site;
    f->branched_side = IN;
    f->parent_bound = parent->parent_bound;
    x->tree.depth++;
}

/* 1 when the tree has turned out large: TIGHT_NODES nodes, or more with few replicas, whose trees have gone through as many
 * plain nodes before beta pays. */
static int is_large(const context *x)
{
    double nodes = (double)current_tree(x)->nodes;
    if (x->p.replicas_max <= FEW_REPLICAS)
        return nodes >= (double)x->limits.tight_nodes_few;
    return nodes >= (double)x->limits.tight_nodes;
}

/* 1 when the tree is to begin again: with steps on (u, beta), then with transfers of cost; with both at once, and sooner, where
 * there are transfers that paid under another leader. */
static int begins_anew(const context *x)
{
    const leader_tree *t = current_tree(x);
    if (!x->p.relays || !t->root_u || t->transferred)
        return 0;
    if (!t->tight && is_large(x))
        return 1;
    return (t->tight || x->open.pattern) && x->limits.transfer_nodes > 0 && t->nodes >= x->limits.transfer_nodes;
}

static void put_root(context *x, const double *u, int shared, const unsigned char *state)
{
    x->tree.depth = 0;
    x->tree.closed = BIG;
    tree_node *f = &x->tree.stack[0];
    if (!node_alloc(x, f, shared ? 0 : x->p.sites)) {
        x->control.out_of_memory = 1;
        return;
    }
    memset(f->u, 0, (size_t)x->p.padded * sizeof(double));
    node_make_root(x, f, x->view.leader, shared, state);
    /* not before: on the way to several certain sites a client's cost may be lower than in the end */
    for (int c = 0; u && c < x->p.clients; c++)
        f->u[c] = u[c] < f->fixed_cost[c] ? u[c] : f->fixed_cost[c];
    x->tree.depth = 1;
}

/* Put the root of the leader under work on the stack, in place of any tree; `shared` as in node_make_root. */
void open_root(context *x, const double *u, int shared)
{
    put_root(x, u, shared, NULL);
}

/* As open_root, for the node of a state below that root, without multipliers. */
void open_root_at(context *x, const unsigned char *state, int shared)
{
    put_root(x, NULL, shared, state);
}

/* Record that `f->u` closes the node, with fewer digits where they suffice; return its bound. */
double record_close(context *x, tree_node *f, double bound)
{
    double error, value;
    int count;
    memset(x->scratch.u, 0, (size_t)x->p.padded * sizeof(double));
    memcpy(x->scratch.u, f->u, (size_t)x->p.clients * sizeof(double));
    if (round_multipliers(x->scratch.u, x->p.clients)) {
        for (int c = 0; c < x->p.clients; c++) {
            double most = f->sparse ? f->max_multiplier[c] : f->fixed_cost[c];
            x->scratch.u[c] = x->scratch.u[c] < most ? x->scratch.u[c] : most;
        }
        value = evaluate_bound(x, f, x->scratch.u, 0, &count, &error) - error;
        if (value >= x->best.cutoff) {
            memcpy(f->u, x->scratch.u, (size_t)x->p.clients * sizeof(double));
            bound = value < bound ? value : bound;
        }
    }
    record_event(x, CLOSE, 0.0);
    record_vector(x, f->u);
    return bound;
}

static void close_node(context *x, double bound)
{
    tree_node *f = &x->tree.stack[x->tree.depth - 1];
    if (x->proof.recording)
        bound = record_close(x, f, bound);
    if (bound < x->tree.closed)
        x->tree.closed = bound;
    x->tree.leaves++;
    x->tree.depth--;
}

/* Visit the node on top: bound it, then close it, enumerate it or branch. */
void visit_node(context *x)
{
    tree_node *f = &x->tree.stack[x->tree.depth - 1];
    const problem *p = &x->p;
    int rounds = f->root ? 6 : 3, count, bars = f->root && p->cases.bars && x->best.cutoff < BIG;
    int iterations = bars ? BARRED_ROOT_STEPS : f->root ? ROOT_STEPS : NODE_STEPS;
    double error, base_error, value = 0.0;
    if (begins_anew(x)) {
        begin_anew(x);
        return;
    }
    x->tree.nodes++;
    current_tree(x)->nodes++;
    for (int round = 0; round < rounds; round++) {
        int lo = (p->replicas_min > p->voters ? p->replicas_min : p->voters) - f->in_count;
        int hi = p->replicas_max - f->in_count;
        if (lo < 0)
            lo = 0;
        if (hi > f->free_count)
            hi = f->free_count;
        double completions = hi >= lo && hi >= 0 && hi <= MAX_ENUMERATED ? count_completions(f->free_count, lo, hi) : BIG;
        int few = completions <= FEW + ENUMERATE_PER_SITE * f->free_count;
        /* where a bound is cheaper than a score, first see which sites it leaves */
        if (completions <= FEW || (few && (round > 0 || !f->sparse))) {
            enumerate_leaf(x, f, lo, hi);
            if (x->proof.recording)
                record_event(x, ENUMERATE, 0.0);
            x->tree.leaves++;
            x->tree.depth--;
            return;
        }
        update_detours(x, f);
        value = improve_bound(x, f, iterations, &error);
        if (current_tree(x)->tight && value < x->best.cutoff && round == 0 && !x->control.paused &&
            (f->root || (f->is_new && f->in_count <= TIGHT_DEPTH) ||
             x->tree.nodes - f->tightened >= TIGHT_EVERY)) {
            int large = (double)f->free_count * p->padded > LARGE;
            int steps = f->root ? (large ? 2 : 1) * TIGHT_ROOT_STEPS : TIGHT_NODE_STEPS;
            f->tightened = x->tree.nodes;
            double tight = improve_closest_assignment(x, f, steps, &error);
            if (tight > value)
                value = tight;
            f->own_record |= !f->root;
        }
        learn_pseudo_cost(x, f, value);
        if (value > f->bound)
            f->bound = value < x->best.cutoff ? value : x->best.cutoff;
        if (value >= x->best.cutoff) {
            close_node(x, value);
            return;
        }
        if (x->control.paused)
            return;
        if (!f->root && value >= x->tree.enough) {
            put_off_node(x);
            return;
        }
        double base = evaluate_bound(x, f, f->u, 1, &count, &base_error);
        if (f->root && round == 0 && base < BIG) {
            /* a primal solution from the selection at the best multipliers */
            int *set = x->scratch.sites, size = f->in_count;
            memcpy(set, f->in_site, (size_t)size * sizeof(int));
            for (int i = 0; i < count; i++)
                set[size++] = f->free_site[x->inner.selected[i]];
            int *copy = x->inner.selected + 3 * p->sites;
            memcpy(copy, set, (size_t)size * sizeof(int));
            swap_descent(x, copy, size, ROOT_SWAPS);
            if (value >= x->best.cutoff) {
                close_node(x, value);
                return;
            }
            evaluate_bound(x, f, f->u, 1, &count, &base_error);
        }
        int fixed = fix_by_reduced_cost(x, f, x->evaluated.served + f->constant, base_error);
        if (fixed < 0) {
            close_node(x, x->best.cutoff);
            return;
        }
        if (bars && round == 0)
            fixed += fix_far_sites(x, f);
        if (fixed == 0 && !(few && round == 0))
            break;
        iterations = bars ? BARRED_STEPS : f->root ? 40 : 12;
    }
    if (f->free_count == 0) {
        /* handled by the enumeration above on the next visit */
        return;
    }
    if (f->root)
        keep_root(x, f);
    if (f->is_new)
        make_sparse(x, f);
    int i = choose_branching_site(x, f, value), site = f->free_site[i];
    node_drop_site(x, f, i, 1);
    f->state[site] = FREE;
    if (x->proof.recording)
        record_event(x, BRANCH, site);
    f->branched_site = site;
    f->parent_bound = value;
    push_node(x, f, site);
    f->branched_side = OUT;
    f->state[site] = OUT;
    f->root = f->is_new = 0;
}

/* Work on the tree on the stack; 1 when it is finished. */
int run_tree(context *x, double work)
{
    double stop = x->effort.work + work;
    while (x->tree.depth > 0 && !x->control.out_of_memory && x->effort.work < stop && !must_pause(x))
        visit_node(x);
    return x->tree.depth == 0;
}

/* A lower bound of the tree on the stack, closed parts included. */
double tree_bound(const context *x)
{
    double bound = x->tree.closed;
    for (int i = 0; i < x->tree.depth; i++)
        if (x->tree.stack[i].bound < bound)
            bound = x->tree.stack[i].bound;
    return bound;
}
