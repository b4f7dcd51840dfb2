/* Bounds beyond the multipliers of clients: closest-assignment multipliers of single sites, and transfers of cost between clients. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

/* What the transfers of cost work with; their mathematics stands before transfer_costs. */

#define MOST_SELECTED 64    /* sites of an answer: bits of a word */
#define LISTED 32           /* sites listed of a client at most */

typedef unsigned long long site_set;

/* The rows and amounts under work, and the cells they work on: of each client in its order, up to its nearest certain site. */
typedef struct {
    owned_memory owned;
    context *x;
    tree_node *f;
    int count;                  /* rows */
    int *giver, *place, *taker;
    int *next_given, *next_taken; /* the row before of the same giver, of the same taker; -1: none */
    double *amount, *move, *best;
    size_t *start;              /* count + 1: cells of the taker in T ... */
    int *cell;                  /* ... by place in its order */
    size_t cells_room;
    int *given, *taken;         /* by client: its last row as the giver, as the taker; -1: none */
    int *length;                /* by client: cells */
    double *cost;               /* clients x sites: after the transfers */
    double *limit;              /* cost at the nearest certain site */
    double *best_u;
    float *share, *window;      /* clients x sites: mean answer; sums since the last rows were made */
    int *listed_at, *listed;    /* sites + 1: clients that the mean answer serves by a site, in the order of clients ... */
    float *listed_share;        /* ... and by how much; clients x LISTED */
    double *served;             /* by client: by the first sites of one order */
    site_set *serves;           /* by client: the selected sites that serve it */
    int *rank_of_selected;      /* clients x MOST_SELECTED */
    double *by_place;           /* sites */
    int *where;                 /* sites: position of a free site, -1 */
    int *where_in_order;        /* clients x sites: the same in each client's order */
} transfer_steps;

/* ---- Closest-assignment multipliers: the part of the bound that sees that a near replica can harm.
 *
 * Row (c, j):  sum of x[c][k] over sites k farther than j  +  y[j]  <=  1   (Wagner and Falkson 1975),
 * multiplier beta[c][j] >= 0.  With u it gives, for one node,
 *
 *   L(u, beta) = constant + sum_c ( min(u_c, w_cf + T_c) - T_c ) + inner minimum of
 *                rho_j = price_j + sum_c ( beta_cj + min(0, w_cj + P_cj - u_c) )
 *
 * over the free sites j nearer to c than its nearest fixed replica f; P_cj sums beta over the free
 * sites nearer than j, T_c over all of them. */

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
    owned_memory *owned = &x->owned;
    x->rows.cost = own(owned, n + 1, sizeof(double));
    x->rows.beta = own(owned, n + 1, sizeof(double));
    x->rows.move = own(owned, n + 1, sizeof(double));
    x->rows.best = own(owned, n + 1, sizeof(double));
    x->rows.position = own(owned, n + 2, sizeof(int));
    x->rows.site = own(owned, n + 2, sizeof(int));
    x->rows.step = own(owned, n + 8, 1);
    x->rows.start = own(owned, (size_t)x->p.clients + 1, sizeof(int));
    return !owned->failed;
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
        update_cells(x, f, &f->cells);
    int *where = x->scratch.sites + sites, total = 0, count;
    double *u = x->scratch.u, *g = x->scratch.gradient, *direction = x->scratch.direction, *limit = x->scratch.cost;
    double *ceiling = limit + padded;
    unsigned char *chosen = (unsigned char *)(x->scratch.sites + sites);
    const double *price = prices_under(p, x->view.leader);
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
    } else if (improved) {
        size_t bytes = sites * padded * sizeof(double);
        if (!f->own_beta)
            f->own_beta = own(&x->owned, bytes + 8, 1);
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
    }
    if (improved && x->proof.on)
        record_beta(x, f);
    return best;
}

/* ---- The rows of the steps on transfers: room for them, rows that a mean answer violates, and rows that served another leader. ---- */

/* ---- memory ---- */

