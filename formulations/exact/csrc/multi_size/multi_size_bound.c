/* Several numbers of replicas at once: one scan and one tree per leader for all of them.
 *
 * At given multipliers the reduced costs are the same for every number n of replicas; only how many of them are
 * added up differs. So one evaluation bounds every n. A frame keeps the set of sizes that are `open` in it:
 * those that no multipliers, here or in a frame above, have closed. Its bound is the least over them of
 * (bound of n) - shift[n], where shift[n] is what closes at n, less x->cutoff: one scale for all sizes, and
 * the steps go where most is missing. Scores are lowered by the shift too. A better configuration of n
 * lowers shift[n], so whatever was closed stays closed. */
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

/* Where what is known of a leader is kept. */
size_t row_of(const context *x, int leader)
{
    return leader < 0 ? (size_t)x->p.sites : (size_t)leader;
}

void span_free(context *x)
{
    span *s = &x->span;
    free(s->size);
    free(s->at);
    free(s->shift);
    free(s->least);
    free(s->loose);
    free(s->bound);
    free(s->score);
    free(s->leader);
    free(s->replicas);
    free(s->open);
    free(s->beta);
    free(s->u);
    memset(s, 0, sizeof(*s));
}

/* Memory for `count` sizes, none of them known. */
int span_prepare(context *x, const int *size, int count)
{
    span *s = &x->span;
    size_t S = (size_t)x->p.sites, n = (size_t)count;
    span_free(x);
    s->count = count;
    s->size = malloc(n * sizeof(int));
    s->at = malloc((S + 2) * sizeof(int));
    s->shift = malloc(n * 8);
    s->least = malloc(n * 8);
    s->loose = malloc(n * 8);
    s->bound = malloc(n * 8);
    s->score = malloc(n * 8);
    s->leader = malloc(n * sizeof(int));
    s->replicas = malloc(n * S * sizeof(int));
    s->open = malloc((S + 1) * sizeof(size_set));
    radius_answer *radii = realloc(x->radii, (S + 2) * n * sizeof(radius_answer));
    x->radii = radii ? radii : x->radii;
    if (!radii || !s->size || !s->at || !s->shift || !s->least || !s->loose || !s->bound || !s->score || !s->leader ||
        !s->replicas || !s->open)
        return 0;
    memcpy(s->size, size, n * sizeof(int));
    for (size_t i = 0; i < S + 2; i++)
        s->at[i] = -1;
    for (int k = 0; k < count; k++)
        s->at[size[k]] = k;
    return 1;
}

/* From here on x->score and x->cutoff are those of the size that costs most, and the others are shifted. */
void span_begin(context *x)
{
    span *s = &x->span;
    int middle = s->count / 2;
    double highest = 0.0;
    for (int k = 0; k < s->count; k++) {
        s->shift[k] = cutoff_of(x, s->score[k]);
        highest = s->shift[k] > highest ? s->shift[k] : highest;
    }
    s->largest = highest;
    x->score = x->cutoff = highest;
    for (int k = 0; k < s->count; k++)
        s->shift[k] -= highest;
    x->leader = s->leader[middle];
    x->replica_count = s->size[middle];
    memcpy(x->replicas, s->replicas + (size_t)middle * (size_t)x->p.sites, (size_t)s->size[middle] * sizeof(int));
    x->p.replicas_min = s->size[0];
    x->p.replicas_max = s->size[s->count - 1];
    s->mask = s->focus = ~(size_set)0;
    s->tightened = -2;
    s->on = 1;
}

/* Which sizes are open under a leader, of those that are looked at now. */
size_set span_open(const context *x, int leader)
{
    return x->span.open[row_of(x, leader)] & x->span.mask;
}

/* Note what the root of a leader has left open of them. */
void span_note(context *x, int leader, size_set open)
{
    x->span.open[row_of(x, leader)] &= open | ~x->span.mask;
}

/* How many sizes there are in a set. */
int span_count(size_set sizes)
{
    int count = 0;
    for (; sizes; sizes &= sizes - 1)
        count++;
    return count;
}

double span_shift(const context *x, int count)
{
    int at = x->span.at[count];
    return at < 0 ? -BIG : x->span.shift[at];
}

/* A better configuration, under the leader under work; `score` is lowered by the shift. */
void span_offer(context *x, double score, const int *replicas, int count)
{
    span *s = &x->span;
    int at = s->at[count];
    double worth = score + s->shift[at];
    s->score[at] = worth;
    s->leader[at] = x->current;
    memcpy(s->replicas + (size_t)at * (size_t)x->p.sites, replicas, (size_t)count * sizeof(int));
    s->shift[at] = cutoff_of(x, worth) - x->cutoff;
}

