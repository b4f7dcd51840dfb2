/* Closest-assignment multipliers: the part of the bound that sees that a near replica can harm.
 *
 * Row (c, j):  sum of x[c][k] over sites k farther than j  +  y[j]  <=  1   (Wagner and Falkson 1975),
 * multiplier beta[c][j] >= 0.  With u it gives, for one node,
 *
 *   L(u, beta) = constant + sum_c ( min(u_c, w_cf + T_c) - T_c ) + inner minimum of
 *                rho_j = price_j + sum_c ( beta_cj + min(0, w_cj + P_cj - u_c) )
 *
 * over the free sites j nearer to c than its nearest fixed replica f; P_cj sums beta over the free
 * sites nearer than j, T_c over all of them.
 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

/* Compute columns, base prices and offsets of a node from its multipliers beta, after these changed. */
void node_rebuild_columns(context *x, tree_node *f)
{
    const problem *p = &x->p;
    size_t padded = (size_t)p->padded, sites = (size_t)p->sites;
    if (!f->beta)
        return;
    int *where = x->scratch.sites;
    for (int i = 0; i < f->free_count; i++) {
        where[f->free_site[i]] = i;
        f->base[i] = 0.0;
    }
    for (int c = 0; c < p->clients; c++) {
        const int *order = x->p.by_client + (size_t)c * sites;
        double sum = 0.0;
        for (int t = 0; t < p->sites; t++) {
            int j = order[t];
            if (f->state[j] == IN) {
                f->fixed_cost[c] = x->view.costs[(size_t)j * padded + c] + sum;
                break;
            }
            if (f->state[j] != FREE)
                continue;
            int i = where[j];
            double beta = f->beta[(size_t)j * padded + c];
            f->column[i][c] = x->view.costs[(size_t)j * padded + c] + sum;
            f->base[i] += beta;
            sum += beta;
        }
        f->offset[c] = sum;
        if (f->u[c] > f->fixed_cost[c])
            f->u[c] = f->fixed_cost[c];
    }
}

static int reserve_rows(context *x)
{
    size_t n = (size_t)x->p.clients * (size_t)x->p.sites;
    if (x->rows.cost)
        return 1;
    x->rows.cost = malloc(n * sizeof(double) + 8);
    x->rows.beta = malloc(n * sizeof(double) + 8);
    x->rows.move = malloc(n * sizeof(double) + 8);
    x->rows.best = malloc(n * sizeof(double) + 8);
    x->rows.position = malloc(n * sizeof(int) + 8);
    x->rows.site = malloc(n * sizeof(int) + 8);
    x->rows.step = malloc(n + 8);
    x->rows.start = malloc(((size_t)x->p.clients + 1) * sizeof(int));
    return x->rows.cost && x->rows.beta && x->rows.move && x->rows.best && x->rows.position && x->rows.site &&
           x->rows.step && x->rows.start;
}

