/* Depth-first search with Lagrangean bounds of several scenarios at once. The mathematics: ../../scenario_search.py. */
#include "threshold_tree.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

#define LEAST_WEIGHT 1e-3 /* of a scenario */
#define TILT 0.4          /* of the exponentiated gradient */
#define SLOW 0.01         /* progress of PATIENCE steps below which the steps get shorter */
#define COOLING 0.6
#define COLD 0.05
#define AIM 1e-4          /* the bound to step towards, in thresholds */
#define VOTER_EFFORT 2e6  /* elementary operations of a search for voters in a part: some 200 evaluations ... */
#define MOST_VOTER_EFFORT 2e8 /* ... at the root and at a complete set: 0.1 s */
enum { PATIENCE = 5 };

typedef struct part {
    unsigned char *inside, *open;
    double *u;      /* scenarios x padded */
    double *weight; /* scenarios */
} part;

typedef struct tree_scratch {
    double **column;   /* scenarios x sites: masked costs of the open sites */
    double *masked;    /* scenarios x sites x padded */
    double *home;      /* scenarios x padded: cost of each client's choice among I */
    double *rho, *gain, *best_gain, *drop, *out, *term, *value, *missed, *weight; /* by site, or by scenario */
    double *u, *slope, *direction; /* scenarios x padded */
    int *served;       /* padded: rank of the choice */
    int *open, *chosen, *best_chosen;
    int *held, *voters;
    unsigned char *near;
    unsigned char *taken, *none, *state;
    void *block;
} tree_scratch;

double least_quorum_wait(void *term, const unsigned char *state, int room)
{
    const quorum_term *q = term;
    int found = 0;
    for (int i = 0; i < q->able; i++) {
        int site = q->site[i];
        if (state[site] == IN || (state[site] == FREE && room-- > 0))
            if (found++ == q->place)
                return q->wait[i];
    }
    return BIG;
}

static void mark(threshold_tree *t, const unsigned char *inside, const unsigned char *open)
{
    for (int j = 0; j < t->sites; j++)
        t->scratch->state[j] = inside[j] ? IN : open[j] ? FREE : OUT;
}

static double ask(threshold_tree *t, const scenario *x, const unsigned char *inside, const unsigned char *open, int room)
{
    mark(t, inside, open);
    return x->voters(x->term, t->scratch->state, room);
}

static int *labels_of(const threshold_tree *t, int level)
{
    return t->caps.label[level];
}

/* Take away open sites whose domain is full; 0 where I itself breaks a cap. */
static int close_full_domains(threshold_tree *t, const unsigned char *inside, unsigned char *open)
{
    int *held = t->scratch->held;
    for (int g = 0; g < t->caps.count; g++) {
        const int *label = labels_of(t, g);
        memset(held, 0, (size_t)t->caps.labels[g] * sizeof(int));
        for (int j = 0; j < t->sites; j++)
            held[label[j]] += inside[j];
        for (int j = 0; j < t->sites; j++) {
            if (held[label[j]] > t->caps.cap[g])
                return 0;
            if (held[label[j]] == t->caps.cap[g])
                open[j] = 0;
        }
    }
    return 1;
}

/* Ranks and costs of the clients' choices among `inside`. */
static void serve(threshold_tree *t, const unsigned char *inside)
{
    tree_scratch *w = t->scratch;
    size_t padded = (size_t)t->padded;
    for (int c = 0; c < t->padded; c++)
        w->served[c] = t->sites;
    for (int j = 0; j < t->sites; j++)
        if (inside[j])
            for (int s = 0; s < t->scenarios; s++) {
                const int *rank = t->rank + (size_t)j * padded;
                const double *cost = t->scenario[s].costs + (size_t)j * padded;
                double *home = w->home + (size_t)s * padded;
                for (int c = 0; c < t->padded; c++)
                    home[c] = rank[c] < w->served[c] ? cost[c] : home[c];
                if (s == t->scenarios - 1)
                    for (int c = 0; c < t->padded; c++)
                        w->served[c] = rank[c] < w->served[c] ? rank[c] : w->served[c];
            }
}

