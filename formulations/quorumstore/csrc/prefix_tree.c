/* The tree of growing prefixes, cut where no set can pass the screen.
 *
 * A node keeps the sites that may follow its prefix: what a prefix and one more site break, they
 * break with whatever else follows, so only sites that pass here are tried further down.
 */
#include <stdlib.h>
#include <string.h>

#include "quorum.h"

#if defined(_MSC_VER)
#define INLINED static __forceinline
#elif defined(__GNUC__)
#define INLINED static inline __attribute__((always_inline))
#else
#define INLINED static inline
#endif

#define NODES_BETWEEN_PAUSES 16384
#define NODES_OF_A_LEAF 64        /* its work, very roughly */

/* O_k of a prefix is kept as [ball][k - 1][word]; levels above its length are empty. */
INLINED void grow_levels(const word *before, const word *out, word *after, int depth, const int words)
{
    for (int w = 0; w < words; w++) {
        for (int k = depth - 1; k > 0; k--)
            after[k * words + w] = before[k * words + w] | (before[(k - 1) * words + w] & out[w]);
        after[w] = before[w] | out[w];
    }
}

INLINED int64_t sum_counted(const int64_t *table, const word *bits, const word *counted, int lanes,
                            const int words)
{
    int64_t sum = 0;
    if (words == 1) {
        word some = bits[0] & counted[0];
        for (int lane = 0; lane < lanes; lane++, some >>= 8)
            sum += table[256 * lane + (int)(some & 255)];
        return sum;
    }
    for (int lane = 0; lane < lanes; lane++) {
        word some = bits[lane >> 3] & counted[lane >> 3];
        sum += table[256 * lane + (int)(some >> (8 * (lane & 7)) & 255)];
    }
    return sum;
}

/* Return whether the sum of a condition stays within its budget; terms only add to it. */
INLINED int affordable(const search *x, const condition *c, const word *levels, int length,
                       const int words)
{
    const word *mine = levels + (size_t)c->ball * (size_t)x->depth * (size_t)words;
    double missed = 0.0;
    for (int t = 0; t < c->terms && c->level[t] <= length && missed <= c->budget; t++)
        missed += c->factor[t] *
                  (double)sum_counted(x->table[c->side], mine + (c->level[t] - 1) * words,
                                      c->counted + t * words, x->lanes, words);
    return missed <= c->budget;
}

/* Return whether a prefix of this length obeys the conditions. */
INLINED int passes(const search *x, const word *levels, int length, const int words)
{
    const size_t per_ball = (size_t)x->depth * (size_t)words;
    for (int i = 0; i < x->conditions && x->condition[i].first <= length; i++) {
        const condition *c = &x->condition[i];
        if (c->must_level && c->must_level <= length) {
            const word *level = levels + (size_t)c->ball * per_ball + (c->must_level - 1) * words;
            word hit = 0;
            for (int w = 0; w < words; w++)
                hit |= level[w] & c->must[w];
            if (hit)
                return 0;
        }
        if (!affordable(x, c, levels, length, words))
            return 0;
    }
    if (x->either) {
        const condition *read = x->condition + x->conditions, *write = read + 1;
        return affordable(x, read, levels, length, words) ||
               affordable(x, write, levels, length, words);
    }
    return 1;
}

/* Recompute O_k of a prefix after the screen has changed. */
static void rebase(search *x, int length)
{
    word *levels = x->base + (size_t)length * x->stride;
    memset(levels, 0, x->stride * sizeof(word));
    x->level[length] = levels;
    for (int b = 0; b < x->balls; b++)
        for (int m = 0; m < length; m++) {
            const word *out = x->ball[b].out + (size_t)x->path[m] * (size_t)x->words;
            word *mine = levels + (size_t)b * (size_t)x->depth * (size_t)x->words;
            grow_levels(mine, out, mine, x->depth, x->words);
        }
}

static int crowded(const search *x, int site)
{
    const quorums *p = &x->pair[x->now];
    return p->region_cap < p->size && x->region_count[x->s->region[site]] >= p->region_cap;
}

static int keep_row(search *x, const int *set, int size)
{
    const size_t needed = (x->row_count + 1) * (size_t)size;
    if (needed > x->row_capacity) {
        size_t capacity = 2 * x->row_capacity + 64 * (size_t)size;
        uint16_t *rows = realloc(x->rows, capacity * sizeof *rows);
        if (!rows) {
            x->failed = x->stop = 1;
            return 0;
        }
        x->rows = rows;
        x->row_capacity = capacity;
    }
    for (int m = 0; m < size; m++)
        x->rows[x->row_count * (size_t)size + (size_t)m] = (uint16_t)set[m];
    x->row_count++;
    return 1;
}

static void set_limit(search *x, int value)
{
    limits_at(x, value, &x->limit);
    screen_build(x);
}

/* Return whether the present configuration comes before the best one under the tie rule. */
static int comes_first(const search *x, const figures *one, const int *set)
{
    const quorums *p = &x->pair[x->now];
    if (x->tie_pair < 0)
        return 1;
    const double mine[3] = {one->largest, one->sum, one->mean};
    const double best[3] = {x->tie.largest, x->tie.sum, x->tie.mean};
    for (int k = 0; k < 3; k++)
        if (mine[k] != best[k])
            return mine[k] < best[k];
    const quorums *q = &x->pair[x->tie_pair];
    if (p->size != q->size)
        return p->size < q->size;
    for (int m = 0; m < p->size; m++)
        if (set[m] != x->tie_set[m])
            return set[m] < x->tie_set[m];
    return p->quorum[READ] < q->quorum[READ];
}