/* Keep the multipliers of a root for the next tree under its leader: they serve other sizes too. */
void span_keep(context *x, const frame *f)
{
    span *s = &x->span;
    size_t padded = (size_t)x->p.padded, cells = (size_t)x->p.sites * padded;
    if (!f->beta)
        return;
    if (!s->beta)
        s->beta = malloc(cells * sizeof(double) + 8);
    if (!s->u)
        s->u = malloc(padded * sizeof(double) + 8);
    if (!s->beta || !s->u)
        return; /* they only save time */
    memcpy(s->beta, f->beta, cells * sizeof(double));
    memcpy(s->u, f->u, padded * sizeof(double));
    s->tightened = x->current;
}

/* Begin a root with the multipliers that were kept, if there are any of its leader; whether there were. */
int span_warm(context *x, frame *f)
{
    const span *s = &x->span;
    size_t padded = (size_t)x->p.padded, bytes = (size_t)x->p.sites * padded * sizeof(double);
    if (s->tightened != x->current)
        return 0;
    if (!f->own_beta && !(f->own_beta = malloc(bytes + 8)))
        return 0;
    memcpy(f->own_beta, s->beta, bytes);
    memcpy(f->u, s->u, padded * sizeof(double));
    f->beta = f->own_beta;
    frame_rebuild(x, f);
    return 1;
}

/* How many sites a configuration of an open size takes of the free ones, at least and at most. */
void span_range(const context *x, frame *f, int *lo, int *hi)
{
    const span *s = &x->span;
    *lo = 1;
    *hi = 0;
    for (int k = 0; k < s->count; k++) {
        int more = s->size[k] - f->in_count;
        if (more < 0 || more > f->free_count)
            f->open &= ~((size_set)1 << k); /* none here */
        if (!(f->open >> k & 1))
            continue;
        if (*hi < *lo)
            *lo = more;
        *hi = more;
    }
}

/* Take the sizes off that an evaluation closes: `rest` is what their inner minima are added to. */
int span_close(context *x, frame *f, double rest, double error)
{
    const span *s = &x->span;
    size_set before = f->open;
    for (int k = 0; k < s->count; k++) {
        s->bound[k] = rest + s->least[k] - error;
        if (before >> k & 1 && (s->least[k] >= BIG || s->bound[k] >= x->cutoff))
            f->open &= ~((size_set)1 << k);
    }
    return f->open != before;
}

/* One way to fill a size: the sites `inside` (`need` of them, by reduced cost), and the first of `list` beside them. */
typedef struct {
    int need, cut;             /* of the list, what comes before `cut` */
} filling;

/* How far down the list `more` sites reach when `need` of them are given; ranks: places in the list, ascending. */
static int cut_for(const int *ranks, int need, int more)
{
    int cut = more - need;
    for (int i = 0; i < need && ranks[i] < cut; i++)
        cut++;
    return cut;
}

static void keep_answer(context *x, double value, const int *list, int kept, const int *inside, filling how, int size)
{
    radius_answer *a = &x->radii[x->radius_count++];
    const double *rho = x->rho;
    clear_answer(a);
    a->value = a->base[0] = value;
    a->size[0] = size;
    for (int i = 0; i < how.need; i++)
        a->top[0] = rho[inside[i]] > a->top[0] ? rho[inside[i]] : a->top[0];
    for (int i = 0, at = how.cut; i < kept && a->next[0] >= BIG; i++) {
        int taken = 0;
        for (int r = 0; r < how.need; r++)
            taken |= inside[r] == list[i];
        if (taken)
            continue;
        if (i >= at)
            a->next[0] = rho[list[i]];
        else if (rho[list[i]] > a->top[0])
            a->top[0] = rho[list[i]];
    }
}

/* Write down what a filling selects; how many that is. */
static int select_filling(context *x, const int *list, const int *inside, filling how)
{
    int count = 0;
    for (; count < how.need; count++)
        x->selected[count] = inside[count];
    for (int i = 0; i < how.cut; i++) {
        int taken = 0;
        for (int r = 0; r < how.need; r++)
            taken |= inside[r] == list[i];
        if (!taken)
            x->selected[count++] = list[i];
    }
    return count;
}

/* The inner minimum where nothing but numbers is to be chosen (plain_minimum in inner.c), of every open size;
 * returns the least, and what it selects. With `all` the answers below `slack`, by radius and size, are kept.
 *
 * For one radius the cheapest set takes the `need` cheapest sites within it, and then the cheapest of all. A wider
 * radius that brings no cheaper site within it costs more and selects the same: it is passed over. */
