/* Bounds of leaders without a tree: from memory, by one evaluation, and by steps at their roots. */
#include <string.h>

#include "kernel.h"
static void store_root(context *x, double served);

/* ---- Bounds of leaders for another |R| by the multipliers of the last one.
 *
 * At given multipliers the reduced costs rho of a leader do not depend on the number of replicas, only the
 * inner problem does. So they are kept whenever a leader is bounded, and after set_replica_range the bound of the new
 * size costs a selection among the sites, with no pass over the clients. */

/* The row of a leader in arrays by leader. */
size_t memory_row(const context *x, int leader)
{
    return leader < 0 ? (size_t)x->p.sites : (size_t)leader;
}

void memory_prepare(context *x)
{
    size_t rows = (size_t)x->p.sites + 1, S = (size_t)x->p.sites;
    x->memory.rho = own(&x->owned, rows * S, sizeof(double));
    x->memory.near_order = own(&x->owned, rows * S, sizeof(int));
    x->memory.served = own(&x->owned, rows, sizeof(double));
    x->memory.stored = own(&x->owned, rows, 1);
    x->memory.ordered = own(&x->owned, rows, 1);
}

/* Keep x->inner.rho, which must be that of the root `f` at f->u; `served` is the sum of min(u, fixed_cost) there. */
static void store_reduced_costs(context *x, const tree_node *f, double served)
{
    size_t S = (size_t)x->p.sites, row = memory_row(x, x->view.leader);
    double *rho = x->memory.rho + row * S;
    for (int i = 0; i < f->free_count; i++)
        rho[f->free_site[i]] = x->inner.rho[i];
    store_root(x, served);
}

/* Keep `served` of the leader under work, which does not depend on a site. */
static void store_root(context *x, double served)
{
    size_t row = memory_row(x, x->view.leader);
    x->memory.served[row] = served;
    x->memory.stored[row] = 1;
}

/* Make the root of a leader as far as the inner problem needs it: no costs, nothing about clients. */
static void root_without_costs(context *x, tree_node *f, int leader)
{
    const problem *p = &x->p;
    const double *price = prices_under(p, leader);
    f->free_count = f->in_count = 0;
    f->constant = leader < 0 ? 0.0 : p->direct[leader];
    f->beta = NULL;
    f->sparse = f->outdated = f->has_beta = f->has_detours = 0;
    for (int s = 0; s < p->sites; s++) {
        if (s == leader || p->must_hold[s]) {
            f->state[s] = IN;
            f->in_site[f->in_count++] = s;
            f->constant += price ? price[s] : 0.0;
        } else if (p->may_hold[s]) {
            f->state[s] = FREE;
            f->base[f->free_count] = 0.0;
            f->free_site[f->free_count++] = s;
        } else
            f->state[s] = OUT;
    }
}

/* Bound a leader for the present |R| by the multipliers that it was last bounded with; -BIG when there are none. `*count` sites
 * are then selected, by their positions in the root. */
double bound_from_memory(context *x, int leader, int *count)
{
    const problem *p = &x->p;
    tree_node *f = &x->tree.stack[0];
    size_t S = (size_t)p->sites, row = memory_row(x, leader);
    const double *rho = x->memory.rho + row * S;
    *count = 0;
    if (!x->memory.stored[row])
        return -BIG;
    x->tree.depth = 0;
    if (!node_alloc(x, f, 0)) {
        x->control.out_of_memory = 1;
        return -BIG;
    }
    select_leader(x, leader);
    root_without_costs(x, f, leader);
    for (int i = 0; i < f->free_count; i++)
        x->inner.rho[i] = rho[f->free_site[i]];
    double served = x->memory.served[row];
    closing_minimum(x, served, f->constant);
    double least = inner_minimum(x, f, 0, BIG, count);
    x->effort.work += 8.0 * p->sites + 200.0;
    if (least >= BIG)
        return BIG;
    double error = bound_error(x, f, served, least, *count);
    return f->constant + served + least - error;
}

