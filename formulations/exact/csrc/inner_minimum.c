/* The inner problem: the cheapest sites that complete a state, by sorted reduced costs. */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

/* ---- Sites by ascending keys: reduced costs, and distances from a leader. ---- */

/* Put `n` keys in order, those of equal keys as they came. */
static void sort_run(keyed *run, int n)
{
    for (int i = 1; i < n; i++) {
        keyed one = run[i];
        int at = i;
        for (; at > 0 && run[at - 1].key > one.key; at--)
            run[at] = run[at - 1];
        run[at] = one;
    }
}

/* Put `n` keys in order, those of equal keys as they came: short runs are sorted, and merged two by two. `room`: n more. */
void merge_runs(keyed *sorted, int n, keyed *room)
{
    keyed *from = sorted, *to = room;
    int width = SORTED_RUN;
    for (int first = 0; first < n; first += width)
        sort_run(from + first, n - first < width ? n - first : width);
    for (; width < n; width *= 2) {
        for (int first = 0; first < n; first += 2 * width) {
            int a = first, end_a = first + width < n ? first + width : n, b = end_a;
            int end_b = first + 2 * width < n ? first + 2 * width : n;
            for (int i = first; i < end_b; i++) { /* no branch on the keys */
                int left = a < end_a && (b >= end_b || from[a].key <= from[b].key);
                to[i] = from[left ? a : b];
                a += left;
                b += !left;
            }
        }
        keyed *kept = from;
        from = to;
        to = kept;
    }
    if (from != sorted)
        memcpy(sorted, from, (size_t)n * sizeof(keyed));
}

/* All positions by ascending key (ties: earlier position). Most keys are zero: those of sites that serve no client. `room`: n
 * more. */
void sort_positions(const double *key, int n, keyed *sorted, keyed *room)
{
    int below = 0, zero = 0, above = 0;
    for (int i = 0; i < n; i++) {
        below += key[i] < 0.0;
        zero += key[i] == 0.0;
    }
    int next_zero = below, next_above = below + zero;
    for (int i = 0, next = 0; i < n; i++)
        sorted[key[i] < 0.0 ? next++ : key[i] == 0.0 ? next_zero++ : next_above++] = (keyed){key[i], i};
    above = n - below - zero;
    merge_runs(sorted, below, room);
    merge_runs(sorted + below + zero, above, room);
}

/* ---- The inner problem: which sites minimise reduced costs plus the price of the quorum, or of a case of the waits.
 *
 * For one quorum radius it is a minimum-weight basis of a matroid; the minimum over the radii is exact
 * (no rules, everybody may vote) or the largest of up to three valid relaxations (see certificate_events.py). */

void clear_answer(radius_minimum *a)
{
    for (int k = 0; k < 3; k++) {
        a->base[k] = -BIG;
        a->top[k] = -BIG;
        a->next[k] = BIG;
        a->size[k] = 0;
    }
    a->member = a->decided = NULL;
    a->reach = BIG;
}

/* The `limit` smallest keys of the free positions, ascending (ties: earlier position). */
int smallest(const double *key, int n, int limit, int *out)
{
    int found = 0;
    for (int i = 0; i < n; i++)
        found = insert_position(key, out, found, limit, i);
    return found;
}

