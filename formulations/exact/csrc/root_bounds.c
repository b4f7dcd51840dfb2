/* The first look at every leader: many scans in one call, and the step from one |R| to another. */
#include <string.h>

#include "kernel.h"

/* Descend to a good set for a leader, then bound the leader without branching.  `u` (clients) is read
 * when `warm`, and replaced by the best multipliers found; swaps = 0: no descent, 1: only adapt the
 * incumbent. */
double scan_leader(context *x, int leader, double *u, int warm, int iterations, int swaps)
{
    double bound = 0.0, error;
    int shared = 1;
    for (int s = 0; s < x->p.sites; s++)
        shared &= leader < 0 || s == leader || !x->p.must_hold[s];
    costs_for_leader(x, leader);
    root_open(x, warm ? u : NULL, shared);
    if (x->stop)
        return bound;
    frame *f = &x->stack[0];
    int *set = x->near_free + x->p.sites, count = 0;
    if (swaps > 1 || (swaps > 0 && !warm)) { /* without swaps the set is for the multipliers alone */
        count = start_set(x, set);
        if (count && swaps > 1)
            descend(x, set, count, swaps);
    }
    if (!warm && count)
        start_multipliers(x, f, set, count);
    bound = improve_bound(x, f, iterations, &error);
    if (bound >= x->cutoff && x->recording) {
        bound = record_close(x, f, bound);
        x->best_at = -1;
    }
    if (x->best_at != x->iterations) /* rho is not that of f->u */
        evaluate_bound(x, f, f->u, 0, &count, &error);
    remember(x, f, x->served);
    if (x->span.on)
        span_note(x, leader, f->open);
    memcpy(u, f->u, (size_t)x->p.clients * sizeof(double));
    x->depth = 0;
    return bound;
}

/* Look at a leader by multipliers adapted from those of another one, `from`. 1 when they close it: then they are
 * in `u`, with the bound in *bound; 0 with them in `u` when they are better than what is there. */
static int adapted_closes(context *x, int leader, const double *from, int other, double *u, unsigned char *warm,
                          double *bound)
{
    double before = *warm ? recall_leader(x, leader) : -BIG;
    adapt(x, from, other, leader, x->trial);
    *bound = glance_leader(x, leader, x->trial);
    if (*bound < x->cutoff && *bound <= before)
        return 0;
    memcpy(u, x->trial, (size_t)x->p.clients * sizeof(double));
    *warm = 1;
    if (*bound < x->cutoff)
        return 0;
    if (x->recording) {
        record_event(x, 2.0, 0.0);
        record_vector(x, u);
    }
    return 1;
}

/* Scan leaders in turn, until `work` is done or the caller's limit is reached, but always the first one;
 * returns how many.  The first `full` of them, and all while there is no incumbent, get a descent of `swaps`;
 * the others are looked at by what is known of the best of them first.
 * bounds[i] and ends[i], the length of the record after leader i, are filled in. */
int scan_leaders(context *x, const int *leader, int count, double *u, const unsigned char *warm,
                 int iterations, int swaps, int full, double work, double *bounds, long long *ends)
{
    int done = 0, best = -1;
    size_t clients = (size_t)x->p.clients;
    double enough = x->work + work;
    while (done < count && !x->stop && (done == 0 || (x->work < enough && !must_pause(x)))) {
        int thorough = done < full || x->score >= BIG;
        double *own = u + (size_t)done * clients;
        unsigned char start = warm[done];
        if (thorough || best < 0 || x->replica_count == 0 ||
            !adapted_closes(x, leader[done], u + (size_t)best * clients, leader[best], own, &start,
                            &bounds[done]))
            bounds[done] = scan_leader(x, leader[done], own, start, iterations, thorough ? swaps : 1);
        if (best < 0 || bounds[done] < bounds[best])
            best = done;
        ends[done] = (long long)x->record.length;
        done++;
    }
    return done;
}

/* Add to `set` the site that costs least under the current leader, or take away the one whose loss
 * costs least; 0 when no such step is feasible.  The problem asks for the size after the step. */
static int step(context *x, int *set, int *count, int add)
{
    double least = BIG, radius;
    int best = -1, size = *count;
    if (add) {
        for (int s = 0; s < x->p.sites; s++) {
            int known = !x->p.may_hold[s];
            for (int i = 0; i < size && !known; i++)
                known = set[i] == s;
            if (known)
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
        if (out == x->current || x->p.must_hold[out])
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

/* Ask for another number of replicas.  The incumbent grows or shrinks to it, site by site; the work
 * counted, the record and the open tree are forgotten. */
void resize(context *x, int least, int most)
{
    problem *p = &x->p;
    int *set = x->near_free + p->sites, count = x->score < BIG ? x->replica_count : 0;
    double radius, score;
    memcpy(set, x->replicas, (size_t)count * sizeof(int));
    x->depth = 0;
    x->score = x->cutoff = x->closed = BIG;
    x->work = x->next_pause = 0.0;
    x->nodes = x->iterations = x->leaves = 0;
    x->record.length = 0;
    if (count)
        costs_for_leader(x, x->leader);
    while (count && (count < least || count > most)) {
        int add = count < least;
        p->replicas_min = p->replicas_max = count + (add ? 1 : -1);
        if (!step(x, set, &count, add))
            count = 0;
    }
    p->replicas_min = least;
    p->replicas_max = most;
    x->leader = -2;
    if (count && (score = score_of(x, set, count, &radius)) < BIG)
        offer(x, score, set, count);
}
