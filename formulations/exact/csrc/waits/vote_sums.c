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

#include "vote_lists.h"

enum { MOST_PRICED = 16 };

static const double TIE = 8.0 * UNIT_ROUNDOFF; /* of the costs added up; bound_error allows for more */

/* What the sites of a class cost at a price, by what a row asks for: so many more within the radius, and so many more in all. */
typedef struct {
    double price, others;                     /* ... and those of no class */
    unsigned known[MOST_BLOCKS];              /* bits of the numbers within the radius that are worked out */
    double cost[MOST_BLOCKS][MOST_PRICED + 1][MOST_PRICED + 1];
} class_costs;

/* Note for every free site of `sorted` on which list it is within a radius, and on which beyond it. */
void begin_lists(class_lists *c, const context *x, const tree_node *f, const keyed *sorted, int n, int lo, int hi, int *chosen)
{
    const leader_wait *wait = &x->p.cases.wait[0];
    const vote_room *room = &x->p.cases.room;
    size_t row = (size_t)x->view.leader * (size_t)x->p.sites;
    const unsigned char *scope = wait->scope + row;
    const double *distance = x->p.site_rtt + row;
    c->x = x;
    c->f = f;
    c->sorted = sorted;
    c->n = n;
    c->lo = lo;
    c->hi = hi;
    c->classes = x->p.cases.classes;
    c->all = wait->blocks - c->classes;
    c->lists = 2 * c->classes + 1;
    c->last = BIG;
    c->chosen = chosen;
    for (int k = 0; k <= c->lists; k++)
        c->list[k] = room->list + (size_t)k * (size_t)x->p.sites;
    for (int i = 0; i < n; i++) {
        int site = f->free_site[sorted[i].position], k = wait->class_of_bits[scope[site]], none = k == c->classes;
        room->distance[i] = distance[site];
        room->within[i] = (unsigned char)(2 * k);
        room->beyond[i] = (unsigned char)(scope[site] & FORBIDDEN ? c->lists : 2 * k + !none);
    }
}

/* Fill the lists for a radius; 0 when a site that is in is forbidden. */
int fill_lists(class_lists *c, double radius)
{
    const context *x = c->x;
    const leader_wait *wait = &x->p.cases.wait[0];
    const vote_room *room = &x->p.cases.room;
    const unsigned char *scope = wait->scope + (size_t)x->view.leader * (size_t)x->p.sites;
    for (int k = 0; k < c->classes; k++)
        c->near[k] = c->held[k] = 0;
    for (int k = 0; k <= c->lists; k++)
        c->count[k] = 0;
    for (int i = 0; i < c->f->in_count; i++) {
        int site = c->f->in_site[i], k = wait->class_of_bits[scope[site]];
        int within = distance_of(x, x->view.leader, site) <= radius;
        if (!within && scope[site] & FORBIDDEN)
            return 0;
        if (k < c->classes) {
            c->near[k] += within;
            c->held[k]++;
        }
    }
    for (int i = 0; i < c->n; i++) { /* no branch: it would be mispredicted */
        int k = room->distance[i] <= radius ? room->within[i] : room->beyond[i];
        c->list[k][c->count[k]++] = c->sorted[i];
    }
    return 1;
}