/* Costs of the open sites where a client prefers them to its choice, BIG elsewhere. */
static int mask_columns(threshold_tree *t, const unsigned char *open)
{
    tree_scratch *w = t->scratch;
    size_t padded = (size_t)t->padded;
    int n = 0;
    for (int j = 0; j < t->sites; j++) {
        if (!open[j])
            continue;
        const int *rank = t->rank + (size_t)j * padded;
        for (int s = 0; s < t->scenarios; s++) {
            size_t at = (size_t)s * (size_t)t->sites + (size_t)n;
            const double *cost = t->scenario[s].costs + (size_t)j * padded;
            double *column = w->column[at] = w->masked + at * padded;
            for (int c = 0; c < t->padded; c++)
                column[c] = rank[c] < w->served[c] ? cost[c] : BIG;
        }
        w->open[n++] = j;
    }
    return n;
}

/* The `room` least of n gains, in order; ties to the first. */
static void choose_least(const double *gain, int n, int room, int *chosen)
{
    int held = 0;
    for (int i = 0; i < n; i++) {
        if (held == room && gain[i] >= gain[chosen[held - 1]])
            continue;
        int at = held < room ? held++ : held - 1;
        for (; at > 0 && gain[chosen[at - 1]] > gain[i]; at--)
            chosen[at] = chosen[at - 1];
        chosen[at] = i;
    }
}

/* Value of each scenario, less its threshold, of I with the chosen sites. */
static void value_selection(threshold_tree *t, int room)
{
    tree_scratch *w = t->scratch;
    size_t padded = (size_t)t->padded;
    for (int s = 0; s < t->scenarios; s++) {
        const scenario *x = &t->scenario[s];
        double sum = 0.0;
        for (int c = 0; c < t->clients; c++) {
            int rank = w->served[c];
            double cost = w->home[(size_t)s * padded + (size_t)c];
            for (int i = 0; i < room; i++) {
                size_t at = (size_t)w->open[w->chosen[i]] * padded + (size_t)c;
                if (t->rank[at] < rank) {
                    rank = t->rank[at];
                    cost = x->costs[at];
                }
            }
            sum += cost;
        }
        w->missed[s] = (x->constant + sum + w->term[s] - x->threshold) / x->scale;
    }
}

static void tilt_weights(threshold_tree *t, double heat)
{
    tree_scratch *w = t->scratch;
    double mean = 0.0, spread = 0.0, sum = 0.0;
    int n = t->scenarios;
    for (int s = 0; s < n; s++)
        mean += w->missed[s] / n;
    for (int s = 0; s < n; s++)
        spread = fmax(spread, fabs(w->missed[s] - mean));
    if (!(spread > 0.0 && spread < BIG))
        return;
    for (int s = 0; s < n; s++)
        sum += w->weight[s] *= exp(TILT * heat * (w->missed[s] - mean) / spread);
    for (int s = 0; s < n; s++)
        w->weight[s] = fmax(w->weight[s] / sum, LEAST_WEIGHT);
    for (int s = sum = 0; s < n; s++)
        sum += w->weight[s];
    for (int s = 0; s < n; s++)
        w->weight[s] /= sum;
}

/* Remove from a slope what would raise a multiplier beyond the cost of the client's choice; its squared length. */
static double squared_slope(const double *u, const double *home, int padded, double *slope)
{
    double sum = 0.0;
    for (int c = 0; c < padded; c++) {
        slope[c] = slope[c] > 0.0 && u[c] >= home[c] ? 0.0 : slope[c];
        sum += slope[c] * slope[c];
    }
    return sum;
}

/* Best bound of some steps; its multipliers and weights are left in the part, its gains and selection in the
   scratch. Positive: the part is closed. */