/* The minimum without caps, when every site may vote: exact for each radius. */
static double uncapped_minimum(context *x, tree_node *f, int lo, int hi, int all, double slack, int *count)
{
    const problem *p = &x->p;
    const double *rho = x->inner.rho;
    int n = f->free_count, leader = x->view.leader;
    if (leader >= 0)
        find_waits(x, f);
    int *list = x->scratch.pick, *inside = x->scratch.order;
    int kept = smallest(rho, n, hi + 1 < n ? hi + 1 : n, list);
    double loose = 0.0;
    int loose_size = 0;
    while (loose_size < hi && loose_size < kept && (loose_size < lo || rho[list[loose_size]] < 0.0))
        loose += rho[list[loose_size++]];
    x->inner.radius_count = 0;
    double best = BIG;
    *count = 0;
    if (leader < 0 || p->quorum_weight == 0.0 || p->quorum <= 1) {
        radius_minimum *a = &x->inner.radii[0];
        clear_answer(a);
        a->value = a->base[0] = loose;
        a->size[0] = loose_size;
        if (loose_size)
            a->top[0] = rho[list[loose_size - 1]];
        if (loose_size < kept)
            a->next[0] = rho[list[loose_size]];
        x->inner.radius_count = 1;
        memcpy(x->inner.selected, list, (size_t)loose_size * sizeof(int));
        *count = loose_size;
        return loose;
    }
    int m = p->quorum, fixed_inside = 0, pool = 0, pool_total = 0;
    /* positions of the free sites, by site */
    int *where = x->scratch.sites;
    for (int i = 0; i < n; i++)
        where[f->free_site[i]] = i;
    for (int t = 0; t < p->sites;) {
        double d = site_wait(x, x->view.near_order[t]);
        for (; t < p->sites && site_wait(x, x->view.near_order[t]) == d; t++) {
            int s = x->view.near_order[t];
            if (f->state[s] == IN)
                fixed_inside++;
            else if (f->state[s] == FREE) {
                pool = insert_position(rho, inside, pool, m, where[s]);
                pool_total++;
            }
        }
        if (fixed_inside + pool_total < m)
            continue;
        double floor_value = p->quorum_weight * d + loose;
        if (floor_value >= (all ? slack : best))
            break;
        int need = m > fixed_inside ? m - fixed_inside : 0;
        if (need > hi)
            continue;
        radius_minimum answer;
        clear_answer(&answer);
        double value = 0.0, top = -BIG, next = BIG;
        int size = 0, last = need == 0;
        int *chosen = x->inner.selected + 2 * p->sites;
        for (int i = 0; i < need; i++) {
            chosen[size++] = inside[i];
            value += rho[inside[i]];
            if (rho[inside[i]] > top)
                top = rho[inside[i]];
        }
        int skipped = 0;
        for (int i = 0; i < kept; i++) {
            int j = list[i], taken = 0;
            for (int k = 0; k < need; k++)
                taken |= inside[k] == j;
            if (taken) {
                skipped++;
                continue;
            }
            if (size < hi && (size < lo || rho[j] < 0.0)) {
                chosen[size++] = j;
                value += rho[j];
                if (rho[j] > top)
                    top = rho[j];
            } else {
                next = rho[j];
                break;
            }
        }
        if (size < lo)
            continue;
        if (!last && size == loose_size) {
            int inside_loose = 0;
            for (int i = 0; i < loose_size; i++)
                inside_loose += site_wait(x, f->free_site[list[i]]) <= d;
            last = inside_loose >= need;
        }
        answer.base[0] = answer.value = p->quorum_weight * d + value;
        answer.top[0] = top;
        answer.next[0] = next;
        answer.size[0] = size;
        if (all)
            x->inner.radii[x->inner.radius_count++] = answer;
        if (answer.value < best) {
            best = answer.value;
            memcpy(x->inner.selected, chosen, (size_t)size * sizeof(int));
            *count = size;
        }
        if (last)
            break;
    }
    return best;
}

/* Keep an answer of a relaxation when it is the first, or larger than the one so far. */
void keep_larger(radius_minimum *a, int k, double value, double top, double next, const int *chosen, int size, int *kept,
                 int *kept_count)
{
    if (value <= a->base[k])
        return;
    a->base[k] = value;
    a->top[k] = top;
    a->next[k] = next;
    a->size[k] = size;
    memcpy(kept, chosen, (size_t)size * sizeof(int));
    *kept_count = size;
}

/* Greedy for "contains `need` more voters, of the sites flagged eligible, that a family allows; `lo`..`hi` in all".
 * Returns 0 when impossible.  `votes` already counts the votes that are given. */