static int make_rows(transfer_steps *s)
{
    owned_memory *owned = &s->owned;
    size_t clients = (size_t)s->x->p.clients, sites = (size_t)s->x->p.sites;
    s->giver = own(owned, TRANSFER_ROWS, sizeof(int));
    s->place = own(owned, TRANSFER_ROWS, sizeof(int));
    s->taker = own(owned, TRANSFER_ROWS, sizeof(int));
    s->next_given = own(owned, TRANSFER_ROWS, sizeof(int));
    s->next_taken = own(owned, TRANSFER_ROWS, sizeof(int));
    s->amount = own(owned, TRANSFER_ROWS, sizeof(double));
    s->move = own(owned, TRANSFER_ROWS, sizeof(double));
    s->best = own(owned, TRANSFER_ROWS, sizeof(double));
    s->start = own(owned, TRANSFER_ROWS + 1, sizeof(size_t));
    s->given = own(owned, clients, sizeof(int));
    s->taken = own(owned, clients, sizeof(int));
    s->length = own(owned, clients, sizeof(int));
    s->cost = own(owned, clients * sites, sizeof(double));
    s->limit = own(owned, clients, sizeof(double));
    s->best_u = own(owned, clients, sizeof(double));
    s->share = own(owned, clients * sites, sizeof(float));
    s->window = own(owned, clients * sites, sizeof(float));
    s->listed_at = own(owned, sites + 1, sizeof(int));
    s->listed = own(owned, clients * LISTED, sizeof(int));
    s->listed_share = own(owned, clients * LISTED, sizeof(float));
    s->served = own(owned, clients, sizeof(double));
    s->serves = own(owned, clients, sizeof(site_set));
    s->rank_of_selected = own(owned, clients * MOST_SELECTED, sizeof(int));
    s->by_place = own(owned, sites, sizeof(double));
    s->where = own(owned, sites, sizeof(int));
    s->where_in_order = own(owned, clients * sites, sizeof(int));
    return !owned->failed;
}

/* Lengths, limits and positions of a node without any beta, and its multipliers. */
static void note_cells(transfer_steps *s)
{
    const problem *p = &s->x->p;
    for (int j = 0; j < p->sites; j++)
        s->where[j] = -1;
    for (int i = 0; i < s->f->free_count; i++)
        s->where[s->f->free_site[i]] = i;
    for (int c = 0; c < p->clients; c++) {
        const int *order = p->by_client + (size_t)c * (size_t)p->sites;
        for (int t = 0; t < p->sites; t++)
            s->where_in_order[(size_t)c * (size_t)p->sites + (size_t)t] = s->where[order[t]];
        s->given[c] = s->taken[c] = -1;
        s->length[c] = s->f->fixed_rank[c] < p->sites ? s->f->fixed_rank[c] : p->sites;
        s->limit[c] = s->f->fixed_cost[c];
        s->best_u[c] = s->f->u[c];
    }
}

/* ---- rows ---- */

static int is_known(const transfer_steps *s, int giver, int place, int taker)
{
    for (int i = s->given[giver]; i >= 0; i = s->next_given[i])
        if (s->place[i] == place && s->taker[i] == taker)
            return 1;
    return 0;
}

/* Link a row with those of its giver and its taker. */
static void link_row(transfer_steps *s, int i)
{
    s->next_given[i] = s->given[s->giver[i]];
    s->given[s->giver[i]] = i;
    s->next_taken[i] = s->taken[s->taker[i]];
    s->taken[s->taker[i]] = i;
}

static void add_row(transfer_steps *s, int giver, int place, int taker)
{
    const problem *p = &s->x->p;
    const int *order = p->by_client + (size_t)giver * (size_t)p->sites;
    size_t at = s->start[s->count], wanted = at + (size_t)place + 1;
    if (wanted > s->cells_room) {
        size_t room = 2 * wanted + 4096;
        int *cell = realloc(s->cell, room * sizeof(int));
        if (!cell)
            return; /* no memory: fewer rows will do */
        s->cell = cell;
        s->cells_room = room;
    }
    for (int k = 0; k <= place; k++) {
        int at_taker = p->rank[(size_t)order[k] * (size_t)p->padded + (size_t)taker];
        if (at_taker < s->length[taker] && s->where[order[k]] >= 0)
            s->cell[at++] = at_taker;
    }
    int i = s->count++;
    s->start[i + 1] = at;
    s->giver[i] = giver;
    s->place[i] = place;
    s->taker[i] = taker;
    link_row(s, i);
}

