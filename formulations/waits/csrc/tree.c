/* Depth first over increasing sequences of sites; leaves; the incumbent; swap descent. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "sets.h"

void push(sets *x, int depth, int site)
{
    const int C = x->clients;
    const double *before = x->distance + (long)depth * C, *d = x->by_site + (long)site * C;
    double *after = x->distance + (long)(depth + 1) * C;
    const int32_t *was = x->nearest + (long)depth * C;
    int32_t *now = x->nearest + (long)(depth + 1) * C;
    for (int c = 0; c < C; c++) {
        /* ties go to the site that comes first in the instance */
        int nearer = depth == 0 || d[c] < before[c] ||
                     (d[c] == before[c] && x->original[site] < x->original[was[c]]);
        after[c] = nearer ? d[c] : before[c];
        now[c] = nearer ? site : was[c];
    }
    x->chosen[depth] = site;
    x->spent[depth + 1] = x->spent[depth] + x->paid[site];
    x->member[site] = 1;
}

void pop(sets *x, int depth) { x->member[x->chosen[depth]] = 0; }

static int obeys(const rule *r, const int *chosen, int count, int complete)
{
    int32_t held[MOST_DOMAINS] = {0};
    int distinct = 0;
    for (int i = 0; i < count; i++) {
        int32_t label = r->label[chosen[i]];
        distinct += held[label] == 0;
        if (++held[label] > r->cap)
            return 0;
    }
    return !complete || (distinct >= r->distinct && (r->least == 0 || held[r->domain] >= r->least));
}

int allowed(const sets *x, int depth, int complete)
{
    int all_vote = x->voters == x->size;
    for (int k = 0; k < x->rules; k++)
        if ((all_vote || !x->rule[k].voters) && !obeys(x->rule + k, x->chosen, depth, complete))
            return 0;
    return 1;
}

static int before(const sets *x, int leader, const int32_t *set)
{
    if (leader != x->best_leader)
        return leader < x->best_leader;
    for (int i = 0; i < x->size; i++)
        if (set[i] != x->best_set[i])
            return set[i] < x->best_set[i];
    return 0;
}

static void keep(sets *x, const int32_t *set)
{
    const size_t size = (size_t)x->size;
    if (x->listed == x->room) {
        size_t room = x->room ? 2 * x->room : 1024;
        int32_t *list = realloc(x->list, room * size * sizeof *list);
        if (!list) {
            x->no_memory = 1;
            return;
        }
        x->list = list;
        x->room = room;
    }
    memcpy(x->list + x->listed++ * size, set, size * sizeof *set);
}

static void offer(sets *x, double value, const int *voters)
{
    if (!(value <= cutoff(x)) || isinf(value))
        return;
    int32_t set[MOST_MEMBERS];
    int leader = -1;
    for (int i = 0; i < x->size; i++) {
        int32_t s = x->original[x->chosen[i]];
        int j = i;
        for (; j > 0 && set[j - 1] > s; j--)
            set[j] = set[j - 1];
        set[j] = s;
    }
    if (x->listing) {
        keep(x, set);
        return;
    }
    leader = x->leader >= 0 ? x->original[x->leader] : set[0];
    if (!x->found || value < x->value * (1 - 1e-12) || before(x, leader, set)) {
        memcpy(x->best_set, set, sizeof set);
        x->best_leader = leader;
        for (int i = 0; i < x->voters; i++)
            x->best_voters[i] = x->original[voters[i]];
    }
    x->value = x->found && x->value < value ? x->value : value;
    x->found = 1;
}

/* The voters of least waits of the leader, out of the replicas; INFINITY if none obey the rules. */
static double best_voters(const sets *x, int *voters)
{
    double best = INFINITY;
    int chosen[MOST_MEMBERS];
    for (int mask = 0; mask < 1 << x->size; mask++) {
        int count = 0, good = 1;
        for (int i = 0; i < x->size && good; i++) {
            int site = x->chosen[i];
            if (mask >> i & 1) {
                good = x->may_vote[site] && count < x->voters;
                if (good)
                    chosen[count++] = site;
            } else
                good = !x->must_vote[site] && site != x->leader;
        }
        if (!good || count != x->voters)
            continue;
        for (int k = 0; k < x->rules && good; k++)
            good = !x->rule[k].voters || obeys(x->rule + k, chosen, count, 1);
        if (!good)
            continue;
        double sum = 0;
        for (int j = 0; j < x->terms; j++)
            if (x->term[j].origin == LEADER)
                sum += x->term[j].leader * exact_wait(x, x->term + j, x->leader, chosen, count);
        if (sum < best) {
            best = sum;
            memcpy(voters, chosen, (size_t)count * sizeof *voters);
        }
    }
    return best;
}

