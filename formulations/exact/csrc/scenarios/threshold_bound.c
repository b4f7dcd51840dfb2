/* The bound of a state of the tree for given weights and multipliers, and steps that improve both. See scenario.h. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "scenario.h"

#define PATIENCE 5          /* steps without progress before the steps shrink */
#define SHRINK 0.6
#define LEAST_STEP 0.05     /* no steps below it */
#define WEIGHT_RATE 0.4     /* of the exponentiated gradient on the weights */
#define NEW_SHARE 0.25      /* weight of the scenarios that have just come in force */
#define LEAST_WEIGHT 1e-3   /* scenarios below it are left out from here on */
#define OVERSHOOT 1e-4      /* the steps aim at this share of the thresholds above what closes */

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
    b->unit = malloc(p * sizeof(double));
    b->ranks = malloc(p * sizeof(int));
    b->in_force = malloc(s * sizeof(int));
    b->force_weight = malloc(s * sizeof(double));
    b->counts = malloc(MAX_LEVELS * n * sizeof(int));
    if (!b->free_site || !b->rho || !b->best_rho || !b->selected || !b->order || !b->chosen || !b->best_chosen ||
        !b->direction || !b->unit || !b->ranks || !b->in_force || !b->force_weight || !b->counts) {
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
    free(b->u);
    free(b->best_u);
    free(b->fixed);
    free(b->rank_fixed);
    free(b->gradient);
    free(b->column);
    free(b->part);
    b->which = NULL;
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
    free(b->free_site);
    free(b->rho);
    free(b->best_rho);
    free(b->selected);
    free(b->order);
    free(b->chosen);
    free(b->best_chosen);
    free(b->direction);
    free(b->unit);
    free(b->ranks);
    free(b->in_force);
    free(b->force_weight);
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
    b->u = malloc(r * p * sizeof(double) + 8);
    b->best_u = malloc(r * p * sizeof(double) + 8);
    b->fixed = malloc(r * p * sizeof(double) + 8);
    b->rank_fixed = malloc(r * p * sizeof(int) + 8);
    b->gradient = malloc(r * p * sizeof(double) + 8);
    b->column = malloc(r * n * sizeof(double *));
    b->part = malloc(r * n * sizeof(double));
    if (!b->which || !b->weight || !b->best_weight || !b->rest || !b->value || !b->u || !b->best_u || !b->fixed ||
        !b->gradient || !b->column || !b->part)
        return 0;
    b->rows = (int)r;
    return 1;
}

/* The fixed replicas and free columns of one scenario. */
VECTORISED static void copy_column(const double *cost, const int *rank, const int *fixed, int padded, double *out)
{
    for (int c = 0; c < padded; c++)
        out[c] = rank[c] < fixed[c] ? cost[c] : BIG;
}

VECTORISED static void serve(const double *cost, const int *rank, int padded, int *fixed, double *paid)
{
    for (int c = 0; c < padded; c++) {
        paid[c] = rank[c] < fixed[c] ? cost[c] : paid[c];
        fixed[c] = rank[c] < fixed[c] ? rank[c] : fixed[c];
    }
}

static void make_columns(scenario_tree *t, const unsigned char *state, int a)
{
    const scenario_question *q = t->question;
    scenario_bound *b = t->work;
    const scenario *s = &q->scenario[b->which[a]];
    size_t P = (size_t)q->padded;
    double *fixed = b->fixed + (size_t)a * P;
    int some = 0, *rank_fixed = b->rank_fixed + (size_t)a * P;
    for (int c = 0; c < q->padded; c++) {
        fixed[c] = BIG;
        rank_fixed[c] = INT_MAX;
    }
    for (int j = 0; j < q->sites; j++)
        if (state[j] == IN && !(s->lost && s->lost[j])) {
            serve(s->cost + (size_t)j * P, s->rank + (size_t)j * P, q->padded, rank_fixed, fixed);
            some = 1;
        }
    for (int i = 0; i < b->free_count; i++) {
        size_t row = (size_t)b->free_site[i] * P;
        double **column = &b->column[(size_t)a * (size_t)q->sites + (size_t)i];
        if (s->lost && s->lost[b->free_site[i]])
            *column = NULL;
        else if (!some)
            *column = (double *)(s->cost + row); /* only read */
        else {
            *column = b->block + ((size_t)a * (size_t)b->free_count + (size_t)i) * P;
            copy_column(s->cost + row, s->rank + row, rank_fixed, q->padded, *column);
        }
    }
    t->effort += (b->free_count + b->in_count + 2.0) * q->padded * 0.5;
}