double span_minimum(context *x, frame *f, int all, double slack, int *count)
{
    const problem *p = &x->p;
    span *s = &x->span;
    const double *rho = x->rho;
    int n = f->free_count, leader = x->current, most = -1, m = p->quorum;
    int *list = x->pick, *inside = x->order, *rank = x->selected + 3 * p->sites, *best_inside = x->selected + 2 * p->sites;
    double best = BIG, *prefix = x->key;
    filling best_how = {0, 0};
    int left[MOST_SIZES], lefts = 0; /* sizes for which a wider radius may still be better */
    x->radius_count = 0;
    *count = 0;
    for (int k = 0; k < s->count; k++) {
        int more = s->size[k] - f->in_count;
        s->least[k] = BIG;
        if (!(f->open >> k & 1) || more < 0 || more > n)
            continue;
        left[lefts++] = k;
        most = more;
    }
    if (!lefts)
        return BIG;
    int kept = smallest(rho, n, most + 1 < n ? most + 1 : n, list);
    prefix[0] = 0.0;
    for (int i = 0; i < kept; i++)
        prefix[i + 1] = prefix[i] + rho[list[i]];
    if (leader < 0 || p->quorum_weight == 0.0 || m <= 1) {
        for (int j = 0; j < lefts; j++) {
            int k = left[j], more = s->size[k] - f->in_count;
            double value = s->least[k] = prefix[more] - s->shift[k];
            if (all && value < slack)
                keep_answer(x, value, list, kept, NULL, (filling){0, more}, more);
            if (s->focus >> k & 1 && value < best) {
                best = value;
                best_how.cut = more;
            }
        }
        *count = select_filling(x, list, NULL, best_how);
        return best;
    }
    int fixed_inside = 0, pool = 0, *where = x->near_free;
    for (int i = 0; i < n; i++) {
        where[f->free_site[i]] = i;
        rank[i] = n;
    }
    for (int i = 0; i < kept; i++)
        rank[list[i]] = i;
    const double *distance = p->site_rtt + (size_t)leader * (size_t)p->sites;
    for (int j = 0; j < lefts; j++)
        s->loose[left[j]] = prefix[s->size[left[j]] - f->in_count] - s->shift[left[j]];
    for (int t = 0; t < p->sites && lefts;) {
        int changed = 0, site = x->near_order[t];
        double d = site == leader ? 0.0 : distance[site];
        for (; t < p->sites && (site = x->near_order[t], (site == leader ? 0.0 : distance[site]) == d); t++) {
            if (f->state[site] == IN) {
                fixed_inside++;
                changed = 1;
            } else if (f->state[site] == FREE) {
                int i = where[site], at = pool < m ? pool : m;
                while (at > 0 && rho[inside[at - 1]] > rho[i]) {
                    if (at < m)
                        inside[at] = inside[at - 1];
                    at--;
                }
                if (at < m) {
                    inside[at] = i;
                    changed = 1;
                }
                pool += pool < m;
            }
        }
        int need = m > fixed_inside ? m - fixed_inside : 0;
        if (!changed || pool < need)
            continue;
        double price = p->quorum_weight * d, given = 0.0;
        int ranks[MOST_NEEDED], within = 0;
        for (int i = 0; i < need; i++) {
            int at = within++, r = rank[inside[i]];
            for (; at > 0 && ranks[at - 1] > r; at--)
                ranks[at] = ranks[at - 1];
            ranks[at] = r;
            given += rho[inside[i]];
        }
        for (int j = 0; j < lefts; j++) {
            int k = left[j], more = s->size[k] - f->in_count;
            if (price + s->loose[k] >= (all ? slack : s->least[k])) {
                left[j--] = left[--lefts]; /* wider radii are worse still */
                continue;
            }
            if (more < need)
                continue;
            filling how = {need, cut_for(ranks, need, more)};
            double value = price + given + prefix[how.cut] - s->shift[k];
            for (int i = 0; i < need && ranks[i] < how.cut; i++)
                value -= rho[list[ranks[i]]];
            if (need == 0 || ranks[need - 1] < more)
                left[j--] = left[--lefts]; /* what is cheapest of all lies within this radius */
            if (all && value < slack)
                keep_answer(x, value, list, kept, inside, how, more);
            if (value < s->least[k])
                s->least[k] = value;
            if (s->focus >> k & 1 && value < best) {
                best = value;
                best_how = how;
                memcpy(best_inside, inside, (size_t)need * sizeof(int));
            }
        }
    }
    *count = best < BIG ? select_filling(x, list, best_inside, best_how) : 0;
    return best;
}
