/* The search over several numbers of replicas at once (span.c has what it rests on).
 *
 * Incumbents first, then multipliers for every size under the leader of its incumbent, shared by neighbouring sizes
 * where they serve both. Adapted, one evaluation each, they close most sizes under most leaders. What is left under a
 * leader goes through steps, and then through trees: one for all sizes that agree on multipliers. */
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

/* Found by measuring on modelled and measured networks; none of them matters for correctness. */
#define THOROUGH 4            /* leaders under which the first size gets a descent */
#define TRIAL_STEPS 6         /* after which a size goes on with the multipliers of another ... */
#define TRIAL_GAIN 0.1        /* ... unless they close this much of the gap */
#define PROMISING 2           /* leaders under which each size gets another descent */
#define AGREE 1.25             /* sizes share a tree where the one's multipliers leave this times the other's gap */
#define TOGETHER_NODES 2000    /* for each size: a larger tree is grown again, size by size */

/* Incumbents, size after size: each grows from the one before. 0 when there is none for some size. */
static int find_incumbents(context *x, const int *leader, int leaders, int swaps)
{
    span *s = &x->span;
    for (int k = 0; k < s->count; k++) {
        resize(x, s->size[k], s->size[k]);
        int found = x->leader, others = 0;
        if (x->score < BIG)
            descend_under(x, found, swaps);
        for (int i = 0; i < leaders && others < (k ? 0 : THOROUGH); i++)
            if (leader[i] != found) {
                descend_under(x, leader[i], swaps);
                others++;
            }
        if (x->score >= BIG)
            return 0;
        s->score[k] = x->score;
        s->leader[k] = x->leader;
        memcpy(s->replicas + (size_t)k * (size_t)x->p.sites, x->replicas, (size_t)s->size[k] * sizeof(int));
    }
    return 1;
}

/* Let the incumbent of one size stand for all where multipliers are adapted from it. */
static void stand_in(context *x, int k)
{
    const span *s = &x->span;
    x->leader = s->leader[k];
    x->replica_count = s->size[k];
    memcpy(x->replicas, s->replicas + (size_t)k * (size_t)x->p.sites, (size_t)s->size[k] * sizeof(int));
}

/* Steps for some sizes from the multipliers `u`; the bound of these. */
static double steps_for(context *x, int leader, double *u, int warm, int steps, size_set focus)
{
    x->span.focus = focus;
    double bound = scan_leader(x, leader, u, warm, steps, !warm);
    x->span.focus = ~(size_set)0;
    return bound;
}

/* Multipliers of every size under the leader of its incumbent; sizes share them where steps for the second gain
 * little. donor[k]: whose. */
static void find_donors(context *x, int steps, double *from, int *donor)
{
    span *s = &x->span;
    size_t clients = (size_t)x->p.clients;
    for (int k = 0; k < s->count && !x->stop && !must_pause(x); k++) {
        double *own = from + (size_t)k * clients, before;
        int last = k ? donor[k - 1] : -1;
        stand_in(x, k);
        if (last >= 0) {
            const double *its = from + (size_t)last * clients;
            if (s->leader[last] == s->leader[k]) {
                if (!(s->open[row_of(x, s->leader[k])] >> k & 1)) {
                    donor[k] = last;
                    continue;
                }
                memcpy(own, its, clients * sizeof(double));
            } else {
                stand_in(x, last);
                adapt(x, its, s->leader[last], s->leader[k], own);
                stand_in(x, k);
            }
            before = steps_for(x, s->leader[k], own, 1, 1, (size_set)1 << k);
            if (before >= x->cutoff)
                continue;
            double after = steps_for(x, s->leader[k], own, 1, TRIAL_STEPS, (size_set)1 << k);
            if (after >= x->cutoff)
                continue;
            if (s->leader[last] == s->leader[k] && after - before < TRIAL_GAIN * (x->cutoff - before)) {
                donor[k] = last;
                continue;
            }
        }
        steps_for(x, s->leader[k], own, last >= 0, steps, (size_set)1 << k);
    }
}

/* The multipliers of a size, adapted to a leader, into `u`. */
static void begin_from(context *x, int leader, int k, const double *from, double *u)
{
    const double *its = from + (size_t)k * (size_t)x->p.clients;
    if (leader == x->span.leader[k])
        memcpy(u, its, (size_t)x->p.clients * sizeof(double));
    else {
        stand_in(x, k);
        adapt(x, its, x->span.leader[k], leader, u);
    }
}

/* Bound a leader by the multipliers of each size in turn, one evaluation each; `known`: the best bound of each size.
 * Returns the least of the sizes that stay open, or BIG. */