/* Swaps from the incumbent under one leader. */
static void descend_under_leader(context *x, int leader, int swaps)
{
    int *set = x->scratch.sites + x->p.sites, count;
    costs_for_leader(x, leader);
    count = start_set(x, set);
    if (count)
        swap_descent(x, set, count, swaps);
}

/* Bound leaders for the present |R| by the multipliers that each was last bounded with, and improve the
 * incumbent by descents of at most `swaps` swaps under its own leader and under those of the least bounds.
 * Returns how many are bounded; bounds of those that were never bounded stay as they are. */
int bounds_from_memory(context *x, const int *leader, int count, int swaps, double *bounds)
{
    int done = 0, selected;
    x->tree.closed = BIG;
    for (int i = 0; i < count && !x->control.out_of_memory; i++)
        if (x->memory.stored[memory_row(x, leader[i])]) {
            bounds[i] = bound_from_memory(x, leader[i], &selected);
            done++;
        }
    int first = x->best.leader, tried[DESCENTS], tries = 0;
    if (swaps > 0 && x->best.score < BIG)
        descend_under_leader(x, first, swaps);
    while (swaps > 0 && tries < DESCENTS && !must_pause(x)) {
        int least = -1;
        for (int i = 0; i < count; i++) {
            int fresh = leader[i] != first && x->memory.stored[memory_row(x, leader[i])] && bounds[i] < x->best.cutoff;
            for (int k = 0; k < tries && fresh; k++)
                fresh = tried[k] != i;
            if (fresh && (least < 0 || bounds[i] < bounds[least]))
                least = i;
        }
        if (least < 0)
            break;
        tried[tries++] = least;
        descend_under_leader(x, leader[least], swaps);
    }
    return done;
}

/* ---- Evaluate the bound once for each of many leaders, without their cost matrices. ---- */

/* Put the root of a leader (not -1) in memory, all but its reduced costs, and its multipliers `u` (clients), cut
 * to what they are at most, in `padded` too. With `light`, rho is to be that of the light clients alone. */
static void store_quick_root(context *x, int leader, double *u, double *padded, int light)
{
    const problem *p = &x->p;
    size_t S = (size_t)p->sites, row = (size_t)leader;
    costs_of_fixed_sites(x, leader);
    open_root(x, u, 1, NULL);
    if (x->control.out_of_memory)
        return;
    tree_node *f = &x->tree.stack[0];
    memcpy(padded, f->u, (size_t)p->padded * sizeof(double));
    memcpy(u, f->u, (size_t)p->clients * sizeof(double));
    store_root(x, served_cost(f->u, f->fixed_cost, p->padded));
    for (int s = 0; s < p->sites; s++)
        x->memory.rho[row * S + (size_t)s] = p->price && !light ? p->price[row * S + (size_t)s] : 0.0;
    for (int k = 0; k < x->heavy.count && light; k++) /* no cost is below 0 */
        padded[x->heavy.client[k]] = 0.0;
    x->memory.stored[row] = !light;
    x->effort.work += (double)f->free_count * p->padded * 0.3 + p->padded * 6.0 + 200.0;
    x->effort.evaluations++;
    x->tree.depth = 0;
}

/* The reduced cost of a site of the clients from `first` on, where the RTT to the leader differs by client: run by run of
 * clients of one scenario. What of a run fills no padded block is added up one by one. */
static double reduced_cost_by_scenario(const problem *p, int leader, int site, const double *u, int first, int cells)
{
    const double *rtt = p->rtt + (size_t)site * (size_t)p->padded, *near = p->near_weight, *weight = p->relay_weight;
    double sum = 0.0;
    int end = first + cells < p->clients ? first + cells : p->clients;
    for (int c = first; c < end;) {
        int stop = end_of_run(p, c, end);
        double relay = relay_rtt(p, c, site, leader);
        while (c < stop) {
            int blocks = c % PAD == 0 ? (stop - c) / PAD * PAD : 0;
            if (blocks) {
                sum += reduced_cost_from_rtts(rtt + c, near + c, weight + c, relay, u + c, blocks);
                c += blocks;
                continue;
            }
            double cost = near[c] * rtt[c] + weight[c] * relay - u[c];
            sum += cost < 0.0 ? cost : 0.0;
            c++;
        }
    }
    return sum;
}

