/* The inner problem where RTTs vary by interval: the wait of a leader is a sum of order statistics, one of each interval.
 *
 * A set of replicas R waits at least W(R) = sum_k D_k q_k(R), q_k the m-th least RTT of interval k. A search finds the least of
 * reduced costs + W(R): a node of it holds sites that are in R and sites that are not. With A the other sites and those in R,
 * W(A) and the cheapest completion bound the node. It is done when the m nearest sites of A in every interval are in R: these
 * decide W(R) then. Else one of them is put in, and left out. Where these sites are more than there are voters, one of them has
 * no vote: W rises by the least that this costs (Lemma 2 of placement/evaluation/waits/wait_floors.py), and the next site of
 * each interval is decided too.
 *
 * A search that becomes too long, or rules, leave the floors of wait_floors.py, here those of the sites that the node of the
 * tree leaves: they take the place of distances. */
#include <string.h>

#include "kernel.h"

#define DOWN(p) (1.0 - 4.4408920985006262e-16 * ((p)->scenarios + 2)) /* waits are rounded down, unless all are whole */

/* Wait for the nearest sites of each interval, and the next of these sites to decide. */
typedef struct {
    double least;              /* W of all sites that are left */
    int undecided;             /* site among the nearest that is neither in nor out, of the least reduced cost; -1: none */
} near_waits;

/* Sort the sites by distance from the leader under work in each interval. */
static void sort_intervals(context *x)
{
    const problem *p = &x->p;
    size_t S = (size_t)p->sites, row = (size_t)x->view.leader * S;
    keyed *sorted = (keyed *)x->scratch.key;
    if (x->inner.ordered_leader == x->view.leader)
        return;
    x->inner.ordered_leader = x->view.leader;
    for (size_t k = 0; k < (size_t)p->scenarios; k++) {
        const double *d = p->scenario_rtt + k * S * S + row;
        for (int s = 0; s < p->sites; s++)
            sorted[s] = (keyed){s == x->view.leader ? 0.0 : d[s], s};
        merge_runs(sorted, p->sites, sorted + p->sites);
        for (size_t t = 0; t < S; t++)
            x->inner.interval_order[k * S + t] = sorted[t].position;
    }
}

/* D times the RTT of one interval from the leader under work to a site. */
static double interval_wait(const context *x, size_t k, int site)
{
    size_t S = (size_t)x->p.sites;
    if (site == x->view.leader)
        return 0.0;
    return x->p.scenario_weight[k] * x->p.scenario_rtt[k * S * S + (size_t)x->view.leader * S + (size_t)site];
}

/* List the sites of a state that may vote, nearest first in each interval; return their number. */
static int list_voters(context *x, const unsigned char *state)
{
    const problem *p = &x->p;
    size_t S = (size_t)p->sites;
    int left = 0;
    sort_intervals(x);
    for (size_t k = 0; k < (size_t)p->scenarios; k++) {
        left = 0;
        for (size_t t = 0; t < S; t++) {
            int s = x->inner.interval_order[k * S + t];
            if (state[s] == OUT || !p->may_vote[s])
                continue;
            x->inner.voter[k * S + (size_t)left] = s;
            x->inner.voter_wait[k * S + (size_t)left++] = interval_wait(x, k, s);
        }
    }
    return left;
}

/* Look at the m nearest of the listed sites that are not out, in each interval; 0 when there are fewer. */
static int look_at_nearest(const context *x, const unsigned char *state, int listed, const int *where, near_waits *found)
{
    const double *rho = x->inner.rho;
    size_t S = (size_t)x->p.sites;
    double least = BIG;
    found->least = 0.0;
    found->undecided = -1;
    for (size_t k = 0; k < (size_t)x->p.scenarios; k++) {
        const int *voter = x->inner.voter + k * S;
        int t = 0;
        for (int votes = x->p.quorum; votes > 0; t++) {
            if (t == listed)
                return 0;
            int s = voter[t];
            if (state[s] == OUT)
                continue;
            votes--;
            if (state[s] == FREE && rho[where[s]] < least) {
                least = rho[where[s]];
                found->undecided = s;
            }
        }
        found->least += x->inner.voter_wait[k * S + (size_t)t - 1];
    }
    return 1;
}

/* Least rise of W where the m nearest of the listed sites that are not out cannot all vote. `undecided`: a site next
 * to these that is neither in nor out, where it matters; -1: none. */
