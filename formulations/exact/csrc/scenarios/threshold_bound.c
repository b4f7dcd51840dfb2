/* The bound of a state: the scenarios that count, their clients, and steps on weights and multipliers. See scenario.h. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "scenario.h"

/* ---- Weights and multipliers that a node hands to both of its children: counted, and freed with the last of them. ---- */

multiplier_block *block_make(int count, int padded)
{
    size_t rows = (size_t)count + 1, cells = (size_t)count * (size_t)padded + 1;
    multiplier_block *m = malloc(sizeof *m + (rows + cells) * sizeof(double) + rows * sizeof(int));
    if (!m)
        return NULL;
    m->references = 1;
    m->count = count;
    m->weight = (double *)(m + 1);
    m->u = m->weight + rows;
    m->which = (int *)(m->u + cells);
    return m;
}

multiplier_block *block_hold(multiplier_block *m)
{
    if (m)
        m->references++;
    return m;
}

void block_release(multiplier_block *m)
{
    if (m && --m->references == 0)
        free(m);
}

/* ---- Detours: clients that a replica takes away from a less preferred one at which they would pay less.
 *
 * What r_i and M_i are, and why their sum over the clients is a price of the site i, stands with the detours of tree_node.c. */

const int *order_of_detours(const scenario_question *q, const double *cost, const int *order)
{
    size_t S = (size_t)q->sites, P = (size_t)q->padded;
    for (size_t c = 0; c < (size_t)q->clients; c++)
        for (size_t k = 1; k < S; k++)
            if (cost[(size_t)order[c * S + k - 1] * P + c] > cost[(size_t)order[c * S + k] * P + c])
                return order;
    return NULL;
}

int *sites_in_order(const int *rank, int clients, int sites, size_t padded)
{
    size_t S = (size_t)sites, C = (size_t)clients;
    int *order = malloc(C * S * sizeof(int) + 8);
    for (size_t j = 0; order && j < S; j++)
        for (size_t c = 0; c < C; c++)
            order[c * S + (size_t)rank[j * padded + c]] = (int)j;
    return order;
}

/* Add the detours of client c over the sites before that of rank `last`, where it pays `fixed`. */
static void add_detours(const scenario_question *q, const scenario *s, const int *place, int c, int last, double fixed,
                        double *detour)
{
    size_t P = (size_t)q->padded;
    const int *order = s->order + (size_t)c * (size_t)q->sites;
    double most = BIG; /* M of the free site `before` */
    int before = -1;
    for (int k = 0; k < last && most > fixed; k++) {
        int i = place[order[k]];
        if (i < 0)
            continue;
        double cost = s->cost[(size_t)order[k] * P + (size_t)c], next = cost < most ? cost : most;
        next = next > fixed ? next : fixed;
        if (before >= 0)
            detour[before] += most - next;
        most = next;
        before = i;
    }
    if (before >= 0)
        detour[before] += most - fixed;
}

/* The detours of a scenario that loses replicas of `unlost` alone, which has the same costs: only the clients of those
 * replicas have others. */
static void change_detours(const scenario_question *q, scenario_bound *b, int a, int unlost)
{
    const scenario *s = &q->scenario[b->which[a]];
    size_t P = (size_t)q->padded, S = (size_t)q->sites;
    const int *last = b->rank_fixed + (size_t)a * P, *before = b->rank_fixed + (size_t)unlost * P;
    double *detour = b->detour + (size_t)a * S;
    for (int j = 0; j < q->sites; j++)
        for (int i = 0; b->of_fixed[j] && !s->lost[j] && i < b->free_count; i++)
            detour[i] += b->by_fixed[(size_t)j * S + (size_t)i];
    for (int c = 0; c < q->clients; c++)
        if (last[c] != before[c] && last[c] < q->sites)
            add_detours(q, s, b->place, c, last[c], b->fixed[(size_t)a * P + (size_t)c], detour);
}

static void find_detours(const scenario_question *q, scenario_bound *b, int a)
{
    const scenario *s = &q->scenario[b->which[a]];
    size_t P = (size_t)q->padded, S = (size_t)q->sites;
    const int *last = b->rank_fixed + (size_t)a * P;
    double *detour = b->detour + (size_t)a * S;
    int all = 1; /* every free site serves clients */
    for (int i = 0; i < b->free_count; i++)
        detour[i] = 0.0;
    if (!s->order)
        return;
    for (int j = 0; j < q->sites; j++)
        b->place[j] = -1;
    for (int i = 0; i < b->free_count; i++)
        if (!s->lost || !s->lost[b->free_site[i]])
            b->place[b->free_site[i]] = i;
        else
            all = 0;
    if (b->unlost >= 0 && all && s->lost && q->scenario[b->which[b->unlost]].cost == s->cost &&
        q->scenario[b->which[b->unlost]].rank == s->rank) {
        change_detours(q, b, a, b->unlost);
        return;
    }
    if (s->lost) {
        for (int c = 0; c < q->clients; c++)
            if (last[c] < q->sites) /* a replica is fixed */
                add_detours(q, s, b->place, c, last[c], b->fixed[(size_t)a * P + (size_t)c], detour);
        return;
    }
    memset(b->of_fixed, 0, S);
    for (int c = 0; c < q->clients; c++) {
        if (last[c] >= q->sites)
            continue;
        size_t site = (size_t)s->order[(size_t)c * S + (size_t)last[c]];
        double *own = b->by_fixed + site * S;
        if (!b->of_fixed[site])
            memset(own, 0, (size_t)b->free_count * sizeof(double));
        b->of_fixed[site] = 1;
        add_detours(q, s, b->place, c, last[c], b->fixed[(size_t)a * P + (size_t)c], own);
    }
    for (size_t j = 0; j < S; j++)
        for (int i = 0; b->of_fixed[j] && i < b->free_count; i++)
            detour[i] += b->by_fixed[j * S + (size_t)i];
    b->unlost = a;
}

