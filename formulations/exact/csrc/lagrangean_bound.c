/* Lagrangean bound of one node: evaluation, subgradient steps, fixing by reduced cost. */
#include <math.h>
#include <string.h>

#include "kernel.h"

/* 1 when the limit of the call is reached. Cheap: the clock is read once in WORK_BETWEEN_PAUSES. */
int must_pause(context *x)
{
    if (!x->control.paused && x->control.pause && x->effort.work > x->control.next_pause) {
        x->control.next_pause = x->effort.work + WORK_BETWEEN_PAUSES;
        x->control.paused = x->control.pause(x->control.caller);
    }
    return x->control.paused;
}

/* The most that rounding can add to a bound computed in doubles: every sum has at most clients + sites terms,
 * every cost carries at most `sites` multipliers, and `magnitude` bounds the sum of absolute values. */
double bound_error(const context *x, const tree_node *f, double served, double least, int count)
{
    double magnitude = f->constant + served + fabs(least) + (f->has_detours ? f->detour_scale : 0.0);
    for (int i = 0; i < count; i++)
        magnitude += 2.0 * fabs(x->inner.rho[x->inner.selected[i]]) + f->base[x->inner.selected[i]];
    double terms = x->p.clients + x->p.sites + 24.0, depth = f->beta || f->has_beta ? x->p.sites : 0.0;
    served += x->view.moved; /* a cost that a transfer lowers is as inexact as before */
    return 2.0 * UNIT_ROUNDOFF * (terms * magnitude + (6.0 + depth) * (count + 2.0) * served);
}

/* ---- Heavy and light clients.
 *
 * Where a few clients have nearly all of the demand, the multipliers of the others, the light ones, stay what they were when a
 * leader's work began: what they add to rho is one number by site, `light`, and a pass over the heavy clients gives all the rest.
 * It is a bound of all clients. Where a new replica cuts light multipliers, and where the client prefers a fixed replica to the
 * site, the number is less than what they would add, so it stays valid. The columns of such a node are the costs themselves: see
 * node_make_root. */

/* Copy what a pass over the heavy clients reads; 0 where they are not apart, or without memory. */
int heavy_prepare(context *x)
{
    const problem *p = &x->p;
    heavy_clients *h = &x->heavy;
    size_t width = (size_t)h->padded, sites = (size_t)p->sites;
    if (!h->count || p->scenarios > 1 || p->cases.count || x->owned.failed)
        return 0;
    if (h->light)
        return 1;
    h->rtt = own(&x->owned, sites * width, sizeof(double));
    h->block = own(&x->owned, sites * width, sizeof(double));
    h->rank = own(&x->owned, (sites + 1) * width, sizeof(int));
    h->u = own(&x->owned, 5 * width, sizeof(double));
    h->column = own(&x->owned, sites, sizeof(double *));
    h->known = own(&x->owned, sites, 1);
    h->position = own(&x->owned, sites, sizeof(int));
    h->listed_rho = own(&x->owned, sites, sizeof(double));
    h->in = own(&x->owned, sites, sizeof(int));
    h->light = own(&x->owned, sites, sizeof(double));
    if (x->owned.failed)
        return 0;
    h->most = h->u + width;
    h->scale = h->most + width;
    h->near = h->scale + width;
    h->relay = h->near + width;
    h->fixed_rank = h->rank + sites * width;
    h->leader = -2;
    for (int k = 0; k < h->count; k++) {
        size_t c = (size_t)h->client[k];
        h->scale[k] = p->step_scale[c];
        h->near[k] = p->near_weight[c];
        h->relay[k] = p->relay_weight[c];
        for (size_t s = 0; s < sites; s++) {
            h->rtt[s * width + (size_t)k] = p->rtt[s * (size_t)p->padded + c];
            h->rank[s * width + (size_t)k] = p->rank[s * (size_t)p->padded + c];
        }
    }
    return 1;
}