/* Begin with the transfers of another leader: rows are the same under all leaders, and amounts that served one serve another. */
static void adopt_transfers(transfer_steps *s, const cost_transfers *from)
{
    for (int i = 0; i < from->count && s->count < TRANSFER_ROWS; i++)
        if (from->place[i] < s->length[from->giver[i]]) {
            int before = s->count;
            add_row(s, from->giver[i], from->place[i], from->taker[i]);
            if (s->count > before)
                s->amount[before] = from->amount[i];
        }
    for (int c = 0; c < s->x->p.clients; c++) {
        double u = s->best_u[c] + from->lift[c];
        u = u < 0.0 ? 0.0 : u;
        s->best_u[c] = u < s->limit[c] ? u : s->limit[c];
    }
}

/* Drop the rows whose amounts have come back to 0, so that there is room for others. */
static void drop_idle_rows(transfer_steps *s)
{
    int kept = 0;
    size_t end = 0;
    for (int c = 0; c < s->x->p.clients; c++)
        s->given[c] = s->taken[c] = -1;
    for (int i = 0; i < s->count; i++) {
        size_t from = s->start[i], length = s->start[i + 1] - from;
        if (s->amount[i] <= 0.0 && s->best[i] <= 0.0 && s->move[i] <= 0.0)
            continue;
        memmove(s->cell + end, s->cell + from, length * sizeof(int));
        s->start[kept] = end;
        end += length;
        s->giver[kept] = s->giver[i];
        s->place[kept] = s->place[i];
        s->taker[kept] = s->taker[i];
        s->amount[kept] = s->amount[i];
        s->best[kept] = s->best[i];
        s->move[kept] = s->move[i];
        link_row(s, kept++);
    }
    for (int i = kept; i < s->count; i++)
        s->amount[i] = s->best[i] = s->move[i] = 0.0;
    s->start[kept] = end;
    s->count = kept;
}

/* List for each site the clients that the mean answer serves by it: of each client at most LISTED sites. */
static void list_shares(transfer_steps *s)
{
    size_t clients = (size_t)s->x->p.clients, sites = (size_t)s->x->p.sites;
    int *end = s->listed_at;
    memset(end, 0, (sites + 1) * sizeof(int));
    for (int counts = 1; counts >= 0; counts--) { /* first how many there are, then which */
        for (size_t c = 0; c < clients; c++) {
            const float *share = s->share + c * sites;
            int found = 0;
            for (size_t j = 0; j < sites && found < LISTED; j++) {
                if (!(share[j] > TRANSFER_LISTED))
                    continue;
                found++;
                if (counts)
                    end[j + 1]++;
                else {
                    s->listed[end[j]] = (int)c;
                    s->listed_share[end[j]++] = share[j];
                }
            }
        }
        for (size_t j = 0; j < sites && counts; j++)
            end[j + 1] += end[j];
    }
    memmove(end + 1, end, sites * sizeof(int)); /* each start has become the next one */
    end[0] = 0;
}

/* Make for each client, as the giver, the row that the mean answer violates most; `steps`: since the last time. Returns how many. */
static int make_violated_rows(transfer_steps *s, int steps)
{
    const problem *p = &s->x->p;
    size_t sites = (size_t)p->sites, all = (size_t)p->clients * sites;
    drop_idle_rows(s);
    int before = s->count;
    for (size_t i = 0; i < all; i++) {
        s->share[i] = (float)(1.0 - TRANSFER_NEW) * s->share[i] + (float)(TRANSFER_NEW / steps) * s->window[i];
        s->window[i] = 0.0F;
    }
    list_shares(s);
    for (int giver = 0; giver < p->clients && s->count < TRANSFER_ROWS; giver++) {
        const int *order = p->by_client + (size_t)giver * sites;
        double own = 0.0, most = TRANSFER_VIOLATION;
        int place = -1, taker = -1;
        memset(s->served, 0, (size_t)p->clients * sizeof(double));
        for (int t = 0; t < s->length[giver]; t++) {
            int site = order[t];
            own += (double)s->share[(size_t)giver * sites + (size_t)site];
            for (int i = s->listed_at[site]; i < s->listed_at[site + 1]; i++) {
                int h = s->listed[i];
                double violation = (s->served[h] += (double)s->listed_share[i]) - own;
                if ((violation > most || (violation == most && h < taker)) && h != giver && !is_known(s, giver, t, h)) {
                    most = violation;
                    place = t;
                    taker = h;
                }
            }
        }
        if (taker >= 0)
            add_row(s, giver, place, taker);
    }
    s->x->effort.work += (double)p->clients * p->clients * 10.0;
    return s->count - before;
}