/* Waits of the nearest replica: each member's wait for the rounds that begin there. */
static double near_waits(sets *x, const int32_t *nearest)
{
    double sum = 0;
    for (int j = 0; j < x->terms; j++) {
        const term *t = x->term + j;
        if (t->origin != NEAR)
            continue;
        for (int i = 0; i < x->size; i++)
            x->wait[x->chosen[i]] = 0;
        for (int c = 0; c < x->clients; c++)
            x->wait[nearest[c]] += t->weight[c];
        for (int i = 0; i < x->size; i++)
            if (x->wait[x->chosen[i]] > 0)
                sum += x->wait[x->chosen[i]] * exact_wait(x, t, x->chosen[i], x->chosen, x->size);
    }
    return sum;
}

double leaf(sets *x)
{
    const int C = x->clients;
    const int32_t *nearest = x->nearest + (long)x->size * C;
    int voters[MOST_MEMBERS];
    double sum = x->constant + x->spent[x->size];
    x->leaves++;
    memcpy(voters, x->chosen, (size_t)x->voters * sizeof *voters);
    for (int c = 0; c < C; c++)
        sum += x->near_cost[(long)nearest[c] * C + c];
    if (!(sum <= cutoff(x)))
        return sum;
    if (x->leader >= 0) {
        if (x->voters < x->size)
            sum += best_voters(x, voters);
        else
            for (int j = 0; j < x->terms; j++)
                if (x->term[j].origin == LEADER)
                    sum += x->term[j].leader *
                           exact_wait(x, x->term + j, x->leader, x->chosen, x->size);
    }
    if (x->has_near)
        sum += near_waits(x, nearest);
    for (int j = 0; x->has_client && j < x->terms; j++)
        if (x->term[j].origin == CLIENT)
            for (int c = 0; c < C && sum <= cutoff(x); c++)
                if (x->term[j].weight[c] > 0)
                    sum += x->term[j].weight[c] * exact_client_wait(x, x->term + j, c);
    offer(x, sum, voters);
    return sum;
}

/* All sets that lack one site. Most are dropped by near costs and waits of clients and leader, which
   the set without that site leaves little to compute for; the other sets are leaves. */
static void last_sites(sets *x, int from)
{
    const int C = x->clients, depth = x->size - 1, room = C > MOST_MEMBERS ? C : MOST_MEMBERS;
    const double *distance = x->distance + (long)depth * C;
    const int32_t *nearest = x->nearest + (long)depth * C;
    /* of the prefix without its last site, whose bound holds for every pair of sites that completes it */
    const int paired = depth && x->base[2 * depth - 1] > -INFINITY;
    const double *change = x->change + (long)(depth - paired) * x->sites;
    const double pair = paired ? x->base[2 * depth - 2] + change[x->chosen[depth - 1]] : -INFINITY;
    uint8_t known[1000];
    int capped = 0;
    for (int c = 0; depth && c < C; c++)
        x->stay[c] = x->near_cost[(long)nearest[c] * C + c];
    for (int s = from; s < x->sites; s++) {
        if (x->member[s])
            continue;
        if (x->out[s] || (paired && pair + change[s] > cutoff(x))) {
            x->leaves++;
            continue;
        }
        x->chosen[depth] = s;
        if (!allowed(x, x->size, 1))
            continue;
        for (int j = 0; !capped && j < x->terms; j++) {
            double *low = x->low + (long)j * room, *high = x->high + (long)j * room;
            known[j] = (uint8_t)(x->term[j].origin == NEAR ? near_caps(x, x->term + j, low, high)
                                                           : client_caps(x, x->term + j, low, high, x->rows + j));
        }
        capped = 1;
        const double most = cutoff(x) * (1 + 1e-12);
        double sum = x->constant + x->spent[depth] + x->paid[s];
        if (depth && most < INFINITY) {
            sum += joined_cost(x->by_site + (long)s * C, distance, x->near_cost + (long)s * C, x->stay, C);
            for (int j = 0; j < x->terms && sum <= most; j++)
                if (x->term[j].origin == LEADER && x->leader >= 0 && x->voters == x->size)
                    sum += x->term[j].leader * exact_wait(x, x->term + j, x->leader, x->chosen, x->size);
                else if (known[j] && x->term[j].origin == NEAR)
                    sum += near_sum(x, x->term + j, known[j], x->low + (long)j * room, x->high + (long)j * room, s,
                                    most - sum);
                else if (known[j])
                    sum += capped_waits(x->term[j].weight, x->by_site + (long)s * C, x->low + (long)j * room,
                                        x->high + (long)j * room, C);
        }
        if (sum > most) {
            x->leaves++;
            continue;
        }
        push(x, depth, s);
        leaf(x);
        pop(x, depth);
    }
}