/* ---- The clients of a scenario that a state leaves open. A client is live where a free site comes before its first fixed
 * replica and costs less: any other pays what that replica costs, at multipliers of just as much, and never enters rho.
 * Deep in a tree few are live, so that the arrays of the bound have these clients alone, one behind the other. */

/* The column of a free site, BIG where the fixed replica comes first, and the least of all so far. */
VECTORISED static void nearer_column(const double *cost, const int *rank, const int *fixed, int padded, double *out,
                                   double *least)
{
    for (int c = 0; c < padded; c++) {
        double nearer = rank[c] < fixed[c] ? cost[c] : BIG;
        out[c] = nearer;
        least[c] = nearer < least[c] ? nearer : least[c];
    }
}

VECTORISED static void gather(const double *from, const int *live, int count, double *restrict out)
{
    for (int k = 0; k < count; k++)
        out[k] = from[live[k]];
}

/* Take every client for live; none where the clients cost nothing. */
static void list_all(const scenario_question *q, scenario_bound *b, int a)
{
    int *live = b->live + (size_t)a * (size_t)q->padded, some = q->scenario[b->which[a]].cost != NULL;
    for (int c = 0; c < q->clients; c++)
        live[c] = c;
    b->live_count[a] = some ? q->clients : 0;
    b->length[a] = some ? q->padded : 0;
    b->settled[a] = 0.0;
}

/* List the live clients of scenario a, those with a column below their fixed cost; the multipliers of the others are set. */
static void list_live(const scenario_question *q, scenario_bound *b, int a, const double *least)
{
    size_t P = (size_t)q->padded;
    const double *fixed = b->fixed + (size_t)a * P;
    double *u = b->all_u + (size_t)a * P, settled = 0.0;
    int *live = b->live + (size_t)a * P, count = 0;
    for (int c = 0; c < q->clients; c++) {
        int open = least[c] < fixed[c];
        live[count] = c; /* no branch: which clients are live is hard to predict */
        count += open;
        settled += open ? 0.0 : fixed[c];
        u[c] = open ? u[c] : fixed[c];
    }
    int length = (count + PAD - 1) / PAD * PAD;
    if (length > LIVE_SHARE * q->padded) {
        list_all(q, b, a);
        return;
    }
    b->live_count[a] = count;
    b->length[a] = length;
    b->settled[a] = settled;
}

static void live_columns(const scenario_question *q, scenario_bound *b, int a, int some)
{
    const scenario *s = &q->scenario[b->which[a]];
    size_t P = (size_t)q->padded, first = (size_t)a * (size_t)b->free_count * P;
    double **column = b->column + (size_t)a * (size_t)q->sites, *least = b->direction;
    memcpy(least, b->fixed + (size_t)a * P, P * sizeof(double));
    for (int i = 0; i < b->free_count; i++) {
        size_t row = (size_t)b->free_site[i] * P;
        if (!s->cost || (s->lost && s->lost[b->free_site[i]]))
            column[i] = NULL;
        else if (!some)
            column[i] = (double *)(s->cost + row); /* only read */
        else {
            column[i] = b->block + first + (size_t)i * P;
            nearer_column(s->cost + row, s->rank + row, b->rank_fixed + (size_t)a * P, q->padded, column[i], least);
        }
    }
    if (!some) {
        list_all(q, b, a);
        return;
    }
    list_live(q, b, a, least);
    int count = b->live_count[a], length = b->length[a], gathered = 0;
    for (int i = 0; i < b->free_count && length < q->padded; i++) {
        if (!column[i])
            continue;
        double *out = b->gathered + first + (size_t)gathered++ * (size_t)length;
        gather(column[i], b->live + (size_t)a * P, count, out);
        for (int k = count; k < length; k++)
            out[k] = BIG;
        column[i] = out;
    }
}

/* Twice the largest cost of each client, the most that a multiplier is where no fixed site serves: a checker's whole numbers
 * hold no more, and a scenario of next to no weight would take steps of any length. */
static const double *most_of_multipliers(const scenario_question *q, const scenario *s, double *most)
{
    size_t P = (size_t)q->padded;
    memset(most, 0, P * sizeof(double));
    for (size_t j = 0; j < (size_t)q->sites && s->cost; j++)
        for (size_t c = 0; c < P; c++)
            most[c] = fmax(most[c], 2.0 * s->cost[j * P + c]);
    return most;
}

