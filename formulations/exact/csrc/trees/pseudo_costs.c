/* The choice of the site to branch on: the one whose decision has raised, and may raise, both bounds most.
 *
 * Pseudo-costs (Benichou et al. 1971) remember by how much a decision "replica at j" or "none at j"
 * raised the bound in this tree; the last fixing by reduced cost says what "none at j"
 * gives at least. Only the size of the tree depends on any of it. */
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

void free_pseudo_costs(pseudo_costs *p)
{
    for (int side = IN; side <= OUT; side++) {
        free(p->gain[side]);
        free(p->tries[side]);
    }
    memset(p, 0, sizeof *p);
}

/* Begin to learn in the tree of the leader under work, from nothing. */
void reset_pseudo_costs(context *x)
{
    pseudo_costs *p = &current_tree(x)->pseudo;
    free_pseudo_costs(p);
    for (int side = IN; side <= OUT; side++) {
        p->gain[side] = calloc((size_t)x->p.sites, sizeof(double));
        p->tries[side] = calloc((size_t)x->p.sites, sizeof(double));
        x->control.out_of_memory |= !p->gain[side] || !p->tries[side];
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
    pseudo_costs *p = &current_tree(x)->pseudo;
    p->gain[side][site] += gained;
    p->tries[side][site] += 1.0;
    p->gain_sum[side] += gained;
    p->tries_sum[side] += 1.0;
    f->branched_site = -1;
}

/* The expected gain of one side, the mean over all sites as a prior. */
static double expected(const pseudo_costs *p, int side, int site)
{
    double mean = p->tries_sum[side] > 0.0 ? p->gain_sum[side] / p->tries_sum[side] : 0.0;
    return (p->gain[side][site] + PRIOR * mean) / (p->tries[side][site] + PRIOR);
}

static double between(double least, double value, double most)
{
    return value < least ? least : value > most ? most : value;
}

/* Position of the free site to branch on; the bound of the node is `value`. */
int choose_branching_site(const context *x, const tree_node *f, double value)
{
    double best = -1.0, gap = x->best.cutoff < BIG ? x->best.cutoff - value : 1.0;
    const pseudo_costs *p = &current_tree(x)->pseudo;
    int chosen = 0;
    for (int i = 0; i < f->free_count; i++) {
        int s = f->free_site[i];
        double up = between(FLOOR * gap, expected(p, IN, s), gap);
        double least = between(0.0, x->evaluated.forced[OUT][s] - value, gap);
        double down = 0.5 * (between(0.0, expected(p, OUT, s), gap) + least);
        double score = up * (down + EVEN * gap) * (SELDOM + f->frequency[s]);
        if (score > best) {
            best = score;
            chosen = i;
        }
    }
    return chosen;
}