/* Bound up to LEADERS_PER_PASS leaders (not -1) by their multipliers `u` (clients each), which are cut to what they take
 * at most.  The RTTs are read once for all of them: they do not fit into any cache, and the work on
 * them for one leader is short. `bounds` NULL: only what the light clients add to rho is put in memory. */
static void quick_bound_block(context *x, const int *leader, int count, double *u, double *bounds)
{
    const problem *p = &x->p;
    size_t S = (size_t)p->sites, width = (size_t)p->padded;
    int selected;
    if (!x->scratch.block_u && !(x->scratch.block_u = own(&x->owned, LEADERS_PER_PASS * width + 1, sizeof(double)))) {
        x->control.out_of_memory = 1;
        return;
    }
    for (int i = 0; i < count && !x->control.out_of_memory; i++)
        store_quick_root(x, leader[i], u + (size_t)i * (size_t)p->clients, x->scratch.block_u + (size_t)i * width, !bounds);
    for (size_t first = 0; first < width && !x->control.out_of_memory; first += BLOCK_CLIENTS) {
        int cells = (int)(width - first < BLOCK_CLIENTS ? width - first : BLOCK_CLIENTS);
        for (size_t s = 0; s < S; s++)
            for (int i = 0; i < count && p->may_hold[s]; i++)
                x->memory.rho[(size_t)leader[i] * S + s] +=
                    p->scenarios > 1
                        ? reduced_cost_by_scenario(p, leader[i], (int)s, x->scratch.block_u + (size_t)i * width, (int)first,
                                                   cells)
                        : reduced_cost_from_rtts(p->rtt + s * width + first, p->near_weight + first,
                                                 p->relay_weight + first, p->site_rtt[s * S + (size_t)leader[i]],
                                                 x->scratch.block_u + (size_t)i * width + first, cells);
    }
    for (int i = 0; i < count && bounds; i++)
        bounds[i] = x->control.out_of_memory ? 0.0 : bound_from_memory(x, leader[i], &selected);
}

/* Return the bound of one leader alone. */
static double quick_bound(context *x, int leader, double *u)
{
    double bound = 0.0;
    quick_bound_block(x, &leader, 1, u, &bound);
    return bound;
}

/* Guess multipliers `u` of a leader from good ones of another, `from`: a multiplier is about what its client
 * costs, and when the leader changes so does the relay from the nearest replica, taken to be one of the
 * incumbent's. */
static void adapt_multipliers(context *x, const double *from, int other, int leader, double *u)
{
    const problem *p = &x->p;
    for (int c = 0; c < p->clients; c++) {
        size_t near = (size_t)x->best.replicas[0];
        for (int i = 1; i < x->best.count; i++) {
            size_t site = (size_t)x->best.replicas[i];
            if (p->rank[site * (size_t)p->padded + (size_t)c] < p->rank[near * (size_t)p->padded + (size_t)c])
                near = site;
        }
        double later = relay_rtt(p, c, (int)near, leader) - relay_rtt(p, c, (int)near, other);
        double changed = from[c] + p->relay_weight[c] * later;
        u[c] = changed > 0.0 ? changed : 0.0;
    }
    if (x->proof.on) /* multipliers of a proof have few digits */
        round_multipliers(u, p->clients);
}

/* Bound leaders in turn, one evaluation each, until `work` is done or the caller's limit is reached, but always at the first;
 * returns how many. */
int quick_bounds(context *x, const int *leader, int count, double *u, double work, double *bounds)
{
    int done = 0;
    double enough = x->effort.work + work, each = 0.3 * x->p.sites * x->p.padded + 200.0;
    while (done < count && !x->control.out_of_memory && (done == 0 || (x->effort.work < enough && !must_pause(x)))) {
        double room = (enough - x->effort.work) / each;
        int block = room < 1.0 ? 1 : room < LEADERS_PER_PASS ? (int)room : LEADERS_PER_PASS;
        if (block > count - done)
            block = count - done;
        quick_bound_block(x, leader + done, block, u + (size_t)done * (size_t)x->p.clients, bounds + done);
        done += block;
    }
    return done;
}

