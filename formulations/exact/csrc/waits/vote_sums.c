/* The least sum of sites for every row of a wait that counts votes, all rows at once (waits/vote_rows.c says what a row is).
 *
 * The sites of a class within the radius and beyond it are two lists by reduced cost, the same for all rows; each row takes
 * the first ones of the lists, and then the cheapest that are left. This is the greedy of its case, without looking at every
 * site for every row.
 *
 * Few rows are summed up. Let y be the price of a site, and let every site cost its reduced cost less y. Without the number
 * of sites as a condition the classes are independent: each takes the sites that the row asks for, and others that cost less
 * than nothing. The sum of these costs and of y for each site that is to be taken is a bound for the row, for every y. It is
 * good where y is the cost of the last site that the cheapest row takes. */
#include <math.h>

#include "kernel.h"

enum { LISTS = 2 * MOST_BLOCKS + 1, MOST_PRICED = 16 };

static const double TIE = 8.0 * UNIT_ROUNDOFF; /* of the costs added up; bound_error allows for more */

/* Free sites of one class on one side of the radius, by ascending reduced cost. */
typedef struct {
    int count;
    double key[MOST_VOTERS + 1];
} class_list;

typedef struct {
    int classes, all, lo, hi;
    int near[MOST_BLOCKS], held[MOST_BLOCKS]; /* sites in of each class, within the radius and in all */
    class_list list[LISTS];                   /* of class k: 2k within the radius, 2k + 1 beyond it; the last: of no class */
    double last, size;                        /* of the row summed up last: cost of its last site, sum of absolute costs */
} class_lists;

/* What the sites of a class cost at a price, by what a row asks for: so many more within the radius, and so many more in all. */
typedef struct {
    double price, others;                     /* ... and those of no class */
    unsigned known[MOST_BLOCKS];              /* bits of the numbers within the radius that are worked out */
    double cost[MOST_BLOCKS][MOST_PRICED + 1][MOST_PRICED + 1];
} class_costs;

/* Fill the lists for a radius; 0 when a site that is in is forbidden. */
static int fill_lists(const context *x, const tree_node *f, const keyed *sorted, int n, double radius, class_lists *out)
{
    const leader_wait *wait = &x->p.cases.wait[0];
    int leader = x->view.leader, classes = x->p.cases.classes;
    const unsigned char *scope = wait->scope + (size_t)leader * (size_t)x->p.sites, *class_of = wait->class_of_bits;
    const double *distance = x->p.site_rtt + (size_t)leader * (size_t)x->p.sites;
    for (int k = 0; k < classes; k++)
        out->near[k] = out->held[k] = 0;
    for (int k = 0; k <= 2 * classes; k++)
        out->list[k].count = 0;
    for (int i = 0; i < f->in_count; i++) {
        int site = f->in_site[i], k = class_of[scope[site]], within = site == leader || distance[site] <= radius;
        if (!within && scope[site] & FORBIDDEN)
            return 0;
        if (k < classes) {
            out->near[k] += within;
            out->held[k]++;
        }
    }
    for (int i = 0; i < n; i++) {
        int site = f->free_site[sorted[i].position], k = class_of[scope[site]];
        int within = site == leader || distance[site] <= radius;
        if (!within && scope[site] & FORBIDDEN)
            continue;
        class_list *list = &out->list[k < classes ? 2 * k + !within : 2 * classes];
        list->key[list->count] = sorted[i].key;
        list->count += list->count < out->hi;
    }
    return 1;
}

/* Work out what a class costs where `within` more of its sites are to lie within the radius. */
static void price_class(const class_lists *c, class_costs *costs, int k, int within)
{
    const class_list *near = &c->list[2 * k], *far = &c->list[2 * k + 1];
    double saved[MOST_PRICED + 1], paid = 0.0, *cost = costs->cost[k][within];
    int count = 0, i = 0, j = 0;
    costs->known[k] |= 1u << within;
    for (; count < c->hi; count++) { /* first what all sites cost that are asked for, ... */
        int more_near = i < near->count, more_far = j < far->count && i >= within;
        if (!more_near && (!more_far || i < within))
            break;
        double key = more_near && (!more_far || near->key[i] <= far->key[j]) ? near->key[i++] : far->key[j++];
        cost[count] = count < within ? BIG : paid;
        saved[count] = key - costs->price;
        paid += saved[count];
    }
    cost[count] = count < within ? BIG : paid;
    for (int more = count + 1; more <= c->hi; more++)
        cost[more] = BIG;
    double others = 0.0;
    while (--count >= within) { /* ... then others that cost less than nothing */
        others += saved[count] < 0.0 ? saved[count] : 0.0;
        cost[count] += others;
    }
}

