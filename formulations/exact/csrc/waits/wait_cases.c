/* Cases of the waits of a leader: made when first asked for, the cheapest sites that meet one, and what a complete set waits. */
#include <string.h>

#include "greedy_choice.h"

static int larger(int a, int b) { return a > b ? a : b; }

void free_cases(wait_cases *cases)
{
    for (int at = 0; at < cases->count_known; at++)
        free(cases->known[at]);
    free(cases->known);
}

/* Radii of one wait of a leader. A wait that there is not has one, of no length. */
int radii_of(const wait_cases *cases, int wait, int leader)
{
    return wait < cases->count ? cases->wait[wait].start[leader + 1] - cases->wait[wait].start[leader] : 1;
}

/* Cases of a wait for each of its radii. */
int sizes_of(const wait_cases *cases, int wait) { return wait < cases->count ? cases->wait[wait].sizes : 1; }

/* Pairs of cases of the two waits of a leader. */
size_t cells_of_leader(const wait_cases *cases, int leader)
{
    size_t cells = 1;
    for (int w = 0; w < MOST_WAITS; w++)
        cells *= (size_t)radii_of(cases, w, leader) * (size_t)sizes_of(cases, w);
    return cells;
}

/* Bits of the blocks of one wait that hold a site, or FORBIDDEN. */
static unsigned bits_of_site(const context *x, const leader_wait *wait, int leader, double radius, int site)
{
    unsigned bits = wait->scope[(size_t)leader * (size_t)x->p.sites + (size_t)site];
    if (distance_of(x, leader, site) <= radius)
        return bits & ~(unsigned)FORBIDDEN;
    return bits & FORBIDDEN ? FORBIDDEN : bits & ~wait->near;
}

/* Blocks of a case before they are put in order. */
typedef struct {
    int count, least[MOST_BLOCKS], own[MOST_BLOCKS], size[MOST_BLOCKS], shared[MOST_BLOCKS][MOST_BLOCKS], voters[MOST_BLOCKS];
} loose_blocks;

static void swap_blocks(int *turn, int a)
{
    int kept = turn[a];
    turn[a] = turn[a - 1];
    turn[a - 1] = kept;
}

/* Put blocks, small ones first, into families without crossing blocks; 0 when that asks for too many voters. */
static int order_blocks(const problem *p, const loose_blocks *in, int *turn, wait_case *out)
{
    int within[MOST_BLOCKS] = {0}, total[MOST_BLOCKS] = {0}, n = 0, roles = p->voters < p->replicas_max;
    case_blocks *b = &out->blocks;
    for (int k = 0; k < in->count; k++)
        if (in->least[k] > 0) {
            turn[n] = k;
            for (int a = n++; a > 0 && in->size[turn[a - 1]] > in->size[k]; a--)
                swap_blocks(turn, a);
        }
    b->count = n;
    out->families = 1;
    for (int i = 0; i < n; i++) {
        int k = turn[i];
        b->least[i] = in->least[k];
        b->parent[i] = -1;
        for (int clash = 1, family = -1; clash;) {
            clash = 0;
            b->family[i] = ++family;
            for (int j = 0; j < i; j++) {
                int other = turn[j], shared = in->shared[k][other];
                int crossing = shared > 0 && shared != in->size[k] && shared != in->size[other];
                clash |= b->family[j] == family && (crossing || (roles && in->voters[k] != in->voters[other]));
            }
        }
        out->families = larger(out->families, b->family[i] + 1);
    }
    for (int i = 0; i < n; i++) {
        int k = turn[i];
        for (int j = n - 1; j > i; j--)
            if (in->shared[k][turn[j]] == in->size[k] && b->family[i] == b->family[j])
                b->parent[i] = j;
        int asked = in->voters[k] ? larger(in->least[k] - in->own[k], within[i]) : 0;
        if (b->parent[i] >= 0)
            within[b->parent[i]] += asked;
        else
            total[b->family[i]] += asked;
    }
    for (int i = 0; i < n; i++)
        if (total[b->family[i]] >= p->voters)
            return 0;
    return 1;
}

/* The bits of all sites, as bits_of_site gives them. */
static void bits_of_sites(const context *x, const leader_wait *wait, int leader, double radius, unsigned char *out)
{
    size_t S = (size_t)x->p.sites;
    const double *distance = x->p.site_rtt + (size_t)leader * S;
    const unsigned char *scope = wait->scope + (size_t)leader * S;
    unsigned beyond = ~wait->near & (FORBIDDEN - 1);
    for (size_t s = 0; s < S; s++) {
        unsigned bits = scope[s], outside = bits & FORBIDDEN ? FORBIDDEN : bits & beyond;
        out[s] = (unsigned char)(distance[s] <= radius ? bits & (FORBIDDEN - 1) : outside);
    }
    out[leader] = (unsigned char)bits_of_site(x, wait, leader, radius, leader);
}