/* Take subgradient steps on (u, beta) for a node; keep the best pair there and return its bound. */
double improve_closest_assignment(context *x, tree_node *f, int iterations, double *error)
{
    const problem *p = &x->p;
    size_t sites = (size_t)p->sites, padded = (size_t)p->padded;
    if (!reserve_rows(x)) {
        x->control.out_of_memory = 1;
        return -BIG;
    }
    if (f->outdated)
        update_cells(x, f);
    int *where = x->scratch.sites + sites, total = 0, count;
    double *u = x->scratch.u, *g = x->scratch.gradient, *direction = x->scratch.direction, *limit = x->scratch.cost;
    double *ceiling = limit + padded;
    unsigned char *chosen = (unsigned char *)(x->scratch.sites + sites);
    const double *price = p->price ? p->price + (size_t)(x->view.leader < 0 ? 0 : x->view.leader) * sites : NULL;
    for (int i = 0; i < f->free_count; i++)
        where[f->free_site[i]] = i;
    for (int c = 0; c < p->clients; c++) {
        const int *order = x->p.by_client + (size_t)c * sites;
        x->rows.start[c] = total;
        /* Few cells can matter: those of sites that the steps select, and those cheap enough to be
         * the client's choice. The other cells are left out, with beta 0, and u stays below them all. */
        double last = 0.0, plain = f->sparse ? f->plain_cost[c] : f->fixed_cost[c] - f->offset[c];
        double reach = f->u[c] > plain ? f->u[c] : plain;
        size_t cell = f->sparse ? f->cells.start[c] : 0, end = f->sparse ? f->cells.start[c + 1] : 0;
        ceiling[c] = BIG;
        for (int t = 0; t < p->sites; t++) {
            int j = order[t];
            if (f->state[j] == IN) {
                last = x->view.costs[(size_t)j * padded + c];
                break;
            }
            last = BIG;
            if (f->state[j] != FREE)
                continue;
            double cost = f->sparse ? x->view.ordered[(size_t)c * sites + t] : x->view.costs[(size_t)j * padded + c];
            double beta = f->beta ? f->beta[(size_t)j * padded + c] : 0.0;
            while (cell < end && f->cells.rank[cell] < t)
                cell++;
            if (cell < end && f->cells.rank[cell] == t)
                beta = f->cells.beta[cell];
            if (cost >= reach && beta == 0.0 && f->frequency[j] < TIGHT_SELDOM) {
                ceiling[c] = cost < ceiling[c] ? cost : ceiling[c];
                continue;
            }
            x->rows.cost[total] = cost;
            x->rows.beta[total] = beta;
            x->rows.move[total] = 0.0;
            x->rows.position[total] = where[j];
            x->rows.site[total++] = j;
        }
        limit[c] = last;
        direction[c] = 0.0;
        u[c] = f->u[c];
    }
    x->rows.start[p->clients] = total;
    memset(chosen, 0, (size_t)f->free_count + 1);
    double best = -BIG, lambda = TIGHT_STEP;
    int stall = 0, improved = 0;
    for (int it = 0; it < iterations; it++) {
        double served = 0.0, offset = 0.0;
        for (int i = 0; i < f->free_count; i++)
            x->inner.rho[i] = price ? price[f->free_site[i]] : 0.0;
        for (int c = 0; c < p->clients; c++) {
            double sum = 0.0, uc = u[c];
            for (int k = x->rows.start[c]; k < x->rows.start[c + 1]; k++) {
                double b = x->rows.beta[k], t = x->rows.cost[k] + sum - uc;
                x->inner.rho[x->rows.position[k]] += b + (t < 0.0 ? t : 0.0);
                sum += b;
            }
            served += uc < limit[c] + sum ? uc : limit[c] + sum;
            offset += sum;
        }
        closing_minimum(x, served - offset, f->constant);
        double least = inner_minimum(x, f, 0, BIG, &count);
        x->effort.work += 3.0 * total + 300.0;
        x->effort.evaluations++;
        if (least >= BIG) {
            *error = 0.0;
            return BIG;
        }
        double value = f->constant + served - offset + least, e = bound_error(x, f, served + offset, least, count);
        if (value - e > best) {
            if (value - e > best + 1e-4 * fabs(best))
                stall = 0;
            best = value - e;
            *error = e;
            improved = 1;
            memcpy(f->u, u, (size_t)p->clients * sizeof(double));
            memcpy(x->rows.best, x->rows.beta, (size_t)total * sizeof(double));
        } else
            stall++;
        if (best >= x->best.cutoff || it + 1 == iterations || must_pause(x))
            break;
        for (int i = 0; i < f->free_count; i++)
            f->frequency[f->free_site[i]] *= 0.9;
        for (int i = 0; i < count; i++) {
            f->frequency[f->free_site[x->inner.selected[i]]] += 0.1;
            chosen[x->inner.selected[i]] = 1;
        }
        double norm = 0.0;
        for (int c = 0; c < p->clients; c++) {
            int first = x->rows.start[c], last = x->rows.start[c + 1], cover = 0;
            double sum = 0.0, uc = u[c];
            for (int k = first; k < last; k++) {
                int on = chosen[x->rows.position[k]] && x->rows.cost[k] + sum < uc;
                x->rows.step[k] = (signed char)on;
                cover += on;
                sum += x->rows.beta[k];
            }
            int after = cover == 0 && uc >= limit[c] + sum;
            double scale = p->step_scale[c]; /* as in improve_bound: of u and of the beta of the client */
            g[c] = 1.0 - cover - after;
            norm += scale * g[c] * g[c];
            for (int k = last - 1; k >= first; k--) {
                int on = x->rows.step[k], step = after + chosen[x->rows.position[k]] - 1;
                after += on;
                if (step < 0 && x->rows.beta[k] <= 0.0)
                    step = 0;
                x->rows.step[k] = (signed char)step;
                norm += scale * (double)(step * step);
            }
        }
        for (int i = 0; i < count; i++)
            chosen[x->inner.selected[i]] = 0;
        if (norm == 0.0)
            break;
        double target = x->best.cutoff < BIG ? x->best.cutoff : 2.0 * fabs(value) + 1.0;
        target += 0.05 * (target - best);
        if (stall >= TIGHT_PATIENCE) {
            stall = 0;
            lambda *= TIGHT_SHRINK;
            memcpy(u, f->u, (size_t)p->clients * sizeof(double));
            memcpy(x->rows.beta, x->rows.best, (size_t)total * sizeof(double));
        }
        double step = lambda * (target - value) / norm, keep = TIGHT_MOMENTUM;
        for (int c = 0; c < p->clients; c++) {
            double sum = 0.0, scale = p->step_scale[c];
            for (int k = x->rows.start[c]; k < x->rows.start[c + 1]; k++) {
                double d = scale * x->rows.step[k] + keep * x->rows.move[k], b = x->rows.beta[k] + step * d;
                x->rows.move[k] = d;
                b = b > 0.0 ? b : 0.0;
                x->rows.beta[k] = b;
                sum += b;
            }
            double d = scale * g[c] + keep * direction[c], v = u[c] + step * d;
            direction[c] = d;
            v = v < 0.0 ? 0.0 : v < ceiling[c] ? v : ceiling[c];
            u[c] = v < limit[c] + sum ? v : limit[c] + sum;
        }
    }
    if (improved && f->sparse) {
        sparse_set_beta(x, f, x->rows.start, x->rows.site, x->rows.best);
        if (x->proof.recording)
            record_sparse_beta(x, f);
    } else if (improved) {
        size_t bytes = sites * padded * sizeof(double);
        if (!f->own_beta)
            f->own_beta = malloc(bytes + 8);
        if (!f->own_beta) {
            x->control.out_of_memory = 1;
            return -BIG;
        }
        memset(f->own_beta, 0, bytes);
        f->beta = f->own_beta;
        for (int c = 0; c < p->clients; c++)
            for (int k = x->rows.start[c]; k < x->rows.start[c + 1]; k++)
                f->own_beta[(size_t)x->rows.site[k] * padded + (size_t)c] = x->rows.best[k];
        node_rebuild_columns(x, f);
        if (x->proof.recording)
            record_beta(x, f->own_beta);
    }
    return best;
}