static void live_multipliers(const scenario_question *q, scenario_bound *b, int a, const double *most)
{
    size_t at = (size_t)a * (size_t)q->padded;
    const int *live = b->live + at;
    for (int k = 0; k < b->live_count[a]; k++) {
        b->u[at + (size_t)k] = b->all_u[at + (size_t)live[k]];
        b->live_fixed[at + (size_t)k] = most[live[k]];
        b->live_scale[at + (size_t)k] = b->step_scale[live[k]];
    }
    for (int k = b->live_count[a]; k < b->length[a]; k++)
        b->u[at + (size_t)k] = b->live_fixed[at + (size_t)k] = b->live_scale[at + (size_t)k] = 0.0;
}

void best_multipliers(const scenario_question *q, const scenario_bound *b, int a, double *out)
{
    size_t at = (size_t)a * (size_t)q->padded;
    memcpy(out, b->all_u + at, (size_t)q->padded * sizeof(double));
    for (int k = 0; k < b->live_count[a]; k++)
        out[b->live[at + (size_t)k]] = b->best_u[at + (size_t)k];
}

/* ---- The scenarios that count in a state: which have a weight, their costs there, and what children inherit. See scenario.h. ---- */

/* The scale of each client's multipliers: what it pays in all scenarios at the mean of all sites, as a share of the largest.
 * Who pays next to nothing counts as LEAST_SCALE, so that the length of a step is a number. */
static void set_step_scale(const scenario_question *q, double *scale)
{
    double largest = 0.0;
    for (int c = 0; c < q->clients; c++)
        scale[c] = 0.0;
    for (int s = 0; s < q->scenarios; s++) {
        const double *cost = q->scenario[s].cost;
        for (int j = 0; j < q->sites && cost && (s == 0 || cost != q->scenario[s - 1].cost); j++)
            for (int c = 0; c < q->clients; c++)
                scale[c] += cost[(size_t)j * (size_t)q->padded + (size_t)c];
    }
    for (int c = 0; c < q->clients; c++)
        largest = scale[c] > largest ? scale[c] : largest;
    for (int c = 0; c < q->clients; c++)
        scale[c] = largest > 0.0 && scale[c] > LEAST_SCALE * largest ? scale[c] / largest : LEAST_SCALE;
}

scenario_bound *bound_alloc(const scenario_question *q)
{
    scenario_bound *b = calloc(1, sizeof(scenario_bound));
    if (!b)
        return NULL;
    owned_memory *owned = &b->owned;
    size_t n = (size_t)q->sites + 1, p = (size_t)q->padded + PAD, s = (size_t)q->scenarios + 1;
    b->free_site = own(owned, n, sizeof(int));
    b->rho = own(owned, n, sizeof(double));
    b->best_rho = own(owned, n, sizeof(double));
    b->selected = own(owned, n, sizeof(int));
    b->order = own(owned, 2 * n, sizeof(int));
    b->chosen = own(owned, n, 1);
    b->best_chosen = own(owned, n, 1);
    b->direction = own(owned, p, sizeof(double));
    b->place = own(owned, n, sizeof(int));
    b->by_fixed = own(owned, n * n, sizeof(double));
    b->of_fixed = own(owned, n, 1);
    b->step_scale = own(owned, p, sizeof(double));
    b->ranks = own(owned, p, sizeof(int));
    b->in_force = own(owned, s, sizeof(int));
    b->force_weight = own(owned, s, sizeof(double));
    b->candidate = own(owned, n, sizeof(int));
    b->counts = own(owned, (size_t)longest_count(q->rules), sizeof(int));
    if (owned->failed) {
        bound_free(b);
        return NULL;
    }
    set_step_scale(q, b->step_scale);
    return b;
}

void bound_free(scenario_bound *b)
{
    if (!b)
        return;
    free(b->block);
    free(b->gathered);
    release(&b->of_rows);
    release(&b->owned);
    free(b);
}

/* Room for so many scenarios with a weight; 0: no memory. */
static int make_rows(scenario_bound *b, const scenario_question *q, int rows)
{
    if (rows <= b->rows)
        return 1;
    size_t r = (size_t)rows + 4, p = r * (size_t)q->padded + 1, n = r * (size_t)q->sites;
    owned_memory *owned = &b->of_rows;
    release(owned);
    b->rows = 0;
    b->which = own(owned, r, sizeof(int));
    b->weight = own(owned, r, sizeof(double));
    b->best_weight = own(owned, r, sizeof(double));
    b->rest = own(owned, r, sizeof(double));
    b->value = own(owned, r, sizeof(double));
    b->kept_value = own(owned, r, sizeof(double));
    b->kept_weight = own(owned, r, sizeof(double));
    b->served = own(owned, r, sizeof(double));
    b->size = own(owned, r, sizeof(double));
    b->base = own(owned, r, sizeof(double));
    b->settled = own(owned, r, sizeof(double));
    b->detour = own(owned, n, sizeof(double));
    b->live_count = own(owned, r, sizeof(int));
    b->length = own(owned, r, sizeof(int));
    b->live = own(owned, p, sizeof(int));
    b->live_fixed = own(owned, p, sizeof(double));
    b->live_scale = own(owned, p, sizeof(double));
    b->all_u = own(owned, p, sizeof(double));
    b->u = own(owned, p, sizeof(double));
    b->best_u = own(owned, p, sizeof(double));
    b->fixed = own(owned, p, sizeof(double));
    b->rank_fixed = own(owned, p, sizeof(int));
    b->gradient = own(owned, p, sizeof(double));
    b->column = own(owned, n, sizeof(double *));
    b->part = own(owned, n, sizeof(double));
    if (owned->failed)
        return 0;
    b->rows = (int)r;
    return 1;
}