/* Work out what a class costs where `within` more of its sites are to lie within the radius. */
static void price_class(const class_lists *c, class_costs *costs, int k, int within)
{
    const keyed *near = c->list[2 * k], *far = c->list[2 * k + 1];
    double saved[MOST_PRICED + 1], paid = 0.0, *cost = costs->cost[k][within];
    int count = 0, i = 0, j = 0;
    costs->known[k] |= 1u << within;
    for (; count < c->hi; count++) { /* first what all sites cost that are asked for, ... */
        int more_near = i < c->count[2 * k], more_far = j < c->count[2 * k + 1] && i >= within;
        if (!more_near && (!more_far || i < within))
            break;
        double key = more_near && (!more_far || near[i].key <= far[j].key) ? near[i++].key : far[j++].key;
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
    const keyed *none = c->list[2 * c->classes];
    double price = costs->price = c->last < BIG ? c->last : 0.0;
    costs->others = price * (price > 0.0 ? c->lo : c->hi);
    for (int i = 0; i < c->count[2 * c->classes] && none[i].key < price; i++)
        costs->others += none[i].key - price;
    for (int k = 0; k < c->classes; k++)
        costs->known[k] = 0;
}

static inline void take(class_lists *c, double *sum, keyed one)
{
    *sum += one.key;
    c->size += fabs(one.key);
    c->top = one.key > c->top ? one.key : c->top;
    c->chosen[c->taken++] = one.position;
}

/* The least sum of sites that meet a row; BIG: there are none. */
double sum_of_row(class_lists *c, const int *least)
{
    int next[VOTE_LISTS] = {0}, classes = c->classes;
    double sum = 0.0;
    c->size = 0.0;
    c->top = -BIG;
    c->taken = 0;
    for (int k = 0; k < classes; k++) {
        const keyed *near = c->list[2 * k], *far = c->list[2 * k + 1];
        int within = least[k] - c->near[k], any = k < c->all ? least[classes + k] - c->held[k] : 0;
        within = within > 0 ? within : 0;
        any = any > within ? any : within;
        if (within > c->count[2 * k] || any > c->count[2 * k] + c->count[2 * k + 1] || c->taken + any > c->hi)
            return BIG;
        for (; next[2 * k] < within; any--)
            take(c, &sum, near[next[2 * k]++]);
        for (; any > 0; any--) {
            int i = next[2 * k], j = next[2 * k + 1];
            if (j >= c->count[2 * k + 1] || (i < c->count[2 * k] && near[i].key <= far[j].key))
                take(c, &sum, near[next[2 * k]++]);
            else
                take(c, &sum, far[next[2 * k + 1]++]);
        }
    }
    c->last = BIG;
    for (;;) { /* once more than it takes: to see what one more would cost */
        int from = -1;
        double key = c->taken < c->lo || c->taken == c->hi ? BIG : 0.0;
        for (int k = 0; k < c->lists; k++)
            if (next[k] < c->count[k] && c->list[k][next[k]].key < key) {
                key = c->list[k][next[k]].key;
                from = k;
            }
        if (c->taken == c->hi) {
            c->last = c->last < BIG ? c->last : key;
            break;
        }
        if (from < 0) {
            c->last = c->taken > c->lo ? 0.0 : c->last;
            break;
        }
        take(c, &sum, c->list[from][next[from]]);
        next[from]++;
        c->last = key;
    }
    c->next = BIG;
    for (int k = 0; k <= c->lists; k++)
        if (next[k] < c->count[k] && c->list[k][next[k]].key < c->next)
            c->next = c->list[k][next[k]].key;
    return c->taken < c->lo ? BIG : sum;
}

/* Bound the sum of every row, with the price of a site that the row summed up last suggests. */
void bound_rows(class_lists *c, const vote_rows *rows, double *sum)
{
    class_costs costs;
    int blocks = c->classes + c->all;
    if (c->hi <= MOST_PRICED)
        begin_costs(c, &costs);
    for (int row = 0; row < rows->count; row++)
        sum[row] = c->hi > MOST_PRICED ? -BIG : bound_of_row(c, &costs, rows->least + row * blocks);
}

/* The row of the least sum at the radius of the lists, where it is below `limit`; else -1, or a row at the limit. *bound: no
 * row has less. `first`: a row that is likely the least; the others are not looked at when it has at most `enough`. `sum`:
 * scratch for the sums of all rows. */
int cheapest_row(class_lists *c, const vote_rows *rows, int first, double enough, double limit, double *sum, double *bound)
{
    int blocks = c->classes + c->all, best = -1;
    double found, same;
    c->last = BIG;
    found = sum_of_row(c, rows->least + first * blocks);
    same = found < BIG ? TIE * c->size : 0.0; /* sums of sites that differ by less are one sum */
    *bound = found;
    if (found < BIG) {
        best = first;
        if (found <= enough + same)
            return best;
    }
    bound_rows(c, rows, sum);
    sum[first] = found;
    for (;;) { /* the row of the least bound, while that is below the least sum */
        int next = 0;
        for (int row = 1; row < rows->count; row++)
            next = sum[row] < sum[next] ? row : next;
        *bound = sum[next] < found ? sum[next] : found;
        if (sum[next] >= limit || sum[next] >= found - same)
            return best;
        sum[next] = sum_of_row(c, rows->least + next * blocks);
        if (sum[next] < found) {
            best = next;
            found = sum[next];
            same = TIE * c->size;
        }
    }
}
