/* The order of the search: which part of all trees comes next, and when to put a part off.
 *
 * Depth first is quick, but the last part of a tree that it visits keeps the bound of the root until then, and so does the
 * bound of the whole search. So
 *
 * - no leader gets more than BURST_NODES nodes before every open leader had the steps of its root;
 * - from PUT_OFF_FROM work on, a node whose bound reaches cutoff (1 - gap) is put off while there are parts below; when there
 *   are none left, the gap shrinks to GAP_SHRINK times, with a stop at GAP_STOP. Below GAP_STOP nothing more is put off
 *   once there are FEW_PARTS: each of them raises the bound when it is finished, and more would only cost more.
 *
 * Of the parts below, the parts of the leader under work come first, by bound: another leader has other costs everywhere.
 *
 * The bound of the search, the least of parts, stack and what was closed, then rises all the time. A part that is
 * put off is open: nothing but the cutoff ever closes. */
#include "kernel.h"

/* The trees have just been opened. */
void begin_order(context *x)
{
    x->open.began = x->effort.work;
    x->open.gap = -1.0;
    x->open.puts_off = 1;
    x->open.burst = 0;
    x->open.last = -2;
}

/* Bound that every part has to reach now. */
static double wanted(const context *x)
{
    double cutoff = x->best.cutoff;
    return x->open.gap > 0.0 && cutoff < BIG ? cutoff - x->open.gap * cutoff : BIG;
}

/* Bound from which a node is put off. */
static double enough_to_put_off(const context *x)
{
    const open_parts *o = &x->open;
    return o->puts_off && o->kept < MOST_KEPT ? wanted(x) : BIG;
}

/* The part to work on: a new leader, or one of the last leader that is to come nearer to the cutoff, or any; of these that of
 * the least bound. */
static int next_part(const context *x)
{
    const open_parts *o = &x->open;
    int best = -1, rank = -1;
    for (int i = 0; i < o->count; i++) {
        const open_part *part = &o->part[i];
        int own = !part->state && !o->tree[memory_row(x, part->leader)].begun  ? 2
                  : part->leader == o->last && part->bound < wanted(x)               ? 1
                                                                                     : 0;
        if (best < 0 || own > rank || (own == rank && part->bound < o->part[best].bound)) {
            best = i;
            rank = own;
        }
    }
    return best;
}

static int has_new_leaders(const context *x)
{
    for (int i = 0; i < x->open.count; i++)
        if (!x->open.part[i].state && !x->open.tree[memory_row(x, x->open.part[i].leader)].begun)
            return 1;
    return 0;
}

/* 1 when parts are to be put off from now on. */
static int is_time_for_gaps(const context *x)
{
    double cutoff = x->best.cutoff;
    return x->open.gap < 0.0 && x->effort.work - x->open.began >= x->limits.patience && cutoff > 0.0 && cutoff < BIG;
}

/* Choose the gap for which parts are put off, so that the least bound, `least`, is below it. */
static void shrink_gap(context *x, double least)
{
    if (is_time_for_gaps(x))
        x->open.gap = least < x->best.cutoff ? 1.0 - least / x->best.cutoff : 0.0;
    while (x->open.gap > LEAST_GAP && least >= wanted(x)) {
        double next = x->open.gap * GAP_SHRINK;
        x->open.gap = x->open.gap > GAP_STOP && next < GAP_STOP ? GAP_STOP : next;
    }
    if (x->open.gap >= 0.0 && x->open.gap <= LEAST_GAP)
        x->open.gap = 0.0;
}

/* Work on the open trees; 1 when they are finished. */
int run_search(context *x, double work)
{
    double stop = x->effort.work + work;
    int crowded = has_new_leaders(x);
    while ((x->tree.depth > 0 || x->open.count > 0) && !x->control.out_of_memory && x->effort.work < stop && !must_pause(x)) {
        if (x->tree.depth > 0 && ((crowded && x->open.burst >= x->limits.burst_nodes) || is_time_for_gaps(x))) {
            current_tree(x)->closed = x->tree.closed;
            put_off_stack(x);
        }
        if (x->tree.depth == 0) {
            close_parts(x);
            if (!x->open.count)
                break;
            int at = next_part(x);
            if (x->open.part[at].leader != x->open.last || crowded)
                x->open.burst = 0;
            x->open.last = x->open.part[at].leader;
            shrink_gap(x, x->open.part[at].bound);
            take_part(x, at);
            crowded = has_new_leaders(x);
            continue;
        }
        if (x->open.gap >= 0.0 && x->open.gap < GAP_STOP && x->open.count >= FEW_PARTS)
            x->open.puts_off = 0;
        x->open.burst++;
        x->tree.enough = enough_to_put_off(x);
        visit_node(x);
        x->tree.enough = BIG;
        if (x->tree.depth == 0)
            current_tree(x)->closed = x->tree.closed;
    }
    return x->tree.depth == 0 && x->open.count == 0;
}
