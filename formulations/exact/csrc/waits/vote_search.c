/* The cheapest case of a wait that counts votes, or all of them below a limit.
 *
 * A bound of every radius comes first. A row asks for n_k sites of class k within the radius, and for N_k of some classes at
 * any distance. With y the price of a vote, sites within the radius cost y·pull_k less, and sites anywhere y·shift_k less.
 * Every row then costs at least the cheapest sites at these costs and y times the least of
 *
 *     sum_k pull_k·n_k + shift_k·N_k
 *
 * over the rows, for every y >= 0. For a majority of votes w_1 < … < w_K, pull_k is 2·w_k and shift_k is w_K - w_k: the sum
 * says by how much the votes within the radius are to exceed the others. One pass over the sites, nearest first, bounds all
 * radii: a site that comes within the radius becomes cheaper. Few radii have a bound below the cheapest case; their rows are
 * summed up (waits/vote_sums.c). A shorter radius costs no less for its sites than a longer one. */
#include <math.h>
#include <string.h>

#include "vote_lists.h"

#define PRICE_STEP 1.25        /* factor of the price of a vote from one inner minimum of a leader to the next */

/* The cheapest sites at a price of votes, one more of them than may be taken. */
typedef struct {
    int count, room, taken, site[MOST_VOTERS + 1];
    double key[MOST_VOTERS + 1], votes[MOST_VOTERS + 1]; /* cost, and how many prices of a vote it has been lowered by */
    double sum, lowered;
} cheapest_sites;

/* Put a site among the cheapest; 1 when it is one of them. */
static int add_site(cheapest_sites *c, int site, double key, double votes)
{
    if (c->count == c->room && key >= c->key[c->count - 1])
        return 0;
    int at = c->count < c->room ? c->count++ : c->room - 1;
    for (; at > 0 && c->key[at - 1] > key; at--) {
        c->key[at] = c->key[at - 1];
        c->votes[at] = c->votes[at - 1];
        c->site[at] = c->site[at - 1];
    }
    c->key[at] = key;
    c->votes[at] = votes;
    c->site[at] = site;
    return 1;
}

/* Take a site away, if it is one of the cheapest. */
static void remove_site(cheapest_sites *c, int site)
{
    int at = 0;
    while (at < c->count && c->site[at] != site)
        at++;
    if (at == c->count)
        return;
    for (c->count--; at < c->count; at++) {
        c->key[at] = c->key[at + 1];
        c->votes[at] = c->votes[at + 1];
        c->site[at] = c->site[at + 1];
    }
}

/* Add up `lo` sites, or more of them, up to `hi`, where these cost less than nothing. */
static void sum_sites(cheapest_sites *c, int lo, int hi)
{
    c->sum = c->lowered = 0.0;
    c->taken = 0;
    while (c->taken < c->count && c->taken < hi && (c->taken < lo || c->key[c->taken] < 0.0)) {
        c->sum += c->key[c->taken];
        c->lowered += c->votes[c->taken++];
    }
}

/* Bound the radii of the present leader from one of its radii on, all with sites that cost `least` at least; returns how many
 * there are. *short_of: by how many votes the cheapest sites at the price miss a row, at the least bound. */
static int bound_radii(const class_lists *c, const vote_rows *rows, int from, double price, double least, double *short_of)
{
    const context *x = c->x;
    const leader_wait *wait = &x->p.cases.wait[0];
    const vote_room *room = &x->p.cases.room;
    size_t row = (size_t)x->view.leader * (size_t)x->p.sites;
    const unsigned char *scope = wait->scope + row;
    const double *distance = x->p.site_rtt + row, *radius = wait->radius + wait->start[x->view.leader];
    int radii = wait->start[x->view.leader + 1] - wait->start[x->view.leader], number = 0, changed = 1, places = x->p.sites, t = 0;
    cheapest_sites best = {.room = c->hi + 1};
    double constant = rows->pulled, farthest = 0.0, lowest = BIG, size = 0.0, most = 0.0;
    *short_of = 0.0;
    for (int k = 0; k < c->classes; k++)
        most = wait->pull[k] + wait->shift[k] > most ? wait->pull[k] + wait->shift[k] : most;
    for (int s = 0; s < places; s++)
        room->key[s] = BIG;
    for (int i = 0; i < c->n; i++) {
        int site = c->f->free_site[c->sorted[i].position], k = wait->class_of_bits[scope[site]];
        room->key[site] = c->sorted[i].key;
        size += i < c->hi ? fabs(c->sorted[i].key) : 0.0;
        if (!(scope[site] & FORBIDDEN))
            add_site(&best, site, c->sorted[i].key - price * wait->shift[k], wait->shift[k]);
    }
    for (int i = 0; i < c->f->in_count; i++) {
        int site = c->f->in_site[i];
        constant -= wait->shift[wait->class_of_bits[scope[site]]];
        if (scope[site] & FORBIDDEN && distance_of(x, x->view.leader, site) > farthest)
            farthest = distance_of(x, x->view.leader, site);
    }
    double error = 16.0 * UNIT_ROUNDOFF * (c->hi + 4.0) * (size + price * (rows->pulled + (c->hi + c->f->in_count) * most));
    for (int r = 0; r < radii; r++) {
        for (; t < places; t++) {
            int site = x->view.near_order[t], k = wait->class_of_bits[scope[site]];
            if (site != x->view.leader && distance[site] > radius[r])
                break;
            if (c->f->state[site] == IN) {
                constant -= wait->pull[k];
                changed = 1;
            } else if (room->key[site] < BIG) {
                double votes = wait->pull[k] + wait->shift[k], key = room->key[site] - price * votes;
                if (best.count == best.room && key >= best.key[best.count - 1]) {
                    changed |= 2;
                    continue;
                }
                remove_site(&best, site);
                add_site(&best, site, key, votes);
                changed = 1;
            }
        }
        if (r < from || radius[r] < farthest || best.count < c->lo || !changed)
            continue;
        if (changed & 1)
            sum_sites(&best, c->lo, c->hi);
        changed = 0;
        vote_radius *one = &room->radius[number++];
        double sum = best.sum + price * constant - error;
        one->price = wait->rounds * radius[r];
        one->floor = one->price + (sum > least ? sum : least);
        one->sum = sum;
        one->taken = best.taken;
        one->top = best.taken ? best.key[best.taken - 1] : -BIG;
        one->next = best.count > best.taken ? best.key[best.taken] : BIG;
        one->at = r;
        one->done = 0;
        if (one->floor < lowest) {
            lowest = one->floor;
            *short_of = constant - best.lowered;
        }
    }
    return number;
}

