/* Lagrangean bound of one frame: evaluation, subgradient steps, fixing by reduced cost. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

/* Steps of the plain bound; found by measuring, none of them matters for correctness. */
#define PLAIN_MOMENTUM 0.7
#define PLAIN_PATIENCE 6
#define PLAIN_SHRINK 0.6
#define PLAIN_STEP_ROOT 1.0
#define PLAIN_STEP 0.9
#define WORK_BETWEEN_PAUSES 1e7

/* Has the caller's limit been reached? Asked between evaluations, answered now and then. */
int must_pause(context *x)
{
    if (!x->paused && x->pause && x->work > x->next_pause) {
        x->next_pause = x->work + WORK_BETWEEN_PAUSES;
        x->paused = x->pause(x);
    }
    return x->paused;
}

/* costs[j][c] = A_c d(c, j) + B_c d(j, leader). */
void costs_for_leader(context *x, int leader)
{
    const problem *p = &x->p;
    for (int j = 0; j < p->sites; j++) {
        double relay = leader < 0 || j == leader ? 0.0 : p->site_rtt[(size_t)j * p->sites + leader];
        const double *rtt = p->rtt + (size_t)j * p->padded;
        double *out = x->costs + (size_t)j * p->padded;
        for (int c = 0; c < p->padded; c++)
            out[c] = p->near_weight[c] * rtt[c] + p->relay_weight[c] * relay;
    }
    x->current = leader;
    if (leader < 0)
        return;
    /* sites by distance from the leader, shell sort (ties: site order) */
    const double *d = p->site_rtt + (size_t)leader * p->sites;
    int *order = x->near_order;
    for (int i = 0; i < p->sites; i++)
        order[i] = i;
    for (int gap = p->sites / 2; gap > 0; gap /= 2)
        for (int i = gap; i < p->sites; i++) {
            int s = order[i], at = i;
            double key = s == leader ? 0.0 : d[s];
            while (at >= gap) {
                int o = order[at - gap];
                double other = o == leader ? 0.0 : d[o];
                if (other < key || (other == key && o < s))
                    break;
                order[at] = o;
                at -= gap;
            }
            order[at] = s;
        }
}

/* Make room for `columns` columns; a frame keeps its memory when it leaves the stack. */
int frame_alloc(context *x, frame *f, int columns)
{
    size_t sites = (size_t)x->p.sites, padded = (size_t)x->p.padded;
    size_t wanted = (columns > 0 ? (size_t)columns : 1) * padded + 1;
    if (!f->state) {
        f->state = malloc(sites);
        f->free_site = malloc(sites * sizeof(int));
        f->in_site = malloc(sites * sizeof(int));
        f->column = malloc(sites * sizeof(double *));
        f->fixed_cost = malloc(padded * sizeof(double) + 8);
        f->fixed_rank = malloc(padded * sizeof(int) + 8);
        f->u = malloc(padded * sizeof(double) + 8);
        f->offset = malloc(padded * sizeof(double) + 8);
        f->frequency = malloc(sites * sizeof(double));
        f->base = malloc(sites * sizeof(double));
    }
    if (f->capacity < wanted) {
        free(f->block);
        f->block = malloc(wanted * sizeof(double) + 8);
        f->capacity = f->block ? wanted : 0;
    }
    f->beta = NULL;
    return f->state && f->free_site && f->in_site && f->column && f->block && f->fixed_cost &&
           f->fixed_rank && f->u && f->offset && f->frequency && f->base;
}

void frame_release(frame *f)
{
    free(f->state);
    free(f->free_site);
    free(f->in_site);
    free(f->column);
    free(f->block);
    free(f->fixed_cost);
    free(f->fixed_rank);
    free(f->u);
    free(f->offset);
    free(f->frequency);
    free(f->base);
    free(f->own_beta);
    memset(f, 0, sizeof(*f));
}