static double look_at(context *x, int leader, const double *from, const int *donor, double *trial, double *known)
{
    const span *s = &x->span;
    const size_set *open = s->open + row_of(x, leader);
    double least = BIG;
    int middle = s->count / 2;
    for (int k = 0; k < s->count; k++)
        known[k] = -BIG;
    if (leader < 0) /* nothing to adapt */
        return -BIG;
    for (int i = 0; i < s->count && *open && !x->stop; i++) {
        int k = (middle + i) % s->count;
        if (donor[k] != k || (i && !(*open >> k & 1)))
            continue;
        begin_from(x, leader, k, from, trial);
        for (int j = 0; j < s->count; j++)
            s->bound[j] = -BIG;
        steps_for(x, leader, trial, 1, 1, ~(size_set)0);
        for (int j = 0; j < s->count; j++)
            known[j] = s->bound[j] > known[j] ? s->bound[j] : known[j];
    }
    for (int k = 0; k < s->count; k++)
        if (*open >> k & 1 && known[k] < least)
            least = known[k];
    return least;
}

/* Look for better configurations of every size under the leaders that promise most; `known` (leaders x sizes): bounds. */
static void improve_incumbents(context *x, const int *leader, int leaders, int swaps, double *known)
{
    span *s = &x->span;
    for (int round = 0; round < PROMISING; round++)
        for (int k = 0; k < s->count && !must_pause(x); k++) {
            int best = -1;
            for (int i = 0; i < leaders; i++)
                if (leader[i] != s->leader[k] && s->open[row_of(x, leader[i])] >> k & 1 &&
                    (best < 0 || known[i * s->count + k] < known[best * s->count + k]))
                    best = i;
            if (best < 0)
                continue;
            known[best * s->count + k] = BIG; /* tried */
            stand_in(x, k);
            descend_under(x, leader[best], swaps);
        }
}

/* Finish the tree of some sizes under a leader: 1 when it is done, 0 when `most` nodes or the work are used up. */
static int tree_of(context *x, int leader, size_set sizes, const double *u, double enough, long most)
{
    int done = 0;
    long last = x->nodes + most;
    x->span.mask = sizes;
    tree_open(x, leader, u);
    while (!done && !x->stop && x->work < enough && !must_pause(x) && x->nodes < last)
        done = tree_run(x, 1e5);
    if (done)
        span_note(x, leader, 0);
    x->span.mask = ~(size_set)0;
    return done;
}

/* The first of some sizes whose bound was least at the last evaluation. */
static int worst_of(const context *x, size_set sizes)
{
    int worst = -1;
    for (int k = 0; k < x->span.count; k++)
        if (sizes >> k & 1 && (worst < 0 || x->span.least[k] < x->span.least[worst]))
            worst = k;
    return worst;
}

/* Steps for the sizes that share multipliers, and for the worst of them alone while that closes it; returns those
 * that stay open, and what each lacks in `gap`. */
static size_set steps_for_group(context *x, int leader, size_set group, int steps, double *u, double *trial,
                                double *gap)
{
    span *s = &x->span;
    const size_set *open = s->open + row_of(x, leader);
    while (*open & group && !x->stop && !must_pause(x)) {
        double bound = steps_for(x, leader, u, 1, steps, group);
        size_set left = *open & group;
        if (!left)
            break;
        int worst = worst_of(x, left);
        for (int k = 0; k < s->count; k++)
            if (left >> k & 1)
                gap[k] = x->cutoff - bound - (s->least[k] - s->least[worst]);
        if (!(left & (left - 1)))
            break;
        memcpy(trial, u, (size_t)x->p.clients * sizeof(double));
        if (steps_for(x, leader, trial, 1, steps, (size_set)1 << worst) < x->cutoff)
            break;
    }
    return *open & group;
}

/* Take those of `others` to `group` that lack little more at the multipliers `u` than at their own. */
static size_set merged(context *x, int leader, size_set group, size_set others, double *u, const double *gap)
{
    span *s = &x->span;
    const size_set *open = s->open + row_of(x, leader);
    size_set all = group | others;
    double bound = steps_for(x, leader, u, 1, 1, all);
    int worst = worst_of(x, all & *open);
    for (int k = 0; k < s->count; k++)
        if (others >> k & *open >> k & 1 &&
            x->cutoff - bound - (s->least[k] - s->least[worst]) <= AGREE * gap[k])
            group |= (size_set)1 << k;
    return group & *open;
}

/* The sizes that share the multipliers of `head`. */
static size_set group_of(const int *donor, int count, int head)
{
    size_set group = 0;
    for (int k = head; k < count; k++)
        group |= (size_set)(donor[k] == head) << k;
    return group;
}

