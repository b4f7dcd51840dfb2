/* The primal side: the incumbent, the voters of a set, its exact score, and swap descents. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
static void set_cutoff(context *x);
static int quorum_radius(context *x, int leader, const int *replicas, int count, double *radius);

/* ---- The incumbent: the best configuration so far, and the cutoff that follows from its score. ---- */

/* Take a configuration as incumbent when it is better. */
void offer_incumbent(context *x, double score, const int *replicas, int count)
{
    if (score >= x->best.score)
        return;
    x->best.score = score;
    x->best.leader = x->view.leader;
    x->best.count = count;
    memcpy(x->best.replicas, replicas, (size_t)count * sizeof(int));
    set_cutoff(x);
}

/* The cutoff that follows from a score: the score, less what a bound may stay below it. */
static double cutoff_of(const context *x, double score)
{
    double cutoff = score - x->best.tolerance * score;
    if (x->p.granularity > 0.0) {
        /* more than score − granularity is as good as score */
        double whole = nextafter(score - x->p.granularity * (1.0 - 1e-6), BIG);
        if (whole < cutoff)
            cutoff = whole;
    }
    return cutoff;
}

/* Set the cutoff that follows from the score of the incumbent. */
static void set_cutoff(context *x)
{
    if (x->best.score < BIG)
        x->best.cutoff = cutoff_of(x, x->best.score);
}

/* Close nodes whose bound is within `tolerance`, relatively, of the incumbent. */
void set_tolerance(context *x, double tolerance)
{
    x->best.tolerance = tolerance;
    set_cutoff(x);
}

/* There is no incumbent any more. */
void forget_incumbent(context *x)
{
    x->best.score = x->best.cutoff = BIG;
    x->best.leader = -2;
    x->best.count = 0;
}

/* ---- The choice of voters for a leader and a set of replicas: the closest-first greedy over the matroid of a family. ---- */

/* 1 when the sites from `at` on can complete the votes counted, `inside` more of them before `end`. */
static int completes(context *x, const int *able, int number, int at, int votes, int inside, int end)
{
    const family_list *list = &x->p.voter_families;
    int v = x->p.voters, length = x->scratch.count_length, taken = 0;
    if (votes == v)
        return inside <= 0;
    if (number - at < v - votes || (at < end ? end - at : 0) < inside)
        return 0;
    while (taken < list->count &&
           take_site(&list->family[taken], x->scratch.family_counts + (size_t)taken * (size_t)length, able[at], v, v))
        taken++;
    int done = taken == list->count && completes(x, able, number, at + 1, votes + 1, inside - (at < end), end);
    for (int k = 0; k < taken; k++)
        count_site(&list->family[k], x->scratch.family_counts + (size_t)k * (size_t)length, able[at], -1);
    return done || completes(x, able, number, at + 1, votes, inside, end);
}

/* quorum_radius where the rules for voters are several families: `order` has the replicas by distance. For each radius
 * in turn a search decides whether voters within it make a quorum. */
static int searched_radius(context *x, int leader, const int *order, int count, double *radius)
{
    const problem *p = &x->p;
    const family_list *list = &p->voter_families;
    int able[MOST_VOTERS], given[MOST_VOTERS], number = 0, votes = 0, length = x->scratch.count_length;
    if (count > MOST_VOTERS)
        return 0;
    for (int i = 0; i < count; i++)
        if (order[i] == leader || p->must_vote[order[i]])
            given[votes++] = order[i];
        else if (p->may_vote[order[i]])
            able[number++] = order[i];
    for (int k = 0; k < list->count; k++) {
        int *counted = x->scratch.family_counts + (size_t)k * (size_t)length;
        begin_count(&list->family[k], counted);
        if (!count_all(&list->family[k], counted, given, votes, p->voters, p->voters))
            return 0;
    }
    for (int i = 0; i < count; i++) {
        double d = distance_of(x, leader, order[i]);
        int inside = p->quorum, end = 0;
        if (i + 1 < count && distance_of(x, leader, order[i + 1]) == d)
            continue;
        for (int g = 0; g < votes; g++)
            inside -= distance_of(x, leader, given[g]) <= d;
        while (end < number && distance_of(x, leader, able[end]) <= d)
            end++;
        if (completes(x, able, number, 0, votes, inside, end)) {
            *radius = d;
            return 1;
        }
    }
    return 0;
}

/* The distance that `leader` waits for over `replicas`: 1 and the radius, or 0 when no voters can be chosen.
 *
 * Closest-first subject to one family (contracted by the leader and the sites that must vote) makes
 * every order statistic of the chosen distances as small as it can be: a matroid's greedy basis. */
