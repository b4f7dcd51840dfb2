/* The incumbent: the best configuration so far, and the cutoff that follows from its score. */
#include <math.h>
#include <string.h>

#include "kernel.h"

/* Take a configuration as incumbent when it is better. */
void offer_incumbent(context *x, double score, const int *replicas, int count)
{
    if (score >= x->best.score)
        return;
    x->best.score = score;
    x->best.leader = x->view.leader;
    x->best.count = count;
    memcpy(x->best.replicas, replicas, (size_t)count * sizeof(int));
    set_cutoff(x);
}

/* The cutoff that follows from a score: the score, less what a bound may stay below it. */
double cutoff_of(const context *x, double score)
{
    double cutoff = score - x->best.tolerance * score;
    if (x->p.granularity > 0.0) {
        /* more than score − granularity is as good as score */
        double whole = nextafter(score - x->p.granularity * (1.0 - 1e-6), BIG);
        if (whole < cutoff)
            cutoff = whole;
    }
    return cutoff;
}

/* Set the cutoff that follows from the score of the incumbent. */
void set_cutoff(context *x)
{
    if (x->best.score < BIG)
        x->best.cutoff = cutoff_of(x, x->best.score);
}

/* Close nodes whose bound is within `tolerance`, relatively, of the incumbent. */
void set_tolerance(context *x, double tolerance)
{
    x->best.tolerance = tolerance;
    set_cutoff(x);
}

/* Put a configuration in the place of the incumbent, whatever its score. */
void set_incumbent(context *x, double score, double cutoff, int leader, const int *replicas, int count)
{
    x->best.score = score;
    x->best.cutoff = cutoff;
    x->best.leader = leader;
    x->best.count = count;
    memcpy(x->best.replicas, replicas, (size_t)count * sizeof(int));
}

/* There is no incumbent any more. */
void forget_incumbent(context *x)
{
    x->best.score = x->best.cutoff = BIG;
    x->best.leader = -2;
    x->best.count = 0;
}