/* ---- Transfers of cost between clients: the part of the bound that sees that all clients choose among the same replicas.
 *
 * Let T be the first sites in the order of client g, and h another client. If T serves h, then T holds a replica. Client g prefers
 * T to all other sites, so T serves g too. With x[c][j] = 1 where j serves c, this is
 *
 *   Row (g, T, h):  sum over j in T of x[h][j]  <=  sum over j in T of x[g][j]
 *
 * A transfer of an amount a >= 0 lowers w[g][j] by a and raises w[h][j] by a, for all j in T. By the row, no configuration costs
 * more after the transfer. So every bound with the costs after transfers is a bound of the problem itself. The bound of the
 * relaxation rises: there, clients may use different fractions of the sites. It pays a where T serves h, and gets a back only
 * where T serves g.
 *
 * Three sites by hand: a, b and c, two replicas. Both clients prefer a to b and b to c. A relayed operation makes a expensive for g:
 * the costs of g are 4, 0, 9 and those of h 0, 4, 9. Every plan costs 4: g uses a where a holds a replica, and h uses b where a
 * holds none. The relaxation serves g from b and h from a, for 0. After a transfer of 4 with T = {a} the costs of g are 0, 0, 9 and
 * those of h 4, 4, 9, and the relaxation gives 4.
 *
 * Rows are made where a mean of the last answers of the relaxation violates them (the mean of the volume algorithm, Barahona and
 * Anbil 2000). The amounts follow by subgradient steps on (u, a). They are whole multiples of a power of two, so that sums of
 * them are exact. The costs of a client that gives stay >= 0. */

#define GRAIN_BITS 28       /* of the largest cost */

void free_transfers(cost_transfers *t)
{
    release(&t->owned);
    memset(t, 0, sizeof *t);
}

/* ---- costs after transfers ---- */

/* Apply transfers to the costs of their leader; the costs that are paid stay in x->view.paid. 0 without memory. */
int transfer_costs(context *x, const cost_transfers *t)
{
    const problem *p = &x->p;
    size_t padded = (size_t)p->padded, cells = (size_t)p->sites * padded;
    if (!x->view.paid && !(x->view.paid = own(&x->owned, cells + 1, sizeof(double))))
        return 0;
    double *costs = x->view.costs, moved = 0.0;
    memcpy(x->view.paid, costs, cells * sizeof(double));
    memset(costs, 0, cells * sizeof(double));
    for (int i = 0; i < t->count; i++) {
        const int *order = p->by_client + (size_t)t->giver[i] * (size_t)p->sites;
        for (int k = 0; k <= t->place[i]; k++) {
            double *row = costs + (size_t)order[k] * padded;
            row[t->giver[i]] -= t->amount[i];
            row[t->taker[i]] += t->amount[i];
        }
        moved += t->amount[i];
        x->effort.work += 4.0 * t->place[i];
    }
    for (size_t i = 0; i < cells; i++)
        costs[i] += x->view.paid[i];
    x->view.moved = moved;
    x->view.ordered_is_current = 0;
    return 1;
}

/* ---- steps ---- */

/* Costs after the transfers, and the reduced costs with them; returns the sum of min(u, limit). */
static double relax(transfer_steps *s, const double *u)
{
    const problem *p = &s->x->p;
    size_t sites = (size_t)p->sites;
    double served = 0.0, *rho = s->x->inner.rho;
    const double *price = prices_under(p, s->x->view.leader);
    for (int i = 0; i < s->f->free_count; i++)
        rho[i] = price ? price[s->f->free_site[i]] : 0.0;
    for (int c = 0; c < p->clients; c++) {
        const int *where = s->where_in_order + (size_t)c * sites;
        double *cost = s->cost + (size_t)c * sites, given = 0.0;
        memcpy(cost, s->x->view.ordered + (size_t)c * sites, (size_t)s->length[c] * sizeof(double));
        for (int i = s->taken[c]; i >= 0; i = s->next_taken[i]) {
            double amount = s->amount[i];
            for (size_t k = s->start[i]; k < s->start[i + 1] && amount > 0.0; k++)
                cost[s->cell[k]] += amount;
        }
        memset(s->by_place, 0, (size_t)s->length[c] * sizeof(double));
        for (int i = s->given[c]; i >= 0; i = s->next_given[i])
            s->by_place[s->place[i]] += s->amount[i];
        for (int t = s->length[c] - 1; t >= 0; t--) {
            given += s->by_place[t];
            cost[t] -= given;
            int at = where[t];
            if (at >= 0 && cost[t] < u[c])
                rho[at] += cost[t] - u[c];
        }
        served += u[c] < s->limit[c] ? u[c] : s->limit[c];
    }
    s->x->effort.work += 2.0 * (double)p->clients * p->sites + 1.5 * (double)s->start[s->count];
    return served;
}

