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

/* Flag the free sites, by position, that one family of a role still needs beside the sites that are in. */
static void flag_needed(const context *x, const tree_node *f, const site_family *family, const unsigned char *may,
                        int most, unsigned char *needed)
{
    int *count = x->scratch.family_counts;
    begin_count(family, count);
    for (int i = 0; i < f->in_count; i++)
        if (may[f->in_site[i]])
            take_site(family, count, f->in_site[i], 0, most);
    if (still_needed(family, count, 0) <= 0)
        return;
    for (int i = 0; i < f->free_count; i++)
        if (may[f->free_site[i]] && take_needed_site(family, count, f->free_site[i], 0, most)) {
            count_site(family, count, f->free_site[i], -1);
            needed[i] = 1;
        }
}

/* Flag the free sites, by position, that lower the number of sites which the minimums of the rules still need. */
static const unsigned char *find_needed(const context *x, const tree_node *f)
{
    const problem *p = &x->p;
    unsigned char *needed = (unsigned char *)x->scratch.sites;
    memset(needed, 0, (size_t)f->free_count + 1);
    for (int k = 0; k < p->replica_families.count && p->replica_families.rules; k++)
        flag_needed(x, f, &p->replica_families.family[k], p->may_hold, p->replicas_max, needed);
    for (int k = 0; k < p->voter_families.count && p->voter_families.rules; k++)
        flag_needed(x, f, &p->voter_families.family[k], p->may_vote, p->voters, needed);
    return needed;
}

/* Position of the free site to branch on; the bound of the node is `value`.
 *
 * Sites that a minimum still needs come first. A bound takes such a site at hardly any cost: clients need not use it. Once it
 * is in, they must, where it is the nearest; so the bound rises there, and not where other sites are decided. */
int choose_branching_site(const context *x, const tree_node *f, double value)
{
    double best = -1.0, gap = x->best.cutoff < BIG ? x->best.cutoff - value : 1.0;
    const pseudo_costs *p = &current_tree(x)->pseudo;
    const unsigned char *needed = find_needed(x, f);
    int chosen = 0;
    for (int i = 0; i < f->free_count; i++) {
        int s = f->free_site[i];
        double up = between(FLOOR * gap, expected(p, IN, s), gap);
        double least = between(0.0, x->evaluated.forced[OUT][s] - value, gap);
        double down = 0.5 * (between(0.0, expected(p, OUT, s), gap) + least);
        double score = up * (down + EVEN * gap) * (SELDOM + f->frequency[s]) * (needed[i] ? NEEDED : 1.0);
        if (score > best) {
            best = score;
            chosen = i;
        }
    }
    return chosen;
}