static double bound_part(threshold_tree *t, part *p, int n, int room, int steps)
{
    tree_scratch *w = t->scratch;
    size_t padded = (size_t)t->padded;
    double best = -INFINITY, reached = -INFINITY, heat = 1.0;
    int slow = 0;
    memcpy(w->u, p->u, (size_t)t->scenarios * padded * sizeof(double));
    memcpy(w->weight, p->weight, (size_t)t->scenarios * sizeof(double));
    for (int s = 0; s < t->scenarios; s++)
        for (size_t c = 0; c < padded; c++)
            w->u[(size_t)s * padded + c] = fmin(w->u[(size_t)s * padded + c], w->home[(size_t)s * padded + c]);
    for (int step = 0; step < steps; step++) {
        double value = 0.0, norm = 0.0, goal = 0.0;
        t->bounds++;
        t->work += (double)n * t->padded * t->scenarios;
        memset(w->gain, 0, (size_t)n * sizeof(double));
        for (int s = 0; s < t->scenarios; s++) {
            double share = w->weight[s] / t->scenario[s].scale, *rho = w->rho + (size_t)s * (size_t)t->sites;
            reduced_costs(w->column + (size_t)s * (size_t)t->sites, n, w->u + (size_t)s * padded, t->padded, rho);
            for (int i = 0; i < n; i++)
                w->gain[i] += share * rho[i];
        }
        choose_least(w->gain, n, room, w->chosen);
        for (int s = 0; s < t->scenarios; s++) {
            const scenario *x = &t->scenario[s];
            const double *u = w->u + (size_t)s * padded, *home = w->home + (size_t)s * padded;
            double *slope = w->slope + (size_t)s * padded;
            double sum = x->constant + served_cost(u, home, t->padded) + w->term[s] - x->threshold;
            for (size_t c = 0; c < padded; c++)
                slope[c] = 1.0;
            for (int i = 0; i < room; i++) {
                sum += w->rho[(size_t)s * (size_t)t->sites + (size_t)w->chosen[i]];
                subtract_covered(w->column[(size_t)s * (size_t)t->sites + (size_t)w->chosen[i]], u, t->padded, slope);
            }
            value += w->weight[s] * sum / x->scale;
            norm += w->weight[s] / x->scale * squared_slope(u, home, t->padded, slope);
            goal += w->weight[s] * x->threshold / x->scale;
        }
        if (value > best) {
            best = value;
            memcpy(p->u, w->u, (size_t)t->scenarios * padded * sizeof(double));
            memcpy(p->weight, w->weight, (size_t)t->scenarios * sizeof(double));
            memcpy(w->best_gain, w->gain, (size_t)n * sizeof(double));
            memcpy(w->best_chosen, w->chosen, (size_t)room * sizeof(int));
        }
        if (best > 0.0)
            break;
        if (++slow == PATIENCE) {
            if (best < reached + SLOW * fabs(reached))
                heat *= COOLING;
            slow = 0;
            reached = best;
            if (heat < COLD)
                break;
        }
        if (!(norm > 0.0) && t->scenarios == 1)
            break;
        if (t->scenarios > 1)
            value_selection(t, room);
        for (int s = 0; norm > 0.0 && s < t->scenarios; s++)
            subgradient_step(w->u + (size_t)s * padded, w->u + (size_t)s * padded, w->slope + (size_t)s * padded,
                             w->direction, 0.0, heat * (AIM * goal - value) / norm, w->home + (size_t)s * padded,
                             t->padded);
        if (t->scenarios > 1)
            tilt_weights(t, heat);
    }
    return best;
}

/* Voters that keep the late operations within cutoff[s] and the quorum waits too, where the bounds of the terms
   do not settle it; UNKNOWN where there is no such scenario. */