VECTORISED void serve(const double *cost, const int *rank, int padded, int *fixed, double *paid)
{
    for (int c = 0; c < padded; c++) {
        paid[c] = rank[c] < fixed[c] ? cost[c] : paid[c];
        fixed[c] = rank[c] < fixed[c] ? rank[c] : fixed[c];
    }
}

/* Rank and cost of the first fixed replica of each client that the scenario leaves; whether there is one. */
static int serve_fixed(const scenario_question *q, const scenario *s, const unsigned char *state, int *rank, double *paid)
{
    size_t P = (size_t)q->padded;
    int some = 0;
    for (size_t c = 0; c < P; c++) {
        paid[c] = s->cost ? BIG : 0.0;
        rank[c] = INT_MAX;
    }
    for (int j = 0; j < q->sites && s->cost; j++)
        if (state[j] == IN && !(s->lost && s->lost[j])) {
            serve(s->cost + (size_t)j * P, s->rank + (size_t)j * P, q->padded, rank, paid);
            some = 1;
        }
    return some;
}

/* Serve the clients by the selected sites as well, from b->ranks and b->direction on; the sum of what they pay, 0 where no
 * site is left to serve: the least possible cost. With the prices of the selected sites. */
static double paid_at_selection(scenario_tree *t, const scenario *s)
{
    const scenario_question *q = t->question;
    scenario_bound *b = t->work;
    size_t P = (size_t)q->padded;
    double prices = 0.0;
    for (int i = 0; i < b->selected_count; i++) {
        int site = b->free_site[b->selected[i]];
        prices += s->price ? s->price[site] : 0.0;
        if (s->cost && !(s->lost && s->lost[site]))
            serve(s->cost + (size_t)site * P, s->rank + (size_t)site * P, q->padded, b->ranks, b->direction);
    }
    t->effort += (b->selected_count + 2.0) * q->padded * 0.5;
    double sum = sum_of(b->direction, q->padded);
    return prices + (sum < BIG ? sum : 0.0);
}

static double row_value_of_selection(scenario_tree *t, int a)
{
    scenario_bound *b = t->work;
    const scenario *s = &t->question->scenario[b->which[a]];
    size_t P = (size_t)t->question->padded;
    memcpy(b->ranks, b->rank_fixed + (size_t)a * P, P * sizeof(int));
    memcpy(b->direction, b->fixed + (size_t)a * P, P * sizeof(double));
    return b->rest[a] + paid_at_selection(t, s) - s->threshold;
}

/* Weights and multipliers to begin with: those of the parent, and a share for scenarios that are new. 0: no memory. */
static int begin(scenario_tree *t, const unsigned char *state, const multiplier_block *from)
{
    const scenario_question *q = t->question;
    scenario_bound *b = t->work;
    size_t P = (size_t)q->padded;
    int listed = q->in_force(q->self, state, b->in_force, b->force_weight), active = 0, fresh = 0;
    double old = 0.0;
    if (!make_rows(b, q, listed))
        return 0;
    for (int k = 0; k < listed; k++) {
        const scenario *s = &q->scenario[b->in_force[k]];
        int at = -1, zero = -1;
        if (!q->fixed_weights && s->threshold >= BIG)
            continue;
        for (int m = 0; from && m < from->count; m++) {
            if (from->which[m] == b->in_force[k])
                at = m;
            if (zero < 0 && (from->which[m] == 0 || m + 1 == from->count))
                zero = m;
        }
        double weight = q->fixed_weights ? b->force_weight[k] : at >= 0 ? from->weight[at] : -1.0;
        if (weight == 0.0) {
            b->asleep++;
            continue;
        }
        b->which[active] = b->in_force[k];
        b->weight[active] = weight;
        if (weight < 0.0)
            fresh++;
        else
            old += weight;
        if (at < 0)
            at = zero;
        double *u = b->all_u + (size_t)active * P;
        if (at >= 0)
            memcpy(u, from->u + (size_t)at * P, P * sizeof(double));
        else
            u[0] = -1.0; /* marks: none, see below */
        active++;
    }
    b->active = active;
    for (int a = 0; a < active && !q->fixed_weights; a++) {
        if (old > 0.0 && fresh)
            b->weight[a] = b->weight[a] < 0.0 ? THRESHOLD_NEW_SHARE / fresh : b->weight[a] * (1.0 - THRESHOLD_NEW_SHARE) / old;
        else
            b->weight[a] = b->weight[a] < 0.0 ? 1.0 / fresh : b->weight[a] / old;
    }
    return 1;
}

