/* The cheapest case of the waits of a leader where every case is made of balls around it: so many votes within one radius,
 * and no replica beyond another. One pass over the sites, nearest first, bounds the cases of each outer radius; the inner
 * radii are scanned for those that may be cheapest, as for a quorum of votes alone. */
#include <string.h>

#include "greedy_choice.h"

/* Bits of a wait's scope that some site has, and those that all have, of the sites that may hold a replica, under any leader. */
static void bits_of_scope(const problem *p, const leader_wait *wait, unsigned *some, unsigned *all)
{
    size_t S = (size_t)p->sites;
    unsigned char any = 0, every = 0xff;
    for (size_t leader = 0; leader < S; leader++)
        for (size_t s = 0; s < S && p->may_lead[leader]; s++) {
            unsigned char out = p->may_hold[s] ? 0 : 0xff, bits = wait->scope[leader * S + s];
            any |= (unsigned char)(bits & ~out);
            every &= (unsigned char)(bits | out);
        }
    *some = any;
    *all = every;
}

/* Note whether waits are those of balls, for votes, and for all replicas or those of some sites, and which is which. */
void find_balls(problem *p)
{
    wait_cases *cases = &p->cases;
    cases->radial = cases->count > 0 && p->plain_voters && p->voters <= MOST_VOTERS;
    cases->single = cases->balls = 1;
    cases->counting = cases->voting = cases->barring = -1;
    for (int w = 0; w < cases->count && cases->radial; w++) {
        leader_wait *wait = &cases->wait[w];
        unsigned some, all;
        bits_of_scope(p, wait, &some, &all);
        int bars = some & FORBIDDEN, *place = bars ? &cases->barring : &cases->voting;
        wait->votes = wait->blocks ? wait->least[0] : 0;
        cases->radial = wait->sizes == 1 && wait->blocks <= 1 && wait->votes <= p->voters;
        cases->radial &= wait->blocks == 0 || (wait->near == 1 && all & 1);
        cases->single &= (!bars || cases->barring < 0) && (wait->votes == 0 || cases->counting < 0);
        cases->balls &= *place < 0 && !((some ^ all) & FORBIDDEN);
        *place = w;
        if (wait->votes > 0)
            cases->counting = w;
    }
    cases->single &= cases->radial;
    cases->balls &= cases->radial && p->sites <= MOST_BALL_SITES;
}

/* Find what all replicas but the one at place `without` tell of each wait of balls. */
void rest_of_balls(const context *x, int leader, const int *replicas, int count, int without, ball_rest *rest)
{
    const wait_cases *cases = &x->p.cases;
    size_t row = (size_t)leader * (size_t)x->p.sites;
    const double *distance = x->p.site_rtt + row;
    double near[MOST_VOTERS];
    int votes = 0, found = 0;
    for (int w = 0; w < cases->count; w++) {
        votes = cases->wait[w].votes > votes ? cases->wait[w].votes : votes;
        rest[w].far = 0.0;
    }
    for (int i = 0; i < count; i++) {
        if (i == without)
            continue;
        double d = replicas[i] == leader ? 0.0 : distance[replicas[i]];
        for (int w = 0; w < cases->count; w++)
            if (d > rest[w].far && cases->wait[w].scope[row + (size_t)replicas[i]] & FORBIDDEN)
                rest[w].far = d;
        found = insert_key(near, found, votes, d);
    }
    for (int w = 0; w < cases->count; w++) {
        int asked = cases->wait[w].votes;
        rest[w].least = asked < 2 ? 0.0 : found < asked - 1 ? BIG : near[asked - 2];
        rest[w].most = asked < 1 ? 0.0 : found < asked ? BIG : near[asked - 1];
    }
}

/* Wait of a leader over the replicas of `rest` and one more. */
double wait_with_site(const context *x, int leader, const ball_rest *rest, int site)
{
    const wait_cases *cases = &x->p.cases;
    size_t at = (size_t)leader * (size_t)x->p.sites + (size_t)site;
    double d = distance_of(x, leader, site), length[MOST_WAITS] = {0.0}, wait = 0.0;
    for (int w = 0; w < cases->count; w++) {
        double vote = d < rest[w].most ? d : rest[w].most; /* the vote that is waited for is one of three */
        vote = vote > rest[w].least ? vote : rest[w].least;
        length[w] = d > rest[w].far && cases->wait[w].scope[at] & FORBIDDEN ? d : rest[w].far;
        if (cases->wait[w].votes > 0 && vote > length[w])
            length[w] = vote;
    }
    if (cases->shorter >= 0 && length[1 - cases->shorter] < length[cases->shorter])
        length[1 - cases->shorter] = length[cases->shorter]; /* it has the clauses of the shorter one too */
    for (int w = 0; w < cases->count; w++)
        wait += cases->wait[w].rounds * length[w];
    return wait;
}