static voters_found look_for_voters(threshold_tree *t, const unsigned char *state, int room, const double *cutoff,
                                    double effort)
{
    tree_scratch *w = t->scratch;
    late_voters *v = NULL;
    const unsigned char *near = NULL;
    int far = 0, at = 0;
    for (int s = 0; s < t->scenarios; s++) {
        const quorum_term *q = t->scenario[s].wait;
        if (t->scenario[s].late) {
            v = t->scenario[s].late;
            at = s;
        } else {
            memset(w->near, 0, (size_t)t->sites);
            for (int i = 0; i < q->able && q->wait[i] <= cutoff[s]; i++)
                w->near[q->site[i]] = 1;
            near = w->near;
            far = -q->place;
        }
    }
    if (!v || v->ordered)
        return VOTERS_UNKNOWN;
    double times = v->times, rounds = v->kinds ? v->votes[v->kinds - 1] : 0;
    double cost = times * (v->members * (v->needed + 1) + 4) + (rounds > 1 ? (rounds - 1) * times * times / 2 : 0.0);
    long before = v->computed, most = (long)(effort / cost) + 2 * v->members;
    voters_found found = find_voters(v, state, room, cutoff[at], near, far + v->members, most, w->voters);
    t->work += cost * (double)(v->computed - before);
    return found;
}

/* The same for a part of the search, from what the bounds leave of the thresholds. */
static voters_found voters_of_part(threshold_tree *t, part *p, int n, int room, double effort)
{
    tree_scratch *w = t->scratch;
    size_t padded = (size_t)t->padded;
    for (int s = 0; s < t->scenarios; s++) {
        const double *u = p->u + (size_t)s * padded;
        double *rho = w->rho + (size_t)s * (size_t)t->sites;
        double sum = t->scenario[s].constant + served_cost(u, w->home + (size_t)s * padded, t->padded);
        reduced_costs(w->column + (size_t)s * (size_t)t->sites, n, u, t->padded, rho);
        choose_least(rho, n, room, w->chosen);
        for (int i = 0; i < room; i++)
            sum += rho[w->chosen[i]];
        w->value[s] = t->scenario[s].threshold - sum;
    }
    mark(t, p->inside, p->open);
    return look_for_voters(t, w->state, room, w->value, effort);
}

/* Every set that is left, where at most one more site fits. */
static int last_site(threshold_tree *t, part *p, int held, int n)
{
    tree_scratch *w = t->scratch;
    size_t padded = (size_t)t->padded;
    for (int i = held >= t->least ? -1 : 0; i < n; i++) {
        int kept = 1;
        int j = i < 0 ? -1 : w->open[i];
        t->leaves++;
        if (j >= 0)
            p->inside[j] = 1;
        for (int s = 0; kept && s < t->scenarios; s++) {
            const scenario *x = &t->scenario[s];
            const double *home = w->home + (size_t)s * padded;
            double sum = x->constant;
            if (j < 0)
                sum += sum_of(home, t->padded);
            else {
                const double *column = w->column[(size_t)s * (size_t)t->sites + (size_t)i];
                double *cost = w->direction;
                for (int c = 0; c < t->padded; c++)
                    cost[c] = column[c] < BIG ? column[c] : home[c];
                sum += sum_of(cost, t->padded);
            }
            kept = sum <= x->threshold && sum + ask(t, x, p->inside, w->none, 0) <= x->threshold;
            w->value[s] = x->threshold - sum;
        }
        kept = kept && look_for_voters(t, w->state, 0, w->value, MOST_VOTER_EFFORT) != VOTERS_NONE;
        int found = kept ? t->leaf(t, p->inside) : GO_ON;
        if (j >= 0)
            p->inside[j] = 0;
        if (found != GO_ON)
            return found;
    }
    return GO_ON;
}

