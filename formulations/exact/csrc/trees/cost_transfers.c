/* Transfers of cost between clients: the part of the bound that sees that all clients choose among the same replicas.
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
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

#define MOST_SELECTED 64    /* sites of an answer: bits of a word */
#define GRAIN_BITS 28       /* of the largest cost */

typedef unsigned long long site_set;

/* The rows and amounts under work, and the cells they work on: of each client in its order, up to its nearest certain site. */
typedef struct {
    context *x;
    tree_node *f;
    int count;                  /* rows */
    int *giver, *place, *taker, *next; /* next: of the same giver, -1: none */
    double *amount, *move, *best;
    size_t *start;              /* count + 1: cells of the taker in T ... */
    int *cell;                  /* ... by place in its order */
    size_t cells_room;
    int *first;                 /* by client: its last row, -1: none */
    int *length;                /* by client: cells */
    double *cost;               /* clients x sites: after the transfers */
    double *limit;              /* cost at the nearest certain site */
    double *best_u;
    float *share, *window;      /* clients x sites: mean answer; sums since the last rows were made */
    int *rank_of;               /* sites: places in the order of one client */
    site_set *serves;           /* by client: the selected sites that serve it */
    int *rank_of_selected;      /* clients x MOST_SELECTED */
    double *by_place;           /* sites */
    int *where;                 /* sites: position of a free site, -1 */
} transfer_steps;

void free_transfers(cost_transfers *t)
{
    free(t->giver);
    free(t->place);
    free(t->taker);
    free(t->amount);
    memset(t, 0, sizeof *t);
}

/* ---- costs after transfers ---- */