/* Wait of a leader over a complete replica set, where waits are those of balls. */
double wait_of_balls(const context *x, int leader, const int *replicas, int count)
{
    ball_rest rest[MOST_WAITS];
    rest_of_balls(x, leader, replicas, count, 0, rest);
    return wait_with_site(x, leader, rest, replicas[0]);
}

/* 1 when a wait of the present leader leaves no replica at a site, which is farther than its radius. */
int is_barred(const context *x, int site, double reach)
{
    const unsigned char *scope = x->p.cases.wait[x->p.cases.barring].scope;
    size_t at = (size_t)x->view.leader * (size_t)x->p.sites + (size_t)site;
    return distance_of(x, x->view.leader, site) > reach && scope[at] & FORBIDDEN;
}

/* Greedy for "so many votes within one radius, and no replica barred beyond another, with `lo`..`hi` more sites", as that of
 * a case. The positions are in `chosen`; returns how many, or -1 when that is impossible. */
int cheapest_of_balls(const context *x, const tree_node *f, const keyed *sorted, int n, double within, double reach, int lo,
                      int hi, double *value, double *top, double *next, int *chosen)
{
    const wait_cases *cases = &x->p.cases;
    size_t row = (size_t)x->view.leader * (size_t)x->p.sites;
    const double *distance = x->p.site_rtt + row;
    const unsigned char *scope = cases->barring < 0 ? NULL : cases->wait[cases->barring].scope + row;
    int open = cases->counting < 0 ? 0 : cases->wait[cases->counting].votes;
    for (int i = 0; i < f->in_count; i++) {
        double d = distance_of(x, x->view.leader, f->in_site[i]);
        if (scope && d > reach && scope[f->in_site[i]] & FORBIDDEN)
            return -1;
        open -= d <= within;
    }
    open = open > 0 ? open : 0;
    if (open > hi)
        return -1;
    greedy_choice g = {.chosen = chosen, .least = lo > open ? lo - open : 0, .most = hi - open, .top = -BIG, .next = BIG};
    for (int i = 0; i < n; i++) {
        int site = f->free_site[sorted[i].position];
        double d = distance[site];
        int able = !scope || d <= reach || !(scope[site] & FORBIDDEN), needed = able && open > 0 && d <= within;
        open -= needed;
        if (!offer_site(&g, sorted[i], able, needed) && able && open == 0)
            break; /* no later site is taken either */
    }
    *value = g.value;
    *top = g.top;
    *next = g.next;
    return open > 0 || g.least > 0 ? -1 : g.size;
}

/* A site that is in or free, by distance from the leader. */
typedef struct {
    double distance, rho;
    int position;              /* -1: it is in */
} ball_site;

/* All that one outer radius leaves. */
typedef struct {
    double radius, price, floor; /* floor: price and least sum of sites, with the shortest inner radius */
    int end;                   /* the sites within the radius are those before it */
} outer_ball;

/* All that one inner radius asks for, whatever the outer one. */
typedef struct {
    double distance, sum, top; /* of the cheapest sites that it needs */
    int end, take, *place;     /* the sites within it are those before `end`; which of them it needs */
} inner_ball;

typedef struct {
    context *x;
    const ball_site *site;
    const outer_ball *outer;
    inner_ball *inner;         /* from the shortest radius on */
    int inner_count;
    int lo, hi, votes, all;
    double rounds, limit;      /* of the inner wait; what costs as much is of no use */
    double beyond;             /* least reduced cost of a free site outside the outer radius */
    int *list, *chosen;        /* scratch; `list`: the cheapest sites within the outer radius */
    double best;
    int count;
} ball_search;

/* Put a key among the `limit` smallest, ascending, of which there are `found`; returns how many there are then. */
static int insert_site(double *key, int *place, int found, int limit, double new_key, int new_place)
{
    if (found == limit && (limit == 0 || new_key >= key[found - 1]))
        return found;
    int at = found < limit ? found++ : limit - 1;
    for (; at > 0 && key[at - 1] > new_key; at--) {
        key[at] = key[at - 1];
        place[at] = place[at - 1];
    }
    key[at] = new_key;
    place[at] = new_place;
    return found;
}