/* The direction of the next step, from what the answer selects: that of u in x->scratch.direction, that of the amounts in
 * s->move. Returns the norm of the subgradient. */
static double turn(transfer_steps *s, const double *u, int count)
{
    context *x = s->x;
    const problem *p = &x->p;
    size_t sites = (size_t)p->sites;
    double norm = 0.0;
    for (int c = 0; c < p->clients; c++) {
        int *rank = s->rank_of_selected + (size_t)c * MOST_SELECTED, cover = 0;
        s->serves[c] = 0;
        for (int i = 0; i < count; i++) {
            int site = s->f->free_site[x->inner.selected[i]];
            rank[i] = p->rank[(size_t)site * (size_t)p->padded + (size_t)c];
            if (rank[i] < s->length[c] && s->cost[(size_t)c * sites + (size_t)rank[i]] < u[c]) {
                s->serves[c] |= 1ULL << i;
                s->window[(size_t)c * sites + (size_t)site] += 1.0F;
                cover++;
            }
        }
        double scale = p->step_scale[c], g = 1.0 - cover;
        g = g > 0.0 && u[c] >= s->limit[c] ? 0.0 : g;
        norm += scale * g * g;
        x->scratch.direction[c] = scale * g + TRANSFER_MOMENTUM * x->scratch.direction[c];
    }
    for (int c = 0; c < p->clients; c++) {
        const int *rank = s->rank_of_selected + (size_t)c * MOST_SELECTED;
        for (int i = s->given[c]; i >= 0; i = s->next_given[i]) {
            site_set taken = s->serves[s->taker[i]], given = s->serves[c];
            int g = 0;
            for (int k = 0; k < count; k++)
                if (rank[k] <= s->place[i])
                    g += (int)(taken >> k & 1) - (int)(given >> k & 1);
            if (g < 0 && s->amount[i] <= 0.0)
                g = 0;
            double scale = p->step_scale[c] < p->step_scale[s->taker[i]] ? p->step_scale[c] : p->step_scale[s->taker[i]];
            norm += scale * (double)(g * g);
            s->move[i] = scale * g + TRANSFER_MOMENTUM * s->move[i];
        }
    }
    x->effort.work += (double)count * (p->clients + s->count);
    return norm;
}

/* Take the steps; returns the best bound. */
static double take_steps(transfer_steps *s, int iterations)
{
    context *x = s->x;
    const problem *p = &x->p;
    double *u = x->scratch.u, *direction = x->scratch.direction, best = -BIG, lambda = TRANSFER_STEP, missing = BIG;
    int stall = 0, count, looked = 0;
    size_t bytes = (size_t)p->clients * sizeof(double);
    memcpy(u, s->best_u, bytes);
    memset(direction, 0, bytes);
    for (int it = 1; it <= iterations; it++) {
        double served = relax(s, u), least = inner_minimum(x, s->f, 0, BIG, &count), value = s->f->constant + served + least;
        x->effort.evaluations++;
        if (least >= BIG || count > MOST_SELECTED)
            return best;
        stall = value > best + TRANSFER_GAIN * (x->best.cutoff - best) ? 0 : stall + 1;
        if (value > best) {
            best = value;
            memcpy(s->best_u, u, bytes);
            memcpy(s->best, s->amount, (size_t)s->count * sizeof(double));
        }
        if (best >= x->best.cutoff || must_pause(x))
            return best;
        if (it % TRANSFER_REVIEW == 0) { /* nodes close more of what is missing than steps that gain so little */
            if (x->best.cutoff - best > (1.0 - TRANSFER_WORTH) * missing)
                return best;
            missing = x->best.cutoff - best;
        }
        double norm = turn(s, u, count), target = x->best.cutoff < BIG ? x->best.cutoff : 2.0 * fabs(value) + 1.0;
        if (norm == 0.0) { /* the best multipliers for these rows */
            int added = make_violated_rows(s, it - looked);
            looked = it;
            if (!added)
                return best;
            continue;
        }
        target += 0.05 * (target - best);
        if (stall >= TRANSFER_PATIENCE) {
            stall = 0;
            lambda *= TRANSFER_SHRINK;
            memcpy(u, s->best_u, bytes);
            memcpy(s->amount, s->best, (size_t)s->count * sizeof(double));
        }
        double step = lambda * (target - value) / norm;
        for (int c = 0; c < p->clients; c++) {
            double moved = u[c] + step * direction[c];
            moved = moved < 0.0 ? 0.0 : moved;
            u[c] = moved < s->limit[c] ? moved : s->limit[c];
        }
        for (int i = 0; i < s->count; i++) {
            double moved = s->amount[i] + step * s->move[i];
            s->amount[i] = moved > 0.0 ? moved : 0.0;
        }
        if (it - looked >= TRANSFER_EVERY) {
            make_violated_rows(s, it - looked);
            looked = it;
        }
    }
    return best;
}