/* value[c] -= beta[c] where the client ranks the dropped site before the one in `rank`. */
VECTORISED static void without(double *value, const int *rank, const int *dropped, const double *beta,
                               int padded)
{
    for (int c = 0; c < padded; c++)
        value[c] -= rank[c] > dropped[c] ? beta[c] : 0.0;
}

/* Take the site at `position` off the free list; its own multipliers beta leave every sum. */
void frame_drop(context *x, frame *f, int position, int adjust)
{
    int last = --f->free_count, site = f->free_site[position], padded = x->p.padded;
    f->state[site] = OUT;
    f->free_site[position] = f->free_site[last];
    f->column[position] = f->column[last];
    f->base[position] = f->base[last];
    if (!f->beta)
        return;
    const double *beta = f->beta + (size_t)site * padded;
    const int *rank = x->p.rank + (size_t)site * padded;
    /* the bound does not fall when u follows */
    without(f->u, f->fixed_rank, rank, beta, padded);
    for (int c = 0; c < padded; c++)
        f->u[c] = f->u[c] > 0.0 ? f->u[c] : 0.0;
    if (!adjust)
        return;
    for (int i = 0; i < f->free_count; i++)
        without(f->column[i], x->p.rank + (size_t)f->free_site[i] * padded, rank, beta, padded);
    without(f->fixed_cost, f->fixed_rank, rank, beta, padded);
    without(f->offset, f->fixed_rank, rank, beta, padded);
}

/* Clients whose nearest fixed replica was farther than `site` now stop at it. */
VECTORISED static void stop_at(const int *rank, const double *cost, int padded, int *fixed_rank,
                               double *fixed_cost, double *offset)
{
    for (int c = 0; c < padded; c++) {
        fixed_cost[c] = rank[c] < fixed_rank[c] ? cost[c] : fixed_cost[c];
        offset[c] = rank[c] < fixed_rank[c] ? 0.0 : offset[c];
        fixed_rank[c] = rank[c] < fixed_rank[c] ? rank[c] : fixed_rank[c];
    }
}

VECTORISED static void mask(double *column, const int *rank, const int *fixed_rank, int padded)
{
    for (int c = 0; c < padded; c++)
        column[c] = rank[c] > fixed_rank[c] ? BIG : column[c];
}