/* ---- Bounds of leaders at their roots, many in one call, and the step from one |R| to another. ---- */

/* Descend to a good set for a leader, then bound the leader without branching.  `u` (clients) is read
 * when `warm`, and replaced by the best multipliers found; swaps = 0: no descent, 1: only adapt the
 * incumbent. With `light`, rho of the light clients at `u` is in memory. */
static double bound_root(context *x, int leader, double *u, int warm, int iterations, int swaps, int light)
{
    double bound = 0.0, error;
    int shared = 1;
    for (int s = 0; s < x->p.sites; s++)
        shared &= leader < 0 || s == leader || !x->p.must_hold[s];
    if (light)
        costs_of_fixed_sites(x, leader);
    else
        costs_for_leader(x, leader);
    open_root(x, warm ? u : NULL, shared || light, NULL);
    if (x->control.out_of_memory)
        return bound;
    tree_node *f = &x->tree.stack[0];
    if (light)
        f->light = x->memory.rho + memory_row(x, leader) * (size_t)x->p.sites;
    int *set = x->scratch.sites + x->p.sites, count = 0;
    if (swaps > 1 || (swaps > 0 && !warm)) { /* without swaps the set is for the multipliers alone */
        count = start_set(x, set);
        if (count && swaps > 1)
            swap_descent(x, set, count, swaps);
    }
    if (!warm && count)
        start_multipliers(x, f, set, count);
    bound = -BIG;
    if (!light && f->shared && iterations >= HEAVY_STEPS && heavy_prepare(x)) {
        set_light(x, f);
        bound = improve_bound(x, f, iterations, &error);
        iterations = 1 + iterations / 4; /* on all clients: other leaders may share these multipliers */
        if (bound < x->best.cutoff)
            f->light = NULL;
    }
    if (bound < x->best.cutoff)
        bound = improve_bound(x, f, iterations, &error);
    if (bound >= x->best.cutoff && x->proof.on) {
        bound = record_close(x, f, bound);
        x->evaluated.best_at = -1;
    }
    if (x->evaluated.best_at != x->effort.evaluations) /* rho does not belong to f->u */
        evaluate_bound(x, f, f->u, 0, &count, &error);
    else
        count = -1;
    store_reduced_costs(x, f, x->evaluated.served);
    if (x->p.cases.count && swaps > 0 && bound < x->best.cutoff && count >= 0) { /* descents from elsewhere end early */
        int size = selected_set(x, f, count, set);
        swap_descent(x, set, size, ROOT_SWAPS);
    }
    memcpy(u, f->u, (size_t)x->p.clients * sizeof(double));
    x->tree.depth = 0;
    return bound;
}

/* Bound a leader by multipliers adapted from those of another one, `from`. 1 when they close it: then they are
 * in `u`, with the bound in *bound; 0 with them in `u` when they are better than the present ones. */
static int closed_by_adapted(context *x, int leader, const double *from, int other, double *u, unsigned char *warm,
                          double *bound)
{
    int selected;
    double before = *warm ? bound_from_memory(x, leader, &selected) : -BIG;
    adapt_multipliers(x, from, other, leader, x->scratch.u);
    *bound = quick_bound(x, leader, x->scratch.u);
    if (*bound < x->best.cutoff && *bound <= before)
        return 0;
    memcpy(u, x->scratch.u, (size_t)x->p.clients * sizeof(double));
    *warm = 1;
    if (*bound < x->best.cutoff)
        return 0;
    if (x->proof.on) {
        record_event(x, CLOSE, 0.0);
        record_vector(x, u);
    }
    return 1;
}

/* Bound leaders in turn, until `work` is done or the caller's limit is reached, but always the first one;
 * returns how many.  The first `full` of them, and all while there is no incumbent, get a descent of `swaps`;
 * the other leaders are first bounded by multipliers adapted from the best of these.
 * bounds[i] and ends[i], the length of the record after leader i, are filled in. */
