/* Lagrangean bound of one node: evaluation, subgradient steps, fixing by reduced cost. */
#include <math.h>
#include <string.h>

#include "kernel.h"

/* 1 when the limit of the call is reached. Cheap: the clock is read once in WORK_BETWEEN_PAUSES. */
int must_pause(context *x)
{
    if (!x->control.paused && x->control.pause && x->effort.work > x->control.next_pause) {
        x->control.next_pause = x->effort.work + WORK_BETWEEN_PAUSES;
        x->control.paused = x->control.pause(x);
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

/* Return L(u) for a node; its rounding error is at most *error. While the steps are on the heavy clients, `u` is theirs. */
double evaluate_bound(context *x, tree_node *f, const double *u, int all_radii, int *count, double *error)
{
    const problem *p = &x->p;
    const heavy_clients *h = x->heavy.node == f ? &x->heavy : NULL;
    int padded = h ? h->padded : p->padded;
    if (f->sparse)
        sparse_reduced_costs(x, f, u);
    else
        reduced_costs(h ? h->column : f->column, f->free_count, u, padded, x->inner.rho);
    for (int i = 0; i < f->free_count && h; i++)
        x->inner.rho[i] += h->rest[i];
    if (p->price) {
        const double *price = p->price + (size_t)(x->view.leader < 0 ? 0 : x->view.leader) * p->sites;
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
    x->effort.work += f->sparse ? 0.0 : (double)f->free_count * padded * 0.3;
    x->effort.work += padded * (*count + 6.0) + 200.0;
    x->effort.evaluations++;
    *error = 0.0;
    if (least >= BIG)
        return BIG;
    *error = bound_error(x, f, served + offset, least, *count);
    return f->constant + x->evaluated.served + least;
}

/* Let the steps at a dense node be on the heavy clients alone: they decide nearly all, and their costs are a small part of the
 * columns. 0: that does not pay. */
static int begin_heavy(context *x, const tree_node *f, int iterations)
{
    const problem *p = &x->p;
    heavy_clients *h = &x->heavy;
    size_t width = (size_t)h->padded, sites = (size_t)p->sites;
    if (!h->count || h->rests || f->sparse || iterations < HEAVY_STEPS || x->owned.failed)
        return 0;
    if (!h->block) {
        h->column = own(&x->owned, sites, sizeof(double *));
        h->rest = own(&x->owned, sites, sizeof(double));
        h->u = own(&x->owned, 3 * width, sizeof(double));
        h->block = own(&x->owned, sites * width, sizeof(double));
        if (x->owned.failed)
            return 0;
        h->most = h->u + width;
        h->scale = h->most + width;
    }
    for (int k = 0; k < h->count; k++) {
        h->u[k] = f->u[h->client[k]];
        h->most[k] = f->fixed_cost[h->client[k]];
        h->scale[k] = p->step_scale[h->client[k]];
    }
    for (int i = 0; i < f->free_count; i++) {
        h->column[i] = h->block + (size_t)i * width;
        for (int k = 0; k < h->count; k++)
            h->column[i][k] = f->column[i][h->client[k]];
    }
    reduced_costs(f->column, f->free_count, f->u, p->padded, h->rest);
    reduced_costs(h->column, f->free_count, h->u, h->padded, x->inner.rho);
    for (int i = 0; i < f->free_count; i++)
        h->rest[i] -= x->inner.rho[i];
    h->served = served_cost(f->u, f->fixed_cost, p->padded) - served_cost(h->u, h->most, h->padded);
    x->effort.work += (double)f->free_count * (0.3 * p->padded + h->padded);
    h->node = f;
    return 1;
}

static void end_heavy(context *x, tree_node *f)
{
    for (int k = 0; k < x->heavy.count; k++)
        f->u[x->heavy.client[k]] = x->heavy.u[k];
    x->heavy.node = NULL;
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
    const heavy_clients *h = x->heavy.node == f ? &x->heavy : NULL;
    int clients = h ? h->count : p->clients, padded = h ? h->padded : p->padded;
    size_t bytes = (size_t)padded * sizeof(double);
    double *kept = h ? h->u : f->u;
    double enough = !f->root && x->tree.enough < x->best.cutoff ? x->tree.enough : x->best.cutoff;
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
                subtract_covered((h ? h->column : f->column)[x->inner.selected[i]], u, padded, g);
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

/* Steps from f->u, on large questions most of them on the heavy clients; the bound returned is always one of all clients. */
double improve_bound(context *x, tree_node *f, int iterations, double *error)
{
    if (f->outdated)
        update_cells(x, f);
    if (begin_heavy(x, f, iterations)) {
        take_steps(x, f, iterations, error);
        end_heavy(x, f);
        iterations = 1 + iterations / 10;
    }
    return take_steps(x, f, iterations, error);
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
    int out = 0, in = 0, n = f->free_count;
    int lo = (p->replicas_min > p->voters ? p->replicas_min : p->voters) - f->in_count;
    int hi = p->replicas_max - f->in_count;
    if (hi > n)
        hi = n;
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
    if (x->proof.recording) {
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
        update_cells(x, f);
    return out + in;
}