/* Make the case of one case of each wait (`at`, from the first of the leader on); NULL when no set meets it. */
static wait_case *make_case(context *x, int leader, const size_t *at)
{
    const problem *p = &x->p;
    const wait_cases *cases = &p->cases;
    size_t S = (size_t)p->sites;
    double radius[MOST_WAITS];
    int patterns[FORBIDDEN + 1] = {0}, turn[MOST_BLOCKS];
    unsigned char moved[FORBIDDEN];
    loose_blocks in = {0};
    wait_case *made = malloc(sizeof(wait_case) + S);
    if (!made) {
        x->control.out_of_memory = 1;
        return NULL;
    }
    made->price = 0.0;
    for (int w = 0; w < cases->count; w++) {
        const leader_wait *wait = &cases->wait[w];
        const int *least = wait->least + at[w] % (size_t)wait->sizes * (size_t)wait->blocks;
        radius[w] = wait->radius[(size_t)wait->start[leader] + at[w] / (size_t)wait->sizes];
        made->price += wait->rounds * radius[w];
        for (int b = 0; b < wait->blocks; b++) {
            in.least[in.count] = least[b];
            in.voters[in.count++] = wait->of_voters >> b & 1;
        }
    }
    int good = 1;
    bits_of_sites(x, &cases->wait[0], leader, radius[0], made->member);
    if (cases->count > 1) {
        unsigned char *more = x->inner.blocks;
        bits_of_sites(x, &cases->wait[1], leader, radius[1], more);
        for (size_t s = 0; s < S; s++) {
            unsigned one = made->member[s], two = more[s];
            made->member[s] = (unsigned char)((one | two) & FORBIDDEN ? FORBIDDEN : one | two << cases->wait[0].blocks);
        }
    }
    for (size_t s = 0; s < S; s++) {
        patterns[made->member[s]]++;
        good &= !(made->member[s] & FORBIDDEN && p->must_hold[s]);
    }
    good &= !(made->member[leader] & FORBIDDEN);
    for (int b = 0; b < in.count; b++) {
        in.own[b] = made->member[leader] >> b & 1;
        if (in.least[b] <= in.own[b])
            in.least[b] = 0; /* the leader is there */
    }
    for (int pattern = 1; pattern < 1 << in.count; pattern++)
        for (int b = 0; patterns[pattern] && b < in.count; b++)
            if (pattern >> b & 1) {
                in.size[b] += patterns[pattern];
                for (int a = 0; a < in.count; a++)
                    in.shared[b][a] += pattern >> a & 1 ? patterns[pattern] : 0;
            }
    for (int b = 0; b < in.count; b++)
        good &= in.least[b] <= in.size[b] && in.least[b] <= p->replicas_max;
    if (!good || !order_blocks(p, &in, turn, made)) {
        free(made);
        return NULL;
    }
    for (int pattern = 0; pattern < 1 << in.count; pattern++) {
        moved[pattern] = 0;
        for (int i = 0; i < made->blocks.count; i++)
            moved[pattern] |= (unsigned char)((pattern >> turn[i] & 1) << i);
    }
    for (size_t s = 0; s < S; s++)
        if (!(made->member[s] & FORBIDDEN))
            made->member[s] = moved[made->member[s]];
    return made;
}

/* The case of a pair of cases of the waits of a leader, made when it is first asked for; NULL when no set meets it. */
const wait_case *case_of(context *x, int leader, const size_t *at)
{
    wait_cases *cases = &x->p.cases;
    size_t wide = (size_t)radii_of(cases, 1, leader) * (size_t)sizes_of(cases, 1);
    if (!cases->made[leader] && !(cases->made[leader] = own(&x->owned, cells_of_leader(cases, leader), sizeof(int)))) {
        x->control.out_of_memory = 1;
        return NULL;
    }
    int *cell = &cases->made[leader][at[0] * wide + at[1]];
    if (!*cell) {
        if (cases->count_known == cases->capacity) {
            int capacity = 2 * cases->capacity + 256;
            wait_case **more = realloc(cases->known, (size_t)capacity * sizeof(wait_case *));
            if (!more) {
                x->control.out_of_memory = 1;
                return NULL;
            }
            cases->known = more;
            cases->capacity = capacity;
        }
        cases->known[cases->count_known++] = make_case(x, leader, at);
        *cell = cases->count_known;
    }
    return cases->known[*cell - 1];
}

