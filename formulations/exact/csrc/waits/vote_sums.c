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

enum { MOST_PRICED = 16, WIDTH = MOST_PRICED + 2 }; /* sites to be taken up to which rows are bounded */

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
        c->list[k] = room->list + (size_t)k * ((size_t)x->p.sites + 1);
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
    for (int k = 0; k <= c->lists; k++)
        c->list[k][c->count[k]] = (keyed){BIG, -1};
    return 1;
}

/* Work out what a class costs at a price of a site, by what a row asks for: `within` more sites within the radius, and so many
 * in all. The cheapest sites of both lists hold enough within the radius, or else the first ones of each list are taken. The
 * lists end with a site that costs too much: at least BIG says that there are not enough. */
static void price_class(const class_lists *c, int k, int most_within, double price, double *cost)
{
    const keyed *near = c->list[2 * k], *far = c->list[2 * k + 1];
    int near_count = c->count[2 * k], far_count = c->count[2 * k + 1], hi = c->hi, held[MOST_PRICED + 1];
    double all[MOST_PRICED + 1], of_near[MOST_PRICED + 1], of_far[MOST_PRICED + 1];
    all[0] = of_near[0] = of_far[0] = 0.0;
    held[0] = 0;
    for (int any = 0, i = 0, j = 0; any < hi; any++) { /* no branch: it would be mispredicted */
        int nearer = near[i].key <= far[j].key;
        double key = nearer ? near[i].key : far[j].key;
        all[any + 1] = all[any] + (key - price);
        i += nearer & (i < near_count);
        j += !nearer & (j < far_count);
        held[any + 1] = i;
    }
    for (int i = 0; i < most_within && i < hi; i++)
        of_near[i + 1] = of_near[i] + (near[i < near_count ? i : near_count].key - price);
    for (int j = 0; j < hi; j++)
        of_far[j + 1] = of_far[j] + (far[j < far_count ? j : far_count].key - price);
    for (int within = 0; within <= most_within; within++, cost += WIDTH) {
        double least = cost[hi + 1] = BIG;
        for (int any = hi; any >= within; any--) { /* with others that cost less than nothing */
            double paid = held[any] >= within ? all[any] : of_near[within] + of_far[any - within];
            least = paid < least ? paid : least;
            cost[any] = least;
        }
        for (int any = 0; any < within; any++)
            cost[any] = least;
    }
}

static inline int between(int value, int most) { return value < 0 ? 0 : value < most ? value : most; }

/* sum[row] += what a class costs, of which the row asks for sites within the radius, ... */
VECTORISED void add_within(const int *within, int near, int most, const double *cost, int rows, double *sum)
{
    for (int row = 0; row < rows; row++)
        sum[row] += cost[between(within[row] - near, most) * WIDTH];
}

/* ... and at any distance too. */
VECTORISED void add_both(const int *within, const int *any, int near, int held, int most_near, int most_any, const double *cost,
                         int rows, double *sum)
{
    for (int row = 0; row < rows; row++)
        sum[row] += cost[between(within[row] - near, most_near) * WIDTH + between(any[row] - held, most_any)];
}

/* Bound the sum of every row, with the price of a site that the row summed up last suggests. */
void bound_rows(const class_lists *c, const vote_rows *rows, double *sum)
{
    double cost[MOST_PRICED + 2][WIDTH], price = c->last < BIG ? c->last : 0.0, others = price * (price > 0.0 ? c->lo : c->hi);
    const keyed *none = c->list[2 * c->classes];
    for (int i = 0; i < c->count[2 * c->classes] && none[i].key < price; i++)
        others += none[i].key - price;
    for (int row = 0; row < rows->count; row++)
        sum[row] = c->hi > MOST_PRICED ? -BIG : others;
    for (int k = 0; k < c->classes && c->hi <= MOST_PRICED; k++) {
        int most_within = between(rows->most[k] - c->near[k], c->hi);
        price_class(c, k, most_within, price, cost[0]);
        for (int any = 0; any < WIDTH; any++)
            cost[most_within + 1][any] = BIG;
        const int *least = rows->by_block + k * rows->count;
        if (k < c->all)
            add_both(least, least + c->classes * rows->count, c->near[k], c->held[k], most_within + 1, c->hi + 1, cost[0],
                     rows->count, sum);
        else
            add_within(least, c->near[k], most_within + 1, cost[0], rows->count, sum);
    }
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