/* Sum of beta over the clients that may still use the site; adds it to their offsets where `fresh`. */
VECTORISED static double remaining(const double *beta, const int *rank, const int *fixed_rank,
                                   const int *site_rank, int padded, double *fixed_cost, double *offset)
{
    double sum[PAD] = {0};
    for (int c = 0; c < padded; c += PAD)
        for (int k = 0; k < PAD; k++) {
            double b = rank[c + k] < fixed_rank[c + k] ? beta[c + k] : 0.0;
            double moved = fixed_rank[c + k] == site_rank[c + k] ? b : 0.0;
            sum[k] += b;
            offset[c + k] += moved;
            fixed_cost[c + k] += moved;
        }
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

/* A replica at `site` is certain: every client looks no farther than it. */
void frame_fix_in(context *x, frame *f, int site)
{
    const problem *p = &x->p;
    const int *rank = p->rank + (size_t)site * p->padded;
    const double *cost = x->costs + (size_t)site * p->padded;
    for (int i = 0; i < f->free_count; i++)
        if (f->free_site[i] == site) {
            frame_drop(x, f, i, 0);
            break;
        }
    f->state[site] = IN;
    f->in_site[f->in_count++] = site;
    if (p->price)
        f->constant += p->price[(size_t)(x->current < 0 ? 0 : x->current) * p->sites + site];
    stop_at(rank, cost, p->padded, f->fixed_rank, f->fixed_cost, f->offset);
    for (int i = 0; i < f->free_count; i++) {
        const int *other = p->rank + (size_t)f->free_site[i] * p->padded;
        mask(f->column[i], other, f->fixed_rank, p->padded);
        if (f->beta)
            f->base[i] = remaining(f->beta + (size_t)f->free_site[i] * p->padded, other, f->fixed_rank,
                                   rank, p->padded, f->fixed_cost, f->offset);
    }
    for (int c = 0; c < p->padded; c++)
        if (f->u[c] > f->fixed_cost[c])
            f->u[c] = f->fixed_cost[c];
}

/* The frame of everything under one leader. */
void frame_root(context *x, frame *f, int leader)
{
    const problem *p = &x->p;
    size_t padded = (size_t)p->padded;
    f->free_count = f->in_count = 0;
    f->constant = leader < 0 ? 0.0 : p->direct[leader];
    f->bound = 0.0;
    f->beta = NULL;
    f->fresh = f->root = 1;
    for (int c = 0; c < p->padded; c++) {
        f->fixed_cost[c] = c < p->clients ? BIG : 0.0;
        f->fixed_rank[c] = INT_MAX;
        f->offset[c] = 0.0;
    }
    for (int j = 0; j < p->sites; j++) {
        int fixed = j == leader || p->must_hold[j];
        f->state[j] = OUT;
        f->frequency[j] = 0.5;
        f->base[j] = 0.0;
        if (fixed || !p->may_hold[j])
            continue;
        f->state[j] = FREE;
        f->column[f->free_count] = f->block + (size_t)f->free_count * padded;
        memcpy(f->column[f->free_count], x->costs + (size_t)j * padded, padded * sizeof(double));
        f->free_site[f->free_count++] = j;
    }
    for (int j = 0; j < p->sites; j++)
        if (j == leader || p->must_hold[j])
            frame_fix_in(x, f, j);
}

/* `child` becomes `parent` with one more replica. */
void frame_copy(context *x, frame *child, const frame *parent, int site)
{
    size_t sites = (size_t)x->p.sites, padded = (size_t)x->p.padded;
    child->free_count = parent->free_count;
    child->in_count = parent->in_count;
    memcpy(child->state, parent->state, sites);
    memcpy(child->free_site, parent->free_site, sites * sizeof(int));
    memcpy(child->in_site, parent->in_site, sites * sizeof(int));
    for (int i = 0; i < parent->free_count; i++) {
        child->column[i] = child->block + (size_t)i * padded;
        memcpy(child->column[i], parent->column[i], padded * sizeof(double));
    }
    memcpy(child->fixed_cost, parent->fixed_cost, padded * sizeof(double));
    memcpy(child->fixed_rank, parent->fixed_rank, padded * sizeof(int));
    memcpy(child->u, parent->u, padded * sizeof(double));
    memcpy(child->frequency, parent->frequency, sites * sizeof(double));
    memcpy(child->base, parent->base, (size_t)parent->free_count * sizeof(double));
    child->beta = parent->beta;
    memcpy(child->offset, parent->offset, padded * sizeof(double));
    child->bound = parent->bound;
    child->constant = parent->constant;
    child->fresh = 1;
    child->root = 0;
    frame_fix_in(x, child, site);
}

/* rho[i] = sum over clients of min(0, column_i - u), eight partial sums at a time. */
VECTORISED static void gains(double *const *column, int n, const double *u, int padded, double *rho)
{
    for (int i = 0; i < n; i++) {
        const double *a = column[i];
        double sum[PAD] = {0};
        for (int c = 0; c < padded; c += PAD)
            for (int k = 0; k < PAD; k++) {
                double t = a[c + k] - u[c + k];
                sum[k] += t < 0.0 ? t : 0.0;
            }
        rho[i] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
    }
}

static double total(const double *value, int padded)
{
    double sum[PAD] = {0};
    for (int c = 0; c < padded; c += PAD)
        for (int k = 0; k < PAD; k++)
            sum[k] += value[c + k];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

VECTORISED static double paid(const double *u, const double *fixed, int padded)
{
    double sum[PAD] = {0};
    for (int c = 0; c < padded; c += PAD)
        for (int k = 0; k < PAD; k++)
            sum[k] += u[c + k] < fixed[c + k] ? u[c + k] : fixed[c + k];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

/* cover[c] -= 1 where the selected column serves c. */
VECTORISED static void uncover(const double *column, const double *u, int padded, double *cover)
{
    for (int c = 0; c < padded; c++)
        cover[c] -= column[c] < u[c] ? 1.0 : 0.0;
}

VECTORISED static double step_norm(const double *u, const double *fixed, int padded, double *g)
{
    double sum[PAD] = {0};
    for (int c = 0; c < padded; c += PAD)
        for (int k = 0; k < PAD; k++) {
            double v = g[c + k] > 0.0 && u[c + k] >= fixed[c + k] ? 0.0 : g[c + k];
            g[c + k] = v;
            sum[k] += v * v;
        }
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

VECTORISED static void move(const double *from, double *to, const double *g, double *direction,
                            double keep, double step, const double *fixed, int padded)
{
    for (int c = 0; c < padded; c++) {
        double d = g[c] + keep * direction[c], v = from[c] + step * d;
        direction[c] = d;
        v = v < 0.0 ? 0.0 : v;
        to[c] = v < fixed[c] ? v : fixed[c];
    }
}

/* What rounding can add to a bound computed in doubles: every sum has at most clients + sites terms,
 * every cost carries at most `sites` multipliers, and `magnitude` bounds the sum of absolute values. */
double bound_error(const context *x, const frame *f, double served, double least, int count)
{
    double magnitude = f->constant + served + fabs(least);
    for (int i = 0; i < count; i++)
        magnitude += 2.0 * fabs(x->rho[x->selected[i]]) + f->base[x->selected[i]];
    double terms = x->p.clients + x->p.sites + 24.0, depth = f->beta ? x->p.sites : 0.0;
    return 2.0 * UNIT_ROUNDOFF * (terms * magnitude + (6.0 + depth) * (count + 2.0) * served);
}

/* L(u) for this frame; the rounding error it may carry is at most *error. */
double evaluate_bound(context *x, frame *f, const double *u, int all_radii, int *count, double *error)
{
    const problem *p = &x->p;
    gains(f->column, f->free_count, u, p->padded, x->rho);
    if (p->price) {
        const double *price = p->price + (size_t)(x->current < 0 ? 0 : x->current) * p->sites;
        for (int i = 0; i < f->free_count; i++)
            x->rho[i] += price[f->free_site[i]];
    }
    if (f->beta)
        for (int i = 0; i < f->free_count; i++)
            x->rho[i] += f->base[i];
    double served = paid(u, f->fixed_cost, p->padded), slack = BIG;
    double offset = f->beta ? total(f->offset, p->padded) : 0.0;
    x->served = served - offset;
    if (all_radii && x->cutoff < BIG)
        slack = x->cutoff * (1.0 + 1e-9) - x->served - f->constant;
    double least = inner_minimum(x, f, all_radii, slack, count);
    x->work += (double)f->free_count * p->padded * 0.3 + p->padded * (*count + 6.0) + 200.0;
    x->iterations++;
    *error = 0.0;
    if (least >= BIG)
        return BIG;
    *error = bound_error(x, f, served + offset, least, *count);
    return f->constant + x->served + least;
}

/* Subgradient steps from f->u; leaves the best multipliers there and returns their bound. */
double improve_bound(context *x, frame *f, int iterations, double *error)
{
    const problem *p = &x->p;
    size_t bytes = (size_t)p->padded * sizeof(double);
    double best = -BIG, lambda = f->root ? PLAIN_STEP_ROOT : PLAIN_STEP, best_error = 0.0;
    double *u = x->trial, *g = x->best_u;
    int stall = 0, count;
    memcpy(u, f->u, bytes);
    memset(x->direction, 0, bytes);
    for (int it = 0; it < iterations; it++) {
        double e, value = evaluate_bound(x, f, u, 0, &count, &e);
        if (value - e > best) {
            if (value - e > best + 1e-4 * fabs(best))
                stall = 0;
            best = value - e;
            best_error = e;
            memcpy(f->u, u, bytes);
        } else
            stall++;
        if (best >= x->cutoff || value >= BIG || it + 1 == iterations || must_pause(x))
            break;
        for (int i = 0; i < f->free_count; i++)
            f->frequency[f->free_site[i]] *= 0.9;
        for (int i = 0; i < count; i++)
            f->frequency[f->free_site[x->selected[i]]] += 0.1;
        for (int c = 0; c < p->padded; c++)
            g[c] = c < p->clients ? 1.0 : 0.0;
        for (int i = 0; i < count; i++)
            uncover(f->column[x->selected[i]], u, p->padded, g);
        double norm = step_norm(u, f->fixed_cost, p->padded, g);
        if (norm == 0.0)
            break;
        double target = x->cutoff < BIG ? x->cutoff : 2.0 * fabs(value) + 1.0;
        target += 0.05 * (target - best);
        if (stall >= PLAIN_PATIENCE) {
            stall = 0;
            lambda *= PLAIN_SHRINK;
            memcpy(u, f->u, bytes);
        }
        move(u, u, g, x->direction, PLAIN_MOMENTUM, lambda * (target - value) / norm, f->fixed_cost, p->padded);
    }
    *error = best_error;
    return best;
}

/* Fix sites whose inclusion (or exclusion) alone already reaches the cutoff.
 * Returns the number of sites fixed, or -1 when the frame is closed by it. */
int fix_by_reduced_cost(context *x, frame *f, double base, double error)
{
    const problem *p = &x->p;
    int out = 0, in = 0, n = f->free_count;
    int lo = (p->replicas_min > p->voters ? p->replicas_min : p->voters) - f->in_count;
    int hi = p->replicas_max - f->in_count;
    if (hi > n)
        hi = n;
    int *dropped = x->selected + p->sites, *taken = x->selected + 2 * p->sites;
    if (x->radius_count == 0)
        return -1;
    for (int i = 0; i < n; i++) {
        double with = BIG, without = BIG, rho = x->rho[i];
        for (int t = 0; t < x->radius_count; t++) {
            const radius_answer *a = &x->radii[t];
            double plus = -BIG, minus = -BIG;
            for (int k = 0; k < 3; k++) {
                if (a->base[k] <= -BIG)
                    continue;
                double top = a->size[k] < hi && a->top[k] < 0.0 ? 0.0 : a->top[k];
                double next = a->size[k] > lo && a->next[k] > 0.0 ? 0.0 : a->next[k];
                double up = rho - top, down = next - rho;
                double v = a->base[k] + (up > 0.0 ? up : 0.0);
                if (v > plus)
                    plus = v;
                v = a->base[k] + (down > 0.0 ? down : 0.0);
                if (v > minus)
                    minus = v;
            }
            if (plus < with)
                with = plus;
            if (minus < without)
                without = minus;
        }
        with += base - 4.0 * error;
        without += base - 4.0 * error;
        if (with >= x->cutoff) {
            dropped[out++] = i;
            if (with < x->closed)
                x->closed = with;
        }
        if (without >= x->cutoff) {
            taken[in++] = f->free_site[i];
            if (without < x->closed)
                x->closed = without;
            if (with >= x->cutoff)
                return -1;
        }
    }
    if (out + in == 0)
        return 0;
    if (x->recording) {
        record_event(x, 1.0, 0.0);
        record_vector(x, f->u);
        record_number(x, out);
        for (int i = 0; i < out; i++)
            record_number(x, f->free_site[dropped[i]]);
        record_number(x, in);
        for (int i = 0; i < in; i++)
            record_number(x, taken[i]);
    }
    for (int i = out - 1; i >= 0; i--)
        frame_drop(x, f, dropped[i], out <= 6);
    if (out > 6)
        frame_rebuild(x, f);
    for (int i = 0; i < in; i++)
        frame_fix_in(x, f, taken[i]);
    return out + in;
}