static int closest_radius(context *x, int leader, const int *replicas, int count, double *radius)
{
    const problem *p = &x->p;
    const double *distance = p->site_rtt + (size_t)leader * p->sites;
    double near[64];
    int m = p->quorum, found = 0;
    if (count < p->voters)
        return 0;
    if (p->plain_voters && m <= 64) {
        for (int i = 0; i < count; i++)
            found = insert_key(near, found, m, replicas[i] == leader ? 0.0 : distance[replicas[i]]);
        *radius = near[m - 1];
        return 1;
    }
    const site_family *family = &p->voter_families.family[0];
    int votes = 0, v = p->voters, *counted = x->scratch.family_counts, *order = x->scratch.pick;
    begin_count(family, counted);
    if (!p->may_vote[leader])
        return 0;
    for (int i = 0; i < count; i++) {
        int r = replicas[i];
        if (r == leader || p->must_vote[r]) {
            if (!count_site(family, counted, r, 1))
                return 0;
            votes++;
        }
    }
    if (votes > v || !count_all(family, counted, NULL, 0, v, v))
        return 0;
    /* all candidates by distance (insertion sort: replicas are few) */
    for (int i = 0; i < count; i++) {
        int r = replicas[i], at = i;
        double d = r == leader ? 0.0 : distance[r];
        while (at > 0) {
            int other = order[at - 1];
            double od = other == leader ? 0.0 : distance[other];
            if (od < d || (od == d && other < r))
                break;
            order[at] = other;
            at--;
        }
        order[at] = r;
    }
    if (p->voter_families.count > 1)
        return searched_radius(x, leader, order, count, radius);
    int seen = 0;
    double q = 0.0;
    for (int i = 0; i < count && seen < p->quorum; i++) {
        int r = order[i];
        int fixed = r == leader || p->must_vote[r];
        if (!fixed) {
            if (votes >= v || !p->may_vote[r])
                continue;
            if (!take_site(family, counted, r, v, v))
                continue;
            votes++;
        }
        seen++;
        q = r == leader ? 0.0 : distance[r];
        order[i] = -1 - r;          /* counted */
    }
    if (seen < p->quorum)
        return 0;
    for (int i = 0; i < count && votes < v; i++) {
        int r = order[i];
        if (r < 0 || r == leader || p->must_vote[r] || !p->may_vote[r])
            continue;
        votes += take_site(family, counted, r, v, v);
    }
    if (votes < v)
        return 0;
    *radius = q;
    return 1;
}

/* A search for the voters of the least wait over several scenarios. */
typedef struct {
    int leader, able[MOST_VOTERS], number;  /* the leader, and who may vote and need not, nearest first */
    int set[MOST_VOTERS + 1];
    double least, floor;       /* least wait so far; lower bound of all sets */
} voter_search;

/* sum over the scenarios of D times the m-th smallest RTT from the leader to the first `number` of `set`. */
static double total_wait(const context *x, int leader, const int *set, int number)
{
    const problem *p = &x->p;
    size_t S = (size_t)p->sites;
    double total = 0.0, near[MOST_VOTERS];
    int m = p->quorum;
    for (int k = 0; k < p->scenarios; k++) {
        const double *d = p->scenario_rtt + (size_t)k * S * S + (size_t)leader * S;
        int found = 0;
        for (int i = 0; i < number; i++)
            found = insert_key(near, found, m, d[set[i]]);
        total += p->scenario_weight[k] * near[m - 1];
    }
    return total;
}

/* Search the sets of voters that hold the first `votes` of the set, and others from `at` on. */
static void search_voters(context *x, voter_search *s, int at, int votes)
{
    const problem *p = &x->p;
    int v = p->voters, more = v - votes;
    if (s->least <= s->floor || s->number - at < more)
        return;
    /* all that are left, as if all of them voted: no wait below is shorter */
    int together = votes + s->number - at;
    for (int i = at; i < s->number && more; i++)
        s->set[votes + i - at] = s->able[i];
    double wait = total_wait(x, s->leader, s->set, more ? together : votes);
    if (wait >= s->least)
        return;
    if (more == 0 || together == v) {
        if (sites_obey(&p->voter_families, s->set, v, x->scratch.family_counts))
            s->least = wait;
        return;
    }
    s->set[votes] = s->able[at];
    search_voters(x, s, at + 1, votes + 1);
    search_voters(x, s, at + 1, votes);
}