int bound_roots(context *x, const int *leader, int count, double *u, const unsigned char *warm,
                 int iterations, int swaps, int full, double work, double *bounds, long long *ends)
{
    int done = 0, best = -1, lit = 0; /* lit: the leaders before it have rho of the light clients in memory */
    size_t clients = (size_t)x->p.clients;
    double enough = x->effort.work + work;
    while (done < count && !x->control.out_of_memory &&
           (done == 0 || done < lit || (x->effort.work < enough && !must_pause(x)))) {
        int thorough = done < full || x->best.score >= BIG;
        double *own = u + (size_t)done * clients;
        unsigned char start = warm[done];
        const double *from = best < 0 ? own : u + (size_t)best * clients;
        int other = best < 0 ? leader[done] : leader[best], warmed = start || best >= 0;
        if (done >= lit && !thorough && warmed && count > 1 && x->best.count > 0 && heavy_prepare(x)) {
            lit = done + (count - done < LEADERS_PER_PASS ? count - done : LEADERS_PER_PASS);
            for (int i = done; i < lit; i++)
                if (!warm[i])
                    adapt_multipliers(x, from, other, leader[i], u + (size_t)i * clients);
            quick_bound_block(x, leader + done, lit - done, own, NULL);
        }
        if (done < lit)
            bounds[done] = bound_root(x, leader[done], own, 1, iterations, 0, 1);
        else if (thorough || best < 0 || x->best.count == 0 ||
                   !closed_by_adapted(x, leader[done], from, other, own, &start, &bounds[done]))
            bounds[done] = bound_root(x, leader[done], own, start, iterations, thorough ? swaps : 1, 0);
        if (best < 0 || bounds[done] < bounds[best])
            best = done;
        ends[done] = (long long)x->proof.length;
        done++;
    }
    return done;
}

/* Add to `set` the site that costs least under the current leader, or take away the one whose loss
 * costs least; 0 when no such step is feasible.  The problem asks for the size after the step. */
static int change_size_by_one(context *x, int *set, int *count, int add)
{
    double least = BIG, radius;
    int best = -1, size = *count;
    if (add) {
        for (int s = 0; s < x->p.sites; s++) {
            int excluded = !x->p.may_hold[s];
            for (int i = 0; i < size && !excluded; i++)
                excluded = set[i] == s;
            if (excluded)
                continue;
            set[size] = s;
            double score = score_of(x, set, size + 1, &radius);
            if (score < least) {
                least = score;
                best = s;
            }
        }
        if (best < 0)
            return 0;
        set[size] = best;
        *count = size + 1;
        return 1;
    }
    for (int i = 0; i < size; i++) {
        int out = set[i], last = set[size - 1];
        if (out == x->view.leader || x->p.must_hold[out])
            continue;
        set[i] = last;
        double score = score_of(x, set, size - 1, &radius);
        set[i] = out;
        if (score < least) {
            least = score;
            best = i;
        }
    }
    if (best < 0)
        return 0;
    set[best] = set[size - 1];
    *count = size - 1;
    return 1;
}

/* Set another range of numbers of replicas.  The incumbent grows or shrinks to it, site by site; the work
 * counted, the record and the open tree are forgotten. There is none when the limit of the call is reached first. */
void set_replica_range(context *x, int least, int most)
{
    problem *p = &x->p;
    int *set = x->scratch.sites + p->sites, count = x->best.score < BIG ? x->best.count : 0;
    int leader = x->best.leader;
    double radius, score;
    memcpy(set, x->best.replicas, (size_t)count * sizeof(int));
    x->tree.depth = 0;
    x->tree.closed = BIG;
    forget_incumbent(x);
    x->effort.work = x->control.next_pause = 0.0;
    x->tree.nodes = x->effort.evaluations = x->tree.leaves = 0;
    x->proof.length = 0;
    if (count)
        costs_for_leader(x, leader);
    while (count && (count < least || count > most)) {
        int add = count < least;
        p->replicas_min = p->replicas_max = count + (add ? 1 : -1);
        if (!change_size_by_one(x, set, &count, add) || must_pause(x))
            count = 0;
    }
    p->replicas_min = least;
    p->replicas_max = most;
    if (count && (score = score_of(x, set, count, &radius)) < BIG)
        offer_incumbent(x, score, set, count);
}
