/* The bound of a state of the tree for given weights and multipliers, and steps that improve both. See scenario.h. */
#include <math.h>
#include <string.h>

#include "scenario.h"

/* The `most` least rho, without those above 0 that the least size does not need; their sum. */
static double choose_freely(const scenario_question *q, scenario_bound *b)
{
    int n = b->free_count, most = b->most, least = q->replicas_min - b->in_count, count = 0;
    double sum = 0.0;
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
            norm += b->weight[a] * scaled_gradient(b->u + (size_t)a * P, b->live_fixed + (size_t)a * P, b->unit, length, g);
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