/* What the bound rises by when a site that the voters' terms prefer is left out. */
static void value_drops(threshold_tree *t, part *p, int room)
{
    tree_scratch *w = t->scratch;
    memset(w->drop, 0, (size_t)t->sites * sizeof(double));
    for (int s = 0; s < t->scenarios; s++) {
        const scenario *x = &t->scenario[s];
        for (int i = 0, tried = 0; i < x->firsts && tried < x->tried; i++) {
            int j = x->first[i];
            if (!p->inside[j] && !p->open[j])
                continue;
            tried++;
            if (!p->open[j])
                continue;
            p->open[j] = 0;
            double rise = ask(t, x, p->inside, p->open, room) - w->term[s];
            p->open[j] = 1;
            if (rise > 0.0)
                w->drop[j] += p->weight[s] / x->scale * rise;
        }
    }
}

static int search_part(threshold_tree *t, int depth, int steps);

/* Fix sites by their reduced costs; the site to branch on, or -1 where some site went in, -2 where none is open. */
static int fix_or_branch(threshold_tree *t, part *p, int n, int room, double bound, int voters)
{
    tree_scratch *w = t->scratch;
    double after = 0.0, last = w->best_gain[w->best_chosen[room - 1]], most = -INFINITY;
    int went_in = 0, branch = -2;
    memset(w->taken, 0, (size_t)t->sites);
    for (int i = 0; i < room; i++)
        w->taken[w->open[w->best_chosen[i]]] = 1;
    if (n > room) {
        after = INFINITY;
        for (int i = 0; i < n; i++)
            if (!w->taken[w->open[i]] && w->best_gain[i] < after)
                after = w->best_gain[i];
    }
    for (int i = 0; i < n; i++) {
        int j = w->open[i];
        double gain = w->best_gain[i], out = (w->taken[j] ? after - gain : 0.0) + w->drop[j];
        if (!w->taken[j] && bound - last + gain > 0.0)
            p->open[j] = 0;
        else if (bound + out > 0.0) {
            p->inside[j] = 1;
            p->open[j] = 0;
            went_in = 1;
        } else if (out > most) {
            most = out;
            branch = j;
        }
    }
    for (int i = 0; i < voters && most <= 0.0; i++) /* nothing else tells sites apart */
        if (p->open[w->voters[i]])
            return went_in ? -1 : w->voters[i];
    return went_in ? -1 : branch;
}

static int descend(threshold_tree *t, int depth, const part *from, int site, int inside)
{
    part *to = &t->part[depth + 1];
    memcpy(to->inside, from->inside, (size_t)t->sites);
    memcpy(to->open, from->open, (size_t)t->sites);
    memcpy(to->u, from->u, (size_t)t->scenarios * (size_t)t->padded * sizeof(double));
    memcpy(to->weight, from->weight, (size_t)t->scenarios * sizeof(double));
    to->inside[site] = (unsigned char)inside;
    to->open[site] = 0;
    return search_part(t, depth + 1, t->steps);
}

static int search_part(threshold_tree *t, int depth, int steps)
{
    tree_scratch *w = t->scratch;
    part *p = &t->part[depth];
    for (;; steps = t->steps) {
        int held = 0, n;
        t->nodes++;
        t->work += 4.0 * t->sites * t->padded;
        if (t->work > WORK_BETWEEN_PAUSES) {
            t->work = 0.0;
            if (t->pause(t) == STOP)
                return STOP;
        }
        if (!close_full_domains(t, p->inside, p->open))
            return GO_ON;
        for (int j = 0; j < t->sites; j++)
            held += p->inside[j];
        serve(t, p->inside);
        n = mask_columns(t, p->open);
        if (held > t->most || held + n < t->least)
            return GO_ON;
        int room = t->most - held < n ? t->most - held : n;
        if (room == 0)
            return last_site(t, p, held, 0);
        for (int s = 0; s < t->scenarios; s++) {
            w->term[s] = ask(t, &t->scenario[s], p->inside, p->open, room);
            if (!(w->term[s] < BIG))
                return GO_ON;
        }
        if (room == 1)
            return last_site(t, p, held, n);
        double bound = bound_part(t, p, n, room, steps);
        if (bound > 0.0)
            return GO_ON;
        voters_found voters = voters_of_part(t, p, n, room, depth ? VOTER_EFFORT : MOST_VOTER_EFFORT);
        if (voters == VOTERS_NONE)
            return GO_ON;
        value_drops(t, p, room);
        int site = fix_or_branch(t, p, n, room, bound, voters == VOTERS_FOUND ? t->scenario[0].late->members : 0);
        if (site < 0)
            continue;
        int found = descend(t, depth, p, site, 1);
        if (found != GO_ON)
            return found;
        p->open[site] = 0;
    }
}

