/* Cases of the waits of a leader: the cheapest sites that meet one, and what a complete set waits. */
#include "kernel.h"

/* Members that the blocks of one family of a case still ask for. */
typedef struct {
    const case_blocks *blocks;
    int family;
    int open[MOST_BLOCKS];     /* sites that a block lacks itself */
    int within[MOST_BLOCKS];   /* ... that the blocks within it lack together */
    int total;                 /* sites that are needed at least */
} shortage;

static int larger(int a, int b) { return a > b ? a : b; }

static int lacking(const shortage *s, int block) { return larger(0, larger(s->open[block], s->within[block])); }

/* 1 when a site whose blocks are `bits` lessens the shortage; it is counted then. */
static int lessens(shortage *s, unsigned bits)
{
    int less = 0, lessened[MOST_BLOCKS];
    for (int b = 0; b < s->blocks->count; b++) { /* from the smallest block of the site to the largest */
        if (!(bits >> b & 1) || s->blocks->family[b] != s->family)
            continue;
        int left = larger(0, larger(s->open[b] - 1, s->within[b] - less));
        lessened[b] = less;
        less = lacking(s, b) - left;
    }
    for (int b = 0; less && b < s->blocks->count; b++)
        if (bits >> b & 1 && s->blocks->family[b] == s->family) {
            s->within[b] -= lessened[b];
            s->open[b]--;
        }
    s->total -= less;
    return less;
}

/* Begin with the sites that are in; 0 when one of them is forbidden. */
static int begin_shortage(const context *x, const tree_node *f, int at, int family, shortage *s)
{
    const unsigned char *member = x->p.cases.member + (size_t)at * (size_t)x->p.sites;
    s->blocks = &x->p.cases.blocks[at];
    s->family = family;
    s->total = 0;
    for (int b = 0; b < s->blocks->count; b++) {
        s->open[b] = s->blocks->least[b];
        s->within[b] = 0;
    }
    for (int i = 0; i < f->in_count; i++) {
        unsigned bits = member[f->in_site[i]];
        if (bits & FORBIDDEN)
            return 0;
        for (int b = 0; bits; bits >>= 1, b++)
            s->open[b] -= bits & 1;
    }
    for (int b = 0; b < s->blocks->count; b++) {
        int up = s->blocks->parent[b];
        if (s->blocks->family[b] != family)
            continue;
        if (up >= 0)
            s->within[up] += lacking(s, b);
        else
            s->total += lacking(s, b);
    }
    return 1;
}

/* Number of families of a case, 1 at least. */
int families_of_case(const context *x, int at)
{
    const case_blocks *blocks = &x->p.cases.blocks[at];
    int most = 0;
    for (int b = 0; b < blocks->count; b++)
        most = larger(most, blocks->family[b]);
    return most + 1;
}

/* Greedy for "meets one family of a case, with `lo`..`hi` more sites": the basis of an elongated matroid. The positions
 * are in `chosen`; returns how many, or -1 when that is impossible. */
int cheapest_of_case(const context *x, const tree_node *f, const keyed *sorted, int n, int at, int family, int lo, int hi,
                     double *value, double *top, double *next, int *chosen)
{
    const unsigned char *member = x->p.cases.member + (size_t)at * (size_t)x->p.sites;
    shortage s;
    if (!begin_shortage(x, f, at, family, &s) || s.total > hi)
        return -1;
    int size = 0, least = larger(lo - s.total, 0), most = hi - s.total;
    *value = 0.0;
    *top = -BIG;
    *next = BIG;
    for (int i = 0; i < n; i++) {
        unsigned bits = member[f->free_site[sorted[i].position]];
        double key = sorted[i].key;
        int able = !(bits & FORBIDDEN), take = able && s.total > 0 && bits && lessens(&s, bits);
        if (able && !take && most > 0 && (key < 0.0 || least > 0)) {
            most--;
            least--;
            take = 1;
        }
        if (take) {
            chosen[size++] = sorted[i].position;
            *value += key;
            *top = key;
        } else {
            if (key < *next)
                *next = key;
            if (able && s.total == 0)
                break; /* no later site is taken either */
        }
    }
    return s.total > 0 || least > 0 ? -1 : size;
}

/* The least price of the cases that a replica set meets: 1, or 0 when it meets none. */
int wait_of_cases(const context *x, int leader, const int *replicas, int count, double *wait)
{
    const wait_cases *cases = &x->p.cases;
    for (int at = cases->start[leader]; at < cases->start[leader + 1]; at++) {
        const unsigned char *member = cases->member + (size_t)at * (size_t)x->p.sites;
        const case_blocks *blocks = &cases->blocks[at];
        int held[MOST_BLOCKS] = {0}, good = 1;
        for (int i = 0; i < count && good; i++) {
            unsigned bits = member[replicas[i]];
            good = !(bits & FORBIDDEN);
            for (int b = 0; b < blocks->count; b++)
                held[b] += bits >> b & 1;
        }
        for (int b = 0; b < blocks->count && good; b++)
            good = held[b] >= blocks->least[b];
        if (good) {
            *wait = cases->price[at];
            return 1;
        }
    }
    return 0;
}