/* The voters' part, columns and first multipliers of scenario a; 0: the state holds no set of replicas. */
static int open_row(scenario_tree *t, const unsigned char *state, int a)
{
    const scenario_question *q = t->question;
    scenario_bound *b = t->work;
    size_t P = (size_t)q->padded;
    b->rest[a] = q->rest(q->self, b->which[a], state, b->most);
    if (b->rest[a] >= BIG)
        return 0;
    double *u = b->all_u + (size_t)a * P, *fixed = b->fixed + (size_t)a * P;
    int some = serve_fixed(q, &q->scenario[b->which[a]], state, b->rank_fixed + (size_t)a * P, fixed);
    t->effort += (2.0 * b->free_count + b->in_count + 2.0) * q->padded * 0.5;
    const double *first = q->scenario[b->which[a]].first;
    if (P && u[0] < 0.0 && first)
        memcpy(u, first, P * sizeof(double));
    else if (P && u[0] < 0.0) /* the mean cost of the free sites, at most that of the fixed ones */
        for (size_t c = 0; c < P; c++) {
            double sum = 0.0;
            for (int i = 0; i < b->free_count && q->scenario[b->which[a]].cost; i++)
                sum += q->scenario[b->which[a]].cost[(size_t)b->free_site[i] * P + c];
            u[c] = b->free_count ? sum / b->free_count : fixed[c] < BIG ? fixed[c] : 0.0;
        }
    live_columns(q, b, a, some);
    const double *most = some ? fixed : most_of_multipliers(q, &q->scenario[b->which[a]], b->direction);
    for (size_t c = 0; c < P; c++)
        u[c] = fmin(u[c], most[c]);
    live_multipliers(q, b, a, most);
    find_detours(q, b, a);
    t->effort += q->scenario[b->which[a]].order ? 4.0 * q->clients : 0.0;
    return 1;
}

/* 1 if the fixed and the selected sites reach the threshold of a scenario without a weight. */
static int reached_at_selection(scenario_tree *t, const unsigned char *state, int s)
{
    const scenario_question *q = t->question;
    scenario_bound *b = t->work;
    const scenario *one = &q->scenario[s];
    double rest = q->rest(q->self, s, state, b->most);
    if (rest >= one->threshold)
        return 1;
    serve_fixed(q, one, state, b->ranks, b->direction);
    t->effort += b->in_count * q->padded * 0.5 + 50.0;
    return rest + paid_at_selection(t, one) >= one->threshold;
}

/* Give a weight again to scenarios in force that have none, where the selection reaches their threshold. -1: the state holds no
 * set of replicas; else how many. */
static int rows_wake(scenario_tree *t, const unsigned char *state, const multiplier_block *from)
{
    const scenario_question *q = t->question;
    scenario_bound *b = t->work;
    size_t P = (size_t)q->padded;
    int woken = 0;
    for (int m = 0; from && m < from->count; m++) {
        if (from->weight[m] > 0.0 || q->scenario[from->which[m]].threshold >= BIG ||
            !reached_at_selection(t, state, from->which[m]))
            continue;
        int a = b->active + woken;
        b->which[a] = from->which[m];
        memcpy(b->all_u + (size_t)a * P, from->u + (size_t)m * P, P * sizeof(double));
        if (!open_row(t, state, a))
            return -1;
        woken++;
    }
    for (int a = 0; a < b->active && woken; a++)
        b->weight[a] *= 1.0 - THRESHOLD_NEW_SHARE;
    for (int a = b->active; a < b->active + woken; a++)
        b->weight[a] = THRESHOLD_NEW_SHARE / woken;
    b->active += woken;
    return woken;
}

static int rows_open(scenario_tree *t, const unsigned char *state, const multiplier_block *from)
{
    const scenario_question *q = t->question;
    scenario_bound *b = t->work;
    b->free_count = b->in_count = b->active = b->asleep = 0;
    b->unlost = -1;
    for (int j = 0; j < q->sites; j++) {
        if (state[j] == FREE)
            b->free_site[b->free_count++] = j;
        b->in_count += state[j] == IN;
    }
    b->most = q->replicas_max - b->in_count;
    if (b->most > b->free_count)
        b->most = b->free_count;
    if (!begin(t, state, from))
        return -1;
    size_t need = (size_t)(b->active + b->asleep) * (size_t)b->free_count * (size_t)q->padded;
    if (need > b->capacity) {
        free(b->block);
        free(b->gathered);
        b->capacity = 0;
        b->block = malloc(need * sizeof(double));
        b->gathered = malloc(need * sizeof(double));
        if (!b->block || !b->gathered)
            return -1;
        b->capacity = need;
    }
    for (int a = 0; a < b->active; a++)
        if (!open_row(t, state, a))
            return 0;
    return 1;
}

/* 1 if a scenario of the parent still has no weight. */
static int is_asleep(const scenario_bound *b, const multiplier_block *from, int m)
{
    for (int a = 0; a < b->active; a++)
        if (b->which[a] == from->which[m])
            return 0;
    return from->weight[m] == 0.0;
}

