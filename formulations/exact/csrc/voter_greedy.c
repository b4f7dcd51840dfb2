/* The choice of voters for a leader and a set of replicas: the closest-first greedy over the matroid of a family. */
#include "kernel.h"

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
        for (int i = 0; i < count; i++) {
            double d = distance[replicas[i]];
            if (replicas[i] == leader)
                d = 0.0;
            int at = found < m ? found : m;
            while (at > 0 && near[at - 1] > d) {
                if (at < m)
                    near[at] = near[at - 1];
                at--;
            }
            if (at < m)
                near[at] = d;
            if (found < m)
                found++;
        }
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
        for (int i = 0; i < number; i++) {
            int at = found;
            for (; at > 0 && near[at - 1] > d[set[i]]; at--)
                if (at < m)
                    near[at] = near[at - 1];
            if (at < m)
                near[at] = d[set[i]];
            found += found < m;
        }
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
int quorum_radius(context *x, int leader, const int *replicas, int count, double *radius)
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
int any_leader(context *x, const int *replicas, int count)
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
