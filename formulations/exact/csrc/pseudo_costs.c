/* Where to branch: on the site whose decision has raised, and may raise, both bounds most.
 *
 * Pseudo-costs (Benichou et al. 1971) remember by how much a decision "replica at j" or "none at j"
 * raised the bound in this tree; what fixing by reduced cost has just found says what "none at j"
 * gives at least. Only the size of the tree depends on any of it. */
#include <string.h>

#include "kernel.h"

/* Found by measuring on modelled and measured networks. */
#define PRIOR 2.0             /* decisions that the mean over all sites counts for */
#define FLOOR 0.01            /* least gain of the side IN, of the gap */
#define EVEN 0.1              /* of the gap, added to the side OUT, whose gains are small and alike */
#define SELDOM 0.4            /* weight of a site that the steps never select, against 1 + SELDOM */

void branch_forget(context *x)
{
    for (int side = IN; side <= OUT; side++) {
        memset(x->gain[side], 0, (size_t)x->p.sites * sizeof(double));
        memset(x->tries[side], 0, (size_t)x->p.sites * sizeof(double));
        x->gain_sum[side] = x->tries_sum[side] = 0.0;
    }
}

/* The frame's bound is now `value`: what did the decision that made it give? */
void branch_learn(context *x, frame *f, double value)
{
    int site = f->decided, side = f->side;
    if (site < 0)
        return;
    double gained = (value < x->cutoff ? value : x->cutoff) - f->before;
    if (gained < 0.0)
        gained = 0.0;
    x->gain[side][site] += gained;
    x->tries[side][site] += 1.0;
    x->gain_sum[side] += gained;
    x->tries_sum[side] += 1.0;
    f->decided = -1;
}

/* What is expected of one side, the mean over all sites as a prior. */
static double expected(const context *x, int side, int site)
{
    double mean = x->tries_sum[side] > 0.0 ? x->gain_sum[side] / x->tries_sum[side] : 0.0;
    return (x->gain[side][site] + PRIOR * mean) / (x->tries[side][site] + PRIOR);
}

static double between(double least, double value, double most)
{
    return value < least ? least : value > most ? most : value;
}

/* Position of the free site to branch on; the frame's bound is `value`. */
int branch_site(const context *x, const frame *f, double value)
{
    double best = -1.0, gap = x->cutoff < BIG ? x->cutoff - value : 1.0;
    int chosen = 0;
    for (int i = 0; i < f->free_count; i++) {
        int s = f->free_site[i];
        double up = between(FLOOR * gap, expected(x, IN, s), gap);
        double least = between(0.0, x->forced[OUT][s] - value, gap);
        double down = 0.5 * (between(0.0, expected(x, OUT, s), gap) + least);
        double score = up * (down + EVEN * gap) * (SELDOM + f->frequency[s]);
        if (score > best) {
            best = score;
            chosen = i;
        }
    }
    return chosen;
}