/* Keep a radius in x->inner.radii, whose rows have a sum of at least `sum`. */
static void keep_radius(context *x, const vote_radius *radius, double vote_price, const radius_minimum *common, double sum)
{
    const leader_wait *wait = &x->p.cases.wait[0];
    radius_minimum *a = &x->inner.radii[x->inner.radius_count++];
    *a = *common;
    a->value = radius->price + sum;
    a->base[0] = radius->sum;
    a->top[0] = radius->top;
    a->next[0] = radius->next;
    a->size[0] = radius->taken;
    for (int r = 0; r < 3; r++)
        if (a->base[r] > -BIG)
            a->base[r] += radius->price;
    a->within = wait->radius[wait->start[x->view.leader] + radius->at];
    a->reach = x->p.cases.bars ? a->within : BIG;
    a->vote_price = vote_price;
}

/* The reduced costs of the free sites, by position, less the price of the votes that a kept radius gives them. */
const double *keys_within(context *x, const tree_node *f, const radius_minimum *a)
{
    const leader_wait *wait = &x->p.cases.wait[0];
    size_t row = (size_t)x->view.leader * (size_t)x->p.sites;
    double *key = x->p.cases.room.key;
    for (int i = 0; i < f->free_count; i++) {
        int site = f->free_site[i], k = wait->class_of_bits[wait->scope[row + (size_t)site]];
        int within = x->p.site_rtt[row + (size_t)site] <= a->within;
        key[i] = x->inner.rho[i] - a->vote_price * (wait->shift[k] + (within ? wait->pull[k] : 0.0));
    }
    return key;
}

/* Look at one radius: its cheapest row takes the place of the best so far when it is cheaper. Returns a sum that no row of
 * the radius is below. */
static double look_at_radius(class_lists *c, context *x, const vote_rows *rows, const vote_radius *radius, double least,
                             cheapest_case *best)
{
    vote_room *room = &x->p.cases.room;
    int leader = x->view.leader, blocks = c->classes + c->all;
    double bound, enough = radius->floor - radius->price;
    int row = cheapest_row(c, rows, room->row[leader], enough, best->value - radius->price, room->sum, &bound);
    if (row < 0)
        return bound;
    double own = sum_of_row(c, rows->least + row * blocks), sum = own > least ? own : least;
    if (radius->price + sum < best->value) {
        best->value = radius->price + sum;
        best->own = own >= least;
        best->count = c->taken;
        memcpy(best->chosen, c->chosen, (size_t)c->taken * sizeof(int));
        room->row[leader] = row;
    }
    return bound;
}

/* The cheapest case for the sites in order of reduced costs, as cheapest_case_of returns it. */
void cheapest_votes_of(context *x, const tree_node *f, const keyed *sorted, int n, int lo, int hi, int all, double slack,
                       const radius_minimum *common, double least, cheapest_case *best)
{
    const leader_wait *wait = &x->p.cases.wait[0];
    vote_room *room = &x->p.cases.room;
    int leader = x->view.leader;
    const vote_rows *rows = useful_rows(x, wait, leader);
    class_lists lists;
    double limit = all ? slack : BIG, short_of;
    best->value = BIG;
    best->count = best->own = 0;
    if (rows->count == 0)
        return;
    begin_lists(&lists, x, f, sorted, n, lo, hi, best->trial);
    double *price = &room->price[leader];
    if (*price == 0.0) /* a leader that is new begins with the price of the one before */
        *price = room->last_price > 0.0 ? room->last_price : (1e-9 + fabs(least)) / (1.0 + rows->pulled);
    double vote_price = *price;
    int number = bound_radii(&lists, rows, x->inner.from[0], vote_price, least, &short_of);
    *price *= short_of > 0.0 ? PRICE_STEP : short_of < 0.0 ? 1.0 / PRICE_STEP : 1.0;
    room->last_price = *price;
    for (;;) {
        int next = -1;
        double floor = all ? limit : best->value;
        for (int r = 0; r < number; r++)
            if (!room->radius[r].done && room->radius[r].floor < floor) {
                floor = room->radius[r].floor;
                next = r;
            }
        if (next < 0)
            return;
        vote_radius *one = &room->radius[next];
        one->done = 1;
        if (!fill_lists(&lists, wait->radius[wait->start[leader] + one->at]))
            continue;
        double sum = look_at_radius(&lists, x, rows, one, least, best);
        if (all && one->price + (sum > least ? sum : least) < limit)
            keep_radius(x, one, vote_price, common, sum > least ? sum : least);
        for (int r = 0; r < next; r++)
            if (room->radius[r].price + sum > room->radius[r].floor)
                room->radius[r].floor = room->radius[r].price + sum;
    }
}
