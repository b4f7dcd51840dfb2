/* The scenarios that count in a state: which have a weight, their costs there, and what children inherit. See scenario.h. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "scenario.h"

scenario_bound *bound_alloc(const scenario_question *q)
{
    scenario_bound *b = calloc(1, sizeof(scenario_bound));
    if (!b)
        return NULL;
    size_t n = (size_t)q->sites + 1, p = (size_t)q->padded + PAD, s = (size_t)q->scenarios + 1;
    b->free_site = malloc(n * sizeof(int));
    b->rho = malloc(n * sizeof(double));
    b->best_rho = malloc(n * sizeof(double));
    b->selected = malloc(n * sizeof(int));
    b->order = malloc(2 * n * sizeof(int));
    b->chosen = malloc(n);
    b->best_chosen = malloc(n);
    b->direction = malloc(p * sizeof(double));
    b->place = malloc(n * sizeof(int));
    b->by_fixed = malloc(n * n * sizeof(double));
    b->of_fixed = malloc(n);
    b->unit = malloc(p * sizeof(double));
    b->ranks = malloc(p * sizeof(int));
    b->in_force = malloc(s * sizeof(int));
    b->force_weight = malloc(s * sizeof(double));
    b->candidate = malloc(n * sizeof(int));
    b->counts = malloc((size_t)longest_count(q->rules) * sizeof(int));
    if (!b->free_site || !b->rho || !b->best_rho || !b->selected || !b->order || !b->chosen || !b->best_chosen ||
        !b->place || !b->by_fixed || !b->of_fixed || !b->direction || !b->unit || !b->ranks || !b->in_force || !b->force_weight ||
        !b->candidate || !b->counts) {
        bound_free(b);
        return NULL;
    }
    for (size_t c = 0; c < p; c++)
        b->unit[c] = 1.0;
    return b;
}

static void free_rows(scenario_bound *b)
{
    free(b->which);
    free(b->weight);
    free(b->best_weight);
    free(b->rest);
    free(b->value);
    free(b->kept_value);
    free(b->kept_weight);
    free(b->served);
    free(b->size);
    free(b->base);
    free(b->settled);
    free(b->detour);
    free(b->u);
    free(b->best_u);
    free(b->all_u);
    free(b->live);
    free(b->live_count);
    free(b->length);
    free(b->live_fixed);
    free(b->fixed);
    free(b->rank_fixed);
    free(b->gradient);
    free(b->column);
    free(b->part);
    b->which = NULL;
    b->base = b->size = b->served = b->kept_weight = b->kept_value = b->settled = b->detour = b->all_u = b->live_fixed = NULL;
    b->live = b->live_count = b->length = NULL;
    b->weight = b->best_weight = b->rest = b->value = b->u = b->best_u = b->fixed = b->gradient = b->part = NULL;
    b->column = NULL;
    b->rank_fixed = NULL;
    b->rows = 0;
}

void bound_free(scenario_bound *b)
{
    if (!b)
        return;
    free_rows(b);
    free(b->block);
    free(b->gathered);
    free(b->free_site);
    free(b->rho);
    free(b->best_rho);
    free(b->selected);
    free(b->order);
    free(b->chosen);
    free(b->best_chosen);
    free(b->direction);
    free(b->place);
    free(b->by_fixed);
    free(b->of_fixed);
    free(b->unit);
    free(b->ranks);
    free(b->in_force);
    free(b->force_weight);
    free(b->candidate);
    free(b->counts);
    free(b);
}

/* Room for so many scenarios with a weight; 0: no memory. */
static int make_rows(scenario_bound *b, const scenario_question *q, int rows)
{
    if (rows <= b->rows)
        return 1;
    size_t r = (size_t)rows + 4, p = (size_t)q->padded, n = (size_t)q->sites;
    free_rows(b);
    b->which = malloc(r * sizeof(int));
    b->weight = malloc(r * sizeof(double));
    b->best_weight = malloc(r * sizeof(double));
    b->rest = malloc(r * sizeof(double));
    b->value = malloc(r * sizeof(double));
    b->kept_value = malloc(r * sizeof(double));
    b->kept_weight = malloc(r * sizeof(double));
    b->served = malloc(r * sizeof(double));
    b->size = malloc(r * sizeof(double));
    b->base = malloc(r * sizeof(double));
    b->settled = malloc(r * sizeof(double));
    b->detour = malloc(r * n * sizeof(double));
    b->live_count = malloc(r * sizeof(int));
    b->length = malloc(r * sizeof(int));
    b->live = malloc(r * p * sizeof(int) + 8);
    b->live_fixed = malloc(r * p * sizeof(double) + 8);
    b->all_u = malloc(r * p * sizeof(double) + 8);
    b->u = malloc(r * p * sizeof(double) + 8);
    b->best_u = malloc(r * p * sizeof(double) + 8);
    b->fixed = malloc(r * p * sizeof(double) + 8);
    b->rank_fixed = malloc(r * p * sizeof(int) + 8);
    b->gradient = malloc(r * p * sizeof(double) + 8);
    b->column = malloc(r * n * sizeof(double *));
    b->part = malloc(r * n * sizeof(double));
    if (!b->base || !b->size || !b->served || !b->kept_weight || !b->kept_value || !b->which || !b->weight ||
        !b->best_weight || !b->rest || !b->value || !b->u || !b->best_u || !b->fixed || !b->rank_fixed || !b->gradient ||
        !b->column || !b->part || !b->settled || !b->detour || !b->live_count || !b->length || !b->live || !b->live_fixed || !b->all_u)
        return 0;
    b->rows = (int)r;
    return 1;
}

VECTORISED static void serve(const double *cost, const int *rank, int padded, int *fixed, double *paid)
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

double row_value_of_selection(scenario_tree *t, int a)
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
    for (size_t c = 0; c < P; c++)
        if (u[c] > fixed[c])
            u[c] = fixed[c];
    live_columns(q, b, a, some);
    live_multipliers(q, b, a);
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

int rows_wake(scenario_tree *t, const unsigned char *state, const multiplier_block *from)
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

int rows_open(scenario_tree *t, const unsigned char *state, const multiplier_block *from)
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