/* Keep what the light clients add to rho at f->u, for a node whose columns are the costs. */
void set_light(context *x, tree_node *f)
{
    const problem *p = &x->p;
    heavy_clients *h = &x->heavy;
    size_t padded = (size_t)p->padded;
    double *u = x->scratch.u;
    memcpy(u, f->u, padded * sizeof(double));
    for (int k = 0; k < h->count; k++) /* no cost is below 0 */
        u[h->client[k]] = 0.0;
    for (int i = 0; i < f->free_count; i++) {
        int s = f->free_site[i];
        double relay = relay_rtt(p, 0, s, x->view.leader);
        h->light[s] = reduced_cost_from_rtts(p->rtt + (size_t)s * padded, p->near_weight, p->relay_weight, relay, u, p->padded);
    }
    f->light = h->light;
    x->effort.work += 0.3 * (double)f->free_count * p->padded;
}

/* Forget the costs of the heavy clients where they belong to another state than that of a node. */
static void begin_heavy_costs(context *x, const tree_node *f)
{
    heavy_clients *h = &x->heavy;
    size_t bytes = (size_t)f->in_count * sizeof(int);
    if (h->leader == x->view.leader && h->in_count == f->in_count && !memcmp(h->in, f->in_site, bytes))
        return;
    h->leader = x->view.leader;
    h->in_count = f->in_count;
    memcpy(h->in, f->in_site, bytes);
    memset(h->known, 0, (size_t)x->p.sites);
    for (int k = 0; k < h->count; k++)
        h->fixed_rank[k] = f->fixed_rank[h->client[k]];
}

/* The costs of the heavy clients at a site, in the state that they belong to. */
static double *heavy_column(context *x, int site)
{
    heavy_clients *h = &x->heavy;
    size_t width = (size_t)h->padded, at = (size_t)site * width;
    double *out = h->block + at;
    if (h->known[site])
        return out;
    h->known[site] = 1;
    double relay = relay_rtt(&x->p, 0, site, h->leader);
    for (size_t k = 0; k < width; k++)
        out[k] = h->near[k] * h->rtt[at + k] + h->relay[k] * relay;
    mask_column(out, h->rank + at, h->fixed_rank, h->padded);
    x->effort.work += 0.6 * (double)width;
    return out;
}

/* List free sites for the next evaluations: all, or those of least rho. Then rho of the others stays as it is, and what is found is
 * no bound before an evaluation of all. With one certain replica there are no columns of all: a client who prefers it to a site
 * pays there no more than at the site, and u is no more than that. */
static void list_sites(context *x, const tree_node *f, int all)
{
    heavy_clients *h = &x->heavy;
    int n = f->free_count, wanted = (int)(LISTED_SITES * n) + x->p.replicas_max;
    h->listed = all ? n : smallest(x->inner.rho, n, wanted < n ? wanted : n, h->position);
    h->by_column = !all || f->in_count > 1;
    for (int i = 0; i < h->listed; i++) {
        if (all)
            h->position[i] = i;
        if (h->by_column)
            h->column[i] = heavy_column(x, f->free_site[h->position[i]]);
    }
}

/* Take the multipliers of the heavy clients from those of all, and what they go with in the state of a node. */
static void gather_heavy(context *x, const tree_node *f, const double *u)
{
    heavy_clients *h = &x->heavy;
    begin_heavy_costs(x, f);
    for (int k = 0; k < h->count; k++) {
        h->u[k] = u[h->client[k]];
        h->most[k] = f->fixed_cost[h->client[k]];
    }
    list_sites(x, f, 1);
    h->served = served_cost(u, f->fixed_cost, x->p.padded) - served_cost(h->u, h->most, h->padded);
    x->effort.work += 2.0 * x->p.padded + f->free_count;
}

/* Write rho of the listed sites at multipliers of the heavy clients. */
static void find_listed_costs(context *x, const tree_node *f, const double *u)
{
    const heavy_clients *h = &x->heavy;
    const double *prices = prices_under(&x->p, x->view.leader);
    if (h->by_column)
        reduced_costs(h->column, h->listed, u, h->padded, h->listed_rho);
    for (int i = 0; i < h->listed; i++) {
        int s = f->free_site[h->position[i]];
        if (!h->by_column) {
            double relay = relay_rtt(&x->p, 0, s, h->leader);
            h->listed_rho[i] =
                reduced_cost_from_rtts(h->rtt + (size_t)s * (size_t)h->padded, h->near, h->relay, relay, u, h->padded);
        }
        double price = prices ? prices[s] : 0.0;
        x->inner.rho[h->position[i]] = h->listed_rho[i] + f->light[s] + price;
    }
    x->effort.work += 0.3 * h->listed * h->padded;
}

