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

static const double TIE = 8.0 * UNIT_ROUNDOFF; /* of the costs added up; bound_error allows for more */

#define KEPT_ROWS 12           /* rows of a radius up to which sites are fixed row by row */
#define PRICE_STEP 1.25        /* factor of the price of a vote from one inner minimum of a leader to the next */

/* A site with its cost at a price of votes, and how many of these it has been lowered by. */
typedef struct {
    double key, votes;
    int site;
} priced_site;

/* The cheapest sites, one more of them than may be taken. */
typedef struct {
    int count, room, taken;
    double sum, lowered;       /* of those that are taken */
    priced_site site[MOST_VOTERS + 1];
} cheapest_sites;

/* Put a site among the cheapest. */
static inline void add_site(cheapest_sites *c, priced_site one)
{
    if (c->count == c->room && one.key >= c->site[c->count - 1].key)
        return;
    int at = c->count < c->room ? c->count++ : c->room - 1;
    for (; at > 0 && c->site[at - 1].key > one.key; at--)
        c->site[at] = c->site[at - 1];
    c->site[at] = one;
}

/* Put a site that has become cheaper among the cheapest: in its place, if it is one of them. */
static inline void lower_site(cheapest_sites *c, priced_site one)
{
    int at = 0;
    while (at < c->count && c->site[at].site != one.site)
        at++;
    if (at == c->count && c->count < c->room)
        c->count++;
    at = at < c->count ? at : c->count - 1;
    for (; at > 0 && c->site[at - 1].key > one.key; at--)
        c->site[at] = c->site[at - 1];
    c->site[at] = one;
}

/* Add up `lo` sites, or more of them, up to `hi`, where these cost less than nothing. */
static void sum_sites(cheapest_sites *c, int lo, int hi)
{
    c->sum = c->lowered = 0.0;
    for (c->taken = 0; c->taken < c->count && c->taken < hi; c->taken++) {
        if (c->taken >= lo && c->site[c->taken].key >= 0.0)
            break;
        c->sum += c->site[c->taken].key;
        c->lowered += c->site[c->taken].votes;
    }
}

/* Bound the radii of the present leader from one of its radii on, all with sites that cost `least` at least, at a price of a
 * vote; returns how many are listed. Those whose bound is not below `limit` are left out. *short_of: by how many votes the
 * cheapest sites at the price miss a row, at the least bound. */
static int bound_radii(const class_lists *c, const vote_rows *rows, int from, double price, double least, double limit,
                       double *short_of)
{
    const context *x = c->x;
    const leader_wait *wait = &x->p.cases.wait[0];
    const vote_room *room = &x->p.cases.room;
    int leader = x->view.leader, radii = wait->start[leader + 1] - wait->start[leader], number = 0, changed = 2, t = 0;
    size_t row = (size_t)leader * (size_t)x->p.sites;
    const unsigned char *scope = wait->scope + row, *state = c->f->state;
    const double *distance = x->p.site_rtt + row, *radius = wait->radius + wait->start[leader];
    double pull[MOST_BLOCKS + 1], shift[MOST_BLOCKS + 1], constant = rows->pulled, farthest = 0.0, lowest = BIG, size = 0.0, most = 0.0;
    cheapest_sites best = {.count = 0, .room = c->hi + 1};
    *short_of = 0.0;
    for (int k = 0; k <= c->classes; k++) {
        shift[k] = wait->shift[k];
        pull[k] = wait->pull[k] + shift[k];
        most = pull[k] > most ? pull[k] : most;
    }
    for (int s = 0; s < x->p.sites; s++)
        room->key[s] = BIG;
    for (int i = 0; i < c->n; i++) {
        int site = c->f->free_site[c->sorted[i].position], k = wait->class_of_bits[scope[site]];
        double key = room->key[site] = c->sorted[i].key;
        size += i < c->hi ? fabs(key) : 0.0;
        if (!(scope[site] & FORBIDDEN))
            add_site(&best, (priced_site){key - price * shift[k], shift[k], site});
    }
    for (int i = 0; i < c->f->in_count; i++) {
        int site = c->f->in_site[i];
        constant -= shift[wait->class_of_bits[scope[site]]];
        if (scope[site] & FORBIDDEN && distance_of(x, leader, site) > farthest)
            farthest = distance_of(x, leader, site);
    }
    double error = 16.0 * UNIT_ROUNDOFF * (c->hi + 4.0) * (size + price * (rows->pulled + (c->hi + c->f->in_count) * most));
    for (int r = 0; r < radii && wait->rounds * radius[r] + least < limit; r++) {
        for (; t < x->p.sites; t++) {
            int site = x->view.near_order[t];
            if (distance[site] > radius[r] && site != leader)
                break;
            int k = wait->class_of_bits[scope[site]];
            if (state[site] == IN) {
                constant -= pull[k] - shift[k];
                changed = 2;
            } else if (room->key[site] < BIG) {
                double key = room->key[site] - price * pull[k];
                changed |= 1;
                if (best.count == best.room && key >= best.site[best.count - 1].key)
                    continue;
                lower_site(&best, (priced_site){key, pull[k], site});
                changed = 2;
            }
        }
        if (r < from || radius[r] < farthest || best.count < c->lo || !changed)
            continue;
        if (changed & 2)
            sum_sites(&best, c->lo, c->hi);
        changed = 0;
        double sum = best.sum + price * constant - error, floor = wait->rounds * radius[r] + (sum > least ? sum : least);
        if (floor < lowest) {
            lowest = floor;
            *short_of = constant - best.lowered;
        }
        if (floor >= limit)
            continue;
        room->radius[number++] = (vote_radius){
            .price = wait->rounds * radius[r], .floor = floor, .sum = sum, .at = r, .taken = best.taken,
            .top = best.taken ? best.site[best.taken - 1].key : -BIG,
            .next = best.count > best.taken ? best.site[best.taken].key : BIG,
        };
    }
    return number;
}