/* The radius, or with cases or several scenarios the least total wait, of `leader` over `replicas`: 1, or 0 without voters. */
static int quorum_radius(context *x, int leader, const int *replicas, int count, double *radius)
{
    const problem *p = &x->p;
    voter_search s = {.leader = leader, .least = BIG};
    int votes = 0;
    if (!closest_radius(x, leader, replicas, count, radius))
        return 0;
    if (p->cases.count)
        return wait_of_cases(x, leader, replicas, count, radius);
    if (p->scenarios == 1 || p->quorum_weight == 0.0 || p->quorum <= 1)
        return 1;
    if (count > MOST_VOTERS)
        return 0;
    s.floor = *radius * (1.0 + 1e-13); /* floors are rounded down */
    for (int i = 0; i < count; i++) {
        int r = replicas[i], at = s.number;
        if (r == leader || p->must_vote[r])
            s.set[votes++] = r;
        else if (p->may_vote[r]) {
            for (; at > 0 && distance_of(x, leader, s.able[at - 1]) > distance_of(x, leader, r); at--)
                s.able[at] = s.able[at - 1];
            s.able[at] = r;
            s.number++;
        }
    }
    search_voters(x, &s, 0, votes);
    x->effort.work += 50.0 * p->scenarios * count;
    *radius = s.least;
    return s.least < BIG;
}

/* A lower bound of the weighted wait of the leader under work over `replicas`: that of one scenario exactly, of several by
 * floors, of cases 0. BIG when no voters can be chosen. */
double least_wait_of_set(context *x, const int *replicas, int count)
{
    double radius;
    if (x->view.leader < 0 || x->p.cases.count || x->p.quorum_weight == 0.0)
        return 0.0;
    return closest_radius(x, x->view.leader, replicas, count, &radius) ? x->p.quorum_weight * radius : BIG;
}

/* The first replica that can lead, or -1. */
static int any_leader(context *x, const int *replicas, int count)
{
    double radius;
    for (int s = 0; s < x->p.sites; s++) {
        if (!x->p.may_lead[s])
            continue;
        for (int i = 0; i < count; i++)
            if (replicas[i] == s && quorum_radius(x, s, replicas, count, &radius))
                return s;
    }
    return -1;
}

/* ---- Primal side: exact scores, swap descent with best and second-best bookkeeping, a first feasible set. ---- */

/* Score of a complete set under the current leader; BIG when it breaks a constraint. */
double score_of(context *x, const int *replicas, int count, double *radius)
{
    const problem *p = &x->p;
    double total = x->view.leader < 0 ? 0.0 : p->direct[x->view.leader];
    int *rank = x->scratch.rank;
    double *cost = x->scratch.cost;
    if (count < p->replicas_min || count > p->replicas_max)
        return BIG;
    if (!sites_obey(&p->replica_families, replicas, count, x->scratch.family_counts))
        return BIG;
    *radius = 0.0;
    if (x->view.leader >= 0) {
        if (!quorum_radius(x, x->view.leader, replicas, count, radius))
            return BIG;
    } else if (any_leader(x, replicas, count) < 0)
        return BIG;
    for (int c = 0; c < p->padded; c++)
        rank[c] = INT_MAX;
    for (int i = 0; i < count; i++) {
        const int *r = p->rank + (size_t)replicas[i] * p->padded;
        const double *w = paid_costs(x) + (size_t)replicas[i] * p->padded;
        for (int c = 0; c < p->padded; c++)
            if (r[c] < rank[c]) {
                rank[c] = r[c];
                cost[c] = w[c];
            }
    }
    for (int c = 0; c < p->clients; c++)
        total += cost[c];
    const double *price = prices_under(p, x->view.leader);
    for (int i = 0; i < count && price; i++)
        total += price[replicas[i]];
    x->effort.work += 2.0 * count * p->padded;
    return total + p->quorum_weight * *radius;
}

/* Count a set that obeys the rules for replicas, so that swap_obeys is quick. */
static void count_set(context *x, const int *replicas, int count)
{
    const family_list *list = &x->p.replica_families;
    for (int k = 0; k < list->count && list->rules; k++) {
        int *counted = x->scratch.set_counts + (size_t)k * (size_t)x->scratch.count_length;
        begin_count(&list->family[k], counted);
        count_all(&list->family[k], counted, replicas, count, 0, count);
    }
}

/* 1 when the set that was counted, of `count` sites, obeys the rules with `in` in the place of `out`. */
static int swap_obeys(context *x, int out, int in, int count)
{
    const family_list *list = &x->p.replica_families;
    int obeys = 1;
    for (int k = list->rules ? list->count - 1 : -1; k >= 0 && obeys; k--) {
        int *counted = x->scratch.set_counts + (size_t)k * (size_t)x->scratch.count_length;
        count_site(&list->family[k], counted, out, -1);
        obeys = site_fits(&list->family[k], counted, in, 0, count);
        count_site(&list->family[k], counted, out, 1);
    }
    return obeys;
}