/* Apply transfers to the costs of their leader; the costs that are paid stay in x->view.paid. 0 without memory. */
int transfer_costs(context *x, const cost_transfers *t)
{
    const problem *p = &x->p;
    size_t padded = (size_t)p->padded, cells = (size_t)p->sites * padded;
    if (!x->view.paid && !(x->view.paid = malloc(cells * sizeof(double) + 8)))
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

/* ---- memory ---- */

static int make_rows(transfer_steps *s)
{
    size_t clients = (size_t)s->x->p.clients, sites = (size_t)s->x->p.sites;
    s->giver = malloc(TRANSFER_ROWS * sizeof(int));
    s->place = malloc(TRANSFER_ROWS * sizeof(int));
    s->taker = malloc(TRANSFER_ROWS * sizeof(int));
    s->next = malloc(TRANSFER_ROWS * sizeof(int));
    s->amount = calloc(TRANSFER_ROWS, sizeof(double));
    s->move = calloc(TRANSFER_ROWS, sizeof(double));
    s->best = calloc(TRANSFER_ROWS, sizeof(double));
    s->start = calloc(TRANSFER_ROWS + 1, sizeof(size_t));
    s->first = malloc(clients * sizeof(int));
    s->length = malloc(clients * sizeof(int));
    s->cost = malloc(clients * sites * sizeof(double));
    s->limit = malloc(clients * sizeof(double));
    s->best_u = malloc(clients * sizeof(double));
    s->share = calloc(clients * sites, sizeof(float));
    s->window = calloc(clients * sites, sizeof(float));
    s->rank_of = malloc(sites * sizeof(int));
    s->serves = malloc(clients * sizeof(site_set));
    s->rank_of_selected = malloc(clients * MOST_SELECTED * sizeof(int));
    s->by_place = malloc(sites * sizeof(double));
    s->where = malloc(sites * sizeof(int));
    return s->giver && s->place && s->taker && s->next && s->amount && s->move && s->best && s->start && s->first && s->length &&
           s->cost && s->limit && s->best_u && s->share && s->window && s->rank_of && s->serves && s->rank_of_selected && s->by_place && s->where;
}

static void free_rows(transfer_steps *s)
{
    void *all[] = {s->giver, s->place, s->taker,  s->next,   s->amount, s->move,   s->best,   s->start,    s->cell,
                   s->first, s->length, s->cost, s->limit, s->best_u, s->share, s->window, s->rank_of, s->serves, s->rank_of_selected,
                   s->by_place, s->where};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Lengths, limits and positions of a node without any beta. */
static void note_cells(transfer_steps *s)
{
    const problem *p = &s->x->p;
    for (int j = 0; j < p->sites; j++)
        s->where[j] = -1;
    for (int i = 0; i < s->f->free_count; i++)
        s->where[s->f->free_site[i]] = i;
    for (int c = 0; c < p->clients; c++) {
        s->first[c] = -1;
        s->length[c] = s->f->fixed_rank[c] < p->sites ? s->f->fixed_rank[c] : p->sites;
        s->limit[c] = s->f->fixed_cost[c];
        s->best_u[c] = s->f->u[c];
    }
}

/* ---- rows ---- */

static int is_known(const transfer_steps *s, int giver, int place, int taker)
{
    for (int i = s->first[giver]; i >= 0; i = s->next[i])
        if (s->place[i] == place && s->taker[i] == taker)
            return 1;
    return 0;
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
    s->next[i] = s->first[giver];
    s->first[giver] = i;
}

/* Drop the rows whose amounts have come back to 0, so that there is room for others. */
static void drop_idle_rows(transfer_steps *s)
{
    int kept = 0;
    size_t end = 0;
    for (int c = 0; c < s->x->p.clients; c++)
        s->first[c] = -1;
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
        s->next[kept] = s->first[s->giver[i]];
        s->first[s->giver[i]] = kept++;
    }
    for (int i = kept; i < s->count; i++)
        s->amount[i] = s->best[i] = s->move[i] = 0.0;
    s->start[kept] = end;
    s->count = kept;
}

/* Sites that the mean answer serves a client by, at most `room`. */
static int list_shares(const transfer_steps *s, int c, int *site, int room)
{
    const float *share = s->share + (size_t)c * (size_t)s->x->p.sites;
    int found = 0;
    for (int j = 0; j < s->x->p.sites && found < room; j++)
        if (share[j] > TRANSFER_LISTED)
            site[found++] = j;
    return found;
}

/* Make for each client, as the giver, the row that the mean answer violates most; `steps`: since the last time. Returns how many. */
static int make_violated_rows(transfer_steps *s, int steps)
{
    enum { LISTED = 32 };
    const problem *p = &s->x->p;
    size_t sites = (size_t)p->sites, all = (size_t)p->clients * sites;
    int *listed = malloc((size_t)p->clients * (LISTED + 1) * sizeof(int));
    drop_idle_rows(s);
    int before = s->count;
    for (size_t i = 0; i < all; i++) {
        s->share[i] = (float)(1.0 - TRANSFER_NEW) * s->share[i] + (float)(TRANSFER_NEW / steps) * s->window[i];
        s->window[i] = 0.0F;
    }
    for (int c = 0; c < p->clients && listed; c++)
        listed[c * (LISTED + 1)] = list_shares(s, c, listed + c * (LISTED + 1) + 1, LISTED);
    for (int giver = 0; giver < p->clients && listed && s->count < TRANSFER_ROWS; giver++) {
        const int *order = p->by_client + (size_t)giver * sites;
        double sum = 0.0, most = TRANSFER_VIOLATION;
        int place = -1, taker = -1;
        for (int t = 0; t < p->sites; t++)
            s->rank_of[order[t]] = t;
        for (int t = 0; t < s->length[giver]; t++)
            s->by_place[t] = sum += (double)s->share[(size_t)giver * sites + (size_t)order[t]];
        for (int h = 0; h < p->clients && s->length[giver] > 0; h++) {
            const int *site = listed + h * (LISTED + 1) + 1;
            int at[LISTED], count = 0;
            float share[LISTED];
            if (h == giver)
                continue;
            for (int i = 0; i < site[-1]; i++) { /* in the order of the giver */
                int t = s->rank_of[site[i]], k = count;
                if (t >= s->length[giver])
                    continue;
                for (; k > 0 && at[k - 1] > t; k--) {
                    at[k] = at[k - 1];
                    share[k] = share[k - 1];
                }
                at[k] = t;
                share[k] = s->share[(size_t)h * sites + (size_t)site[i]];
                count++;
            }
            double served = 0.0;
            for (int k = 0; k < count; k++) {
                served += (double)share[k];
                if (served - s->by_place[at[k]] > most && !is_known(s, giver, at[k], h)) {
                    most = served - s->by_place[at[k]];
                    place = at[k];
                    taker = h;
                }
            }
        }
        if (taker >= 0)
            add_row(s, giver, place, taker);
    }
    free(listed);
    s->x->effort.work += (double)p->clients * p->clients * 40.0;
    return s->count - before;
}

/* ---- steps ---- */

/* Costs after the transfers, and the reduced costs with them; returns the sum of min(u, limit). */
static double relax(transfer_steps *s, const double *u)
{
    const problem *p = &s->x->p;
    size_t sites = (size_t)p->sites;
    double served = 0.0, *rho = s->x->inner.rho;
    const double *price = p->price ? p->price + (size_t)(s->x->view.leader < 0 ? 0 : s->x->view.leader) * sites : NULL;
    for (int i = 0; i < s->f->free_count; i++)
        rho[i] = price ? price[s->f->free_site[i]] : 0.0;
    for (int c = 0; c < p->clients; c++)
        memcpy(s->cost + (size_t)c * sites, s->x->view.ordered + (size_t)c * sites, (size_t)s->length[c] * sizeof(double));
    for (int i = 0; i < s->count; i++) {
        double *cost = s->cost + (size_t)s->taker[i] * sites, amount = s->amount[i];
        for (size_t k = s->start[i]; k < s->start[i + 1] && amount > 0.0; k++)
            cost[s->cell[k]] += amount;
    }
    for (int c = 0; c < p->clients; c++) {
        const int *order = p->by_client + (size_t)c * sites;
        double *cost = s->cost + (size_t)c * sites, given = 0.0;
        memset(s->by_place, 0, (size_t)s->length[c] * sizeof(double));
        for (int i = s->first[c]; i >= 0; i = s->next[i])
            s->by_place[s->place[i]] += s->amount[i];
        for (int t = s->length[c] - 1; t >= 0; t--) {
            given += s->by_place[t];
            cost[t] -= given;
            int at = s->where[order[t]];
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
        for (int i = s->first[c]; i >= 0; i = s->next[i]) {
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
    double *u = x->scratch.u, *direction = x->scratch.direction, best = -BIG, lambda = TRANSFER_STEP;
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
    for (int i = s->first[c]; i >= 0; i = s->next[i])
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
    kept->giver = malloc(room * sizeof(int));
    kept->place = malloc(room * sizeof(int));
    kept->taker = malloc(room * sizeof(int));
    kept->amount = malloc(room * sizeof(double));
    if (!kept->giver || !kept->place || !kept->taker || !kept->amount) {
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
        for (int i = s->first[c]; i >= 0; i = s->next[i]) {
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
        double bound = take_steps(&s, TRANSFER_STEPS);
        if (bound - proven < x->limits.transfer_pays * (x->best.cutoff - proven))
            x->limits.transfer_nodes = 0;
        else if (keep_transfers(&s, kept))
            memcpy(f->u, s.best_u, (size_t)p->clients * sizeof(double));
        else
            x->control.out_of_memory = 1;
    }
    free_rows(&s);
}