multiplier_block *bound_block(const scenario_tree *t, const multiplier_block *from)
{
    const scenario_bound *b = t->work;
    size_t P = (size_t)t->question->padded;
    int asleep = 0;
    for (int m = 0; from && m < from->count; m++)
        asleep += is_asleep(b, from, m);
    multiplier_block *made = block_make(b->active + asleep, t->question->padded);
    if (!made)
        return NULL;
    for (int a = 0; a < b->active; a++) {
        made->which[a] = b->which[a];
        made->weight[a] = b->best_weight[a] < THRESHOLD_LEAST_WEIGHT && !t->question->fixed_weights ? 0.0 : b->best_weight[a];
        best_multipliers(t->question, b, a, made->u + (size_t)a * P);
    }
    int at = b->active;
    for (int m = 0; from && m < from->count; m++)
        if (is_asleep(b, from, m)) {
            made->which[at] = from->which[m];
            made->weight[at] = 0.0;
            memcpy(made->u + (size_t)at * P, from->u + (size_t)m * P, P * sizeof(double));
            at++;
        }
    return made;
}

/* ---- The bound of a state of the tree for given weights and multipliers, and steps that improve both. See scenario.h. ---- */

/* The `most` least rho, without those above 0 that the least size does not need; their sum. */
static double choose_freely(const scenario_question *q, scenario_bound *b)
{
    int n = b->free_count, most = b->most, least = q->replicas_min - b->in_count, count = 0;
    double sum = 0.0;
    for (int i = 0; i < n; i++)
        count = insert_position(b->rho, b->selected, count, most, i);
    while (count > 0 && count > least && b->rho[b->selected[count - 1]] > 0.0)
        count--;
    for (int i = 0; i < count; i++)
        sum += b->rho[b->selected[i]];
    b->selected_count = count;
    return sum;
}

/* The least sum of rho that a family of rules allows, by the greedy of its matroid over b->order; the sites that make it. */
static double choose_in_family(const scenario_question *q, scenario_bound *b, const site_family *f, const unsigned char *state,
                               int *chosen, int *count)
{
    int least = q->replicas_min, most = q->replicas_max;
    double sum = 0.0;
    *count = 0;
    begin_count(f, b->counts);
    for (int j = 0; j < q->sites; j++)
        if (state[j] == IN)
            count_site(f, b->counts, j, 1);
    for (int o = 0; o < b->free_count; o++) {
        int i = b->order[o], site = b->free_site[i];
        double rho = b->rho[i];
        if (rho >= 0.0 && still_needed(f, b->counts, least) <= 0)
            break;
        if (rho < 0.0 ? !take_site(f, b->counts, site, least, most) : !take_needed_site(f, b->counts, site, least, most))
            continue;
        sum += rho;
        chosen[(*count)++] = i;
    }
    return sum;
}

/* The least sum of rho over the sites that a set may add; of several families of rules that of the one that asks for most. */
static double choose(const scenario_question *q, scenario_bound *b, const unsigned char *state)
{
    int n = b->free_count;
    double sum;
    memset(b->chosen, 0, (size_t)n);
    if (!q->rules->rules)
        sum = choose_freely(q, b);
    else {
        for (int i = 0; i < n; i++)
            b->order[i] = i;
        for (int gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11) /* Shell's sort */
            for (int i = gap; i < n; i++) {
                int moved = b->order[i], at = i;
                for (; at >= gap && b->rho[b->order[at - gap]] > b->rho[moved]; at -= gap)
                    b->order[at] = b->order[at - gap];
                b->order[at] = moved;
            }
        sum = choose_in_family(q, b, &q->rules->family[0], state, b->selected, &b->selected_count);
        for (int k = 1; k < q->rules->count; k++) {
            int count;
            double least = choose_in_family(q, b, &q->rules->family[k], state, b->candidate, &count);
            if (least <= sum)
                continue;
            sum = least;
            b->selected_count = count;
            memcpy(b->selected, b->candidate, (size_t)count * sizeof(int));
        }
    }
    for (int i = 0; i < b->selected_count; i++)
        b->chosen[b->selected[i]] = 1;
    return sum;
}

/* Compute the parts without weights: base (X - T without free sites), its size, and rho of every scenario at u. */
static void evaluate_parts(scenario_tree *t)
{
    const scenario_question *q = t->question;
    scenario_bound *b = t->work;
    size_t P = (size_t)q->padded, S = (size_t)q->sites;
    for (int a = 0; a < b->active; a++) {
        const double *u = b->u + (size_t)a * P, *price = q->scenario[b->which[a]].price;
        double threshold = q->fixed_weights ? 0.0 : q->scenario[b->which[a]].threshold, dearest = 0.0;
        int length = b->length[a];
        double served = b->settled[a] + served_cost(u, b->live_fixed + (size_t)a * P, length), *part = b->part + (size_t)a * S;
        for (int i = 0; i < b->free_count; i++) {
            double *column = b->column[(size_t)a * S + (size_t)i];
            double own = b->detour[(size_t)a * S + (size_t)i];
            part[i] = 0.0;
            if (column)
                reduced_costs(&column, 1, u, length, &part[i]);
            if (price)
                own += price[b->free_site[i]];
            part[i] += own;
            dearest = fmax(dearest, fabs(own));
        }
        b->base[a] = b->rest[a] + served - threshold;
        b->size[a] = fabs(b->rest[a]) + fabs(threshold) + served + 2.0 * b->most * dearest;
        b->served[a] = served;
        t->effort += (b->free_count + 3.0) * length * 0.35 + 100.0;
    }
    t->bounds++;
}