static int cheapest_voters(context *x, tree_node *f, const keyed *sorted, int n, const unsigned char *eligible,
                    const site_family *family, int need, int lo, int hi, int *votes, radius_minimum *a, int k,
                    int *kept, int *kept_count)
{
    int slots_lo = lo - need > 0 ? lo - need : 0, slots_hi = hi - need, size = 0, other = 0, v = x->p.voters;
    int *chosen = x->scratch.order;
    double value = 0.0, top = -BIG, next = BIG;
    if (slots_hi < 0)
        return 0;
    for (int i = 0; i < n; i++) {
        int j = sorted[i].position, s = f->free_site[j], take = 0;
        double key = sorted[i].key;
        if (need == 0 && (other == slots_hi || (other >= slots_lo && key >= 0.0))) { /* no later site is taken either */
            next = key < next ? key : next;
            break;
        }
        if (need > 0 && eligible[s] && take_site(family, votes, s, v, v)) {
            need--;
            take = 1;
        }
        if (!take && other < slots_hi && (other < slots_lo || key < 0.0)) {
            other++;
            take = 1;
        }
        if (take) {
            chosen[size++] = j;
            value += key;
            if (key > top)
                top = key;
        } else if (key < next)
            next = key;
    }
    if (need > 0 || other < slots_lo)
        return 0;
    keep_larger(a, k, value, top, next, chosen, size, kept, kept_count);
    return 1;
}

/* Count the sites that are in, and look for room for each other site, unless that is known; 0 when the rules leave none. */
static int find_room(context *x, const tree_node *f, int least, int most)
{
    const family_list *list = &x->p.replica_families;
    rule_room *room = &x->inner.room;
    size_t length = (size_t)x->scratch.count_length, bytes = (size_t)f->in_count * sizeof(int);
    if (room->in_count == f->in_count && room->least == least && room->most == most && !memcmp(room->in, f->in_site, bytes))
        return room->possible;
    room->in_count = f->in_count;
    room->least = least;
    room->most = most;
    room->possible = 1;
    memcpy(room->in, f->in_site, bytes);
    memset(room->blocked, 0, (size_t)x->p.sites);
    for (int k = 0; k < list->count && room->possible; k++) {
        const site_family *family = &list->family[k];
        int *count = room->counts + (size_t)k * length;
        begin_count(family, count);
        room->possible = count_all(family, count, f->in_site, f->in_count, least, most);
        for (int s = 0; s < x->p.sites && list->rules && room->possible; s++)
            room->blocked[s] |= f->state[s] != IN && !site_fits(family, count, s, least, most);
    }
    return room->possible;
}

/* Greedy over the rules for replicas alone: the largest of the families. Sites beside which a family has no room are
 * flagged in x->inner.blocked. */
static int cheapest_under_rules(context *x, tree_node *f, keyed *sorted, int *n, int lo, int hi, radius_minimum *a,
                  int *kept, int *kept_count)
{
    const family_list *list = &x->p.replica_families;
    int least = lo + f->in_count, most = hi + f->in_count, *chosen = x->scratch.order, left = 0;
    if (!find_room(x, f, least, most))
        return 0;
    for (int i = 0; i < f->free_count; i++)
        x->inner.blocked[i] = x->inner.room.blocked[f->free_site[i]];
    for (int i = 0; i < *n; i++)
        if (!x->inner.blocked[sorted[i].position])
            sorted[left++] = sorted[i];
    *n = left;
    for (int k = 0; k < list->count; k++) {
        const site_family *family = &list->family[k];
        int *count = x->scratch.family_counts + (size_t)MOST_FAMILIES * (size_t)x->scratch.count_length, size = 0;
        double value = 0.0, top = -BIG, next = BIG;
        memcpy(count, x->inner.room.counts + (size_t)k * (size_t)x->scratch.count_length, (size_t)count_length(family) * sizeof(int));
        for (int i = 0; i < left; i++) {
            int s = f->free_site[sorted[i].position];
            double key = sorted[i].key;
            int ends = size == hi || (key >= 0.0 && still_needed(family, count, least) <= 0); /* no later site is taken either */
            if (ends) {
                next = key < next ? key : next;
                break;
            }
            if (key < 0.0 ? take_site(family, count, s, least, most)
                          : still_needed(family, count, least) > 0 && take_needed_site(family, count, s, least, most)) {
                chosen[size++] = sorted[i].position;
                value += key;
                if (key > top)
                    top = key;
            } else if (key < next)
                next = key;
        }
        if (still_needed(family, count, least) > 0)
            return 0;
        keep_larger(a, 1, value, top, next, chosen, size, kept, kept_count);
    }
    return 1;
}

