/* The search over several numbers of replicas at once (multi_size_bound.c has the bounds).
 *
 * Incumbents first, then multipliers for every size under the leader of its incumbent, shared by neighbouring sizes
 * where they serve both. Adapted, one evaluation each, they close most sizes under most leaders. The remaining sizes under
 * a leader go through steps, and then through trees: one for all sizes that agree on multipliers. */
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

/* Find incumbents, size after size: each grows from the one before. 0 when there is none for some size, or when the
 * limit of the call is reached first. */
static int find_incumbents(context *x, const int *leader, int leaders, int swaps)
{
    size_batch *s = &x->sizes;
    for (int k = 0; k < s->count; k++) {
        set_replica_range(x, s->size[k], s->size[k]);
        if (must_pause(x))
            return 0;
        int found = x->best.leader, others = 0;
        if (x->best.score < BIG)
            descend_under_leader(x, found, swaps);
        for (int i = 0; i < leaders && others < (k ? 0 : THOROUGH); i++)
            if (leader[i] != found) {
                descend_under_leader(x, leader[i], swaps);
                others++;
            }
        if (x->best.score >= BIG)
            return 0;
        s->score[k] = x->best.score;
        s->leader[k] = x->best.leader;
        memcpy(s->replicas + (size_t)k * (size_t)x->p.sites, x->best.replicas, (size_t)s->size[k] * sizeof(int));
    }
    return 1;
}

/* Let the incumbent of one size stand for all where multipliers are adapted from it. */
static void borrow_incumbent(context *x, int k)
{
    const size_batch *s = &x->sizes;
    set_incumbent(x, x->best.score, x->best.cutoff, s->leader[k], s->replicas + (size_t)k * (size_t)x->p.sites,
                  s->size[k]);
}

/* Steps for some sizes from the multipliers `u`; the bound of these. */
static double improve_sizes(context *x, int leader, double *u, int warm, int steps, size_set focus)
{
    x->sizes.focus = focus;
    double bound = bound_root(x, leader, u, warm, steps, !warm);
    x->sizes.focus = ~(size_set)0;
    return bound;
}

/* Multipliers of every size under the leader of its incumbent; sizes share them where steps for the second gain
 * little. donor[k]: whose. */
static void share_multipliers(context *x, int steps, double *from, int *source)
{
    size_batch *s = &x->sizes;
    size_t clients = (size_t)x->p.clients;
    for (int k = 0; k < s->count && !x->control.out_of_memory && !must_pause(x); k++) {
        double *own = from + (size_t)k * clients, before;
        int last = k ? source[k - 1] : -1;
        borrow_incumbent(x, k);
        if (last >= 0) {
            const double *its = from + (size_t)last * clients;
            if (s->leader[last] == s->leader[k]) {
                if (!(s->open[memory_row(x, s->leader[k])] >> k & 1)) {
                    source[k] = last;
                    continue;
                }
                memcpy(own, its, clients * sizeof(double));
            } else {
                borrow_incumbent(x, last);
                adapt_multipliers(x, its, s->leader[last], s->leader[k], own);
                borrow_incumbent(x, k);
            }
            before = improve_sizes(x, s->leader[k], own, 1, 1, (size_set)1 << k);
            if (before >= x->best.cutoff)
                continue;
            double after = improve_sizes(x, s->leader[k], own, 1, TRIAL_STEPS, (size_set)1 << k);
            if (after >= x->best.cutoff)
                continue;
            if (s->leader[last] == s->leader[k] && after - before < TRIAL_GAIN * (x->best.cutoff - before)) {
                source[k] = last;
                continue;
            }
        }
        improve_sizes(x, s->leader[k], own, last >= 0, steps, (size_set)1 << k);
    }
}

/* The multipliers of a size, adapted to a leader, into `u`. */
static void start_from(context *x, int leader, int k, const double *from, double *u)
{
    const double *its = from + (size_t)k * (size_t)x->p.clients;
    if (leader == x->sizes.leader[k])
        memcpy(u, its, (size_t)x->p.clients * sizeof(double));
    else {
        borrow_incumbent(x, k);
        adapt_multipliers(x, its, x->sizes.leader[k], leader, u);
    }
}

/* Bound a leader by the multipliers of each size in turn, one evaluation each; `bounds`: the best bound of each size.
 * Returns the least of the sizes that stay open, or BIG. */