/* Return L(u) for a node; its rounding error is at most *error. While the steps are on the heavy clients, `u` is theirs. */
double evaluate_bound(context *x, tree_node *f, const double *u, int all_radii, int *count, double *error)
{
    const problem *p = &x->p;
    const heavy_clients *h = f->light ? &x->heavy : NULL;
    int padded = h ? h->padded : p->padded;
    if (h && h->node != f) {
        gather_heavy(x, f, u);
        u = h->u;
    }
    if (h)
        find_listed_costs(x, f, u);
    else if (f->sparse)
        sparse_reduced_costs(x, f, u);
    else
        reduced_costs(f->column, f->free_count, u, padded, x->inner.rho);
    if (p->price && !h) {
        const double *price = prices_under(p, x->view.leader);
        for (int i = 0; i < f->free_count; i++)
            x->inner.rho[i] += price[f->free_site[i]];
    }
    int priced = f->beta || f->has_beta;
    if (priced)
        for (int i = 0; i < f->free_count; i++)
            x->inner.rho[i] += f->base[i];
    for (int i = 0; i < f->free_count && f->has_detours; i++)
        x->inner.rho[i] += f->detour[i];
    double served = served_cost(u, h ? h->most : f->fixed_cost, padded) + (h ? h->served : 0.0);
    double offset = priced ? sum_of(f->offset, p->padded) : 0.0;
    x->evaluated.served = served - offset;
    double slack = closing_minimum(x, x->evaluated.served, f->constant);
    double least = inner_minimum(x, f, all_radii, all_radii ? slack : BIG, count);
    x->effort.work += f->sparse || h ? 0.0 : (double)f->free_count * padded * 0.3;
    x->effort.work += padded * (*count + 6.0) + 200.0;
    x->effort.evaluations++;
    *error = 0.0;
    if (least >= BIG)
        return BIG;
    *error = bound_error(x, f, served + offset, least, *count);
    return f->constant + x->evaluated.served + least;
}

/* The bound from which a node needs no more steps. */
static double enough_of(const context *x, const tree_node *f)
{
    return !f->root && x->tree.enough < x->best.cutoff ? x->tree.enough : x->best.cutoff;
}

/* The costs at a free site, by position, of the clients whose multipliers take steps. */
static const double *column_at(context *x, const tree_node *f, int at)
{
    return f->light ? heavy_column(x, f->free_site[at]) : f->column[at];
}

/* Find the costs at the sites of a set, and at those of least rho. */
void find_some_costs(context *x, const tree_node *f, const int *set, int size)
{
    for (int i = 0; i < size; i++)
        costs_at(x, set[i]);
    list_sites(x, f, 0);
    for (int i = 0; i < x->heavy.listed; i++)
        costs_at(x, f->free_site[x->heavy.position[i]]);
}

/* Subgradient steps from f->u; leaves the best multipliers there and returns their bound.
 *
 * The steps are in the metric of the weights: a client moves by s_c times its subgradient, s_c its share of the largest
 * weight, and the length is over the sum of s_c g_c^2. A multiplier is as large as the weight of its client, so with one
 * length for all clients, one heavy client sets it far too long for the others and far too short for itself. After k
 * steps of Polyak's length the bound lacks at most sum(u_c^2 / s_c)^(1/2) max(sum s_c g_c^2)^(1/2) / k^(1/2), about
 * sum(s_c) where |u_c| ~ s_c; without the metric it is (C sum(s_c^2))^(1/2), never less by Cauchy and Schwarz. */