/* The bound at the weights and those parts; writes rho, the selection and the values of the scenarios there. */
static double weigh_parts(scenario_tree *t, const unsigned char *state, double *error)
{
    const scenario_question *q = t->question;
    scenario_bound *b = t->work;
    size_t S = (size_t)q->sites;
    double constant = 0.0, magnitude = 0.0, served_all = 0.0;
    for (int i = 0; i < b->free_count; i++)
        b->rho[i] = 0.0;
    for (int a = 0; a < b->active; a++) {
        const scenario *s = &q->scenario[b->which[a]];
        double share = b->weight[a] / s->scale, *part = b->part + (size_t)a * S;
        for (int i = 0; i < b->free_count; i++)
            b->rho[i] += (s->discount ? share - s->discount[b->free_site[i]] : share) * part[i];
        constant += share * b->base[a];
        served_all += share * b->served[a];
        magnitude += share * b->size[a];
    }
    if (q->fixed_weights) {
        constant -= q->total;
        magnitude += fabs(q->total);
    }
    double least = choose(q, b, state);
    for (int i = 0; i < b->selected_count; i++)
        magnitude += 2.0 * fabs(b->rho[b->selected[i]]);
    for (int a = 0; a < b->active && !q->weigh_selection; a++) {
        b->value[a] = b->base[a];
        for (int i = 0; i < b->selected_count; i++)
            b->value[a] += b->part[(size_t)a * S + (size_t)b->selected[i]];
        b->value[a] /= q->scenario[b->which[a]].scale;
    }
    double terms = q->clients + q->sites + b->active + 24.0;
    *error = 2.0 * UNIT_ROUNDOFF * (terms * magnitude + 6.0 * (b->selected_count + 2.0) * served_all);
    t->effort += b->active * (b->free_count + 10.0) + 8.0 * b->free_count;
    return constant + least;
}

/* Weights follow the values by an exponentiated gradient. 0: the values are all the same. */
static int step_weights(scenario_bound *b, double rate)
{
    double mean = 0.0, spread = 0.0, sum = 0.0;
    for (int a = 0; a < b->active; a++)
        mean += b->weight[a] * b->value[a];
    for (int a = 0; a < b->active; a++)
        if (fabs(b->value[a] - mean) > spread)
            spread = fabs(b->value[a] - mean);
    if (!(spread > 0.0))
        return 0;
    for (int a = 0; a < b->active; a++) {
        b->weight[a] *= exp(rate * (b->value[a] - mean) / spread);
        sum += b->weight[a];
    }
    for (int a = 0; a < b->active; a++)
        b->weight[a] /= sum;
    return 1;
}

/* A scenario that reaches its threshold alone: the others of a plan may be as far below theirs as they like, so that no weight
 * less than all of it would do. Returns its bound, with all weight on it, or -BIG. */
static double reached_alone(scenario_tree *t, const unsigned char *state, double *error)
{
    scenario_bound *b = t->work;
    memcpy(b->kept_weight, b->weight, (size_t)b->active * sizeof(double));
    memcpy(b->kept_value, b->value, (size_t)b->active * sizeof(double));
    for (int a = 0; a < b->active; a++) {
        if (b->kept_value[a] < 0.0) /* its own selection costs no more than the selection of all */
            continue;
        for (int other = 0; other < b->active; other++)
            b->weight[other] = other == a ? 1.0 : 0.0;
        double value = weigh_parts(t, state, error);
        if (value - *error >= 0.0)
            return value;
    }
    memcpy(b->weight, b->kept_weight, (size_t)b->active * sizeof(double));
    return -BIG;
}

static void keep_best(scenario_tree *t)
{
    const scenario_question *q = t->question;
    scenario_bound *b = t->work;
    for (int a = 0; a < b->active; a++) {
        size_t at = (size_t)a * (size_t)q->padded;
        memcpy(b->best_u + at, b->u + at, (size_t)b->length[a] * sizeof(double));
    }
    memcpy(b->best_weight, b->weight, (size_t)b->active * sizeof(double));
    memcpy(b->best_rho, b->rho, (size_t)b->free_count * sizeof(double));
    memcpy(b->best_chosen, b->chosen, (size_t)b->free_count);
    b->best_count = b->selected_count;
    b->next = BIG;
    b->last = -BIG;
    for (int i = 0; i < b->free_count; i++) {
        if (b->chosen[i] && b->rho[i] > b->last)
            b->last = b->rho[i];
        if (!b->chosen[i] && b->rho[i] < b->next)
            b->next = b->rho[i];
    }
    if (b->next > 0.0 && (b->next >= BIG || b->in_count + b->selected_count > q->replicas_min))
        b->next = 0.0; /* nothing need take the place of a site */
    b->total = q->fixed_weights ? q->total : 0.0;
    b->weight_zero = 0.0;
    for (int a = 0; a < b->active; a++) {
        const scenario *s = &q->scenario[b->which[a]];
        if (!q->fixed_weights)
            b->total += b->weight[a] * s->threshold / s->scale;
        if (b->which[a] == 0)
            b->weight_zero = b->weight[a] / s->scale;
    }
}