/* The `most` least rho that the caps allow; their sum. */
static double choose(const scenario_question *q, scenario_bound *b, const unsigned char *state)
{
    int n = b->free_count, most = b->most, count = 0;
    double sum = 0.0;
    memset(b->chosen, 0, (size_t)n);
    if (q->caps->count == 0) {
        for (int i = 0; i < n; i++) { /* insertion into the list of the least so far */
            int at = count;
            if (count == most) {
                if (most == 0 || b->rho[i] >= b->rho[b->selected[count - 1]])
                    continue;
                at = count - 1;
            } else
                count++;
            while (at > 0 && b->rho[b->selected[at - 1]] > b->rho[i]) {
                b->selected[at] = b->selected[at - 1];
                at--;
            }
            b->selected[at] = i;
        }
    } else {
        const cap_levels *caps = q->caps;
        for (int i = 0; i < n; i++)
            b->order[i] = i;
        for (int gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11) /* Shell's sort */
            for (int i = gap; i < n; i++) {
                int moved = b->order[i], at = i;
                for (; at >= gap && b->rho[b->order[at - gap]] > b->rho[moved]; at -= gap)
                    b->order[at] = b->order[at - gap];
                b->order[at] = moved;
            }
        for (int k = 0; k < caps->count; k++) {
            int *held = b->counts + (size_t)k * (size_t)q->sites;
            memset(held, 0, (size_t)caps->labels[k] * sizeof(int));
            for (int j = 0; j < q->sites; j++)
                if (state[j] == IN)
                    held[caps->label[k][j]]++;
        }
        for (int o = 0; o < n && count < most; o++) {
            int site = b->free_site[b->order[o]], fits = 1;
            for (int k = 0; k < caps->count && fits; k++)
                fits = b->counts[(size_t)k * (size_t)q->sites + (size_t)caps->label[k][site]] < caps->cap[k];
            if (!fits)
                continue;
            for (int k = 0; k < caps->count; k++)
                b->counts[(size_t)k * (size_t)q->sites + (size_t)caps->label[k][site]]++;
            b->selected[count++] = b->order[o];
        }
    }
    for (int i = 0; i < count; i++) {
        sum += b->rho[b->selected[i]];
        b->chosen[b->selected[i]] = 1;
    }
    b->selected_count = count;
    return sum;
}

/* X - T of scenario a at the fixed and the selected sites: what the clients pay there, not what the multipliers say. */
static double value_of_selection(scenario_tree *t, int a)
{
    const scenario_question *q = t->question;
    scenario_bound *b = t->work;
    const scenario *s = &q->scenario[b->which[a]];
    size_t P = (size_t)q->padded;
    memcpy(b->ranks, b->rank_fixed + (size_t)a * P, P * sizeof(int));
    memcpy(b->direction, b->fixed + (size_t)a * P, P * sizeof(double));
    for (int i = 0; i < b->selected_count; i++) {
        int site = b->free_site[b->selected[i]];
        if (!(s->lost && s->lost[site]))
            serve(s->cost + (size_t)site * P, s->rank + (size_t)site * P, q->padded, b->ranks, b->direction);
    }
    t->effort += (b->selected_count + 2.0) * q->padded * 0.5;
    double sum = sum_of(b->direction, q->padded);
    return b->rest[a] + (sum < BIG ? sum : 0.0) - s->threshold; /* no site is left to serve: the least possible cost */
}

/* The bound at (weight, u); writes rho, the selection and the values of the scenarios there. */
static double evaluate(scenario_tree *t, const unsigned char *state, double *error)
{
    const scenario_question *q = t->question;
    scenario_bound *b = t->work;
    size_t P = (size_t)q->padded, S = (size_t)q->sites;
    double constant = 0.0, magnitude = 0.0, served_all = 0.0;
    for (int i = 0; i < b->free_count; i++)
        b->rho[i] = 0.0;
    for (int a = 0; a < b->active; a++) {
        const scenario *s = &q->scenario[b->which[a]];
        const double *u = b->u + (size_t)a * P;
        double share = b->weight[a] / s->scale, threshold = q->fixed_weights ? 0.0 : s->threshold;
        double served = served_cost(u, b->fixed + (size_t)a * P, q->padded), *part = b->part + (size_t)a * S;
        for (int i = 0; i < b->free_count; i++) {
            double *column = b->column[(size_t)a * S + (size_t)i];
            part[i] = 0.0;
            if (!column)
                continue;
            reduced_costs(&column, 1, u, q->padded, &part[i]);
            b->rho[i] += (s->discount ? share - s->discount[b->free_site[i]] : share) * part[i];
        }
        b->value[a] = b->rest[a] + served - threshold;
        constant += share * b->value[a];
        served_all += share * served;
        magnitude += share * (fabs(b->rest[a]) + fabs(threshold) + served);
        t->effort += (b->free_count + 3.0) * q->padded * 0.35 + 100.0;
    }
    if (q->fixed_weights) {
        constant -= q->total;
        magnitude += fabs(q->total);
    }
    double least = choose(q, b, state);
    for (int i = 0; i < b->selected_count; i++)
        magnitude += 2.0 * fabs(b->rho[b->selected[i]]);
    for (int a = 0; a < b->active && !q->weigh_selection; a++) {
        for (int i = 0; i < b->selected_count; i++)
            b->value[a] += b->part[(size_t)a * S + (size_t)b->selected[i]];
        b->value[a] /= q->scenario[b->which[a]].scale;
    }
    double terms = q->clients + q->sites + b->active + 24.0;
    *error = 2.0 * UNIT_ROUNDOFF * (terms * magnitude + 6.0 * (b->selected_count + 2.0) * served_all);
    t->bounds++;
    return constant + least;
}