/* Members that the blocks of one family of a case still ask for. */
typedef struct {
    const case_blocks *blocks;
    int family;
    int open[MOST_BLOCKS];     /* sites that a block lacks itself */
    int within[MOST_BLOCKS];   /* ... that the blocks within it lack together */
    int total;                 /* sites that are needed at least */
} shortage;

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
static int begin_shortage(const tree_node *f, const wait_case *one, int family, shortage *s)
{
    s->blocks = &one->blocks;
    s->family = family;
    s->total = 0;
    for (int b = 0; b < s->blocks->count; b++) {
        s->open[b] = s->blocks->least[b];
        s->within[b] = 0;
    }
    for (int i = 0; i < f->in_count; i++) {
        unsigned bits = one->member[f->in_site[i]];
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

/* Greedy for "meets one family of a case, with `lo`..`hi` more sites": the basis of an elongated matroid. The positions
 * are in `chosen`; returns how many, or -1 when that is impossible. */
int cheapest_of_case(const tree_node *f, const keyed *sorted, int n, const wait_case *one, int family, int lo, int hi,
                     double *value, double *top, double *next, int *chosen)
{
    shortage s;
    if (!begin_shortage(f, one, family, &s) || s.total > hi)
        return -1;
    int single = one->blocks.count == 1;
    greedy_choice g = {.chosen = chosen, .least = larger(lo - s.total, 0), .most = hi - s.total, .top = -BIG, .next = BIG};
    for (int i = 0; i < n; i++) {
        unsigned bits = one->member[f->free_site[sorted[i].position]];
        int able = !(bits & FORBIDDEN), needed = able && s.total > 0 && bits && (single ? s.total-- : lessens(&s, bits));
        if (!offer_site(&g, sorted[i], able, needed) && able && s.total == 0)
            break; /* no later site is taken either */
    }
    *value = g.value;
    *top = g.top;
    *next = g.next;
    return s.total > 0 || g.least > 0 ? -1 : g.size;
}

/* 1 when a replica set meets one case of one wait. */
static int meets(const context *x, const leader_wait *wait, int leader, double radius, const int *least, const int *replicas,
                 int count)
{
    int held[MOST_BLOCKS] = {0};
    for (int i = 0; i < count; i++) {
        unsigned bits = bits_of_site(x, wait, leader, radius, replicas[i]);
        if (bits & FORBIDDEN)
            return 0;
        for (int b = 0; b < wait->blocks; b++)
            held[b] += bits >> b & 1;
    }
    for (int b = 0; b < wait->blocks; b++)
        if (held[b] < least[b])
            return 0;
    return 1;
}

/* Wait of a leader over a complete replica set: 1, or 0 when some wait does not end. */
int wait_of_cases(const context *x, int leader, const int *replicas, int count, double *wait)
{
    const wait_cases *cases = &x->p.cases;
    double length[MOST_WAITS] = {0.0};
    *wait = 0.0;
    if (cases->radial) {
        *wait = wait_of_balls(x, leader, replicas, count);
        return 1;
    }
    for (int w = 0; w < cases->count; w++) {
        const leader_wait *one = &cases->wait[w];
        int first = one->start[leader], end = one->start[leader + 1], least = end, sizes = one->sizes;
        const int *asked = one->least;
        for (int size = 0; size < sizes && least > first; size++) { /* a radius serves where a smaller one does */
            if (sizes > 1 && !meets(x, one, leader, one->radius[least - 1], asked + size * one->blocks, replicas, count))
                continue;
            least -= sizes > 1;
            for (int low = first, high = least; low < high;) {
                int middle = low + (high - low) / 2;
                if (meets(x, one, leader, one->radius[middle], asked + size * one->blocks, replicas, count))
                    high = least = middle;
                else
                    low = middle + 1;
            }
        }
        if (least == end)
            return 0;
        length[w] = one->radius[least];
    }
    if (cases->shorter >= 0 && length[1 - cases->shorter] < length[cases->shorter])
        length[1 - cases->shorter] = length[cases->shorter]; /* it has the clauses of the shorter one too */
    for (int w = 0; w < cases->count; w++)
        *wait += cases->wait[w].rounds * length[w];
    return 1;
}