/* Votes of the sites that are in, as a family counts them. */
typedef struct {
    int given;                 /* those that vote anyway: the leader and pins */
    int rank;                  /* the most others that vote beside them */
} fixed_votes;

/* Count the votes within `radius` of the sites that are in, after `base`, the count of those that vote anyway. */
static fixed_votes votes_within(const context *x, const tree_node *f, const site_family *family, double radius,
                                const int *base, int *count)
{
    const problem *p = &x->p;
    fixed_votes found = {0, 0};
    memcpy(count, base, (size_t)count_length(family) * sizeof(int));
    for (int i = 0; i < f->in_count; i++) {
        int s = f->in_site[i];
        if (x->view.leader >= 0 && radius < BIG && site_wait(x, s) > radius)
            continue;
        if (s == x->view.leader || p->must_vote[s])
            found.given++;
        else if (p->may_vote[s])
            found.rank += take_site(family, count, s, p->voters, p->voters);
    }
    return found;
}

/* The cheapest case where no other rules hold. */
static double minimum_over_cases(context *x, tree_node *f, int lo, int hi, int all, double slack, int *count)
{
    int n = f->free_count, size = 0;
    keyed *sorted = (keyed *)x->scratch.key;
    double least = 0.0;
    radius_minimum common;
    cheapest_case best = {.chosen = x->inner.selected, .trial = x->inner.selected + x->p.sites};
    clear_answer(&common);
    sort_positions(x->inner.rho, n, sorted, sorted + x->p.sites);
    for (; size < hi && (size < lo || sorted[size].key < 0.0); size++)
        least += sorted[size].key;
    cheapest_case_of(x, f, sorted, n, lo, hi, all, slack, &common, least, &best);
    *count = best.count;
    return best.value;
}

