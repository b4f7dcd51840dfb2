/* The least sum of sites for every row of a wait that counts votes, all rows at once.
 *
 * Its sites fall into classes of as many votes. A row asks for so many sites of each class within the radius, and of all
 * classes but the last for so many at any distance (placement/evaluation/waits/vote_cases.py). The sites of a class within
 * the radius and beyond it are two lists by reduced cost, the same for all rows; each row takes the first ones of the lists,
 * and then the cheapest that are left. This is the greedy of its case, without looking at every site for every row. */
#include "kernel.h"

enum { LISTS = 2 * MOST_BLOCKS + 1, MOST_COMPARED = 512 };

/* Free sites of one class on one side of the radius, by ascending reduced cost. */
typedef struct {
    int count;
    double key[MOST_VOTERS];
} class_list;

typedef struct {
    int classes, lo, hi;
    int near[MOST_BLOCKS], held[MOST_BLOCKS]; /* sites in of each class, within the radius and in all */
    double least[MOST_VOTERS + 1];             /* least sum of so many sites, whatever their classes */
    class_list list[LISTS];                   /* of class k: 2k within the radius, 2k + 1 beyond it; the last: of no class */
} class_lists;

/* The class of a site by its bits of a scope, or `classes` when it has none. */
static int class_of(unsigned scope, int classes)
{
    for (int k = 0; k < classes; k++)
        if (scope >> k & 1)
            return k;
    return classes;
}

/* Note the rows that are of use under a leader of each class: those that ask for more than another one everywhere, where
 * the leader is there, are not. */
static void find_useful_rows(leader_wait *wait, int classes)
{
    for (int own = 0; own <= classes; own++)
        for (int row = 0; row < wait->sizes; row++) {
            int useful = 1;
            for (int other = 0; other < wait->sizes && wait->sizes <= MOST_COMPARED && useful; other++) {
                int less = other != row, same = 1;
                for (int b = 0; b < wait->blocks && less; b++) {
                    int held = own < classes && (b == own || b == own + classes);
                    int one = wait->least[other * wait->blocks + b] - held, two = wait->least[row * wait->blocks + b] - held;
                    less = one <= two || one <= 0;
                    same &= one == two || (one <= 0 && two <= 0);
                }
                useful = !less || (same && row < other); /* of equal rows the first one */
            }
            wait->useful[own * wait->sizes + row] = (char)useful;
        }
}

/* The number of classes of a wait that counts votes: its blocks are those of the classes within the radius, then those of all
 * classes but the last at any distance, or of none. 0: it does not. */
static int classes_of_wait(const problem *p, const leader_wait *wait)
{
    int classes = 0;
    while (classes < wait->blocks && wait->near >> classes & 1)
        classes++;
    int all = wait->blocks - classes; /* blocks at any distance */
    if (wait->blocks < 2 || classes == 0 || (all != 0 && all != classes - 1) || wait->near >> classes)
        return 0;
    if (wait->of_voters != (1u << wait->blocks) - 1)
        return 0;
    size_t cells = (size_t)p->sites * (size_t)p->sites;
    for (size_t cell = 0; cell < cells; cell++) {
        unsigned bits = wait->scope[cell] & ~(unsigned)FORBIDDEN;
        int k = class_of(bits, classes);
        unsigned expected = k == classes ? 0 : 1u << k | (k < all ? 1u << (classes + k) : 0);
        if (bits != expected)
            return 0;
    }
    return classes;
}

/* Note which waits count votes of several classes, and whether the only wait does. */
void find_vote_rows(problem *p)
{
    wait_cases *cases = &p->cases;
    for (int w = 0; w < cases->count; w++) {
        leader_wait *wait = &cases->wait[w];
        wait->classes = classes_of_wait(p, wait);
        if (wait->classes)
            find_useful_rows(wait, wait->classes);
    }
    int alone = cases->count == 1 && cases->nested && p->replicas_max <= MOST_VOTERS;
    cases->classes = alone ? cases->wait[0].classes : 0;
}

/* Voters beside the leader, a site of the class `own`, that a row asks for. */
static int voters_asked(const leader_wait *wait, int own, int row)
{
    const int *least = wait->least + row * wait->blocks;
    int asked = 0, all = wait->blocks - wait->classes;
    for (int k = 0; k < wait->classes; k++) {
        int near = least[k] - (k == own), any = k < all ? least[wait->classes + k] - (k == own) : 0;
        int more = near > any ? near : any;
        asked += more > 0 ? more : 0;
    }
    return asked;
}

/* 1 when a row of a wait that counts votes leaves no room for the leader among the voters. */
int leaves_no_vote(const context *x, const leader_wait *wait, int leader, int row)
{
    unsigned scope = wait->scope[(size_t)leader * (size_t)x->p.sites + (size_t)leader];
    return wait->classes > 0 && voters_asked(wait, class_of(scope, wait->classes), row) >= x->p.voters;
}