/* Rule out each site with which the bound of the prefix exceeds the cutoff, whatever else comes; and of every site, the
   least that is changed by those that come after it, in `later`. What is ruled out is noted by depth. */
static void rule_out(sets *x, int depth, int from)
{
    const int free = x->size - depth, S = x->sites;
    const double *change = x->change + (long)depth * S, base = x->base[2 * depth], most = cutoff(x);
    double *later = x->later + (long)depth * S, least[MOST_MEMBERS + 1], sum = 0;
    uint8_t *noted = x->out + (long)(depth + 1) * S;
    int count = 0;
    memset(noted, 0, (size_t)S);
    /* the free least of those from s on, in order; the sum is of free - 1 */
    for (int s = S - 1; s >= from; s--) {
        later[s] = sum;
        if (x->member[s] || x->out[s])
            continue;
        int j = count < free ? count++ : free;
        for (; j > 0 && least[j - 1] > change[s]; j--)
            if (j < free)
                least[j] = least[j - 1];
        if (j < free)
            least[j] = change[s];
        sum = 0;
        for (int k = 0; k < free - 1 && k < count; k++)
            sum += least[k];
    }
    double all = sum + (count >= free ? least[free - 1] : 0);
    for (int s = from; s < S; s++) {
        if (x->member[s] || x->out[s])
            continue;
        double others = count >= free && change[s] <= least[free - 1] ? all - change[s] : sum;
        if (base + change[s] + others > most)
            x->out[s] = noted[s] = 1;
    }
}

static void take_back(sets *x, int depth, int from)
{
    const uint8_t *noted = x->out + (long)(depth + 1) * x->sites;
    for (int s = from; s < x->sites; s++)
        if (noted[s])
            x->out[s] = 0;
}

int search_below(sets *x, int depth, int from, int (*stop)(void *), void *context)
{
    const int free = x->size - depth;
    x->nodes++;
    if (free == 0) {
        if (allowed(x, depth, 1))
            leaf(x);
        return 1;
    }
    if ((x->nodes & 255) == 0 && stop(context))
        return 0;
    if (free == 1) {
        last_sites(x, from);
        return 1;
    }
    const int bounded = x->base[2 * depth + 1] > -INFINITY;
    const double *change = x->change + (long)depth * x->sites, *later = x->later + (long)depth * x->sites;
    int done = 1;
    if (bounded)
        rule_out(x, depth, from);
    for (int s = from; done && s <= x->sites - free; s++) {
        if (x->member[s])
            continue;
        if (x->out[s] || (bounded && x->base[2 * depth] + change[s] + later[s] > cutoff(x))) {
            x->nodes++;
            continue;
        }
        push(x, depth, s);
        int go = allowed(x, depth + 1, 0);
        if (go && free >= 3)
            go = prefix_bound(x, depth + 1, s + 1) <= cutoff(x);
        if (go)
            done = search_below(x, depth + 1, s + 1, stop, context);
        pop(x, depth);
    }
    if (bounded)
        take_back(x, depth, from);
    return done;
}

/* Value of the set `chosen`, from nothing; the state belongs to the set afterwards. */
static double rebuilt(sets *x, const int *chosen)
{
    memset(x->member, 0, (size_t)x->sites);
    for (int i = 0; i < x->size; i++)
        push(x, i, chosen[i]);
    return allowed(x, x->size, 1) ? leaf(x) : INFINITY;
}

void descend(sets *x)
{
    int chosen[MOST_MEMBERS], better = 1;
    memcpy(chosen, x->chosen, (size_t)x->size * sizeof *chosen);
    double value = rebuilt(x, chosen);
    while (better) {
        better = 0;
        for (int i = 0; i < x->size; i++)
            for (int s = 0; s < x->sites; s++) {
                int was = chosen[i], inside = 0;
                for (int k = 0; k < x->size; k++)
                    inside |= chosen[k] == s;
                if (inside || was == x->leader || x->must_hold[was])
                    continue;
                chosen[i] = s;
                double other = rebuilt(x, chosen);
                if (other < value * (1 - 1e-12)) {
                    value = other;
                    better = 1;
                } else
                    chosen[i] = was;
            }
    }
    memset(x->member, 0, (size_t)x->sites);
}