static double missed_wait(context *x, const unsigned char *state, int listed, int *undecided)
{
    size_t S = (size_t)x->p.sites;
    int number = 0, *member = x->inner.members;
    double *rise = x->inner.missed, least = BIG;
    *undecided = -1;
    for (size_t k = 0; k < (size_t)x->p.scenarios; k++) {
        const int *voter = x->inner.voter + k * S;
        const double *wait = x->inner.voter_wait + k * S;
        int last = 0, next;
        for (int votes = 0; last < listed; last++)
            if (state[voter[last]] != OUT && ++votes == x->p.quorum)
                break;
        if (last == listed)
            return 0.0;
        for (next = last + 1; next < listed && state[voter[next]] == OUT;)
            next++;
        double longer = next < listed ? wait[next] - wait[last] : 0.0;
        if (next < listed && state[voter[next]] == FREE)
            *undecided = voter[next];
        for (int t = 0; t <= last; t++) {
            int at = 0;
            if (state[voter[t]] == OUT)
                continue;
            while (at < number && member[at] != voter[t])
                at++;
            if (at == number) {
                member[number] = voter[t];
                rise[number++] = 0.0;
            }
            rise[at] += longer;
        }
    }
    if (number <= x->p.voters) {
        *undecided = -1;
        return 0.0;
    }
    for (int at = 0; at < number; at++)
        least = rise[at] < least ? rise[at] : least;
    return least;
}

static double rounded_down(const problem *p, double wait)
{
    return p->granularity > 0.0 ? wait : wait * DOWN(p);
}

/* Set x->inner.wait: what the leader under work waits for each site, at least, in the state of a node. */
void find_waits(context *x, const tree_node *f)
{
    const problem *p = &x->p;
    size_t S = (size_t)p->sites;
    double *floor = x->inner.floors, wait = 0.0;
    int m = p->quorum, next;
    x->inner.wait = p->site_rtt + (size_t)x->view.leader * S;
    if (!has_interval_waits(x))
        return;
    if (x->inner.floors_leader == x->view.leader && !memcmp(x->inner.floors_state, f->state, S)) {
        x->inner.wait = floor;
        return;
    }
    int listed = x->inner.listed = list_voters(x, f->state);
    x->inner.floors_leader = -2;
    if (listed < m)
        return;
    for (size_t s = 0; s < S; s++)
        floor[s] = 0.0;
    for (size_t k = 0; k < (size_t)p->scenarios; k++) {
        double least = x->inner.voter_wait[k * S + (size_t)m - 1], rest = BIG;
        wait += least;
        for (size_t t = S; t-- > 0;) {
            int s = x->view.near_order[t];
            if (f->state[s] != OUT && p->may_vote[s] && interval_wait(x, k, s) < rest)
                rest = interval_wait(x, k, s);
            floor[s] += rest == BIG || rest < least ? least : rest;
        }
    }
    wait += missed_wait(x, f->state, listed, &next);
    for (size_t s = 0; s < S; s++)
        floor[s] = rounded_down(p, floor[s] > wait ? floor[s] : wait);
    memcpy(x->inner.floors_state, f->state, S);
    x->inner.floors_leader = x->view.leader;
    x->inner.wait = floor;
}

/* A search for the sites near the leader. */
typedef struct {
    const tree_node *f;
    int lo, hi, all, nodes, listed; /* sites to add; 1: all answers below the slack are kept; nodes that may still come */
    double slack, best;
    const keyed *sorted;       /* the free sites by reduced cost */
    int number, *where, *count;
    unsigned char *state;      /* sites, as of a node of the tree */
    int taken;                 /* sites put in ... */
    double cost;               /* ... and the sum of their reduced costs */
} near_search;

