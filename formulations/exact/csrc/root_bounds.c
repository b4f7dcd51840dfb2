/* Bounds of leaders at their roots, many in one call, and the step from one |R| to another. */
#include <string.h>

#include "kernel.h"

/* Descend to a good set for a leader, then bound the leader without branching.  `u` (clients) is read
 * when `warm`, and replaced by the best multipliers found; swaps = 0: no descent, 1: only adapt the
 * incumbent. */
double bound_root(context *x, int leader, double *u, int warm, int iterations, int swaps)
{
    double bound = 0.0, error;
    int shared = 1;
    for (int s = 0; s < x->p.sites; s++)
        shared &= leader < 0 || s == leader || !x->p.must_hold[s];
    costs_for_leader(x, leader);
    open_root(x, warm ? u : NULL, shared);
    if (x->control.out_of_memory)
        return bound;
    tree_node *f = &x->tree.stack[0];
    int *set = x->scratch.sites + x->p.sites, count = 0;
    if (swaps > 1 || (swaps > 0 && !warm)) { /* without swaps the set is for the multipliers alone */
        count = start_set(x, set);
        if (count && swaps > 1)
            swap_descent(x, set, count, swaps);
    }
    if (!warm && count)
        start_multipliers(x, f, set, count);
    bound = improve_bound(x, f, iterations, &error);
    if (bound >= x->best.cutoff && x->proof.recording) {
        bound = record_close(x, f, bound);
        x->evaluated.best_at = -1;
    }
    if (x->evaluated.best_at != x->effort.evaluations) /* rho does not belong to f->u */
        evaluate_bound(x, f, f->u, 0, &count, &error);
    else
        count = -1;
    store_reduced_costs(x, f, x->evaluated.served);
    if (x->p.cases.count && swaps > 0 && bound < x->best.cutoff && count >= 0) { /* descents from elsewhere end early */
        int size = f->in_count;
        memcpy(set, f->in_site, (size_t)size * sizeof(int));
        for (int i = 0; i < count; i++)
            set[size++] = f->free_site[x->inner.selected[i]];
        swap_descent(x, set, size, ROOT_SWAPS);
    }
    memcpy(u, f->u, (size_t)x->p.clients * sizeof(double));
    x->tree.depth = 0;
    return bound;
}

/* Bound a leader by multipliers adapted from those of another one, `from`. 1 when they close it: then they are
 * in `u`, with the bound in *bound; 0 with them in `u` when they are better than the present ones. */
static int closed_by_adapted(context *x, int leader, const double *from, int other, double *u, unsigned char *warm,
                          double *bound)
{
    double before = *warm ? bound_from_memory(x, leader) : -BIG;
    adapt_multipliers(x, from, other, leader, x->scratch.u);
    *bound = quick_bound(x, leader, x->scratch.u);
    if (*bound < x->best.cutoff && *bound <= before)
        return 0;
    memcpy(u, x->scratch.u, (size_t)x->p.clients * sizeof(double));
    *warm = 1;
    if (*bound < x->best.cutoff)
        return 0;
    if (x->proof.recording) {
        record_event(x, CLOSE, 0.0);
        record_vector(x, u);
    }
    return 1;
}

/* Bound leaders in turn, until `work` is done or the caller's limit is reached, but always the first one;
 * returns how many.  The first `full` of them, and all while there is no incumbent, get a descent of `swaps`;
 * the other leaders are first bounded by multipliers adapted from the best of these.
 * bounds[i] and ends[i], the length of the record after leader i, are filled in. */
int bound_roots(context *x, const int *leader, int count, double *u, const unsigned char *warm,
                 int iterations, int swaps, int full, double work, double *bounds, long long *ends)
{
    int done = 0, best = -1;
    size_t clients = (size_t)x->p.clients;
    double enough = x->effort.work + work;
    while (done < count && !x->control.out_of_memory && (done == 0 || (x->effort.work < enough && !must_pause(x)))) {
        int thorough = done < full || x->best.score >= BIG;
        double *own = u + (size_t)done * clients;
        unsigned char start = warm[done];
        if (thorough || best < 0 || x->best.count == 0 ||
            !closed_by_adapted(x, leader[done], u + (size_t)best * clients, leader[best], own, &start,
                            &bounds[done]))
            bounds[done] = bound_root(x, leader[done], own, start, iterations, thorough ? swaps : 1);
        if (best < 0 || bounds[done] < bounds[best])
            best = done;
        ends[done] = (long long)x->proof.events.length;
        done++;
    }
    return done;
}

/* Add to `set` the site that costs least under the current leader, or take away the one whose loss
 * costs least; 0 when no such step is feasible.  The problem asks for the size after the step. */
static int change_size_by_one(context *x, int *set, int *count, int add)
{
    double least = BIG, radius;
    int best = -1, size = *count;
    if (add) {
        for (int s = 0; s < x->p.sites; s++) {
            int excluded = !x->p.may_hold[s];
            for (int i = 0; i < size && !excluded; i++)
                excluded = set[i] == s;
            if (excluded)
                continue;
            set[size] = s;
            double score = score_of(x, set, size + 1, &radius);
            if (score < least) {
                least = score;
                best = s;
            }
        }
        if (best < 0)
            return 0;
        set[size] = best;
        *count = size + 1;
        return 1;
    }
    for (int i = 0; i < size; i++) {
        int out = set[i], last = set[size - 1];
        if (out == x->view.leader || x->p.must_hold[out])
            continue;
        set[i] = last;
        double score = score_of(x, set, size - 1, &radius);
        set[i] = out;
        if (score < least) {
            least = score;
            best = i;
        }
    }
    if (best < 0)
        return 0;
    set[best] = set[size - 1];
    *count = size - 1;
    return 1;
}

/* Set another range of numbers of replicas.  The incumbent grows or shrinks to it, site by site; the work
 * counted, the record and the open tree are forgotten. There is none when the limit of the call is reached first. */
void set_replica_range(context *x, int least, int most)
{
    problem *p = &x->p;
    int *set = x->scratch.sites + p->sites, count = x->best.score < BIG ? x->best.count : 0;
    int leader = x->best.leader;
    double radius, score;
    memcpy(set, x->best.replicas, (size_t)count * sizeof(int));
    x->tree.depth = 0;
    x->tree.closed = BIG;
    forget_incumbent(x);
    x->effort.work = x->control.next_pause = 0.0;
    x->tree.nodes = x->effort.evaluations = x->tree.leaves = 0;
    x->proof.events.length = 0;
    if (count)
        costs_for_leader(x, leader);
    while (count && (count < least || count > most)) {
        int add = count < least;
        p->replicas_min = p->replicas_max = count + (add ? 1 : -1);
        if (!change_size_by_one(x, set, &count, add) || must_pause(x))
            count = 0;
    }
    p->replicas_min = least;
    p->replicas_max = most;
    if (count && (score = score_of(x, set, count, &radius)) < BIG)
        offer_incumbent(x, score, set, count);
}