double bound_state(scenario_tree *t, const unsigned char *state, const multiplier_block *from, int steps)
{
    const scenario_question *q = t->question;
    scenario_bound *b = t->work;
    size_t P = (size_t)q->padded, S = (size_t)q->sites;
    int opened = rows_open(t, state, from);
    if (opened < 0)
        t->paused = 2;
    if (opened <= 0)
        return opened < 0 ? -BIG : BIG;
    if (b->active == 0) {
        for (int i = 0; i < b->free_count; i++) {
            b->best_rho[i] = 0.0;
            b->best_chosen[i] = 0;
        }
        b->best_count = 0;
        b->next = 0.0;
        b->last = b->total = b->weight_zero = 0.0;
        return -BIG;
    }
    double best = -BIG, mark = -BIG, theta = t->first_step, error;
    int stall = 0;
    for (int it = 0; it < steps; it++) {
        evaluate_parts(t);
        double value = weigh_parts(t, state, &error);
        if (it == 0 && b->asleep && !q->fixed_weights && value - error < 0.0) {
            int woken = rows_wake(t, state, from);
            if (woken < 0)
                return BIG;
            if (woken > 0) {
                evaluate_parts(t);
                value = weigh_parts(t, state, &error);
            }
        }
        if (!q->fixed_weights && !q->weigh_selection && b->active > 1 && value - error < 0.0) {
            double alone = reached_alone(t, state, &error);
            value = alone > -BIG ? alone : weigh_parts(t, state, &error);
        }
        if (value - error > best) {
            best = value - error;
            b->error = error;
            keep_best(t);
        }
        if (best >= 0.0 || it + 1 == steps || tree_must_pause(t))
            break;
        if (best > mark + 0.01 * fabs(best)) {
            mark = best;
            stall = 0;
        } else if (++stall >= THRESHOLD_PATIENCE) {
            stall = 0;
            theta *= THRESHOLD_SHRINK;
            if (theta < THRESHOLD_LEAST_STEP)
                break;
        }
        double norm = 0.0, aim = theta * (THRESHOLD_OVERSHOOT * fabs(b->total) - value);
        int stepped = 0;
        for (int a = 0; a < b->active; a++) {
            double *g = b->gradient + (size_t)a * P;
            int length = b->length[a];
            for (int k = 0; k < length; k++)
                g[k] = k < b->live_count[a] ? 1.0 : 0.0;
            for (int i = 0; i < b->selected_count; i++) {
                const double *column = b->column[(size_t)a * S + (size_t)b->selected[i]];
                if (column)
                    subtract_covered(column, b->u + (size_t)a * P, length, g);
            }
            norm += b->weight[a] * scaled_gradient(b->u + (size_t)a * P, b->live_fixed + (size_t)a * P,
                                                    b->live_scale + (size_t)a * P, length, g);
            t->effort += (b->selected_count + 4.0) * length * 0.5;
        }
        for (int a = 0; a < b->active && norm > 0.0; a++) {
            double *u = b->u + (size_t)a * P, step = aim / norm * q->scenario[b->which[a]].scale;
            subgradient_step(u, u, b->gradient + (size_t)a * P, b->direction, 0.0, step, b->live_fixed + (size_t)a * P,
                             b->length[a]);
        }
        if (!q->fixed_weights && b->active > 1) {
            for (int a = 0; a < b->active && q->weigh_selection; a++)
                b->value[a] = row_value_of_selection(t, a) / q->scenario[b->which[a]].scale;
            stepped = step_weights(b, THRESHOLD_WEIGHT_RATE * theta);
        }
        if (!(norm > 0.0) && !stepped)
            break;
    }
    return best;
}

void bound_slacks(scenario_tree *t, const unsigned char *state)
{
    const scenario_question *q = t->question;
    scenario_bound *b = t->work;
    size_t P = (size_t)q->padded, S = (size_t)q->sites;
    for (int s = 0; s < q->scenarios; s++)
        t->slack[s] = BIG;
    for (int a = 0; a < b->active; a++) {
        const scenario *s = &q->scenario[b->which[a]];
        const double *u = b->best_u + (size_t)a * P;
        int length = b->length[a];
        double served = b->settled[a] + served_cost(u, b->live_fixed + (size_t)a * P, length);
        for (int i = 0; i < b->free_count; i++) {
            double *column = b->column[(size_t)a * S + (size_t)i];
            b->rho[i] = 0.0;
            if (column)
                reduced_costs(&column, 1, u, length, &b->rho[i]);
            b->rho[i] += b->detour[(size_t)a * S + (size_t)i];
            if (s->price)
                b->rho[i] += s->price[b->free_site[i]];
        }
        double saved = choose(q, b, state), terms = q->clients + q->sites + 24.0;
        t->slack[b->which[a]] = s->threshold - served - saved + 4.0 * UNIT_ROUNDOFF * terms * (s->threshold + served - saved);
        t->effort += (b->free_count + 3.0) * length * 0.35;
    }
}