static double bound_sizes(context *x, int leader, const double *from, const int *source, double *trial, double *bounds)
{
    const size_batch *s = &x->sizes;
    const size_set *open = s->open + memory_row(x, leader);
    double least = BIG;
    int middle = s->count / 2;
    for (int k = 0; k < s->count; k++)
        bounds[k] = -BIG;
    if (leader < 0) /* nothing to adapt */
        return -BIG;
    for (int i = 0; i < s->count && *open && !x->control.out_of_memory; i++) {
        int k = (middle + i) % s->count;
        if (source[k] != k || (i && !(*open >> k & 1)))
            continue;
        start_from(x, leader, k, from, trial);
        for (int j = 0; j < s->count; j++)
            s->bound[j] = -BIG;
        improve_sizes(x, leader, trial, 1, 1, ~(size_set)0);
        for (int j = 0; j < s->count; j++)
            bounds[j] = s->bound[j] > bounds[j] ? s->bound[j] : bounds[j];
    }
    for (int k = 0; k < s->count; k++)
        if (*open >> k & 1 && bounds[k] < least)
            least = bounds[k];
    return least;
}

/* Improve the incumbent of every size by descents under the leaders of least `bounds` (leaders x sizes). */
static void improve_incumbents(context *x, const int *leader, int leaders, int swaps, double *bounds)
{
    size_batch *s = &x->sizes;
    for (int round = 0; round < PROMISING; round++)
        for (int k = 0; k < s->count && !must_pause(x); k++) {
            int best = -1;
            for (int i = 0; i < leaders; i++)
                if (leader[i] != s->leader[k] && s->open[memory_row(x, leader[i])] >> k & 1 &&
                    (best < 0 || bounds[i * s->count + k] < bounds[best * s->count + k]))
                    best = i;
            if (best < 0)
                continue;
            bounds[best * s->count + k] = BIG; /* tried */
            borrow_incumbent(x, k);
            descend_under_leader(x, leader[best], swaps);
        }
}

/* Finish the tree of some sizes under a leader: 1 when it is done, 0 when `most` nodes or the work are used up. */
static int grow_tree(context *x, int leader, size_set sizes, const double *u, double enough, long most)
{
    int done = 0;
    x->sizes.in_scope = sizes;
    open_leader_tree(x, leader, u);
    while (!done && !x->control.out_of_memory && x->effort.work < enough && !must_pause(x) && current_tree(x)->nodes < most)
        done = run_tree(x, 1e5);
    if (done)
        note_open_sizes(x, leader, 0);
    x->sizes.in_scope = ~(size_set)0;
    return done;
}

/* The first of some sizes whose bound was least at the last evaluation. */
static int worst_size(const context *x, size_set sizes)
{
    int worst = -1;
    for (int k = 0; k < x->sizes.count; k++)
        if (sizes >> k & 1 && (worst < 0 || x->sizes.least[k] < x->sizes.least[worst]))
            worst = k;
    return worst;
}

/* Steps for the sizes that share multipliers, and for the worst of them alone while that closes it; returns those
 * that stay open, and what each lacks in `gap`. */
static size_set improve_group(context *x, int leader, size_set group, int steps, double *u, double *trial,
                                double *gap)
{
    size_batch *s = &x->sizes;
    const size_set *open = s->open + memory_row(x, leader);
    while (*open & group && !x->control.out_of_memory && !must_pause(x)) {
        double bound = improve_sizes(x, leader, u, 1, steps, group);
        size_set left = *open & group;
        if (!left)
            break;
        int worst = worst_size(x, left);
        for (int k = 0; k < s->count; k++)
            if (left >> k & 1)
                gap[k] = x->best.cutoff - bound - (s->least[k] - s->least[worst]);
        if (!(left & (left - 1)))
            break;
        memcpy(trial, u, (size_t)x->p.clients * sizeof(double));
        if (improve_sizes(x, leader, trial, 1, steps, (size_set)1 << worst) < x->best.cutoff)
            break;
    }
    return *open & group;
}

/* Move sizes from `others` to `group` that lack little more at the multipliers `u` than at their own. */
static size_set merge_sizes(context *x, int leader, size_set group, size_set others, double *u, const double *gap)
{
    size_batch *s = &x->sizes;
    const size_set *open = s->open + memory_row(x, leader);
    size_set all = group | others;
    double bound = improve_sizes(x, leader, u, 1, 1, all);
    int worst = worst_size(x, all & *open);
    for (int k = 0; k < s->count; k++)
        if (others >> k & *open >> k & 1 &&
            x->best.cutoff - bound - (s->least[k] - s->least[worst]) <= AGREE * gap[k])
            group |= (size_set)1 << k;
    return group & *open;
}

/* The sizes that share the multipliers of `head`. */
static size_set sizes_sharing(const int *source, int count, int head)
{
    size_set group = 0;
    for (int k = head; k < count; k++)
        group |= (size_set)(source[k] == head) << k;
    return group;
}