/* Keep a case with the sites in s->chosen. */
static void keep_case(ball_search *s, double price, double sum, double top, double next, int size)
{
    context *x = s->x;
    double value = price + sum;
    if (s->all && value < s->limit) {
        radius_minimum *a = &x->inner.radii[x->inner.radius_count++];
        clear_answer(a);
        a->value = a->base[0] = value;
        a->top[0] = top;
        a->next[0] = next < s->beyond ? next : s->beyond;
        a->size[0] = size;
        a->reach = s->outer->radius;
    }
    if (value < s->best) {
        s->best = value;
        s->count = size;
        memcpy(x->inner.selected, s->chosen, (size_t)size * sizeof(int));
        if (!s->all)
            s->limit = value;
    }
}

/* List the inner radii that some outer radius may go with: those with other cheapest sites than the radius before. */
static void list_inner(ball_search *s, int sites)
{
    const ball_site *site = s->site;
    double *key = s->x->scratch.key;
    int *inside = s->x->scratch.order, *room = s->x->inner.places, pool = 0, changed = 1, need = s->votes;
    s->inner_count = 0;
    for (int t = 0; t < sites;) {
        double d = site[t].distance;
        for (; t < sites && site[t].distance == d; t++)
            if (site[t].position < 0) {
                need--;
                changed = 1;
            } else if (pool < need || (need > 0 && site[t].rho < key[need - 1])) {
                pool = insert_site(key, inside, pool, s->votes, site[t].rho, t);
                changed = 1;
            }
        if (pool < need || !changed) /* else it is dearer than before, with the same sites */
            continue;
        changed = 0;
        inner_ball *one = &s->inner[s->inner_count];
        *one = (inner_ball){.distance = d, .sum = 0.0, .top = -BIG, .end = t, .take = need > 0 ? need : 0, .place = room};
        if (one->take > s->hi)
            continue;
        for (int i = 0; i < one->take; i++) {
            *room++ = inside[i];
            one->sum += key[i];
            one->top = key[i] > one->top ? key[i] : one->top;
        }
        s->inner_count++;
    }
}

/* Keep the cheapest sites within a radius, one more of them than may be chosen. */
static int keep_cheapest(const ball_search *s, int from, int to, int kept)
{
    for (int t = from; t < to; t++)
        if (s->site[t].position >= 0)
            kept = insert_site(s->x->scratch.key, s->list, kept, s->hi + 1, s->site[t].rho, t);
    return kept;
}

/* Look at the cases of one outer radius, from the shortest inner radius on. `kept`: how many of its cheapest sites are listed. */
static void scan_ball(ball_search *s, int kept)
{
    const ball_site *site = s->site;
    const double *key = s->x->scratch.key;
    double loose = 0.0;
    int loose_size = 0;
    while (loose_size < s->hi && loose_size < kept && (loose_size < s->lo || key[loose_size] < 0.0))
        loose += key[loose_size++];
    for (const inner_ball *one = s->inner; one < s->inner + s->inner_count && one->end <= s->outer->end; one++) {
        double price = s->outer->price + s->rounds * one->distance, sum = one->sum, top = one->top, next = BIG;
        int size = 0, within = 0;
        if (price + loose >= s->limit)
            return;
        for (; size < one->take; size++)
            s->chosen[size] = site[one->place[size]].position;
        for (int i = 0; i < kept; i++) {
            int inner = 0;
            for (int k = 0; k < one->take; k++)
                inner |= one->place[k] == s->list[i];
            if (inner)
                continue;
            if (size >= s->hi || (size >= s->lo && key[i] >= 0.0)) {
                next = key[i];
                break;
            }
            s->chosen[size++] = site[s->list[i]].position;
            sum += key[i];
            top = key[i] > top ? key[i] : top;
        }
        if (size < s->lo)
            continue;
        keep_case(s, price, sum, top, next, size);
        for (int i = 0; i < loose_size; i++)
            within += s->list[i] < one->end;
        if (size == loose_size && within >= one->take) /* a longer radius leaves no cheaper sites */
            return;
    }
}