static double take_steps(context *x, tree_node *f, int iterations, double *error)
{
    const problem *p = &x->p;
    const heavy_clients *h = f->light ? &x->heavy : NULL;
    int clients = h ? h->count : p->clients, padded = h ? h->padded : p->padded;
    size_t bytes = (size_t)padded * sizeof(double);
    double *kept = h ? h->u : f->u;
    double enough = enough_of(x, f);
    double best = -BIG, lambda = f->root ? PLAIN_STEP_ROOT : PLAIN_STEP, best_error = 0.0;
    double *u = x->scratch.u, *g = x->scratch.gradient;
    const double *most = h ? h->most : f->sparse ? f->max_multiplier : f->fixed_cost;
    int stall = 0, count, patience = iterations / 20 > PLAIN_PATIENCE ? iterations / 20 : PLAIN_PATIENCE;
    memcpy(u, kept, bytes);
    memset(x->scratch.direction, 0, bytes);
    for (int it = 0; it < iterations; it++) {
        double e, value = evaluate_bound(x, f, u, 0, &count, &e);
        if (value - e > best) {
            if (value - e > best + 1e-4 * fabs(best))
                stall = 0;
            best = value - e;
            best_error = e;
            x->evaluated.best_at = x->effort.evaluations;
            memcpy(kept, u, bytes);
        } else
            stall++;
        if (best >= enough || value >= BIG || it + 1 == iterations || must_pause(x))
            break;
        for (int i = 0; i < f->free_count; i++)
            f->frequency[f->free_site[i]] *= 0.9;
        for (int i = 0; i < count; i++)
            f->frequency[f->free_site[x->inner.selected[i]]] += 0.1;
        for (int c = 0; c < padded; c++)
            g[c] = c < clients ? 1.0 : 0.0;
        if (f->sparse)
            sparse_subtract_covered(x, f, x->inner.selected, count, u, g);
        else
            for (int i = 0; i < count; i++)
                subtract_covered(column_at(x, f, x->inner.selected[i]), u, padded, g);
        double norm = scaled_gradient(u, most, h ? h->scale : p->step_scale, padded, g);
        if (norm == 0.0)
            break;
        double target = x->best.cutoff < BIG ? x->best.cutoff : 2.0 * fabs(value) + 1.0;
        target += 0.05 * (target - best);
        if (stall >= patience) {
            stall = 0;
            lambda *= PLAIN_SHRINK;
            memcpy(u, kept, bytes);
        }
        subgradient_step(u, u, g, x->scratch.direction, PLAIN_MOMENTUM, lambda * (target - value) / norm, most, padded);
    }
    *error = best_error;
    return best;
}

/* Steps from f->u, where light clients are apart on the heavy ones; the bound returned is always one of all clients. */
double improve_bound(context *x, tree_node *f, int iterations, double *error)
{
    heavy_clients *h = &x->heavy;
    if (f->outdated)
        update_cells(x, f, &f->cells);
    if (!f->light)
        return take_steps(x, f, iterations, error);
    gather_heavy(x, f, f->u);
    h->node = f;
    double enough = enough_of(x, f), best = -BIG, e;
    for (int left = iterations, count; ; left -= LISTED_STEPS) {
        double value = evaluate_bound(x, f, h->u, 0, &count, &e);
        if (value - e > best) {
            best = value - e;
            *error = e;
            x->evaluated.best_at = x->effort.evaluations;
            for (int k = 0; k < h->count; k++)
                f->u[h->client[k]] = h->u[k];
        }
        if (left <= 0 || best >= enough || value >= BIG || must_pause(x))
            break;
        list_sites(x, f, 0);
        take_steps(x, f, left < LISTED_STEPS ? left : LISTED_STEPS, &e);
        list_sites(x, f, 1);
    }
    h->node = NULL;
    return best;
}

/* Write the least inner minimum with each free site, and without it, over all radii: the largest of the relaxations of
 * each. A relaxation whose basis is `base` swaps the site in for the dearest site of the basis, or the cheapest site
 * that is left out for the site. */