/* Keep an answer in x->inner.radii for rows of a radius that have a sum of at least `sum`, and make room for relaxation 0. */
static radius_minimum *keep_answer(context *x, const vote_radius *radius, const radius_minimum *common, double base, double sum)
{
    const leader_wait *wait = &x->p.cases.wait[0];
    radius_minimum *a = &x->inner.radii[x->inner.radius_count++];
    *a = *common;
    a->base[0] = base;
    for (int r = 0; r < 3; r++)
        if (a->base[r] > -BIG)
            a->base[r] += radius->price;
    a->value = radius->price + sum;
    a->within = wait->radius[wait->start[x->view.leader] + radius->at];
    a->reach = x->p.cases.bars ? a->within : BIG;
    return a;
}

/* Keep the cases of a radius that cost less than a limit: row by row where there are few of them, else all together, at a price
 * of a vote. The rows cost `sum` at least, and so do sites that hold for all cases `least`. */
static void keep_cases(class_lists *c, context *x, const vote_rows *rows, const vote_radius *radius, double limit, double vote_price,
                       const radius_minimum *common, double sum, double least)
{
    const double *bound = x->p.cases.room.bound;
    int below = 0, blocks = c->classes + c->all;
    for (int row = 0; row < rows->count; row++)
        below += radius->price + (bound[row] > least ? bound[row] : least) < limit;
    for (int row = 0; row < rows->count && below <= KEPT_ROWS; row++) {
        if (radius->price + (bound[row] > least ? bound[row] : least) >= limit)
            continue;
        double own = sum_of_row(c, rows->least + row * blocks), more = own > least ? own : least;
        if (own >= BIG || radius->price + more >= limit)
            continue;
        radius_minimum *a = keep_answer(x, radius, common, own, more);
        a->top[0] = c->top;
        a->next[0] = c->next;
        a->size[0] = c->taken;
    }
    if (below <= KEPT_ROWS)
        return;
    radius_minimum *a = keep_answer(x, radius, common, radius->sum, sum > least ? sum : least);
    a->top[0] = radius->top;
    a->next[0] = radius->next;
    a->size[0] = radius->taken;
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

/* Bound the sum of every row of the radius that fills the lists: kept as bounds, and as sums until a row is summed up. */
static void begin_rows(const class_lists *c, const vote_rows *rows, const vote_room *room)
{
    bound_rows(c, rows, room->bound);
    memcpy(room->sum, room->bound, (size_t)rows->count * sizeof(double));
}

/* Look at one radius: its cheapest row takes the place of the best so far where it is cheaper. Returns a sum that no row of the
 * radius is below; BIG: no sites meet one. */
static double look_at_radius(class_lists *c, context *x, const vote_rows *rows, const vote_radius *radius, double least,
                             cheapest_case *best)
{
    const leader_wait *wait = &x->p.cases.wait[0];
    vote_room *room = &x->p.cases.room;
    int leader = x->view.leader, blocks = c->classes + c->all, row = room->row[leader], priced = c->last < BIG;
    double found = BIG, tie = 0.0;
    if (!fill_lists(c, wait->radius[wait->start[leader] + radius->at]))
        return BIG;
    if (priced)
        begin_rows(c, rows, room);
    for (;;) {
        if (priced) { /* the row of the least bound, while that is below the best */
            row = 0;
            for (int other = 1; other < rows->count; other++)
                row = room->sum[other] < room->sum[row] ? other : row;
            double bound = room->sum[row] < found ? room->sum[row] : found;
            if (room->sum[row] >= found - tie || room->sum[row] >= BIG ||
                radius->price + (bound > least ? bound : least) >= best->value)
                return bound;
        }
        double own = sum_of_row(c, rows->least + row * blocks), sum = own > least ? own : least;
        if (own < found) {
            found = own;
            tie = TIE * c->size; /* sums of sites that differ by less are one sum */
        }
        if (own < BIG && radius->price + sum < best->value) {
            best->value = radius->price + sum;
            best->own = own >= least;
            best->count = c->taken;
            memcpy(best->chosen, c->chosen, (size_t)c->taken * sizeof(int));
            room->row[leader] = row;
            room->at[leader] = radius->at;
        }
        if (!priced)
            begin_rows(c, rows, room);
        priced = 1;
        room->sum[row] = BIG;
    }
}

/* The cheapest case for the sites in order of reduced costs, as cheapest_case_of returns it. */
void cheapest_votes_of(context *x, const tree_node *f, const keyed *sorted, int n, int lo, int hi, int all, double slack,
                       const radius_minimum *common, double least, cheapest_case *best)
{
    const leader_wait *wait = &x->p.cases.wait[0];
    vote_room *room = &x->p.cases.room;
    int leader = x->view.leader, hint = room->at[leader], from = x->inner.from[0];
    const vote_rows *rows = useful_rows(x, wait, leader);
    class_lists lists;
    double short_of, hinted = BIG;
    best->value = BIG;
    best->count = best->own = 0;
    if (rows->count == 0)
        return;
    begin_lists(&lists, x, f, sorted, n, lo, hi, best->trial);
    double price = room->price[leader];
    if (price == 0.0) /* a leader that is new begins with the price of the one before */
        price = room->last_price > 0.0 ? room->last_price : (1e-9 + fabs(least)) / (1.0 + rows->pulled);
    else if (!all && hint >= from) { /* the last cheapest radius is soon cheap enough to eliminate most others */
        vote_radius one = {.price = wait->rounds * wait->radius[wait->start[leader] + hint], .at = hint};
        hinted = look_at_radius(&lists, x, rows, &one, least, best);
    }
    int number = bound_radii(&lists, rows, from, price, least, all ? slack : best->value, &short_of);
    room->last_price = room->price[leader] = price * (short_of > 0.0 ? PRICE_STEP : short_of < 0.0 ? 1.0 / PRICE_STEP : 1.0);
    for (int r = 0; r < number && hinted < BIG; r++) {
        vote_radius *one = &room->radius[r];
        if (one->at <= hint && one->price + hinted > one->floor)
            one->floor = one->price + hinted;
        one->done = one->at == hint;
    }
    for (;;) {
        int next = -1;
        double floor = all ? slack : best->value;
        for (int r = 0; r < number; r++)
            if (!room->radius[r].done && room->radius[r].floor < floor) {
                floor = room->radius[r].floor;
                next = r;
            }
        if (next < 0)
            return;
        vote_radius *one = &room->radius[next];
        double sum = look_at_radius(&lists, x, rows, one, least, best);
        one->done = 1;
        if (all && one->price + (sum > least ? sum : least) < slack)
            keep_cases(&lists, x, rows, one, slack, price, common, sum, least);
        for (int r = 0; r < next; r++)
            if (room->radius[r].price + sum > room->radius[r].floor)
                room->radius[r].floor = room->radius[r].price + sum;
    }
}
