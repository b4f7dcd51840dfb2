/* Several numbers of replicas at once: one scan and one tree per leader for all of them.
 *
 * At given multipliers the reduced costs are the same for every number n of replicas; only how many of them are
 * added up differs. So one evaluation bounds every n. A frame keeps the set of sizes that are `open` in it:
 * those that no multipliers, here or in a frame above, have closed. Its bound is the least over them of
 * (bound of n) - shift[n], where shift[n] is what closes at n, less x->cutoff: one scale for all sizes, and
 * the steps go where most is missing. Scores are lowered by the shift too. A better configuration of n
 * lowers shift[n], so whatever was closed stays closed. */
#include <math.h>
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

static void keep_answer(context *x, double value, double top, double next, int size)
{
    radius_answer *a = &x->radii[x->radius_count++];
    clear_answer(a);
    a->value = a->base[0] = value;
    a->top[0] = top;
    a->next[0] = next;
    a->size[0] = size;
}

/* The inner minimum where nothing but numbers is to be chosen (plain_minimum in inner.c), of every open size;
 * returns the least, and what it selects. With `all` the answers below `slack`, by radius and size, are kept. */
double span_minimum(context *x, frame *f, int all, double slack, int *count)
{
    const problem *p = &x->p;
    span *s = &x->span;
    const double *rho = x->rho;
    int n = f->free_count, leader = x->current, most = -1, least_size = 0, done_all;
    int *list = x->pick, *inside = x->order, *chosen = x->selected + 2 * p->sites;
    double best = BIG, sum = 0.0;
    size_set left = 0;
    x->radius_count = 0;
    *count = 0;
    for (int k = 0; k < s->count; k++) {
        int more = s->size[k] - f->in_count;
        s->least[k] = BIG;
        if (!(f->open >> k & 1) || more < 0 || more > n)
            continue;
        left |= (size_set)1 << k;
        most = more;
    }
    if (!left)
        return BIG;
    int kept = smallest(rho, n, most + 1 < n ? most + 1 : n, list);
    for (int k = 0; k < s->count; k++) {
        if (!(left >> k & 1))
            continue;
        int more = s->size[k] - f->in_count;
        while (least_size < more)
            sum += rho[list[least_size++]];
        s->loose[k] = sum - s->shift[k];
    }
    if (leader < 0 || p->quorum_weight == 0.0 || p->quorum <= 1) {
        for (int k = 0; k < s->count; k++) {
            if (!(left >> k & 1))
                continue;
            int more = s->size[k] - f->in_count;
            double value = s->least[k] = s->loose[k];
            if (all && value < slack)
                keep_answer(x, value, more ? rho[list[more - 1]] : -BIG, more < kept ? rho[list[more]] : BIG, more);
            if (s->focus >> k & 1 && value < best) {
                best = value;
                *count = more;
            }
        }
        memcpy(x->selected, list, (size_t)*count * sizeof(int));
        return best;
    }
    int m = p->quorum, fixed_inside = 0, pool = 0, pool_total = 0;
    int *where = x->near_free;
    for (int i = 0; i < n; i++)
        where[f->free_site[i]] = i;
    for (int t = 0; t < p->sites && left;) {
        double d = distance_of(x, leader, x->near_order[t]);
        for (; t < p->sites && distance_of(x, leader, x->near_order[t]) == d; t++) {
            int site = x->near_order[t];
            if (f->state[site] == IN)
                fixed_inside++;
            else if (f->state[site] == FREE) {
                int i = where[site], at = pool < m ? pool : m;
                while (at > 0 && rho[inside[at - 1]] > rho[i]) {
                    if (at < m)
                        inside[at] = inside[at - 1];
                    at--;
                }
                if (at < m)
                    inside[at] = i;
                if (pool < m)
                    pool++;
                pool_total++;
            }
        }
        if (fixed_inside + pool_total < m)
            continue;
        double price = p->quorum_weight * d;
        for (int k = 0; k < s->count; k++) /* wider radii are worse still */
            if (left >> k & 1 && price + s->loose[k] >= (all ? slack : s->least[k]))
                left &= ~((size_set)1 << k);
        int need = m > fixed_inside ? m - fixed_inside : 0, size = 0, from = 0, near = 0, seen = 0;
        double value = 0.0, top = -BIG;
        for (; size < need; size++) {
            chosen[size] = inside[size];
            value += rho[inside[size]];
            top = rho[inside[size]] > top ? rho[inside[size]] : top;
        }
        done_all = 0;
        for (int k = 0; k < s->count && !done_all; k++) {
            int more = s->size[k] - f->in_count;
            if (!(left >> k & 1) || more < need)
                continue;
            while (from < kept) {
                int i = list[from], taken = 0;
                for (int r = 0; r < need; r++)
                    taken |= inside[r] == i;
                if (taken) {
                    from++;
                    continue;
                }
                if (size == more)
                    break;
                chosen[size++] = i;
                value += rho[i];
                top = rho[i] > top ? rho[i] : top;
                from++;
            }
            if (size < more) {
                done_all = 1;
                continue;
            }
            double worth = price + value - s->shift[k];
            if (all && worth < slack)
                keep_answer(x, worth, top, from < kept ? rho[list[from]] : BIG, more);
            if (worth < s->least[k])
                s->least[k] = worth;
            if (s->focus >> k & 1 && worth < best) {
                best = worth;
                memcpy(x->selected, chosen, (size_t)more * sizeof(int));
                *count = more;
            }
            for (; seen < more; seen++)
                near += distance_of(x, leader, f->free_site[list[seen]]) <= d;
            if (near >= need)
                left &= ~((size_set)1 << k);
        }
    }
    return best;
}
