/* Late operations: their scenarios, and the least share that is late over sets of voters. See late.h. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "late.h"

/* ---- The lower bound of formulations/exact/late_voters.py: the first v - 1 sites where RTTs are stochastically
   ordered, else the envelope of the sites from each place on. */

enum { SLOTS = 4096 };

/* A cache with one place for each key: the present entry is overwritten. */
struct late_memory {
    struct {
        uint64_t key[2];
        double value;
    } slot[SLOTS];
};

int open_late_voters(late_voters *v)
{
    size_t rows = (size_t)v->members + (size_t)v->needed + 5;
    owned_memory *owned = &v->owned;
    v->place = own(owned, (size_t)v->others + 1, sizeof(int));
    v->chosen = own(owned, (size_t)v->members + 1, sizeof(int));
    v->rows = own(owned, (size_t)v->members + 1, sizeof *v->rows);
    v->one = own(owned, (size_t)v->times, sizeof(double));
    v->never = own(owned, (size_t)v->times, sizeof(double));
    for (int u = 0; v->one && u < v->times; u++)
        v->one[u] = 1.0;
    v->row = own(owned, rows * (size_t)v->times, sizeof(double));
    v->beyond = own(owned, ((size_t)v->others + 1) * (size_t)v->times, sizeof(double));
    v->close = own(owned, ((size_t)v->others + 1) * (size_t)v->times, sizeof(double));
    v->memory = v->others <= 128 ? own(owned, 1, sizeof(struct late_memory)) : NULL;
    v->found = own(owned, ((size_t)v->members + 1) * FOUND_SETS, sizeof(int));
    v->found_late = own(owned, FOUND_SETS, sizeof(double));
    return !owned->failed;
}

/* by_then[u] = P(at least `needed` of `count` have answered by u); `exactly` has needed + 1 rows. */
VECTORISED static const double *at_least(int needed, const double *const *answered, int count, int times, double *exactly)
{
    double *last = exactly + (size_t)needed * (size_t)times;
    for (int u = 0; u < times; u++)
        exactly[u] = 1.0;
    memset(exactly + times, 0, (size_t)needed * (size_t)times * sizeof(double));
    if (!needed)
        return exactly;
    for (int i = 0; i < count; i++) {
        const double *p = answered[i];
        const double *below = last - times;
        for (int u = 0; u < times; u++)
            last[u] += below[u] * p[u];
        for (int j = needed - 1; j > 0; j--) {
            double *here = exactly + (size_t)j * (size_t)times;
            const double *less = here - times;
            for (int u = 0; u < times; u++)
                here[u] = here[u] * (1.0 - p[u]) + less[u] * p[u];
        }
        for (int u = 0; u < times; u++)
            exactly[u] *= 1.0 - p[u];
    }
    for (int u = 0; u < times; u++)
        last[u] = last[u] > 1.0 ? 1.0 : last[u];
    return last;
}

