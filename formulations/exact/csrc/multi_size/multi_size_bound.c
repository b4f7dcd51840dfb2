/* Bounds of several numbers of replicas at once: one root and one tree per leader for all of them.
 *
 * At given multipliers the reduced costs are the same for every number n of replicas; only how many of them are
 * added up differs. So one evaluation bounds every n. A node keeps the set of sizes that are `open` in it:
 * those that no multipliers, here or in a node above, have closed. Its bound is the least over them of
 * (bound of n) - shift[n], where shift[n] is the cutoff at n, less x->best.cutoff: one scale for all sizes, and
 * the steps go where most is missing. Scores are lowered by the shift too. A better configuration of n
 * lowers shift[n], so whatever was closed stays closed. */
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

/* The row of a leader in arrays by leader. */
size_t memory_row(const context *x, int leader)
{
    return leader < 0 ? (size_t)x->p.sites : (size_t)leader;
}

void free_sizes(context *x)
{
    size_batch *s = &x->sizes;
    free(s->size);
    free(s->at);
    free(s->shift);
    free(s->least);
    free(s->without_quorum);
    free(s->bound);
    free(s->score);
    free(s->leader);
    free(s->replicas);
    free(s->open);
    free(s->beta);
    free(s->u);
    memset(s, 0, sizeof(*s));
}

/* Make memory for `count` sizes; 0 without any. */
int prepare_sizes(context *x, const int *size, int count)
{
    size_batch *s = &x->sizes;
    size_t S = (size_t)x->p.sites, n = (size_t)count;
    free_sizes(x);
    s->count = count;
    s->size = malloc(n * sizeof(int));
    s->at = malloc((S + 2) * sizeof(int));
    s->shift = malloc(n * 8);
    s->least = malloc(n * 8);
    s->without_quorum = malloc(n * 8);
    s->bound = malloc(n * 8);
    s->score = malloc(n * 8);
    s->leader = malloc(n * sizeof(int));
    s->replicas = malloc(n * S * sizeof(int));
    s->open = malloc((S + 1) * sizeof(size_set));
    radius_minimum *radii = realloc(x->inner.radii, (S + 2) * n * sizeof(radius_minimum));
    x->inner.radii = radii ? radii : x->inner.radii;
    if (!radii || !s->size || !s->at || !s->shift || !s->least || !s->without_quorum || !s->bound || !s->score || !s->leader ||
        !s->replicas || !s->open)
        return 0;
    memcpy(s->size, size, n * sizeof(int));
    for (size_t i = 0; i < S + 2; i++)
        s->at[i] = -1;
    for (int k = 0; k < count; k++)
        s->at[size[k]] = k;
    return 1;
}

/* From here on x->best.score and x->best.cutoff belong to the size that costs most; the other sizes are shifted. */
void begin_sizes(context *x)
{
    size_batch *s = &x->sizes;
    int middle = s->count / 2;
    double highest = 0.0;
    for (int k = 0; k < s->count; k++) {
        s->shift[k] = cutoff_of(x, s->score[k]);
        highest = s->shift[k] > highest ? s->shift[k] : highest;
    }
    s->largest = highest;
    for (int k = 0; k < s->count; k++)
        s->shift[k] -= highest;
    set_incumbent(x, highest, highest, s->leader[middle], s->replicas + (size_t)middle * (size_t)x->p.sites,
                  s->size[middle]);
    x->p.replicas_min = s->size[0];
    x->p.replicas_max = s->size[s->count - 1];
    s->in_scope = s->focus = ~(size_set)0;
    s->kept_leader = -2;
    s->active = 1;
}

/* The sizes in scope that are open under a leader. */
size_set open_sizes(const context *x, int leader)
{
    return x->sizes.open[memory_row(x, leader)] & x->sizes.in_scope;
}

/* Note what the root of a leader has left open of them. */
void note_open_sizes(context *x, int leader, size_set open)
{
    x->sizes.open[memory_row(x, leader)] &= open | ~x->sizes.in_scope;
}

/* The number of sizes in a set. */
int count_sizes(size_set sizes)
{
    int count = 0;
    for (; sizes; sizes &= sizes - 1)
        count++;
    return count;
}

double size_shift(const context *x, int count)
{
    int at = x->sizes.at[count];
    return at < 0 ? -BIG : x->sizes.shift[at];
}

/* A better configuration, under the leader under work; `score` is lowered by the shift. */
void offer_size(context *x, double score, const int *replicas, int count)
{
    size_batch *s = &x->sizes;
    int at = s->at[count];
    double worth = score + s->shift[at];
    s->score[at] = worth;
    s->leader[at] = x->view.leader;
    memcpy(s->replicas + (size_t)at * (size_t)x->p.sites, replicas, (size_t)count * sizeof(int));
    s->shift[at] = cutoff_of(x, worth) - x->best.cutoff;
}

/* Keep the multipliers of a root for the next tree under its leader: they serve other sizes too. */
void keep_multipliers(context *x, const tree_node *f)
{
    size_batch *s = &x->sizes;
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
    s->kept_leader = x->view.leader;
}