static void find_choice_bounds(context *x, const tree_node *f, int lo, int hi, double *with, double *without)
{
    int n = f->free_count;
    double *plus = x->scratch.key + 2 * x->p.sites, *minus = x->scratch.key + 3 * x->p.sites, unchanged = BIG;
    const double *rho = x->inner.rho;
    for (int i = 0; i < n; i++)
        with[i] = without[i] = BIG;
    for (int t = 0; t < x->inner.radius_count; t++) {
        const radius_minimum *a = &x->inner.radii[t];
        int used[3], count = 0, apart;
        double largest = -BIG;
        for (int k = 0; k < 3; k++)
            if (a->base[k] > -BIG) {
                used[count++] = k;
                largest = a->base[k] > largest ? a->base[k] : largest;
            }
        apart = count != 1 || a->member || a->decided || a->reach < BIG;
        unchanged = largest < unchanged ? largest : unchanged;
        for (int i = 0; i < n && apart; i++)
            plus[i] = minus[i] = -BIG;
        for (int j = 0; j < count; j++) {
            int k = used[j];
            double top = a->size[k] < hi && a->top[k] < 0.0 ? 0.0 : a->top[k];
            double next = a->size[k] > lo && a->next[k] > 0.0 ? 0.0 : a->next[k];
            if (!apart)
                lower_choice_bounds(a->base[k], top, next, rho, n, with, without);
            else
                raise_choice_bounds(a->base[k], top, next, rho, n, plus, minus);
        }
        for (int i = 0; i < n && a->member; i++)
            if (a->member[f->free_site[i]] & FORBIDDEN) /* too far for the waits of this case */
                plus[i] = BIG;
        for (int i = 0; i < n && a->decided; i++)
            if (a->decided[f->free_site[i]] != FREE) { /* decided: no exchange moves it */
                int in = a->decided[f->free_site[i]] == IN;
                plus[i] = in ? largest : BIG;
                minus[i] = in ? BIG : largest;
            }
        for (int i = 0; i < n && a->reach < BIG; i++)
            if (is_barred(x, f->free_site[i], a->reach))
                plus[i] = BIG;
        if (apart) {
            lower_to(plus, n, with);
            lower_to(minus, n, without);
        }
    }
    for (int i = 0; i < n; i++)
        if (x->inner.blocked[i]) { /* a blocked site is not among those left out: without it nothing changes */
            with[i] = BIG;
            without[i] = unchanged;
        }
}

/* Fix sites whose inclusion (or exclusion) alone already reaches the cutoff.
 * Returns the number of sites fixed, or -1 when that closes the node. */
int fix_by_reduced_cost(context *x, tree_node *f, double base, double error)
{
    const problem *p = &x->p;
    int out = 0, in = 0, n = f->free_count, lo, hi;
    sizes_left(p, f, &lo, &hi);
    int *dropped = x->inner.selected + p->sites, *taken = x->inner.selected + 2 * p->sites;
    if (x->inner.radius_count == 0)
        return -1;
    double *least_with = x->scratch.key, *least_without = x->scratch.key + p->sites;
    find_choice_bounds(x, f, lo, hi, least_with, least_without);
    for (int i = 0; i < n; i++) {
        double with = x->inner.blocked[i] ? BIG : least_with[i] + base - 4.0 * error;
        double without = least_without[i] + base - 4.0 * error;
        x->evaluated.forced[IN][f->free_site[i]] = with;
        x->evaluated.forced[OUT][f->free_site[i]] = without;
        if (with >= x->best.cutoff) {
            dropped[out++] = i;
            if (with < x->tree.closed)
                x->tree.closed = with;
        }
        /* Where both hold, the site goes out, and the bound without it closes the node: with several relaxations the bound
         * of the node itself can be smaller than both. */
        if (without >= x->best.cutoff && with < x->best.cutoff) {
            taken[in++] = f->free_site[i];
            if (without < x->tree.closed)
                x->tree.closed = without;
        }
    }
    if (out + in == 0)
        return 0;
    /* Radii beyond the cutoff were left out of both minima. Where a gap is left, they can cost less than the incumbent. */
    double beyond = x->best.cutoff * (1.0 + 0.5 * BEYOND_CUTOFF);
    if (x->best.cutoff < BIG && beyond < x->tree.closed)
        x->tree.closed = beyond;
    if (x->proof.on) {
        record_event(x, FIX, 0.0);
        record_vector(x, f->u);
        record_number(x, out);
        for (int i = 0; i < out; i++)
            record_number(x, f->free_site[dropped[i]]);
        record_number(x, in);
        for (int i = 0; i < in; i++)
            record_number(x, taken[i]);
    }
    for (int i = out - 1; i >= 0; i--)
        node_drop_site(x, f, dropped[i], out <= 6);
    if (out > 6)
        node_rebuild_columns(x, f);
    for (int i = 0; i < in; i++)
        node_fix_in(x, f, taken[i]);
    if (f->outdated)
        update_cells(x, f, &f->cells);
    return out + in;
}