/* Prove all sizes under a leader, by one tree for those that agree on multipliers: 1 when it is done. */
static int settle_leader(context *x, int leader, int steps, int swaps, double enough, const double *from, const int *donor)
{
    const span *s = &x->span;
    const size_set *open = s->open + row_of(x, leader);
    size_t clients = (size_t)x->p.clients;
    double *own = malloc(((size_t)s->count + 1) * clients * sizeof(double) + 8), *gap = malloc((size_t)s->count * 8);
    double *trial = own + (size_t)s->count * clients;
    int done = own && gap;
    x->stop |= !done;
    for (int head = 0; head < s->count && done; head++) {
        size_set group = *open & group_of(donor, s->count, head);
        if (!group)
            continue;
        begin_from(x, leader, head, from, own + (size_t)head * clients);
        steps_for_group(x, leader, group, steps, own + (size_t)head * clients, trial, gap);
    }
    for (int k = 0; k < s->count && done; k++)
        if (*open >> k & 1) {
            stand_in(x, k);
            descend_under(x, leader, swaps);
        }
    while (done && *open) {
        int head = 0, seen = 0, half = span_count(*open) / 2;
        for (int k = 0; k < s->count; k++) /* the middle one of those that are left */
            if (*open >> k & 1 && seen++ == half)
                head = donor[k];
        size_set group = *open & group_of(donor, s->count, head);
        double *u = own + (size_t)head * clients;
        if (*open & ~group)
            group = merged(x, leader, group, *open & ~group, u, gap);
        if (group & (group - 1) &&
            tree_of(x, leader, group, u, enough, TOGETHER_NODES * span_count(group)))
            continue;
        for (int k = 0; k < s->count && done; k++)
            if (*open & group & (size_set)1 << k)
                done = tree_of(x, leader, (size_set)1 << k, own + (size_t)donor[k] * clients, enough, 1L << 60);
    }
    free(own);
    free(gap);
    return done;
}

/* Prove the best of several sizes (ascending, fewer than 64) at once; `leader` is the order in which to look.
 *
 * Leaves scores, leaders, replicas of each size in x->span, and in x->span.open by leader which sizes are not
 * proven. Stops when so much `work` is done or the caller's limit is reached. 0 when the sizes cannot be taken
 * together: nothing is known then. What is remembered of leaders is that of many sizes: begin anew afterwards. */
int span_search(context *x, const int *size, int count, const int *leader, int leaders, int steps, int swaps,
                double work)
{
    span *s = &x->span;
    problem *p = &x->p;
    if (!p->plain_voters || p->replica_caps.count || p->quorum > MOST_NEEDED)
        return 0;
    if (!span_prepare(x, size, count)) {
        x->stop = 1;
        return 0;
    }
    size_t clients = (size_t)p->clients;
    double enough, *bounds = malloc(((size_t)leaders + 1) * 8), *from = calloc(((size_t)count + 1) * clients + 1, 8);
    double *trial = from ? from + (size_t)count * clients : NULL;
    double *known = calloc((size_t)leaders * (size_t)count + 1, 8);
    int *donor = malloc((size_t)count * sizeof(int)), found = 0;
    if (bounds && from && donor && known)
        found = find_incumbents(x, leader, leaders, swaps);
    else
        x->stop = 1;
    if (!found)
        goto done;
    enough = x->work + work;
    for (size_t i = 0; i <= (size_t)p->sites; i++)
        s->open[i] = 0;
    for (int i = 0; i < leaders; i++) {
        bounds[i] = -BIG;
        s->open[row_of(x, leader[i])] = count < MOST_SIZES ? ((size_set)1 << count) - 1 : ~(size_set)0;
    }
    span_begin(x);
    for (int k = 0; k < count; k++)
        donor[k] = k;
    find_donors(x, steps, from, donor);
    for (int k = 0; k < count; k++)
        if (donor[k] != k)
            memcpy(from + (size_t)k * clients, from + (size_t)donor[k] * clients, clients * 8);
    for (int i = 0; i < leaders && !x->stop && !must_pause(x); i++)
        bounds[i] = look_at(x, leader[i], from, donor, trial, known + (size_t)i * (size_t)count);
    improve_incumbents(x, leader, leaders, swaps, known);
    while (!x->stop && x->work < enough && !must_pause(x)) {
        int next = -1;
        for (int i = 0; i < leaders; i++)
            if (s->open[row_of(x, leader[i])] && (next < 0 || bounds[i] < bounds[next]))
                next = i;
        if (next < 0)
            break;
        if (!settle_leader(x, leader[next], steps, swaps, enough, from, donor))
            break;
    }
    s->on = 0;
    x->depth = 0;
    x->score = x->cutoff = BIG;
    x->replica_count = 0;
    x->leader = -2;
done:
    free(bounds);
    free(from);
    free(donor);
    free(known);
    return found;
}
