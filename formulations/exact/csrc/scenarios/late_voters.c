/* The lower bound of formulations/tail/late_voters.py: the first v - 1 sites where RTTs are stochastically
   ordered, else the envelope of the sites from each place on. */
#include "late_voters.h"
#include "kernel.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4096 };

const double *at_least(int needed, const double *const *answered, int count, int times, double *exactly);
double inner_product(const double *a, const double *b, int n);
void raise_to(double *high, const double *above, const double *row, int times);
double late_of(late_voters *v, const double *const *answered, double *scratch, double cutoff);

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
    v->place = malloc(((size_t)v->others + 1) * sizeof(int));
    v->chosen = malloc(((size_t)v->members + 1) * sizeof(int));
    v->rows = malloc(((size_t)v->members + 1) * sizeof *v->rows);
    v->one = malloc((size_t)v->times * sizeof(double));
    v->never = calloc((size_t)v->times, sizeof(double));
    for (int u = 0; v->one && u < v->times; u++)
        v->one[u] = 1.0;
    v->row = malloc(rows * (size_t)v->times * sizeof(double));
    v->beyond = malloc(((size_t)v->others + 1) * (size_t)v->times * sizeof(double));
    v->close = malloc(((size_t)v->others + 1) * (size_t)v->times * sizeof(double));
    v->memory = v->others <= 128 ? calloc(1, sizeof(struct late_memory)) : NULL;
    v->found = malloc(((size_t)v->members + 1) * FOUND_SETS * sizeof(int));
    v->found_late = malloc(FOUND_SETS * sizeof(double));
    v->found_count = v->found_next = 0;
    v->computed = 0;
    return v->place && v->chosen && v->rows && v->one && v->never && v->row && v->beyond && v->close && v->found &&
           v->found_late && (v->memory || v->others > 128);
}

void close_late_voters(late_voters *v)
{
    free(v->site);
    free(v->answered);
    free(v->votes);
    free(v->share);
    free(v->asked);
    free(v->place);
    free(v->chosen);
    free(v->rows);
    free(v->one);
    free(v->never);
    free(v->row);
    free(v->beyond);
    free(v->close);
    free(v->memory);
    free(v->found);
    free(v->found_late);
    memset(v, 0, sizeof *v);
}

/* by_then[u] = P(at least `needed` of `count` have answered by u); `exactly` has needed + 1 rows. */
VECTORISED const double *at_least(int needed, const double *const *answered, int count, int times, double *exactly)
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

VECTORISED double inner_product(const double *a, const double *b, int n)
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
VECTORISED void raise_to(double *high, const double *above, const double *row, int times)
{
    for (int u = 0; u < times; u++)
        high[u] = row[u] > above[u] ? row[u] : above[u];
}

/* Share that is late when the others answer with these probabilities; where that is above the cutoff, a lower bound
   above it. */
VECTORISED double late_of(late_voters *v, const double *const *answered, double *scratch, double cutoff)
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

voters_found find_voters(late_voters *v, const unsigned char *state, int room, double cutoff,
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