/* A bound of the sum of a row; BIG: no sites meet it. */
static double bound_of_row(const class_lists *c, class_costs *costs, const int *least)
{
    double bound = costs->others;
    for (int k = 0; k < c->classes; k++) {
        int within = least[k] - c->near[k], any = k < c->all ? least[c->classes + k] - c->held[k] : 0;
        within = within > 0 ? within : 0;
        any = any > within ? any : within;
        if (any > c->hi)
            return BIG;
        if (!(costs->known[k] >> within & 1))
            price_class(c, costs, k, within);
        bound += costs->cost[k][within][any];
    }
    return bound < BIG ? bound : BIG;
}

/* Begin with a price: sites of no class, and how many sites are taken. */
static void begin_costs(const class_lists *c, class_costs *costs)
{
    const class_list *none = &c->list[2 * c->classes];
    double price = costs->price = c->last < BIG ? c->last : 0.0;
    costs->others = price * (price > 0.0 ? c->lo : c->hi);
    for (int i = 0; i < none->count && none->key[i] < price; i++)
        costs->others += none->key[i] - price;
    for (int k = 0; k < c->classes; k++)
        costs->known[k] = 0;
}

static inline void take(class_lists *c, double *sum, double key)
{
    *sum += key;
    c->size += fabs(key);
}

/* The least sum of sites that meet a row; BIG: there are none. */
static double sum_of_row(class_lists *c, const int *least)
{
    int next[LISTS] = {0}, taken = 0, classes = c->classes;
    double sum = 0.0;
    c->size = 0.0;
    for (int k = 0; k < classes; k++) {
        const class_list *near = &c->list[2 * k], *far = &c->list[2 * k + 1];
        int within = least[k] - c->near[k], any = k < c->all ? least[classes + k] - c->held[k] : 0;
        if (within > near->count)
            return BIG;
        for (; next[2 * k] < within; taken++, any--)
            take(c, &sum, near->key[next[2 * k]++]);
        for (; any > 0; any--, taken++) {
            int i = next[2 * k], j = next[2 * k + 1];
            if (i >= near->count && j >= far->count)
                return BIG;
            if (j >= far->count || (i < near->count && near->key[i] <= far->key[j]))
                take(c, &sum, near->key[next[2 * k]++]);
            else
                take(c, &sum, far->key[next[2 * k + 1]++]);
        }
    }
    if (taken > c->hi)
        return BIG;
    c->last = BIG;
    for (; taken <= c->hi; taken++) { /* once more than it takes: to see what one more would cost */
        int from = -1;
        double key = taken < c->lo || taken == c->hi ? BIG : 0.0;
        for (int k = 0; k <= 2 * classes; k++)
            if (next[k] < c->list[k].count && c->list[k].key[next[k]] < key) {
                key = c->list[k].key[next[k]];
                from = k;
            }
        if (taken == c->hi) {
            c->last = c->last < BIG ? c->last : key;
            break;
        }
        if (from < 0) {
            c->last = taken > c->lo ? 0.0 : c->last;
            break;
        }
        next[from]++;
        take(c, &sum, key);
        c->last = key;
    }
    return taken < c->lo ? BIG : sum;
}

/* The least sum of sites of each row within a radius, of the only wait, or a bound of it, in `sum`; BIG where there are none.
 * Returns the row of the least sum, which is no bound; -1: none. `first`: a row that is likely the least; without `every` the
 * other rows are not looked at when it has at most `enough`. */
int sums_of_rows(const context *x, const tree_node *f, const keyed *sorted, int n, double radius, int lo, int hi, int first,
                 int every, double enough, double *sum)
{
    const leader_wait *wait = &x->p.cases.wait[0];
    const char *useful = useful_rows(x, wait, x->view.leader);
    int sizes = wait->sizes, blocks = wait->blocks;
    class_lists lists;
    class_costs costs;
    lists.lo = lo;
    lists.hi = hi;
    lists.last = BIG;
    lists.classes = x->p.cases.classes;
    lists.all = blocks - lists.classes;
    if (!fill_lists(x, f, sorted, n, radius, &lists))
        return -1;
    sum[first] = useful[first] ? sum_of_row(&lists, wait->least + first * blocks) : BIG;
    if (!every && sum[first] < BIG && sum[first] <= enough + TIE * lists.size)
        return first;
    int best = sum[first] < BIG ? first : -1;
    double same = best < 0 ? 0.0 : TIE * lists.size; /* sums of sites that differ by less are one sum */
    begin_costs(&lists, &costs);
    for (int row = 0; row < sizes; row++)
        if (row != first)
            sum[row] = !useful[row] ? BIG : hi > MOST_PRICED ? -BIG : bound_of_row(&lists, &costs, wait->least + row * blocks);
    for (;;) { /* the row of the least bound, while that is below the least sum */
        int next = 0;
        for (int row = 1; row < sizes; row++)
            next = sum[row] < sum[next] ? row : next;
        if (sum[next] >= (best < 0 ? BIG : sum[best] - same))
            return best;
        sum[next] = sum_of_row(&lists, wait->least + next * blocks);
        if (sum[next] < (best < 0 ? BIG : sum[best])) {
            best = next;
            same = TIE * lists.size;
        }
    }
}
