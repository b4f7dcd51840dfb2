/* The cheapest case of the waits of a leader, or all of them below a limit.
 *
 * The longer the radii of a case, the more replica sets meet it. So all cases of a range of radii cost at least the price
 * of the shortest radii and the sites of the longest ones: a range is cut in two until that reaches the limit. Where
 * blocks cross, the sites of a case are only a bound, which need not fall as radii grow; then the prices alone count. */
#include <string.h>

#include "kernel.h"

static const double no_wait = 0.0; /* the one radius of a wait that there is not */

typedef struct {
    context *x;
    tree_node *f;
    const keyed *sorted;
    int n, lo, hi, all;
    int size[MOST_WAITS];      /* which of the cases of a radius */
    const double *radius[MOST_WAITS];
    double rounds[MOST_WAITS];
    double floor, limit;       /* least sum of any sites; a sum at or above the limit is of no use */
    const radius_minimum *common;
    cheapest_case *best;
    size_t at[MOST_WAITS];     /* of the cheapest */
} case_search;

/* Find the cheapest sites that meet the case of some radii, with its price; 0 when there are none. */
static int solve_case(case_search *s, const size_t *at, radius_minimum *answer, double *price, int *size)
{
    context *x = s->x;
    const wait_case *one = case_of(x, x->view.leader, at);
    if (!one)
        return 0;
    int *chosen = x->scratch.order;
    for (int k = 0; k < one->families; k++) {
        double value, top, next;
        int taken = cheapest_of_case(s->f, s->sorted, s->n, one, k, s->lo, s->hi, &value, &top, &next, chosen);
        if (taken < 0)
            return 0;
        keep_larger(answer, 0, value, top, next, chosen, taken, s->best->trial, size);
    }
    answer->member = one->member;
    *price = one->price;
    return 1;
}

/* The same where the case is one of balls. */
static int solve_balls(case_search *s, const int *radius, radius_minimum *answer, double *price, int *size)
{
    context *x = s->x;
    const wait_cases *cases = &x->p.cases;
    double length[MOST_WAITS], value, top, next;
    int *chosen = x->scratch.order;
    *price = 0.0;
    for (int w = 0; w < cases->count; w++) {
        length[w] = s->radius[w][radius[w]];
        *price += s->rounds[w] * length[w];
    }
    answer->reach = cases->barring < 0 ? BIG : length[cases->barring];
    int taken = cheapest_of_balls(x, s->f, s->sorted, s->n, cases->counting < 0 ? BIG : length[cases->counting], answer->reach,
                                  s->lo, s->hi, &value, &top, &next, chosen);
    if (taken < 0)
        return 0;
    keep_larger(answer, 0, value, top, next, chosen, taken, s->best->trial, size);
    return 1;
}

/* Least sum of the sites that meet the case of some radii; BIG: there is none. */
static double look_at_case(case_search *s, const int *radius)
{
    context *x = s->x;
    size_t at[MOST_WAITS];
    for (int w = 0; w < MOST_WAITS; w++)
        at[w] = (size_t)radius[w] * (size_t)sizes_of(&x->p.cases, w) + (size_t)s->size[w];
    radius_minimum answer = *s->common;
    double price;
    int size = 0;
    if (!(x->p.cases.single ? solve_balls(s, radius, &answer, &price, &size) : solve_case(s, at, &answer, &price, &size)))
        return BIG;
    double least = answer.base[0], sum = least > s->floor ? least : s->floor, total = price + sum;
    if (s->all && total < s->limit) {
        radius_minimum *a = &x->inner.radii[x->inner.radius_count++];
        *a = answer;
        a->value = total;
        for (int r = 0; r < 3; r++)
            if (a->base[r] > -BIG)
                a->base[r] += price;
    }
    if (total < s->best->value) {
        s->best->value = total;
        s->best->own = least >= s->floor;
        s->best->count = size;
        memcpy(s->best->chosen, s->best->trial, (size_t)size * sizeof(int));
        memcpy(s->at, at, sizeof at);
        if (!s->all)
            s->limit = total;
    }
    return sum;
}