static void keep_best(scenario_tree *t)
{
    const scenario_question *q = t->question;
    scenario_bound *b = t->work;
    memcpy(b->best_u, b->u, (size_t)b->active * (size_t)q->padded * sizeof(double));
    memcpy(b->best_weight, b->weight, (size_t)b->active * sizeof(double));
    memcpy(b->best_rho, b->rho, (size_t)b->free_count * sizeof(double));
    memcpy(b->best_chosen, b->chosen, (size_t)b->free_count);
    b->next = BIG;
    b->last = -BIG;
    for (int i = 0; i < b->free_count; i++) {
        if (b->chosen[i] && b->rho[i] > b->last)
            b->last = b->rho[i];
        if (!b->chosen[i] && b->rho[i] < b->next)
            b->next = b->rho[i];
    }
    if (b->next > 0.0)
        b->next = 0.0;
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
        if (weight == 0.0)
            continue;
        b->which[active] = b->in_force[k];
        b->weight[active] = weight;
        if (weight < 0.0)
            fresh++;
        else
            old += weight;
        if (at < 0)
            at = zero;
        double *u = b->u + (size_t)active * P;
        if (at >= 0)
            memcpy(u, from->u + (size_t)at * P, P * sizeof(double));
        else
            u[0] = -1.0; /* marks: none, see below */
        active++;
    }
    b->active = active;
    for (int a = 0; a < active && !q->fixed_weights; a++) {
        if (old > 0.0 && fresh)
            b->weight[a] = b->weight[a] < 0.0 ? NEW_SHARE / fresh : b->weight[a] * (1.0 - NEW_SHARE) / old;
        else
            b->weight[a] = b->weight[a] < 0.0 ? 1.0 / fresh : b->weight[a] / old;
    }
    return 1;
}