/* Prove all sizes under a leader, by one tree for those that agree on multipliers: 1 when it is done. */
static int prove_leader(context *x, int leader, int steps, int swaps, double enough, const double *from, const int *source)
{
    const size_batch *s = &x->sizes;
    const size_set *open = s->open + memory_row(x, leader);
    size_t clients = (size_t)x->p.clients;
    double *own = malloc(((size_t)s->count + 1) * clients * sizeof(double) + 8), *gap = malloc((size_t)s->count * 8);
    double *trial = own + (size_t)s->count * clients;
    int done = own && gap;
    x->control.out_of_memory |= !done;
    for (int head = 0; head < s->count && done; head++) {
        size_set group = *open & sizes_sharing(source, s->count, head);
        if (!group)
            continue;
        start_from(x, leader, head, from, own + (size_t)head * clients);
        improve_group(x, leader, group, steps, own + (size_t)head * clients, trial, gap);
    }
    for (int k = 0; k < s->count && done; k++)
        if (*open >> k & 1) {
            borrow_incumbent(x, k);
            descend_under_leader(x, leader, swaps);
        }
    while (done && *open) {
        int head = 0, seen = 0, half = count_sizes(*open) / 2;
        for (int k = 0; k < s->count; k++) /* the middle one of those that are left */
            if (*open >> k & 1 && seen++ == half)
                head = source[k];
        size_set group = *open & sizes_sharing(source, s->count, head);
        double *u = own + (size_t)head * clients;
        if (*open & ~group)
            group = merge_sizes(x, leader, group, *open & ~group, u, gap);
        if (group & (group - 1) &&
            grow_tree(x, leader, group, u, enough, SHARED_TREE_NODES * count_sizes(group)))
            continue;
        for (int k = 0; k < s->count && done; k++)
            if (*open & group & (size_set)1 << k)
                done = grow_tree(x, leader, (size_set)1 << k, own + (size_t)source[k] * clients, enough, 1L << 60);
    }
    free(own);
    free(gap);
    return done;
}

/* Prove the best of several sizes (ascending, fewer than 64) at once; `leader`: the order in which to bound them.
 *
 * Leaves scores, leaders, replicas of each size in x->sizes, and in x->sizes.open by leader which sizes are not
 * proven. Stops when so much `work` is done or the caller's limit is reached. 0 when one search cannot answer
 * them: nothing is proven then. The memory of roots is that of many sizes: open another context afterwards. */
int search_sizes(context *x, const int *size, int count, const int *leader, int leaders, int steps, int swaps,
                double work)
{
    size_batch *s = &x->sizes;
    problem *p = &x->p;
    if (!p->plain_voters || p->replica_families.rules || p->quorum > MOST_NEEDED || p->cases.count)
        return 0;
    if (!prepare_sizes(x, size, count)) {
        x->control.out_of_memory = 1;
        return 0;
    }
    size_t clients = (size_t)p->clients;
    double enough, *bounds = malloc(((size_t)leaders + 1) * 8), *from = calloc(((size_t)count + 1) * clients + 1, 8);
    double *trial = from ? from + (size_t)count * clients : NULL;
    double *by_size = calloc((size_t)leaders * (size_t)count + 1, 8);
    int *source = malloc((size_t)count * sizeof(int)), found = 0;
    if (bounds && from && source && by_size)
        found = find_incumbents(x, leader, leaders, swaps);
    else
        x->control.out_of_memory = 1;
    if (!found)
        goto done;
    enough = x->effort.work + work;
    for (size_t i = 0; i <= (size_t)p->sites; i++)
        s->open[i] = 0;
    for (int i = 0; i < leaders; i++) {
        bounds[i] = -BIG;
        s->open[memory_row(x, leader[i])] = count < MOST_SIZES ? ((size_set)1 << count) - 1 : ~(size_set)0;
    }
    begin_sizes(x);
    for (int k = 0; k < count; k++)
        source[k] = k;
    share_multipliers(x, steps, from, source);
    for (int k = 0; k < count; k++)
        if (source[k] != k)
            memcpy(from + (size_t)k * clients, from + (size_t)source[k] * clients, clients * 8);
    for (int i = 0; i < leaders && !x->control.out_of_memory && !must_pause(x); i++)
        bounds[i] = bound_sizes(x, leader[i], from, source, trial, by_size + (size_t)i * (size_t)count);
    improve_incumbents(x, leader, leaders, swaps, by_size);
    while (!x->control.out_of_memory && x->effort.work < enough && !must_pause(x)) {
        int next = -1;
        for (int i = 0; i < leaders; i++)
            if (s->open[memory_row(x, leader[i])] && (next < 0 || bounds[i] < bounds[next]))
                next = i;
        if (next < 0)
            break;
        if (!prove_leader(x, leader[next], steps, swaps, enough, from, source))
            break;
    }
    s->active = 0;
    x->tree.depth = 0;
    forget_incumbent(x);
done:
    free(bounds);
    free(from);
    free(source);
    free(by_size);
    return found;
}