/* Shrink a range to pairs whose shorter wait is not the longer one, and whose price leaves less than the limit beside
 * `least`, the least sum of sites; 0 when none are left. */
static int fit_range(const case_search *s, int *from, int *to, double least)
{
    int a = s->x->p.cases.shorter, b = 1 - a;
    for (int w = 0; w < MOST_WAITS; w++) {
        double rest = s->rounds[1 - w] * s->radius[1 - w][from[1 - w]];
        while (to[w] >= from[w] && rest + s->rounds[w] * s->radius[w][to[w]] + least >= s->limit)
            to[w]--;
        if (to[w] < from[w])
            return 0;
    }
    if (a < 0)
        return 1;
    while (to[a] >= from[a] && s->radius[a][to[a]] > s->radius[b][to[b]])
        to[a]--;
    while (from[b] <= to[b] && s->radius[b][from[b]] < s->radius[a][from[a]])
        from[b]++;
    return from[a] <= to[a] && from[b] <= to[b];
}

/* Search the cases from one pair of radii to another, whose sites cost `least` at least. `seen`: without the longest ones. */
static void search_range(case_search *s, const int *first, const int *last, int seen, double least)
{
    int from[MOST_WAITS], to[MOST_WAITS], corner[MOST_WAITS], middle[MOST_WAITS], after[MOST_WAITS];
    memcpy(from, first, sizeof from);
    memcpy(to, last, sizeof to);
    memcpy(corner, last, sizeof corner);
    for (;;) { /* the shorter the longest radii, the more their sites cost */
        if (s->x->control.out_of_memory || !fit_range(s, from, to, least))
            return;
        if (seen && memcmp(to, corner, sizeof to) == 0)
            break;
        double known = look_at_case(s, to);
        least = s->x->p.cases.nested && known > least ? known : least;
        memcpy(corner, to, sizeof corner);
        seen = 1;
    }
    if (from[0] == to[0] && from[1] == to[1])
        return;
    double extent[MOST_WAITS];
    for (int w = 0; w < MOST_WAITS; w++)
        extent[w] = to[w] > from[w] ? s->rounds[w] * (s->radius[w][to[w]] - s->radius[w][from[w]]) : -1.0;
    int wide = extent[1] > extent[0];
    memcpy(middle, to, sizeof middle);
    memcpy(after, from, sizeof after);
    middle[wide] = from[wide] + (to[wide] - from[wide]) / 2;
    after[wide] = middle[wide] + 1;
    search_range(s, from, middle, 0, least);
    search_range(s, after, to, 1, least);
}

/* The cheapest case for the sites in order of reduced costs, with `lo`..`hi` of them. With `all` those below `slack` are
 * kept in x->inner.radii. */
void cheapest_case_of(context *x, tree_node *f, const keyed *sorted, int n, int lo, int hi, int all, double slack,
                      const radius_minimum *common, double floor_value, cheapest_case *best)
{
    const wait_cases *cases = &x->p.cases;
    int leader = x->view.leader, end[MOST_WAITS], hint[MOST_WAITS], there = 1;
    case_search s = {.x = x, .f = f, .sorted = sorted, .n = n, .lo = lo, .hi = hi, .all = all, .floor = floor_value,
                     .limit = all ? slack : BIG, .common = common, .best = best};
    size_t *last = cases->last + (size_t)leader * MOST_WAITS;
    best->value = BIG;
    best->count = best->own = 0;
    for (int w = 0; w < MOST_WAITS; w++) {
        end[w] = radii_of(cases, w, leader) - 1;
        there &= end[w] >= 0;
        s.rounds[w] = w < cases->count ? cases->wait[w].rounds : 0.0;
        s.radius[w] = w < cases->count ? cases->wait[w].radius + cases->wait[w].start[leader] : &no_wait;
    }
    if (!there)
        return;
    memcpy(s.at, last, sizeof s.at);
    for (int w = 0; w < MOST_WAITS; w++) {
        hint[w] = (int)(last[w] / (size_t)sizes_of(cases, w));
        s.size[w] = (int)(last[w] % (size_t)sizes_of(cases, w));
        there &= hint[w] >= x->inner.from[w];
    }
    if (!all && there) /* the last cheapest case is soon cheap enough to eliminate most others */
        look_at_case(&s, hint);
    for (s.size[0] = 0; s.size[0] < sizes_of(cases, 0); s.size[0]++)
        for (s.size[1] = 0; s.size[1] < sizes_of(cases, 1); s.size[1]++)
            search_range(&s, x->inner.from, end, 0, floor_value);
    memcpy(last, s.at, sizeof s.at);
}