/* Fill the lists for a radius; 0 when a site that is in is forbidden. */
static int fill_lists(const context *x, const tree_node *f, const keyed *sorted, int n, double radius, class_lists *out)
{
    const leader_wait *wait = &x->p.cases.wait[0];
    int leader = x->view.leader, classes = x->p.cases.classes, able = 0;
    const unsigned char *scope = wait->scope + (size_t)leader * (size_t)x->p.sites;
    const double *distance = x->p.site_rtt + (size_t)leader * (size_t)x->p.sites;
    out->classes = classes;
    for (int k = 0; k < MOST_BLOCKS; k++)
        out->near[k] = out->held[k] = 0;
    for (int k = 0; k <= 2 * classes; k++)
        out->list[k].count = 0;
    for (int i = 0; i < f->in_count; i++) {
        int site = f->in_site[i], k = class_of(scope[site], classes), within = site == leader || distance[site] <= radius;
        if (!within && scope[site] & FORBIDDEN)
            return 0;
        if (k < classes) {
            out->near[k] += within;
            out->held[k]++;
        }
    }
    for (int i = 0; i < n; i++) {
        int site = f->free_site[sorted[i].position], k = class_of(scope[site], classes);
        int within = site == leader || distance[site] <= radius;
        if (!within && scope[site] & FORBIDDEN)
            continue;
        class_list *list = &out->list[k < classes ? 2 * k + !within : 2 * classes];
        if (list->count < out->hi)
            list->key[list->count++] = sorted[i].key;
        if (able < out->hi) {
            out->least[able + 1] = out->least[able] + sorted[i].key;
            able++;
        }
    }
    for (; able < out->hi; able++)
        out->least[able + 1] = BIG;
    return 1;
}

/* The least sum of sites that meet a row; BIG: there are none, or it is surely not below `limit`. */
static double sum_of_row(const class_lists *c, const int *least, int all, double limit)
{
    int next[LISTS] = {0}, taken = 0, classes = c->classes;
    double sum = 0.0;
    for (int k = 0; k < classes; k++) {
        const class_list *near = &c->list[2 * k], *far = &c->list[2 * k + 1];
        int within = least[k] - c->near[k], any = k < all ? least[classes + k] - c->held[k] : 0;
        if (within > near->count)
            return BIG;
        for (; next[2 * k] < within; taken++, any--)
            sum += near->key[next[2 * k]++];
        for (; any > 0; any--, taken++) {
            int i = next[2 * k], j = next[2 * k + 1];
            if (i >= near->count && j >= far->count)
                return BIG;
            if (j >= far->count || (i < near->count && near->key[i] <= far->key[j]))
                sum += near->key[next[2 * k]++];
            else
                sum += far->key[next[2 * k + 1]++];
        }
    }
    if (taken > c->hi || (c->lo == c->hi && sum + c->least[c->hi - taken] >= limit))
        return BIG;
    for (; taken < c->hi; taken++) {
        int from = -1;
        double key = taken < c->lo ? BIG : 0.0;
        for (int k = 0; k <= 2 * classes; k++)
            if (next[k] < c->list[k].count && c->list[k].key[next[k]] < key) {
                key = c->list[k].key[next[k]];
                from = k;
            }
        if (from < 0)
            break;
        next[from]++;
        sum += key;
    }
    return taken < c->lo ? BIG : sum;
}

/* The least sum of sites of each row within a radius, of the only wait, in `sum`; BIG where there are none. Returns the
 * row of the least one, -1: none. Without `every` the sums of rows that are surely not the least are BIG as well. */
int sums_of_rows(const context *x, const tree_node *f, const keyed *sorted, int n, double radius, int lo, int hi, int every,
                 double *sum)
{
    const leader_wait *wait = &x->p.cases.wait[0];
    class_lists lists;
    lists.lo = lo;
    lists.hi = hi;
    lists.least[0] = 0.0;
    lists.classes = x->p.cases.classes;
    int best = -1, all = wait->blocks - x->p.cases.classes, leader = x->view.leader;
    int leader_class = class_of(wait->scope[(size_t)leader * (size_t)x->p.sites + (size_t)leader], lists.classes);
    if (!fill_lists(x, f, sorted, n, radius, &lists))
        return -1;
    for (int row = 0; row < wait->sizes; row++) {
        double limit = every || best < 0 ? BIG : sum[best];
        sum[row] = BIG;
        if (wait->useful[leader_class * wait->sizes + row] && voters_asked(wait, leader_class, row) < x->p.voters)
            sum[row] = sum_of_row(&lists, wait->least + row * wait->blocks, all, limit);
        if (sum[row] < BIG && (best < 0 || sum[row] < sum[best]))
            best = row;
    }
    return best;
}