/* Rules or voter restrictions: the largest of three relaxations, for every radius or case. */
static double ruled_minimum(context *x, tree_node *f, int lo, int hi, int all, double slack, int *count)
{
    const problem *p = &x->p;
    const family_list *list = &p->voter_families;
    int n = f->free_count, leader = x->view.leader, length = x->scratch.count_length;
    keyed *sorted = (keyed *)x->scratch.key;
    int *whole = x->inner.selected + p->sites, *votes = x->inner.selected + 2 * p->sites;
    int *trial = x->inner.selected + 3 * p->sites;
    if (leader >= 0)
        find_waits(x, f);
    int whole_count = 0, votes_count = 0, trial_count = 0, given = 0;
    unsigned char *eligible = (unsigned char *)x->scratch.sites;
    radius_minimum common;
    clear_answer(&common);
    x->inner.radius_count = 0;
    *count = 0;
    sort_positions(x->inner.rho, n, sorted, sorted + x->p.sites);
    if (!cheapest_under_rules(x, f, sorted, &n, lo, hi, &common, whole, &whole_count))
        return BIG;
    /* relaxation 2: enough voters of any distance; where every replica may vote, the rules for replicas say more */
    int *base = x->scratch.family_counts, *work = base + (size_t)MOST_FAMILIES * (size_t)length;
    for (int i = 0; i < n && !p->plain_voters; i++)
        eligible[f->free_site[sorted[i].position]] = p->may_vote[f->free_site[sorted[i].position]];
    for (int k = 0; k < list->count; k++) {
        const site_family *family = &list->family[k];
        int *counted = base + (size_t)k * (size_t)length;
        int fits = 1;
        begin_count(family, counted);
        given = 0;
        for (int i = 0; i < f->in_count; i++)
            if (f->in_site[i] == leader || p->must_vote[f->in_site[i]]) {
                given++;
                fits &= count_site(family, counted, f->in_site[i], 1);
            }
        if (!fits || !count_all(family, counted, NULL, 0, p->voters, p->voters))
            return BIG;
        if (p->plain_voters)
            continue;
        fixed_votes in = votes_within(x, f, family, BIG, counted, work);
        int need = p->voters - in.given - in.rank;
        if (!cheapest_voters(x, f, sorted, n, eligible, family, need > 0 ? need : 0, lo, hi, work, &common, 2, votes,
                             &votes_count))
            return BIG;
    }
    double best = BIG;
    double floor_value = common.base[1] > common.base[2] ? common.base[1] : common.base[2];
    if (p->cases.count && leader >= 0) {
        cheapest_case cheapest = {.chosen = x->inner.selected, .trial = trial};
        cheapest_case_of(x, f, sorted, n, lo, hi, all, slack, &common, floor_value, &cheapest);
        int whole_decides = common.base[1] >= common.base[2];
        *count = cheapest.own ? cheapest.count : whole_decides ? whole_count : votes_count;
        if (!cheapest.own)
            memcpy(x->inner.selected, whole_decides ? whole : votes, (size_t)*count * sizeof(int));
        return cheapest.value;
    }
    int single = leader < 0 || p->quorum_weight == 0.0 || p->quorum <= 1;
    memset(eligible, 0, (size_t)p->sites);
    for (int t = 0; single || t < p->sites;) {
        radius_minimum answer = common;
        double price = 0.0;
        int own = 0;
        if (!single) {
            double d = site_wait(x, x->view.near_order[t]);
            price = p->quorum_weight * d;
            for (; t < p->sites && site_wait(x, x->view.near_order[t]) == d; t++)
                if (f->state[x->view.near_order[t]] == FREE)
                    eligible[x->view.near_order[t]] = p->may_vote[x->view.near_order[t]];
            if (price + floor_value >= (all ? slack : best))
                break;
            own = 1;
            for (int k = 0; k < list->count && own; k++) {
                const site_family *family = &list->family[k];
                fixed_votes in = votes_within(x, f, family, d, base + (size_t)k * (size_t)length, work);
                int need = p->quorum - in.given - in.rank;
                own = p->quorum - in.given <= p->voters - given &&
                      cheapest_voters(x, f, sorted, n, eligible, family, need > 0 ? need : 0, lo, hi, work, &answer, 0,
                                      trial, &trial_count);
            }
            if (!own)
                continue;
        }
        int k = 1;
        if (answer.base[2] > answer.base[k])
            k = 2;
        if (own && answer.base[0] > answer.base[k])
            k = 0;
        for (int r = 0; r < 3; r++)
            if (answer.base[r] > -BIG)
                answer.base[r] += price;
        answer.value = answer.base[k];
        if (all || single)
            x->inner.radii[x->inner.radius_count++] = answer;
        if (answer.value < best) {
            const int *source = k == 0 ? trial : k == 1 ? whole : votes;
            int size = k == 0 ? trial_count : k == 1 ? whole_count : votes_count;
            best = answer.value;
            memcpy(x->inner.selected, source, (size_t)size * sizeof(int));
            *count = size;
        }
        if (single)
            break;
    }
    return best;
}

/* The inner minimum at the reduced costs in x->inner.rho; the positions selected are in x->inner.selected.
 * With `all_radii` the answers of every radius below `slack` are kept in x->inner.radii. BIG: infeasible. */
double inner_minimum(context *x, tree_node *f, int all_radii, double slack, int *count)
{
    const problem *p = &x->p;
    int lo, hi;
    sizes_left(p, f, &lo, &hi);
    *count = 0;
    x->inner.radius_count = 0;
    if (hi < 0 || lo > hi)
        return BIG;
    if (p->plain_voters && !p->replica_families.rules) {
        if (!p->cases.count || x->view.leader < 0)
        {
            double least = uncapped_minimum(x, f, lo, hi, all_radii, slack, count);
            if (has_interval_waits(x) && !raise_by_intervals(x, f, lo, hi, all_radii, slack, count, &least))
                least = uncapped_minimum(x, f, lo, hi, all_radii, slack, count);
            return least;
        }
        return p->cases.balls ? minimum_over_balls(x, f, lo, hi, all_radii, slack, count)
                              : minimum_over_cases(x, f, lo, hi, all_radii, slack, count);
    }
    return ruled_minimum(x, f, lo, hi, all_radii, slack, count);
}