static void offer_tie(search *x, const int *set)
{
    const int size = x->pair[x->now].size;
    figures one;
    const int cap = set_figures(x, set, &one);
    if (!comes_first(x, &one, set))
        return;
    const int better = x->tie_pair < 0 || one.sum < x->tie.sum;
    x->tie = one;
    x->tie_pair = x->now;
    memcpy(x->tie_set, set, (size_t)size * sizeof *set);
    if (cap < x->tie_cap) {
        x->tie_cap = cap;
        set_limit(x, x->best);
    } else if (x->settled && better)
        screen_build(x);
}

/* A set that obeys the conditions: the exact test, and what follows from it. */
static void test_leaf(search *x)
{
    const int size = x->pair[x->now].size;
    int *set = x->sorted;
    for (int m = 0; m < size; m++) {
        int k = m;
        for (; k > 0 && set[k - 1] > x->path[m]; k--)
            set[k] = set[k - 1];
        set[k] = x->path[m];
    }
    x->since += NODES_OF_A_LEAF;
    if (!set_within(x, set, &x->limit))
        return;
    if (x->listing == 1)
        keep_row(x, set, size);
    else if (x->listing == 2)
        offer_tie(x, set);
    else {
        x->best = set_value(x, set, x->best - 1);
        x->best_pair = x->now;
        memcpy(x->best_set, set, (size_t)size * sizeof *set);
        if (x->best == 0)
            x->stop = 1;
        else
            set_limit(x, x->best - 1);
    }
}

static void list_completions(search *x)
{
    x->since = 0;
    if (x->pause && x->pause(x->caller))
        x->stop = x->paused = 1;
}

INLINED void grow(search *x, int length, const int *sites, int count, const int words,
                  void (*deeper)(search *, int, const int *, int))
{
    const quorums *p = &x->pair[x->now];
    const int missing = p->size - length;
    const size_t per_ball = (size_t)x->depth * (size_t)words;
    int *kept = x->candidates + (size_t)length * (size_t)x->s->sites;
    word *children = x->children + (size_t)length * (size_t)x->s->sites * x->stride;
    while (count >= missing && !x->stop) {
        const long epoch = x->epoch;
        const word *base = x->level[length];
        int many = 0, done = 0;
        if (x->hopeless)
            return;
        for (int i = 0; i < count; i++) {
            word *levels = children + (size_t)many * x->stride;
            if (crowded(x, sites[i]))
                continue;
            for (int b = 0; b < x->balls; b++)
                grow_levels(base + (size_t)b * per_ball,
                            x->ball[b].out + (size_t)sites[i] * (size_t)words,
                            levels + (size_t)b * per_ball, x->depth, words);
            if (passes(x, levels, length + 1, words))
                kept[many++] = sites[i];
        }
        x->since += count;
        if (x->since > NODES_BETWEEN_PAUSES)
            list_completions(x);
        for (; done + missing <= many && !x->stop && epoch == x->epoch; done++) {
            int region = x->s->region[kept[done]];
            x->path[length] = kept[done];
            if (missing == 1) {
                test_leaf(x);
                continue;
            }
            x->level[length + 1] = children + (size_t)done * x->stride;
            x->region_count[region]++;
            deeper(x, length + 1, kept + done + 1, many - done - 1);
            x->region_count[region]--;
        }
        if (epoch == x->epoch)
            return;
        /* Better limits: look again at the sites that are left. */
        rebase(x, length);
        sites = kept + done;
        count = many - done;
    }
}

static void grow_one(search *x, int length, const int *sites, int count)
{
    grow(x, length, sites, count, 1, grow_one);
}

static void grow_any(search *x, int length, const int *sites, int count)
{
    grow(x, length, sites, count, x->words, grow_any);
}

/* Walk the tree of the pair in force under the screen in force; `first` >= 0: only sets whose first
   site, by index, is that one. */
int tree_run(search *x, int first)
{
    const int n = x->s->sites;
    int *order = x->candidates + (size_t)x->largest * (size_t)n, count = 0, length = 0;
    memset(x->region_count, 0, (size_t)n * sizeof *x->region_count);
    if (first >= 0) {
        x->path[0] = first;
        x->region_count[x->s->region[first]]++;
        length = 1;
    }
    for (int j = first + 1; j < n; j++)
        order[count++] = j;
    /* Sites that are far from most requests first: the largest subtrees are cut early. */
    if (x->listing != 1 && x->balls) {
        int64_t *far = x->far;
        for (int j = 0; j < n; j++) {
            const word *out = x->ball[0].out + (size_t)j * (size_t)x->words;
            far[j] = requests_of(x, READ, out) + requests_of(x, WRITE, out);
        }
        for (int i = 1; i < n; i++) {
            int j = order[i], k = i;
            for (; k > 0 && far[order[k - 1]] < far[j]; k--)
                order[k] = order[k - 1];
            order[k] = j;
        }
    }
    rebase(x, length);
    if (length && !x->hopeless && length == x->pair[x->now].size)
        test_leaf(x);
    else if (x->words == 1)
        grow_one(x, length, order, count);
    else
        grow_any(x, length, order, count);
    return !x->stop;
}