VECTORISED static double inner_product(const double *a, const double *b, int n)
{
    double sum[8] = {0};
    int i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++)
            sum[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        sum[0] += a[i] * b[i];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

/* high = the higher of two rows, at each time. */
VECTORISED static void raise_to(double *high, const double *above, const double *row, int times)
{
    for (int u = 0; u < times; u++)
        high[u] = row[u] > above[u] ? row[u] : above[u];
}

/* Share that is late when the others answer with these probabilities; where that is above the cutoff, a lower bound
   above it. */
VECTORISED static double late_of(late_voters *v, const double *const *answered, double *scratch, double cutoff)
{
    size_t times = (size_t)v->times;
    const double *once = at_least(v->needed, answered, v->members, v->times, scratch);
    const double *by_then = once;
    double *next = scratch + ((size_t)v->needed + 1) * times, *spare = next + times, *steps = spare + times;
    int rounds = 1;
    double late = 0.0;
    v->computed++;
    if (v->kinds && v->votes[v->kinds - 1] > 1) {
        /* several rounds take no less than one: cheaper, and often enough */
        double least = 0.0;
        for (int k = 0; k < v->kinds; k++) {
            double in_time = inner_product(v->asked + (size_t)k * times, v->votes[k] ? once : v->one, v->times);
            least += v->share[k] > in_time ? v->share[k] - in_time : 0.0;
        }
        if (least > cutoff)
            return least;
        steps[0] = once[0];
        for (size_t u = 1; u < times; u++)
            steps[u] = once[u] - once[u - 1];
    }
    for (int k = 0; k < v->kinds; k++) {
        const double *asked = v->asked + (size_t)k * times;
        double in_time = 0.0;
        for (; rounds < v->votes[k]; rounds++) {
            memset(next, 0, times * sizeof(double));
            for (size_t y = 0; y < times; y++) {
                double step = steps[y];
                if (step != 0.0)
                    for (size_t u = y; u < times; u++)
                        next[u] += step * by_then[u - y];
            }
            by_then = next;
            next = spare;
            spare = (double *)by_then;
        }
        if (v->votes[k])
            in_time = inner_product(asked, by_then, v->times);
        else
            in_time = inner_product(asked, v->one, v->times);
        late += v->share[k] > in_time ? v->share[k] - in_time : 0.0;
    }
    return late;
}

static uint64_t mixed(const uint64_t key[2])
{
    uint64_t h = key[0] * 0x9E3779B97F4A7C15u ^ (key[1] + 0x7F4A7C15u) * 0xC2B2AE3D27D4EB4Fu;
    return (h ^ h >> 29) % SLOTS;
}

/* Places that voters may take; among ordered sites the first that make a set. */
static int gather(late_voters *v, const unsigned char *state, int room)
{
    int found = 0;
    for (int i = 0; i < v->others; i++) {
        int site = v->site[i];
        if (state[site] == IN)
            v->place[found++] = i;
        else if (state[site] == FREE && room > 0) {
            v->place[found++] = i;
            room -= v->ordered;
        }
        if (v->ordered && found == v->members)
            break;
    }
    return found;
}

double least_late(late_voters *v, const unsigned char *state, int room)
{
    size_t times = (size_t)v->times;
    if (v->members == 0)
        return late_of(v, NULL, v->row, BIG);
    int found = gather(v, state, room);
    if (found < v->least)
        return BIG;
    uint64_t key[2] = {0, 0};
    uint64_t slot = 0;
    if (v->memory) {
        for (int i = 0; i < found; i++)
            key[v->place[i] >> 6] |= (uint64_t)1 << (v->place[i] & 63);
        slot = mixed(key);
        if (v->memory->slot[slot].key[0] == key[0] && v->memory->slot[slot].key[1] == key[1])
            return v->memory->slot[slot].value;
    }
    const double **row = v->rows;
    double *envelope = v->row;
    if (found <= v->members)
        for (int i = 0; i < v->members; i++)
            row[i] = i < found ? v->answered + (size_t)v->place[i] * times : v->never;
    else { /* rows i = members - 1 … 0: the highest of the places from i on */
        for (int i = 0; i < v->members; i++)
            row[i] = envelope + (size_t)i * times;
        double *high = envelope + (size_t)(v->members - 1) * times;
        memcpy(high, v->answered + (size_t)v->place[found - 1] * times, times * sizeof(double));
        for (int i = found - 2; i >= 0; i--) {
            const double *a = v->answered + (size_t)v->place[i] * times, *above = high;
            if (i < v->members - 1)
                high -= times;
            raise_to(high, above, a, v->times);
        }
    }
    double value = late_of(v, row, envelope + (size_t)v->members * times, BIG);
    if (v->memory) {
        v->memory->slot[slot].key[0] = key[0];
        v->memory->slot[slot].key[1] = key[1];
        v->memory->slot[slot].value = value;
    }
    return value;
}

typedef struct {
    late_voters *v;
    const unsigned char *state, *near;
    int found;       /* places that voters may take */
    int near_first;  /* so many of them, the first ones, are near */
    double cutoff;
    double late;     /* with the voters that were found */
    long evaluations;
} voter_search;

/* Voters for `at` … members - 1 out of the places from `from` on. */
static voters_found extend(voter_search *s, int at, int from, int room, int far)
{
    late_voters *v = s->v;
    size_t times = (size_t)v->times;
    int left = v->members - at;
    for (;; from++) {
        if (s->found - from < left || (far < left && s->near_first - from < left - far))
            return VOTERS_NONE;
        /* voters stand in order of their RTTs, so that the near ones come first */
        for (int i = 0; i < left; i++)
            v->rows[at + i] = (i < left - far ? v->close : v->beyond) + (size_t)(from + i) * times;
        if (s->evaluations-- <= 0)
            return VOTERS_UNKNOWN;
        s->late = late_of(v, v->rows, v->row, s->cutoff);
        if (s->late > s->cutoff)
            return VOTERS_NONE;
        if (left == 0)
            return VOTERS_FOUND;
        int place = v->place[from], site = v->site[place];
        int more = s->state[site] == FREE, out = s->near && !s->near[site];
        if (more > room || out > far)
            continue;
        v->chosen[at] = site;
        v->rows[at] = v->answered + (size_t)place * times;
        voters_found found = extend(s, at + 1, from + 1, room - more, far - out);
        if (found != VOTERS_NONE)
            return found;
    }
}

/* high[i] = the highest of the places i … n - 1, at each time. */
static void highest_from(const late_voters *v, int n, double *high)
{
    size_t times = (size_t)v->times;
    for (int i = n - 1; i >= 0; i--) {
        double *here = high + (size_t)i * times;
        const double *answered = v->answered + (size_t)v->place[i] * times;
        if (i < n - 1)
            raise_to(here, here + times, answered, v->times);
        else
            memcpy(here, answered, times * sizeof(double));
    }
}

/* Whether voters that were found before are allowed here as well. */
static int still_fit(const late_voters *v, int set, const unsigned char *state, int room, double cutoff,
                     const unsigned char *near, int far)
{
    const int *voters = v->found + (size_t)set * (size_t)v->members;
    int fit = v->found_late[set] <= cutoff;
    for (int i = 0; i < v->members && fit; i++) {
        room -= state[voters[i]] == FREE;
        far -= near && !near[voters[i]];
        fit = state[voters[i]] != OUT && room >= 0 && (!near || far >= 0);
    }
    return fit;
}

/* Are there voters out of those sites with at most `cutoff` late, of whom at most `far` are not `near` (bytes by
   site; NULL: all are)? Their sites go to `voters`, shape (members). UNKNOWN after so many `evaluations`. */
static voters_found find_voters(late_voters *v, const unsigned char *state, int room, double cutoff,
                                const unsigned char *near, int far, long evaluations, int *voters)
{
    int ordered = v->ordered;
    for (int k = 0; k < v->found_count; k++)
        if (still_fit(v, k, state, room, cutoff, near, far)) {
            memcpy(voters, v->found + (size_t)k * (size_t)v->members, (size_t)v->members * sizeof(int));
            return VOTERS_FOUND;
        }
    if (near)
        v->ordered = 0; /* the first ones may be too far for another term */
    int n = v->members ? gather(v, state, room) : 0;
    v->ordered = ordered;
    if (n < v->members)
        return VOTERS_NONE;
    int near_first = 0;
    while (near_first < n && (!near || near[v->site[v->place[near_first]]]))
        near_first++;
    highest_from(v, n, v->beyond);
    if (near)
        highest_from(v, near_first, v->close);
    else
        far = v->members;
    voter_search s = {v, state, near, n, near_first, cutoff, BIG, evaluations};
    voters_found found = extend(&s, 0, 0, room, far);
    if (found == VOTERS_FOUND) {
        memcpy(voters, v->chosen, (size_t)v->members * sizeof(int));
        memcpy(v->found + (size_t)v->found_next * (size_t)v->members, v->chosen, (size_t)v->members * sizeof(int));
        v->found_late[v->found_next] = s.late;
        v->found_next = (v->found_next + 1) % FOUND_SETS;
        v->found_count += v->found_count < FOUND_SETS;
    }
    return found;
}

/* ---- Scenarios of late operations and of the mean: the voters' part, and complete sets. See late.h. ---- */

/* The value at a place of an ascending list over sites, or the sum up to it, at sites IN and at most `room` sites FREE. */
static double least_at(const voter_costs *of, const unsigned char *state, int room)
{
    int found = 0;
    double sum = 0.0;
    if (of->place < 0)
        return 0.0;
    for (int i = 0; i < of->able; i++) {
        unsigned char at = state[of->site[i]];
        if (at == IN || (at == FREE && room-- > 0)) {
            sum += of->value[i];
            if (found++ == of->place)
                return of->summed ? sum : of->value[i];
        }
    }
    return BIG;
}

/* Least sum of the prices of free sites that complete a set: as many as the least size needs, and others below 0. */
static double completion(const late_problem *x, const double *price, const unsigned char *state, int in, int most)
{
    int least = x->question.replicas_min - in, count = 0;
    double sum = 0.0;
    for (int j = 0; j < x->sites; j++)
        if (state[j] == FREE)
            count = insert_key(x->cheapest, count, most, price[j]);
    for (int i = 0; i < count && (i < least || x->cheapest[i] < 0.0); i++)
        sum += x->cheapest[i];
    return sum;
}

/* The state without the sites of a loss. */
static const unsigned char *survivors(const late_problem *x, const late_scenario *g, const unsigned char *state)
{
    if (!g->lost)
        return state;
    for (int j = 0; j < x->sites; j++)
        x->surviving[j] = g->lost[j] ? OUT : state[j];
    return x->surviving;
}

static double voters_part(const late_problem *x, const late_scenario *g, const unsigned char *given, int room)
{
    const unsigned char *state = survivors(x, g, given);
    double least = BIG, votes = least_at(&g->paid, state, room);
    if (votes >= BIG)
        return BIG;
    for (int i = 0; i < g->leds; i++) {
        const voter_costs *led = &g->led[i];
        unsigned char at = led->leader < 0 ? IN : state[led->leader];
        if (at == OUT || (at == FREE && room < 1))
            continue;
        double cost = least_at(led, state, room);
        least = cost + led->constant < least ? cost + led->constant : least;
    }
    for (int i = 0; i < g->lates; i++) {
        unsigned char at = state[g->late[i]->leader];
        if (at == OUT || (at == FREE && room < 1))
            continue;
        double late = least_late(g->late[i], state, room - (at == FREE));
        least = late < least ? late : least;
    }
    return least >= BIG ? BIG : votes + least;
}

/* Whether a scenario counts in a state: its loss, if any, is hit. */
static int counts_in(const late_problem *x, const late_scenario *g, const unsigned char *state)
{
    int hit = !g->lost;
    for (int j = 0; j < x->sites && !hit; j++)
        hit = g->lost[j] && state[j] == IN;
    return hit;
}

static double rest(void *self, int s, const unsigned char *state, int most)
{
    const late_problem *x = self;
    const late_scenario *g = &x->given[s];
    double sum = voters_part(x, g, state, most);
    int in = 0;
    if (sum >= BIG)
        return BIG;
    sum += g->constant;
    for (int j = 0; j < x->sites && g->price; j++)
        if (state[j] == IN) {
            sum += g->price[j];
            in++;
        }
    if (!g->cost && g->price && sum + completion(x, g->price, state, in, most) > x->scenario[s].threshold)
        return BIG;
    return sum;
}

static int in_force(void *self, const unsigned char *state, int *which, double *weight)
{
    const late_problem *x = self;
    int count = 0;
    (void)weight;
    for (int s = 0; s < x->scenarios; s++)
        if (counts_in(x, &x->given[s], state))
            which[count++] = s;
    return count;
}

/* Add the free ones of the first `needed` sites that are neither OUT nor lost; sites that are there already are not added. */
static int add_first(const int *site, int able, int needed, const unsigned char *lost, const unsigned char *state, int *sites,
                     int count)
{
    int before = count;
    for (int i = 0; i < able && needed > 0; i++) {
        int known = 0;
        if (state[site[i]] == OUT || (lost && lost[site[i]]))
            continue;
        needed--;
        for (int k = 0; k < before && !known; k++)
            known = sites[k] == site[i];
        if (state[site[i]] == FREE && !known)
            sites[count++] = site[i];
    }
    return count;
}

/* The first sites that may vote, as many as voters are needed, and of them the free ones. Nothing is said of several who may
 * lead. */
static int matter(void *self, int s, const unsigned char *state, int most, int *sites)
{
    const late_problem *x = self;
    const late_scenario *g = &x->given[s];
    int count = 0;
    (void)most;
    if (g->leds && g->led->leader < 0)
        count = add_first(g->led->site, g->led->able, g->led->place + 1, g->lost, state, sites, count);
    if (g->lates == 1)
        count = add_first(g->late[0]->site, g->late[0]->others, g->late[0]->members, g->lost, state, sites, count);
    return add_first(g->paid.site, g->paid.able, g->paid.place + 1, g->lost, state, sites, count);
}

/* Voters that keep the late operations within their slack and the waits within theirs, with nothing lost; the terms are
 * bounded one by one, and where the RTTs of the leader are ordered that is all there is to know. */
static voters_found fit(void *self, const unsigned char *state, int most, const double *slack, double *effort, int *voters,
                        int *count)
{
    late_problem *x = self;
    late_voters *v = NULL;
    const unsigned char *near = NULL;
    int far = 0, at = 0;
    double allowed = *effort;
    *effort = 0.0;
    *count = 0;
    for (int s = 0; s < x->scenarios; s++) {
        const late_scenario *g = &x->given[s];
        if (g->lost)
            continue;
        if (g->lates) {
            v = g->late[0];
            at = s;
        } else if (slack[s] < BIG) {
            memset(x->near, 0, (size_t)x->sites);
            for (int i = 0; i < g->led->able && g->led->value[i] <= slack[s] - g->constant; i++)
                x->near[g->led->site[i]] = 1;
            near = x->near;
            far = -g->led->place;
        }
    }
    if (!v || v->ordered || slack[at] >= BIG)
        return VOTERS_UNKNOWN;
    double times = v->times, rounds = v->kinds ? v->votes[v->kinds - 1] : 0;
    double cost = times * (v->members * (v->needed + 1) + 4) + (rounds > 1 ? (rounds - 1) * times * times / 2 : 0.0);
    long before = v->computed, tries = (long)(allowed / cost) + 2 * v->members;
    voters_found found =
        find_voters(v, state, most, slack[at] - x->given[at].constant, near, far + v->members, tries, voters);
    *effort = cost * (double)(v->computed - before);
    *count = found == VOTERS_FOUND ? v->members : 0;
    return found;
}

/* Sum of the costs of the clients at their first replica that is not lost; 0 if there is none. */
VECTORISED static double assigned(const late_scenario *g, const int *rank, const int *replicas, int count, int clients,
                                  size_t padded)
{
    double sum = 0.0;
    int first = 0;
    while (first < count && g->lost && g->lost[replicas[first]])
        first++;
    if (first == count)
        return 0.0;
    for (int c = 0; c < clients; c++) {
        size_t at = (size_t)replicas[first] * padded + (size_t)c;
        for (int i = first + 1; i < count; i++) {
            size_t other = (size_t)replicas[i] * padded + (size_t)c;
            at = rank[other] < rank[at] && !(g->lost && g->lost[replicas[i]]) ? other : at;
        }
        sum += g->cost[at];
    }
    return sum;
}

/* A complete set: first what is cheap, then voters, then the caller. */
static int leaf(void *self, const int *replicas, int count)
{
    late_problem *x = self;
    int voters;
    double effort = LATE_SET_EFFORT;
    memset(x->state, OUT, (size_t)x->sites);
    for (int i = 0; i < count; i++)
        x->state[replicas[i]] = IN;
    for (int s = 0; s < x->scenarios; s++) {
        const late_scenario *g = &x->given[s];
        x->left[s] = x->scenario[s].threshold;
        if (!counts_in(x, g, x->state))
            continue;
        if (g->cost)
            x->left[s] -= assigned(g, x->rank, replicas, count, x->clients, (size_t)x->padded);
        for (int i = 0; i < count && g->price; i++)
            x->left[s] -= g->price[replicas[i]];
        int below_zero = (g->leds && g->led->summed) || g->paid.place >= 0; /* prices of votes may be */
        if ((!below_zero && x->left[s] < g->constant) || g->constant + voters_part(x, g, x->state, 0) > x->left[s])
            return 0;
    }
    voters_found found = fit(x, x->state, 0, x->left, &effort, x->voters, &voters);
    x->tree.effort += effort;
    return found == VOTERS_NONE ? 0 : x->keeps(x, replicas, count);
}

/* ---- A first plan: swaps from the sites that a root selects, towards the thresholds. ---- */

VECTORISED static double paid_with(const int *rank, const double *cost, int padded, const int *first, const double *paid)
{
    double sum = 0.0;
    for (int c = 0; c < padded; c++)
        sum += rank[c] < first[c] ? cost[c] : paid[c];
    return sum;
}

/* Add what a scenario says of a set, which is IN in x->state, and each site (the last: none): the largest X that falls, and
 * apart from it all excess over limits. Where `falls` is BIG already, the site is left out. */
static void add_worth(late_problem *x, int s, const int *set, int count, double *falls, double *excess)
{
    const late_scenario *g = &x->given[s];
    size_t P = (size_t)x->padded;
    late_voters *v = g->lates == 1 ? g->late[0] : NULL;
    double price = g->constant, all;
    int ordered = v && v->ordered;
    if (v)
        v->ordered = 1; /* the closest voters will do here */
    for (size_t c = 0; c < P; c++) {
        x->served[c] = INT_MAX;
        x->paid[c] = BIG;
    }
    for (int i = 0; i < count; i++) {
        price += g->price ? g->price[set[i]] : 0.0;
        if (g->cost)
            serve(g->cost + (size_t)set[i] * P, x->rank + (size_t)set[i] * P, x->padded, x->served, x->paid);
    }
    all = g->cost ? sum_of(x->paid, x->padded) : 0.0;
    for (int j = 0; j <= x->sites; j++) {
        size_t at = (size_t)j * P;
        int one = j < x->sites;
        if (falls[j] >= BIG)
            continue;
        x->state[j] = one ? IN : OUT; /* it has a place for none as well */
        double value = price + (one && g->price ? g->price[j] : 0.0) + voters_part(x, g, x->state, 0);
        x->state[j] = OUT;
        value += g->cost && one ? paid_with(x->rank + at, g->cost + at, x->padded, x->served, x->paid) : all;
        if (s >= x->scenarios - x->falling)
            falls[j] = fmax(falls[j], value / x->scenario[s].scale);
        else
            excess[j] += fmax(0.0, value - x->scenario[s].threshold) / x->scenario[s].scale;
    }
    if (v)
        v->ordered = ordered;
    x->tree.effort += (x->sites + count) * (g->cost ? 0.5 * x->padded : 1.0) + 40.0 * x->sites;
}

/* The best of all sets with one site less, one more, or one for another, with `held` of the first sites fixed: changes the set
 * where it is better than `best`. Losses are left out. */
static int improve(late_problem *x, int *set, int *count, int held, double *best)
{
    double *falls = x->worth, *excess = x->worth + x->sites + 1;
    int found = -1, in = -1, before = *count, few = before < x->question.replicas_min;
    *best = few ? BIG : *best;
    for (int out = few ? before : held; out <= before; out++) { /* the last: no site goes */
        int left = 0, *some = x->some;
        memset(x->state, OUT, (size_t)x->sites);
        for (int i = 0; i < before; i++)
            if (i != out)
                x->state[some[left++] = set[i]] = IN;
        for (int j = 0; j <= x->sites; j++) {
            int open = j < x->sites && left < x->question.replicas_max && x->may[j] && x->state[j] == OUT;
            int none = j == x->sites && left >= x->question.replicas_min;
            falls[j] = (open && (out == before || j != set[out])) || none ? (x->falling ? -BIG : 0.0) : BIG;
            excess[j] = 0.0;
        }
        for (int s = 0; s < x->scenarios; s++)
            if (!x->given[s].lost)
                add_worth(x, s, some, left, falls, excess);
        for (int j = 0; j <= x->sites; j++) {
            double worth = falls[j] + LIMIT_EXCESS * excess[j];
            some[left] = j;
            if (worth < *best - 1e-12 * fabs(*best) && sites_obey(&x->rules, some, left + (j < x->sites), x->tree.counts)) {
                *best = worth;
                found = out;
                in = j;
            }
        }
    }
    if (found < 0)
        return 0;
    if (found < before)
        set[found] = set[--*count];
    if (in < x->sites)
        set[(*count)++] = in;
    return 1;
}

static int propose(void *self, const int *replicas, int count)
{
    late_problem *x = self;
    int *set = x->proposed, held = 0, length = 0;
    double best = BIG;
    for (int j = 0; j < x->sites; j++)
        if (x->must[j] || j == x->leader)
            set[held++] = j;
    length = held;
    for (int i = 0; i < count && length < x->question.replicas_max; i++)
        if (!x->must[replicas[i]] && replicas[i] != x->leader)
            set[length++] = replicas[i];
    for (int swaps = 0; swaps < FIRST_PLAN_SWAPS && improve(x, set, &length, held, &best) && !tree_must_pause(&x->tree); swaps++)
        ;
    return best < BIG && length >= x->question.replicas_min && leaf(x, set, length);
}

int late_open(late_problem *x)
{
    size_t S = (size_t)x->sites;
    int late = 0, lost = 0;
    scenario_question *q = &x->question;
    owned_memory *owned = &x->owned;
    x->state = own(owned, S + 1, 1);
    x->near = own(owned, S + 1, 1);
    x->surviving = own(owned, S + 1, 1);
    x->left = own(owned, (size_t)x->scenarios + 1, sizeof(double));
    x->voters = own(owned, S + 1, sizeof(int));
    x->cheapest = own(owned, S + 1, sizeof(double));
    x->some = own(owned, S + 1, sizeof(int));
    x->proposed = own(owned, S + 1, sizeof(int));
    x->worth = own(owned, 2 * (S + 1), sizeof(double));
    x->served = own(owned, (size_t)x->padded + 1, sizeof(int));
    x->paid = own(owned, (size_t)x->padded + 1, sizeof(double));
    x->site_order = sites_in_order(x->rank, x->clients, x->sites, (size_t)x->padded);
    q->sites = x->sites;
    q->clients = x->clients;
    q->padded = x->padded;
    if (!x->site_order || owned->failed)
        return 0;
    for (int s = 0; s < x->scenarios; s++) {
        late_scenario *g = &x->given[s];
        late = late || g->lates;
        lost = lost || g->lost;
        x->scenario[s].price = g->price;
        x->scenario[s].lost = g->lost;
        if (!g->cost)
            continue;
        if (!(g->first = own(owned, (size_t)x->padded + 1, sizeof(double))))
            return 0;
        for (int c = 0; c < x->padded; c++)
            g->first[c] = 0.5 * g->cost[(size_t)x->leader * (size_t)x->padded + (size_t)c];
        x->scenario[s].cost = g->cost;
        x->scenario[s].rank = x->rank;
        x->scenario[s].first = g->first;
        x->scenario[s].order = g->lost ? NULL : order_of_detours(q, g->cost, x->site_order);
    }
    q->rules = &x->rules;
    q->scenarios = x->scenarios;
    q->scenario = x->scenario;
    q->weigh_selection = !lost;
    q->self = x;
    q->in_force = in_force;
    q->rest = rest;
    q->matter = matter;
    q->fit = late ? fit : NULL;
    q->leaf = leaf;
    q->propose = propose;
    for (int j = 0; j < x->sites; j++)
        x->state[j] = x->must[j] || j == x->leader ? IN : x->may[j] ? FREE : OUT;
    x->opened = tree_open(&x->tree, q, x->state, NULL);
    if (late)
        x->tree.first_step = LATE_FIRST_STEP;
    return x->opened;
}

void late_close(late_problem *x)
{
    if (x->opened)
        tree_close(&x->tree);
    free(x->site_order);
    release(&x->owned);
}