/* Begin a root with the multipliers that were kept, if there are any of its leader; whether there were. */
int warm_start_sizes(context *x, tree_node *f)
{
    const size_batch *s = &x->sizes;
    size_t padded = (size_t)x->p.padded, bytes = (size_t)x->p.sites * padded * sizeof(double);
    if (s->kept_leader != x->view.leader)
        return 0;
    if (!f->own_beta && !(f->own_beta = malloc(bytes + 8)))
        return 0;
    memcpy(f->own_beta, s->beta, bytes);
    memcpy(f->u, s->u, padded * sizeof(double));
    f->beta = f->own_beta;
    node_rebuild_columns(x, f);
    return 1;
}

/* The number of free sites that a configuration of an open size takes, at least and at most. */
void open_range(const context *x, tree_node *f, int *lo, int *hi)
{
    const size_batch *s = &x->sizes;
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

/* Take the sizes off that an evaluation closes: their inner minima are added to `rest`. */
int close_sizes(context *x, tree_node *f, double rest, double error)
{
    const size_batch *s = &x->sizes;
    size_set before = f->open;
    for (int k = 0; k < s->count; k++) {
        s->bound[k] = rest + s->least[k] - error;
        if (before >> k & 1 && (s->least[k] >= BIG || s->bound[k] >= x->best.cutoff))
            f->open &= ~((size_set)1 << k);
    }
    return f->open != before;
}

/* One way to fill a size: the sites `inside` (`need` of them, by reduced cost), and the first of `list` beside them. */
typedef struct {
    int need, cut;             /* of the list, what comes before `cut` */
} size_filling;

/* The place in the list down to which `more` sites reach when `need` of them are given; `ranks`: the places of these,
 * ascending. */
static int cut_for(const int *ranks, int need, int more)
{
    int cut = more - need;
    for (int i = 0; i < need && ranks[i] < cut; i++)
        cut++;
    return cut;
}

static void keep_answer(context *x, double value, const int *list, int kept, const int *inside, size_filling how, int size)
{
    radius_minimum *a = &x->inner.radii[x->inner.radius_count++];
    const double *rho = x->inner.rho;
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
static int select_filling(context *x, const int *list, const int *inside, size_filling how)
{
    int count = 0;
    for (; count < how.need; count++)
        x->inner.selected[count] = inside[count];
    for (int i = 0; i < how.cut; i++) {
        int taken = 0;
        for (int r = 0; r < how.need; r++)
            taken |= inside[r] == list[i];
        if (!taken)
            x->inner.selected[count++] = list[i];
    }
    return count;
}

/* The inner minimum without caps (uncapped_minimum in inner_minimum.c is that of one size), of every open size;
 * returns the least, and what it selects. With `all` the answers below `slack`, by radius and size, are kept.
 *
 * For one radius the cheapest set takes the `need` cheapest sites within it, and then the cheapest of all. A wider
 * radius that brings no cheaper site within it costs more and selects the same: it is passed over.
 *
 * uncapped_minimum stays beside it, because each is the quicker one at its own task: this one took 5 % longer for single
 * sizes of world27 (27 questions) and rounds otherwise, and one call of the other per size made sweeps over 11 sizes
 * (world27 and azure, nine mixes) 43 % slower. */
double minimum_of_sizes(context *x, tree_node *f, int all, double slack, int *count)
{
    const problem *p = &x->p;
    size_batch *s = &x->sizes;
    const double *rho = x->inner.rho;
    int n = f->free_count, leader = x->view.leader, most = -1, m = p->quorum;
    int *list = x->scratch.pick, *inside = x->scratch.order, *rank = x->inner.selected + 3 * p->sites, *best_inside = x->inner.selected + 2 * p->sites;
    double best = BIG, *prefix = x->scratch.key;
    size_filling best_how = {0, 0};
    int left[MOST_SIZES], lefts = 0; /* sizes for which a wider radius may still be better */
    x->inner.radius_count = 0;
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
                keep_answer(x, value, list, kept, NULL, (size_filling){0, more}, more);
            if (s->focus >> k & 1 && value < best) {
                best = value;
                best_how.cut = more;
            }
        }
        *count = select_filling(x, list, NULL, best_how);
        return best;
    }
    int fixed_inside = 0, pool = 0, *where = x->scratch.sites;
    for (int i = 0; i < n; i++) {
        where[f->free_site[i]] = i;
        rank[i] = n;
    }
    for (int i = 0; i < kept; i++)
        rank[list[i]] = i;
    const double *distance = p->site_rtt + (size_t)leader * (size_t)p->sites;
    for (int j = 0; j < lefts; j++)
        s->without_quorum[left[j]] = prefix[s->size[left[j]] - f->in_count] - s->shift[left[j]];
    for (int t = 0; t < p->sites && lefts;) {
        int changed = 0, site = x->view.near_order[t];
        double d = site == leader ? 0.0 : distance[site];
        for (; t < p->sites && (site = x->view.near_order[t], (site == leader ? 0.0 : distance[site]) == d); t++) {
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
            if (price + s->without_quorum[k] >= (all ? slack : s->least[k])) {
                left[j--] = left[--lefts]; /* wider radii are worse still */
                continue;
            }
            if (more < need)
                continue;
            size_filling how = {need, cut_for(ranks, need, more)};
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