/* The first radius of a wait whose cases allow a replica at a site; the number of radii when none does. */
static int first_radius(const context *x, int wait, int site)
{
    const leader_wait *one = &x->p.cases.wait[wait];
    int leader = x->view.leader, low = 0, high = radii_of(&x->p.cases, wait, leader);
    if (!(one->scope[(size_t)leader * (size_t)x->p.sites + (size_t)site] & FORBIDDEN))
        return 0;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (one->radius[one->start[leader] + middle] < distance_of(x, leader, site))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* 1 when every case that allows a replica at `site` has the radii of x->inner.from, or longer ones. */
static int is_as_far(const context *x, int site)
{
    int far = 1;
    for (int w = 0; w < x->p.cases.count && far; w++)
        far = first_radius(x, w, site) >= x->inner.from[w];
    return far;
}

/* Record that the multipliers of a node rule out each of its far sites. */
static void record_far_sites(context *x, const tree_node *f)
{
    int count = 0;
    for (int i = 0; i < f->free_count; i++)
        count += is_as_far(x, f->free_site[i]);
    record_event(x, FIX, 0.0);
    record_vector(x, f->u);
    record_number(x, count);
    for (int i = 0; i < f->free_count; i++)
        if (is_as_far(x, f->free_site[i]))
            record_number(x, f->free_site[i]);
    record_number(x, 0);
}

/* Fix free sites that are so far from the leader that a wait for all replicas would be too long. Multipliers that suit
 * long waits bound all of them together: those of the node have to suit short waits too. The number of sites fixed. */
int fix_far_sites(context *x, tree_node *f)
{
    const problem *p = &x->p;
    size_t bytes = (size_t)p->padded * sizeof(double);
    int fixed = 0, near = 0, far = 0, *order = malloc((size_t)p->sites * sizeof(int));
    double *u = malloc(bytes + 8);
    x->control.out_of_memory |= !order || !u;
    for (int t = 0; order && t < p->sites; t++)
        if (f->state[x->view.near_order[t]] == FREE)
            order[far++] = x->view.near_order[t];
    if (order && u)
        memcpy(u, f->u, bytes);
    while (near < far && !x->control.out_of_memory && !x->control.paused) {
        int middle = near + (far - near) / 2, useful = 0;
        double error, bound = -BIG;
        for (int w = 0; w < p->cases.count; w++)
            useful |= (x->inner.from[w] = first_radius(x, w, order[middle])) > 0;
        if (useful)
            bound = improve_bound(x, f, FAR_STEPS, &error);
        if (bound >= x->best.cutoff) {
            if (bound < x->tree.closed)
                x->tree.closed = bound;
            if (x->proof.on)
                record_far_sites(x, f);
            for (int i = f->free_count - 1; i >= 0; i--)
                if (is_as_far(x, f->free_site[i])) {
                    node_drop_site(x, f, i, 1);
                    fixed++;
                }
            far = middle;
        } else
            near = middle + 1;
        memset(x->inner.from, 0, sizeof x->inner.from);
        for (int c = 0; c < p->clients; c++)
            f->u[c] = u[c] < f->fixed_cost[c] ? u[c] : f->fixed_cost[c];
    }
    if (f->outdated)
        update_cells(x, f, &f->cells);
    free(order);
    free(u);
    return fixed;
}
