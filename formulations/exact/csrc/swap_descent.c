/* Primal side: exact scores, swap descent with best and second-best bookkeeping, a first feasible set. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

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
    if (p->price) {
        const double *price = p->price + (size_t)(x->view.leader < 0 ? 0 : x->view.leader) * p->sites;
        for (int i = 0; i < count; i++)
            total += price[replicas[i]];
    }
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

/* Best-improvement swaps from `replicas` (changed in place) under the current leader.
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
    set_rest rest[MOST_VOTERS];
    int wait_first = leader >= 0 && tells_rest(x, count); /* quicker to find than whether rules are obeyed */
    if (score >= BIG)
        return BIG;
    const double *price =
        p->price ? p->price + (size_t)(leader < 0 ? 0 : leader) * sites : NULL;
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
            rest_of_set(x, leader, replicas, count, i, &rest[i]);
            floor[i] = least_wait_of_rest(x, leader, &rest[i]);
        }
        count_set(x, replicas, count);
        double best = -1e-12 * score, best_score = score;
        int best_in = -1, best_out = -1;
        for (int s = 0; s < sites; s++) {
            int member = !p->may_hold[s];
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
                        q = wait_with_replica(x, leader, &rest[i], s);
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
int first_feasible_set(context *x, int *replicas)
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
