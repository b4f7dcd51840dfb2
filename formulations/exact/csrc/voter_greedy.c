/* The choice of voters: the closest-first greedy over a laminar matroid, for a leader and a set of replicas. */
#include <string.h>

#include "kernel.h"

/* 1 when adding `site` keeps every level within its cap; then the counts include it. */
static int caps_add(const cap_levels *caps, int site, int *counts, int stride)
{
    for (int k = 0; k < caps->count; k++)
        if (counts[k * stride + caps->label[k][site]] >= caps->cap[k])
            return 0;
    for (int k = 0; k < caps->count; k++)
        counts[k * stride + caps->label[k][site]]++;
    return 1;
}

static void caps_clear(const cap_levels *caps, int *counts, int stride)
{
    for (int k = 0; k < caps->count; k++)
        memset(counts + k * stride, 0, (size_t)caps->labels[k] * sizeof(int));
}

/* 1 when these sites respect every cap. */
int caps_allow(const cap_levels *caps, const int *sites, int count, int *scratch)
{
    int stride = 0;
    for (int k = 0; k < caps->count; k++)
        if (caps->labels[k] > stride)
            stride = caps->labels[k];
    caps_clear(caps, scratch, stride);
    for (int i = 0; i < count; i++)
        if (!caps_add(caps, sites[i], scratch, stride))
            return 0;
    return 1;
}

/* The quorum radius of `leader` over `replicas`: 1 and the radius, or 0 when no voters can be chosen.
 *
 * Closest-first subject to the caps (contracted by the leader and the sites that must vote) makes
 * every order statistic of the chosen distances as small as it can be: a matroid's greedy basis. */
int quorum_radius(context *x, int leader, const int *replicas, int count, double *radius)
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
    int stride = p->sites, votes = 0;
    int *counts = x->scratch.cap_counts, *order = x->scratch.pick;
    caps_clear(&p->voter_caps, counts, stride);
    if (!p->may_vote[leader])
        return 0;
    for (int i = 0; i < count; i++) {
        int r = replicas[i];
        if (r == leader || p->must_vote[r]) {
            if (!caps_add(&p->voter_caps, r, counts, stride))
                return 0;
            votes++;
        }
    }
    if (votes > p->voters)
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
    int seen = 0;
    double q = 0.0;
    for (int i = 0; i < count && seen < p->quorum; i++) {
        int r = order[i];
        int fixed = r == leader || p->must_vote[r];
        if (!fixed) {
            if (votes >= p->voters || !p->may_vote[r])
                continue;
            if (!caps_add(&p->voter_caps, r, counts, stride))
                continue;
            votes++;
        }
        seen++;
        q = r == leader ? 0.0 : distance[r];
        order[i] = -1 - r;          /* counted */
    }
    if (seen < p->quorum)
        return 0;
    for (int i = 0; i < count && votes < p->voters; i++) {
        int r = order[i];
        if (r < 0 || r == leader || p->must_vote[r] || !p->may_vote[r])
            continue;
        if (caps_add(&p->voter_caps, r, counts, stride))
            votes++;
    }
    if (votes < p->voters)
        return 0;
    *radius = q;
    return 1;
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