/* ---- the result ---- */

/* Share of what a client gives that leaves its costs >= 0. */
static double share_it_has(transfer_steps *s, int c)
{
    const double *cost = s->x->view.ordered + (size_t)c * (size_t)s->x->p.sites;
    double given = 0.0, share = 1.0;
    memset(s->by_place, 0, (size_t)s->length[c] * sizeof(double));
    for (int i = s->given[c]; i >= 0; i = s->next_given[i])
        s->by_place[s->place[i]] += s->best[i];
    for (int t = s->length[c] - 1; t >= 0; t--) {
        given += s->by_place[t];
        if (given * share > cost[t])
            share = cost[t] / given;
    }
    return share;
}

static int keep_transfers(transfer_steps *s, cost_transfers *kept)
{
    const problem *p = &s->x->p;
    double largest = 0.0;
    int exponent;
    size_t room = (size_t)s->count + 1;
    free_transfers(kept);
    kept->giver = own(&kept->owned, room, sizeof(int));
    kept->place = own(&kept->owned, room, sizeof(int));
    kept->taker = own(&kept->owned, room, sizeof(int));
    kept->amount = own(&kept->owned, room, sizeof(double));
    kept->lift = own(&kept->owned, (size_t)p->clients, sizeof(double));
    if (kept->owned.failed) {
        free_transfers(kept);
        return 0;
    }
    for (int c = 0; c < p->clients; c++)
        for (int t = 0; t < s->length[c]; t++) {
            double cost = s->x->view.ordered[(size_t)c * (size_t)p->sites + (size_t)t];
            largest = cost > largest ? cost : largest;
        }
    frexp(largest, &exponent);
    double grain = ldexp(1.0, exponent - GRAIN_BITS);
    for (int c = 0; c < p->clients; c++) {
        double share = share_it_has(s, c);
        kept->lift[c] = s->best_u[c] - s->f->u[c];
        for (int i = s->given[c]; i >= 0; i = s->next_given[i]) {
            double amount = floor(s->best[i] * share / grain) * grain;
            if (!(amount > 0.0))
                continue;
            kept->giver[kept->count] = c;
            kept->place[kept->count] = s->place[i];
            kept->taker[kept->count] = s->taker[i];
            kept->amount[kept->count++] = amount;
        }
    }
    return 1;
}

/* Find transfers for the leader whose root, dense and without beta, is `f`; its multipliers become those that fit them. When they
 * close little of the gap that its tree, whose bound is `proven`, has left, none is kept, and no other leader looks for any: costs
 * that differ by transfers alone make the branching worse. */
void find_transfers(context *x, tree_node *f, double proven, cost_transfers *kept)
{
    const problem *p = &x->p;
    transfer_steps s = {.x = x, .f = f};
    if (p->clients > TRANSFER_CLIENTS || p->replicas_max - f->in_count > MOST_SELECTED || !order_costs(x))
        return;
    if (!make_rows(&s))
        x->control.out_of_memory = 1;
    else {
        note_cells(&s);
        if (x->open.pattern)
            adopt_transfers(&s, x->open.pattern);
        double bound = take_steps(&s, s.count ? TRANSFER_WARM_STEPS : TRANSFER_STEPS);
        if (bound - proven < x->limits.transfer_pays * (x->best.cutoff - proven))
            x->limits.transfer_nodes = 0;
        else if (keep_transfers(&s, kept)) {
            memcpy(f->u, s.best_u, (size_t)p->clients * sizeof(double));
            x->open.pattern = kept;
        } else
            x->control.out_of_memory = 1;
    }
    free(s.cell);
    release(&s.owned);
}