double bound_state(scenario_tree *t, const unsigned char *state, const multiplier_block *from, int steps)
{
    const scenario_question *q = t->question;
    scenario_bound *b = t->work;
    size_t P = (size_t)q->padded, S = (size_t)q->sites;
    b->free_count = b->in_count = b->active = 0;
    for (int j = 0; j < q->sites; j++) {
        if (state[j] == FREE)
            b->free_site[b->free_count++] = j;
        b->in_count += state[j] == IN;
    }
    b->most = q->replicas_max - b->in_count;
    if (b->most > b->free_count)
        b->most = b->free_count;
    if (!begin(t, state, from)) {
        t->paused = 2;
        return -BIG;
    }
    size_t need = (size_t)b->active * (size_t)b->free_count * P;
    if (need > b->capacity) {
        free(b->block);
        b->block = NULL;
        b->capacity = 0;
        b->block = malloc(need * sizeof(double));
        if (!b->block) {
            t->paused = 2;
            return -BIG;
        }
        b->capacity = need;
    }
    for (int a = 0; a < b->active; a++) {
        b->rest[a] = q->rest(q->self, b->which[a], state, b->most);
        if (b->rest[a] >= BIG)
            return BIG;
        make_columns(t, state, a);
        double *u = b->u + (size_t)a * P, *fixed = b->fixed + (size_t)a * P;
        const double *first = q->scenario[b->which[a]].first;
        if (P && u[0] < 0.0 && first)
            memcpy(u, first, P * sizeof(double));
        else if (P && u[0] < 0.0) /* the mean cost of the free sites, at most that of the fixed ones */
            for (size_t c = 0; c < P; c++) {
                double sum = 0.0;
                for (int i = 0; i < b->free_count; i++)
                    sum += q->scenario[b->which[a]].cost[(size_t)b->free_site[i] * P + c];
                u[c] = b->free_count ? sum / b->free_count : fixed[c] < BIG ? fixed[c] : 0.0;
            }
        for (size_t c = 0; c < P; c++)
            if (u[c] > fixed[c])
                u[c] = fixed[c];
    }
    if (b->active == 0) {
        for (int i = 0; i < b->free_count; i++) {
            b->best_rho[i] = 0.0;
            b->best_chosen[i] = 0;
        }
        b->next = 0.0;
        b->last = b->total = b->weight_zero = 0.0;
        return -BIG;
    }
    double best = -BIG, mark = -BIG, theta = 1.0, error;
    int stall = 0;
    for (int it = 0; it < steps; it++) {
        double value = evaluate(t, state, &error);
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
        } else if (++stall >= PATIENCE) {
            stall = 0;
            theta *= SHRINK;
            if (theta < LEAST_STEP)
                break;
        }
        double norm = 0.0, aim = theta * (OVERSHOOT * fabs(b->total) - value), mean = 0.0, spread = 0.0, sum = 0.0;
        for (int a = 0; a < b->active; a++) {
            double *g = b->gradient + (size_t)a * P;
            for (int c = 0; c < q->padded; c++)
                g[c] = c < q->clients ? 1.0 : 0.0;
            for (int i = 0; i < b->selected_count; i++) {
                const double *column = b->column[(size_t)a * S + (size_t)b->selected[i]];
                if (column)
                    subtract_covered(column, b->u + (size_t)a * P, q->padded, g);
            }
            norm += b->weight[a] * scaled_gradient(b->u + (size_t)a * P, b->fixed + (size_t)a * P, b->unit, q->padded, g);
            t->effort += (b->selected_count + 4.0) * q->padded * 0.5;
        }
        for (int a = 0; a < b->active && norm > 0.0; a++) {
            double *u = b->u + (size_t)a * P, step = aim / norm * q->scenario[b->which[a]].scale;
            subgradient_step(u, u, b->gradient + (size_t)a * P, b->direction, 0.0, step, b->fixed + (size_t)a * P,
                             q->padded);
        }
        if (!q->fixed_weights && b->active > 1) {
            for (int a = 0; a < b->active; a++) {
                if (q->weigh_selection)
                    b->value[a] = value_of_selection(t, a) / q->scenario[b->which[a]].scale;
                mean += b->weight[a] * b->value[a];
            }
            for (int a = 0; a < b->active; a++)
                if (fabs(b->value[a] - mean) > spread)
                    spread = fabs(b->value[a] - mean);
            if (spread > 0.0)
                for (int a = 0; a < b->active; a++) {
                    b->weight[a] *= exp(WEIGHT_RATE * theta * (b->value[a] - mean) / spread);
                    sum += b->weight[a];
                }
            for (int a = 0; a < b->active && spread > 0.0; a++)
                b->weight[a] /= sum;
        }
        if (!(norm > 0.0) && !(spread > 0.0))
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
        double served = served_cost(u, b->fixed + (size_t)a * P, q->padded);
        for (int i = 0; i < b->free_count; i++) {
            double *column = b->column[(size_t)a * S + (size_t)i];
            b->rho[i] = 0.0;
            if (column)
                reduced_costs(&column, 1, u, q->padded, &b->rho[i]);
        }
        double saved = choose(q, b, state), terms = q->clients + q->sites + 24.0;
        t->slack[b->which[a]] = s->threshold - served - saved + 4.0 * UNIT_ROUNDOFF * terms * (s->threshold + served - saved);
        t->effort += (b->free_count + 3.0) * q->padded * 0.35;
    }
}

/* The best weights and multipliers, for the children; NULL: no memory. */
multiplier_block *bound_block(const scenario_tree *t, const multiplier_block *from)
{
    const scenario_bound *b = t->work;
    size_t P = (size_t)t->question->padded;
    int dropped = 0;
    for (int m = 0; from && m < from->count; m++)
        dropped += from->weight[m] == 0.0;
    multiplier_block *made = block_make(b->active + dropped, t->question->padded);
    if (!made)
        return NULL;
    for (int a = 0; a < b->active; a++) {
        made->which[a] = b->which[a];
        made->weight[a] = b->best_weight[a] < LEAST_WEIGHT && !t->question->fixed_weights ? 0.0 : b->best_weight[a];
        memcpy(made->u + (size_t)a * P, b->best_u + (size_t)a * P, P * sizeof(double));
    }
    int at = b->active;
    for (int m = 0; from && m < from->count; m++)
        if (from->weight[m] == 0.0) {
            made->which[at] = from->which[m];
            made->weight[at] = 0.0;
            memcpy(made->u + (size_t)at * P, from->u + (size_t)m * P, P * sizeof(double));
            at++;
        }
    return made;
}