/* Best-improvement swaps from `replicas` (changed in place) under the current leader, to sites whose costs are there.
 *
 * delta(in s, out r) = gain[s] + loss[r] + extra[s][r]: one pass over (site, client) prices the whole
 * neighbourhood (Resende and Werneck 2007, here with closest assignment, so gains may be negative). */
double swap_descent(context *x, int *replicas, int count, int limit)
{
    const problem *p = &x->p;
    int padded = p->padded, sites = p->sites, leader = x->view.leader;
    double radius, score = score_of(x, replicas, count, &radius);
    int *first = x->scratch.rank, *second = first + padded, *owner = second + padded, *served = owner + padded;
    double *w1 = x->scratch.cost, *w2 = w1 + padded;
    double *loss = x->scratch.key, *extra = loss + sites;
    double *floor = extra + sites; /* least radius of a set without one of the replicas */
    ball_rest rest[MOST_VOTERS][MOST_WAITS];
    /* the wait is quicker to find than whether rules are obeyed */
    int wait_first = leader >= 0 && count <= MOST_VOTERS && p->cases.radial;
    if (score >= BIG)
        return BIG;
    const double *price = prices_under(p, leader);
    for (int round = 0; round < limit; round++) {
        for (int c = 0; c < padded; c++) {
            first[c] = second[c] = INT_MAX;
            owner[c] = 0;
            w1[c] = w2[c] = 0.0;
        }
        for (int i = 0; i < count; i++) {
            const int *r = p->rank + (size_t)replicas[i] * padded;
            const double *w = paid_costs(x) + (size_t)replicas[i] * padded;
            for (int c = 0; c < p->clients; c++)
                if (r[c] < first[c]) {
                    second[c] = first[c];
                    w2[c] = w1[c];
                    first[c] = r[c];
                    w1[c] = w[c];
                    owner[c] = i;
                } else if (r[c] < second[c]) {
                    second[c] = r[c];
                    w2[c] = w[c];
                }
        }
        for (int i = 0; i < count; i++)
            loss[i] = price ? -price[replicas[i]] : 0.0;
        for (int c = 0; c < p->clients; c++)
            loss[owner[c]] += w2[c] - w1[c];
        for (int i = 0; i < count; i++) {
            floor[i] = 0.0;
            if (!wait_first)
                continue;
            rest_of_balls(x, leader, replicas, count, i, rest[i]);
            floor[i] = wait_with_site(x, leader, rest[i], leader); /* no site is nearer */
        }
        count_set(x, replicas, count);
        double best = -1e-12 * score, best_score = score;
        int best_in = -1, best_out = -1;
        for (int s = 0; s < sites; s++) {
            int member = !p->may_hold[s] || !x->view.costed[s];
            for (int i = 0; i < count && !member; i++)
                member = replicas[i] == s;
            if (member)
                continue;
            const int *r = p->rank + (size_t)s * padded;
            const double *w = paid_costs(x) + (size_t)s * padded;
            double gain = price ? price[s] : 0.0;
            for (int i = 0; i < count; i++)
                extra[i] = 0.0;
            int within = 0;
            for (int c = 0; c < p->clients; c++) { /* no branch: it would be mispredicted */
                served[within] = c;
                within += r[c] < second[c];
            }
            for (int k = 0; k < within; k++) {
                int c = served[k];
                double nearer = w1[c] - w2[c], other = w[c] - w2[c], less = w[c] - w1[c];
                gain += r[c] < first[c] ? less : 0.0;
                extra[owner[c]] += r[c] < first[c] ? nearer : other;
            }
            for (int i = 0; i < count; i++) {
                int out = replicas[i];
                double delta = gain + loss[i] + extra[i];
                if (out == leader || p->must_hold[out])
                    continue;
                if (delta + p->quorum_weight * (floor[i] - radius) >= best)
                    continue;
                if (p->quorum_weight > 0.0 || !p->plain_voters || p->replica_families.rules || leader < 0) {
                    double q = radius;
                    int ok, same = p->plain_voters && p->scenarios == 1 && !p->cases.count && leader >= 0 &&
                                   distance_of(x, leader, out) > radius && distance_of(x, leader, s) >= radius; /* neither is waited for */
                    replicas[i] = s;
                    ok = wait_first || swap_obeys(x, out, s, count);
                    if (wait_first)
                        q = wait_with_site(x, leader, rest[i], s);
                    else if (ok && same)
                        ok = count >= p->voters;
                    else if (ok && leader >= 0)
                        ok = quorum_radius(x, leader, replicas, count, &q);
                    else if (ok)
                        ok = any_leader(x, replicas, count) >= 0;
                    delta += p->quorum_weight * (q - radius);
                    if (ok && delta < best && wait_first)
                        ok = swap_obeys(x, out, s, count);
                    replicas[i] = out;
                    if (!ok)
                        continue;
                }
                if (delta < best) {
                    best = delta;
                    best_in = s;
                    best_out = i;
                }
            }
        }
        x->effort.work += 2.0 * (double)sites * padded;
        if (best_in < 0 || must_pause(x))
            break;
        int old = replicas[best_out];
        replicas[best_out] = best_in;
        double changed = score_of(x, replicas, count, &radius);
        if (changed >= best_score) {      /* rounding only */
            replicas[best_out] = old;
            break;
        }
        score = changed;
    }
    offer_incumbent(x, score, replicas, count);
    return score;
}

