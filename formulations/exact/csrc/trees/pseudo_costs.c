/* The choice of the site to branch on: the one whose decision has raised, and may raise, both bounds most.
 *
 * Pseudo-costs (Benichou et al. 1971) remember by how much a decision "replica at j" or "none at j"
 * raised the bound in this tree; what fixing by reduced cost has just found says what "none at j"
 * gives at least. Only the size of the tree depends on any of it. */
#include <string.h>

#include "kernel.h"

void reset_pseudo_costs(context *x)
{
    for (int side = IN; side <= OUT; side++) {
        memset(x->pseudo.gain[side], 0, (size_t)x->p.sites * sizeof(double));
        memset(x->pseudo.tries[side], 0, (size_t)x->p.sites * sizeof(double));
        x->pseudo.gain_sum[side] = x->pseudo.tries_sum[side] = 0.0;
    }
}

/* Note what the decision that made a node has raised the bound by, now that it is `value`. */
void learn_pseudo_cost(context *x, tree_node *f, double value)
{
    int site = f->branched_site, side = f->branched_side;
    if (site < 0)
        return;
    double gained = (value < x->best.cutoff ? value : x->best.cutoff) - f->parent_bound;
    if (gained < 0.0)
        gained = 0.0;
    x->pseudo.gain[side][site] += gained;
    x->pseudo.tries[side][site] += 1.0;
    x->pseudo.gain_sum[side] += gained;
    x->pseudo.tries_sum[side] += 1.0;
    f->branched_site = -1;
}

/* The expected gain of one side, the mean over all sites as a prior. */
static double expected(const context *x, int side, int site)
{
    double mean = x->pseudo.tries_sum[side] > 0.0 ? x->pseudo.gain_sum[side] / x->pseudo.tries_sum[side] : 0.0;
    return (x->pseudo.gain[side][site] + PRIOR * mean) / (x->pseudo.tries[side][site] + PRIOR);
}

static double between(double least, double value, double most)
{
    return value < least ? least : value > most ? most : value;
}

/* Position of the free site to branch on; the bound of the node is `value`. */
int choose_branching_site(const context *x, const tree_node *f, double value)
{
    double best = -1.0, gap = x->best.cutoff < BIG ? x->best.cutoff - value : 1.0;
    int chosen = 0;
    for (int i = 0; i < f->free_count; i++) {
        int s = f->free_site[i];
        double up = between(FLOOR * gap, expected(x, IN, s), gap);
        double least = between(0.0, x->pseudo.forced[OUT][s] - value, gap);
        double down = 0.5 * (between(0.0, expected(x, OUT, s), gap) + least);
        double score = up * (down + EVEN * gap) * (SELDOM + f->frequency[s]);
        if (score > best) {
            best = score;
            chosen = i;
        }
    }
    return chosen;
}