/* List the outer radii with what they cost at least; returns how many. */
static int list_outer(const ball_search *s, int sites, double least, double nearest, double rounds, outer_ball *out)
{
    const ball_site *site = s->site;
    double *key = s->x->scratch.key, loose = 0.0;
    int number = 0, kept = 0, changed = 1;
    for (int t = 0; t < sites;) {
        double d = site[t].distance;
        for (; t < sites && site[t].distance == d; t++)
            if (site[t].position >= 0 && (kept < s->hi || (kept > 0 && site[t].rho < key[kept - 1]))) {
                kept = insert_site(key, s->list, kept, s->hi, site[t].rho, t);
                changed = 1;
            }
        if ((t < sites && site[t].distance <= least) || kept < s->lo)
            continue;
        if (changed) {
            loose = 0.0;
            for (int i = 0; i < kept && (i < s->lo || key[i] < 0.0); i++)
                loose += key[i];
            changed = 0;
        } else if (number && !s->all) /* dearer, with no cheaper sites */
            continue;
        outer_ball *one = &out[number++];
        one->radius = d > least ? d : least;
        one->price = rounds * one->radius;
        one->floor = one->price + s->rounds * nearest + loose;
        one->end = t;
    }
    return number;
}

/* The cheapest case for the reduced costs in x->inner.rho, as inner_minimum returns it. */
double minimum_over_balls(context *x, const tree_node *f, int lo, int hi, int all, double slack, int *count)
{
    const wait_cases *cases = &x->p.cases;
    int leader = x->view.leader, voting = cases->voting, barring = cases->barring, number = 0, first = 0, sites = 0;
    ball_site site[MOST_BALL_SITES];
    outer_ball outer[MOST_BALL_SITES];
    inner_ball inner[MOST_BALL_SITES];
    double least = 0.0, nearest = 0.0;
    ball_search s = {.x = x, .site = site, .inner = inner, .lo = lo, .hi = hi, .all = all, .limit = all ? slack : BIG, .best = BIG};
    s.votes = voting < 0 ? 0 : cases->wait[voting].votes;
    s.rounds = voting < 0 ? 0.0 : cases->wait[voting].rounds;
    s.list = x->scratch.pick;
    s.chosen = x->inner.selected + 2 * x->p.sites;
    int *where = x->scratch.sites;
    for (int i = 0; i < f->free_count; i++)
        where[f->free_site[i]] = i;
    for (int t = 0; t < x->p.sites; t++) {
        int one = x->view.near_order[t];
        if (f->state[one] == OUT)
            continue;
        int in = f->state[one] == IN;
        site[sites].distance = distance_of(x, leader, one);
        site[sites].position = in ? -1 : where[one];
        site[sites].rho = in ? 0.0 : x->inner.rho[where[one]];
        least = in && barring >= 0 ? site[sites].distance : least;
        sites++;
        nearest = sites == s.votes ? site[sites - 1].distance : nearest;
    }
    if (barring >= 0) {
        const leader_wait *wait = &cases->wait[barring];
        double from = wait->radius[wait->start[leader] + x->inner.from[barring]];
        number = list_outer(&s, sites, least > from ? least : from, nearest, wait->rounds, outer);
    } else {
        outer[number++] = (outer_ball){BIG, 0.0, -BIG, sites};
    }
    for (int k = 1; k < number; k++)
        first = outer[k].floor < outer[first].floor ? k : first;
    s.beyond = BIG;
    if (number > 0)
        list_inner(&s, sites);
    if (number > 0 && !all) { /* the most promising one first */
        s.outer = &outer[first];
        scan_ball(&s, keep_cheapest(&s, 0, outer[first].end, 0));
    }
    for (int k = 0, before = 0, kept = 0; k < number && !all; before = outer[k++].end) {
        kept = keep_cheapest(&s, before, outer[k].end, kept);
        s.outer = &outer[k];
        if (k != first && outer[k].floor < s.limit)
            scan_ball(&s, kept);
    }
    for (int k = number - 1, behind = sites; k >= 0 && all; k--) {
        for (; behind > outer[k].end; behind--)
            if (site[behind - 1].position >= 0 && site[behind - 1].rho < s.beyond)
                s.beyond = site[behind - 1].rho;
        s.outer = &outer[k];
        if (outer[k].floor < s.limit)
            scan_ball(&s, keep_cheapest(&s, 0, outer[k].end, 0));
    }
    *count = s.count;
    return s.best;
}