/* A feasible set for the current leader, closest-first and cheapest-first; its size, or 0. */
static int first_feasible_set(context *x, int *replicas)
{
    const problem *p = &x->p;
    int count = 0, leader = x->view.leader, votes = 0, sites = p->sites;
    double radius;
    int *vote = x->inner.selected, *counts = x->scratch.family_counts;
    for (int s = 0; s < sites; s++)
        if (s == leader || p->must_hold[s]) {
            replicas[count++] = s;
            if (s == leader || p->must_vote[s])
                vote[votes++] = s;
        }
    if (count > p->replicas_max)
        return 0;
    for (int pass = 0; pass < 2; pass++)
        for (int t = 0; t < sites; t++) {
            int s = leader < 0 ? t : x->view.near_order[t], member = 0;
            int enough = pass == 0 ? votes >= p->voters
                                   : count >= p->replicas_min && count >= p->voters &&
                                         sites_obey(&p->replica_families, replicas, count, counts);
            if (enough || (count >= p->replicas_max && pass == 1))
                break;
            for (int i = 0; i < count; i++)
                member |= replicas[i] == s;
            if (pass == 0) {
                int already = 0;
                for (int i = 0; i < votes; i++)
                    already |= vote[i] == s;
                if (already || !p->may_vote[s] || (!member && count >= p->replicas_max))
                    continue;
                vote[votes] = s;
                if (!sites_fit(&p->voter_families, vote, votes + 1, p->voters, counts))
                    continue;
            }
            if (!member) {
                if (!p->may_hold[s])
                    continue;
                replicas[count] = s;
                if (!sites_fit(&p->replica_families, replicas, count + 1, p->replicas_max, counts))
                    continue;
                count++;
            }
            if (pass == 0)
                votes++;
        }
    return score_of(x, replicas, count, &radius) < BIG ? count : 0;
}

/* The set to start from under the current leader: the incumbent's replicas where they can be adapted. */
int start_set(context *x, int *set)
{
    int count = x->best.count, leader = x->view.leader, member = leader < 0;
    double radius, least = BIG;
    if (x->best.score < BIG) {
        memcpy(set, x->best.replicas, (size_t)count * sizeof(int));
        for (int i = 0; i < count; i++)
            member |= set[i] == leader;
        if (member)
            return count;
        int best = -1;
        for (int i = 0; i < count; i++) {
            int old = set[i];
            if (x->p.must_hold[old])
                continue;
            set[i] = leader;
            double score = score_of(x, set, count, &radius);
            set[i] = old;
            if (score < least) {
                least = score;
                best = i;
            }
        }
        if (best >= 0) {
            set[best] = leader;
            return count;
        }
    }
    return first_feasible_set(x, set);
}

/* Start multipliers: half way between the cheapest and the second cheapest replica of each client. */
void start_multipliers(context *x, tree_node *f, const int *set, int count)
{
    const problem *p = &x->p;
    for (int c = 0; c < p->clients; c++) {
        double one = BIG, two = BIG;
        for (int i = 0; i < count; i++) {
            double w = x->view.costs[(size_t)set[i] * p->padded + c];
            if (w < one) {
                two = one;
                one = w;
            } else if (w < two)
                two = w;
        }
        f->u[c] = two < BIG ? one + 0.5 * (two - one) : one;
        if (f->u[c] > f->fixed_cost[c])
            f->u[c] = f->fixed_cost[c];
    }
}