static void search_near_sites(context *x, near_search *s)
{
    near_waits found;
    int size = s->taken, *chosen = x->inner.selected + 2 * x->p.sites;
    double value = s->cost, top = -BIG, next = BIG;
    if (s->nodes-- <= 0 || !look_at_nearest(x, s->state, s->listed, s->where, &found))
        return;
    for (int i = 0; i < s->number; i++) {
        int position = s->sorted[i].position;
        double key = s->sorted[i].key;
        if (s->state[s->f->free_site[position]] != FREE)
            continue;
        if (size < s->hi && (size < s->lo || key < 0.0)) {
            chosen[size++] = position;
            value += key;
            top = key;
        } else {
            next = key;
            break;
        }
    }
    value += rounded_down(&x->p, found.least);
    if (size < s->lo || value >= (s->all ? s->slack : s->best))
        return;
    if (found.undecided < 0) {
        value += rounded_down(&x->p, missed_wait(x, s->state, s->listed, &found.undecided));
        if (value >= (s->all ? s->slack : s->best))
            return;
    }
    if (found.undecided < 0) {
        if (s->all) {
            radius_minimum *a = &x->inner.radii[x->inner.radius_count];
            if (x->inner.radius_count == x->p.sites) {
                s->nodes = -1;
                return;
            }
            clear_answer(a);
            a->value = a->base[0] = value;
            a->top[0] = top;
            a->next[0] = next;
            a->size[0] = size;
            unsigned char *decided = x->inner.decided + (size_t)x->inner.radius_count++ * (size_t)x->p.sites;
            memcpy(decided, s->state, (size_t)x->p.sites);
            a->decided = decided;
        }
        if (value < s->best) {
            s->best = value;
            *s->count = size;
            memcpy(x->inner.selected, chosen, (size_t)size * sizeof(int));
        }
        return;
    }
    int site = found.undecided, position = s->where[site];
    if (s->taken < s->hi) {
        s->state[site] = IN;
        chosen[s->taken++] = position;
        s->cost += x->inner.rho[position];
        search_near_sites(x, s);
        s->taken--;
        s->cost -= x->inner.rho[position];
    }
    s->state[site] = OUT;
    search_near_sites(x, s);
    s->state[site] = FREE;
}

/* Lower bound of the wait of the leader for the sites that are selected. */
static double wait_of_selected(context *x, const tree_node *f, int count, int listed, unsigned char *state)
{
    near_waits found;
    int next;
    memset(state, OUT, (size_t)x->p.sites);
    for (int i = 0; i < f->in_count; i++)
        state[f->in_site[i]] = IN;
    for (int i = 0; i < count; i++)
        state[f->free_site[x->inner.selected[i]]] = IN;
    if (!look_at_nearest(x, state, listed, NULL, &found))
        return BIG;
    return rounded_down(&x->p, found.least) + rounded_down(&x->p, missed_wait(x, state, listed, &next));
}

/* Raise an inner minimum of floors of the waits, whose sites are selected, to that of the waits themselves, where that is worth
 * a search and the search is short.  0: the answers of the radii are lost for a search that became too long. */
int raise_by_intervals(context *x, const tree_node *f, int lo, int hi, int all, double slack, int *count, double *least)
{
    int *where = x->scratch.sites;
    keyed *sorted = (keyed *)x->scratch.key;
    near_search s = {.f = f, .lo = lo, .hi = hi, .all = all, .nodes = INTERVAL_NODES, .slack = slack, .best = BIG,
                     .sorted = sorted, .number = f->free_count, .where = where, .count = count, .state = x->inner.blocks};
    double selected = 0.0, closing = x->inner.closing;
    x->inner.closing = BIG;
    if (*least >= closing || closing >= BIG || (!all && !x->inner.searches))
        return 1;
    for (int i = 0; i < *count; i++)
        selected += x->inner.rho[x->inner.selected[i]];
    s.listed = x->inner.listed; /* by find_waits, for the floors of this state */
    /* a set that waits so long is no better than that: the search raises the minimum by no more */
    s.best = selected + wait_of_selected(x, f, *count, s.listed, s.state);
    if (s.best - *least <= x->limits.interval_gain * (closing - *least))
        return 1;
    sort_positions(x->inner.rho, f->free_count, sorted, sorted + x->p.sites);
    for (int i = 0; i < f->free_count; i++)
        where[f->free_site[i]] = i;
    memcpy(s.state, f->state, (size_t)x->p.sites);
    if (all) {
        s.best = BIG;
        x->inner.radius_count = 0;
    }
    search_near_sites(x, &s);
    x->effort.work += 20.0 * x->p.scenarios * (INTERVAL_NODES - s.nodes);
    x->inner.searches = INTERVAL_NODES - s.nodes <= INTERVAL_SHORT;
    if (s.nodes >= 0)
        *least = s.best;
    return s.nodes >= 0 || !all;
}