static int make_room(threshold_tree *t)
{
    tree_scratch *w = t->scratch;
    size_t sites = (size_t)t->sites, padded = (size_t)t->padded, n = (size_t)t->scenarios;
    int domains = 1;
    for (int g = 0; g < t->caps.count; g++)
        domains = t->caps.labels[g] > domains ? t->caps.labels[g] : domains;
    double *d = w->block = calloc(n * sites * padded + 4 * n * padded + padded + n * sites + 4 * sites + 4 * n +
                                      (sites + 2) * (n * padded + n),
                                  sizeof(double));
    w->column = calloc(n * sites, sizeof(double *));
    w->served = calloc(padded + 4 * sites + (size_t)domains, sizeof(int));
    w->taken = calloc(4 * sites + 2 * sites * (sites + 2), 1);
    t->part = calloc(sites + 2, sizeof(part));
    if (!d || !w->column || !w->served || !w->taken || !t->part)
        return 0;
    w->masked = d, d += n * sites * padded;
    w->home = d, d += n * padded;
    w->u = d, d += n * padded;
    w->slope = d, d += n * padded;
    w->direction = d, d += n * padded;
    d += padded;
    w->rho = d, d += n * sites;
    w->gain = d, d += sites;
    w->best_gain = d, d += sites;
    w->drop = d, d += sites;
    w->out = d, d += sites;
    w->term = d, d += n;
    w->value = d, d += n;
    w->missed = d, d += n;
    w->weight = d, d += n;
    w->open = w->served + padded;
    w->chosen = w->open + sites;
    w->best_chosen = w->chosen + sites;
    w->voters = w->best_chosen + sites;
    w->held = w->voters + sites;
    w->none = w->taken + sites;
    w->near = w->none + sites;
    w->state = w->near + sites;
    for (size_t i = 0; i < sites + 2; i++) {
        t->part[i].inside = w->state + sites + 2 * sites * i;
        t->part[i].open = t->part[i].inside + sites;
        t->part[i].u = d, d += n * padded;
        t->part[i].weight = d, d += n;
    }
    return 1;
}

int search_threshold_tree(threshold_tree *t)
{
    tree_scratch scratch = {0};
    int found = STOP;
    t->scratch = &scratch;
    t->part = NULL;
    t->nodes = t->bounds = t->leaves = 0;
    t->work = 0.0;
    if ((t->out_of_memory = !make_room(t)) == 0) {
        part *root = &t->part[0];
        for (int j = 0; j < t->sites; j++) {
            root->inside[j] = t->must[j] || j == t->leader;
            root->open[j] = t->may[j] && !root->inside[j];
        }
        serve(t, root->inside);
        for (size_t i = 0; i < (size_t)t->scenarios * (size_t)t->padded; i++)
            root->u[i] = 0.5 * scratch.home[i];
        for (int s = 0; s < t->scenarios; s++)
            root->weight[s] = 1.0 / t->scenarios;
        found = search_part(t, 0, t->root_steps);
    }
    free(scratch.block);
    free(scratch.column);
    free(scratch.served);
    free(scratch.taken);
    free(t->part);
    t->scratch = NULL;
    t->part = NULL;
    return found;
}
