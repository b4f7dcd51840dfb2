/* Rows of a wait that counts votes: which of them are of use, and how long a complete set of replicas waits.
 *
 * Its sites fall into classes of as many votes. A row asks for so many sites of each class within the radius, and of all
 * classes but the last for so many at any distance (placement/evaluation/waits/vote_cases.py). */
#include <string.h>

#include "vote_lists.h"

enum { MOST_COMPARED = 512 };

/* The class of a site by its bits of a scope, or `classes` when it has none. */
static int class_of(unsigned scope, int classes)
{
    for (int k = 0; k < classes; k++)
        if (scope >> k & 1)
            return k;
    return classes;
}

static int larger(int a, int b) { return a > b ? a : b; }

/* Voters beside the leader, a site of the class `own`, that a row asks for. */
static int voters_asked(const leader_wait *wait, int own, const int *least)
{
    int asked = 0, all = wait->blocks - wait->classes;
    for (int k = 0; k < wait->classes; k++) {
        int near = least[k] - (k == own), any = k < all ? least[wait->classes + k] - (k == own) : 0;
        asked += larger(0, larger(near, any));
    }
    return asked;
}

/* 1 when a block of a class holds a leader of the class `own`. */
static int holds_leader(const leader_wait *wait, int own, int block)
{
    return own < wait->classes && (block == own || block == own + wait->classes);
}

/* 1 when another row asks for as little as a row everywhere, where the leader is there. Of equal rows the first one is kept.
 * No row asks for more than another one everywhere (vote_cases.py): the leader has to be a site that only the other needs. */
static int is_dominated(const leader_wait *wait, int own, int row)
{
    int needs_leader = 1;
    for (int b = 0; b < wait->blocks; b++)
        needs_leader &= !holds_leader(wait, own, b) || wait->least[row * wait->blocks + b] > 0;
    if (needs_leader)
        return 0;
    for (int other = 0; other < wait->sizes; other++) {
        int less = other != row, same = 1;
        for (int b = 0; b < wait->blocks && less; b++) {
            int held = holds_leader(wait, own, b);
            int one = wait->least[other * wait->blocks + b] - held, two = wait->least[row * wait->blocks + b] - held;
            less = one <= two || one <= 0;
            same &= one == two || (one <= 0 && two <= 0);
        }
        if (less && (!same || other < row))
            return 1;
    }
    return 0;
}

/* Keep the rows that are of use under a leader of the class `own`. Those that ask for more than another one everywhere are
 * not, and neither are those that leave no room for the leader among the voters. */
static int keep_rows(leader_wait *wait, int own, int voters)
{
    vote_rows *out = &wait->rows[own];
    size_t bytes = (size_t)wait->blocks * sizeof(int);
    out->count = 0;
    out->pulled = BIG;
    memset(out->most, 0, sizeof out->most);
    if (!(out->least = malloc((size_t)wait->sizes * bytes)))
        return 0;
    for (int row = 0; row < wait->sizes; row++) {
        const int *least = wait->least + row * wait->blocks;
        if (voters_asked(wait, own, least) >= voters || (wait->sizes <= MOST_COMPARED && is_dominated(wait, own, row)))
            continue;
        double pulled = 0.0;
        for (int b = 0; b < wait->blocks; b++) {
            double price = b < wait->classes ? wait->pull[b] : wait->shift[b - wait->classes];
            pulled += price * larger(least[b], holds_leader(wait, own, b));
            out->most[b] = larger(out->most[b], least[b]);
        }
        out->pulled = pulled < out->pulled ? pulled : out->pulled;
        memcpy(out->least + out->count++ * wait->blocks, least, bytes);
    }
    if (!(out->by_block = malloc((size_t)wait->sizes * bytes)))
        return 0;
    for (int b = 0; b < wait->blocks; b++)
        for (int row = 0; row < out->count; row++)
            out->by_block[b * out->count + row] = out->least[row * wait->blocks + b];
    return 1;
}

/* Set what a site of each class weighs in bounds (waits/vote_search.c): its votes within the radius, twice where a majority
 * of all votes is asked for, and the votes that it lacks of the most anywhere. */
static void set_prices(leader_wait *wait)
{
    int classes = wait->classes, all = wait->blocks - classes, heaviest = wait->weight[classes - 1], known = 1;
    for (int k = 0; k < classes; k++)
        known &= wait->weight[k] > 0;
    if (!known) /* one of the blocks is that of another clause, and empty */
        memset(wait->weight, 0, sizeof wait->weight);
    for (int k = 0; k <= classes; k++)
        wait->pull[k] = wait->shift[k] = 0.0;
    for (int k = 0; k < classes; k++) {
        wait->pull[k] = wait->weight[k] ? wait->weight[k] : 1.0;
        if (!wait->weight[k] || wait->needed)
            continue;
        wait->pull[k] *= 2.0;
        wait->shift[k] = k < all && heaviest > wait->weight[k] ? heaviest - wait->weight[k] : 0.0;
    }
}

/* The number of classes of a wait that counts votes: its blocks are those of the classes within the radius, then those of all
 * classes but the last at any distance, or of none. 0: it does not. */
static int classes_of_wait(const problem *p, const leader_wait *wait)
{
    int classes = 0, good = 1;
    unsigned char seen[2 * FORBIDDEN] = {0};
    while (classes < wait->blocks && wait->near >> classes & 1)
        classes++;
    int all = wait->blocks - classes; /* blocks at any distance */
    if (wait->blocks < 2 || classes == 0 || (all != 0 && all != classes - 1) || wait->near >> classes)
        return 0;
    if (wait->of_voters != (1u << wait->blocks) - 1)
        return 0;
    size_t cells = (size_t)p->sites * (size_t)p->sites;
    for (size_t cell = 0; cell < cells; cell++)
        seen[wait->scope[cell]] = 1;
    for (unsigned scope = 0; scope < 2 * FORBIDDEN; scope++) {
        unsigned bits = scope & ~(unsigned)FORBIDDEN;
        int k = class_of(bits, classes);
        unsigned expected = k == classes ? 0 : 1u << k | (k < all ? 1u << (classes + k) : 0);
        good &= !seen[scope] || bits == expected;
    }
    return good ? classes : 0;
}

/* Note which waits count votes of several classes, and whether the only wait does; 0 without memory. */
int find_vote_rows(problem *p)
{
    wait_cases *cases = &p->cases;
    size_t S = (size_t)p->sites;
    for (int w = 0; w < cases->count; w++) {
        leader_wait *wait = &cases->wait[w];
        wait->classes = classes_of_wait(p, wait);
        for (unsigned bits = 0; bits < 2 * FORBIDDEN; bits++)
            wait->class_of_bits[bits] = (unsigned char)class_of(bits, wait->classes);
        if (wait->classes)
            set_prices(wait);
        for (int own = 0; wait->classes && own <= wait->classes; own++)
            if (!keep_rows(wait, own, p->voters))
                return 0;
    }
    int alone = cases->count == 1 && cases->nested && p->replicas_max <= MOST_VOTERS;
    vote_room *room = &cases->room;
    cases->classes = alone ? cases->wait[0].classes : 0;
    if (!cases->classes)
        return 1;
    if (cases->bars)
        cases->barring = 0;
    room->distance = malloc(S * 8);
    room->within = malloc(2 * S);
    room->beyond = room->within + S;
    room->list = malloc(VOTE_LISTS * (S + 1) * sizeof(keyed));
    room->key = malloc(S * 8);
    room->radius = malloc(S * sizeof(vote_radius));
    room->sum = malloc(2 * (size_t)cases->wait[0].sizes * 8);
    room->bound = room->sum ? room->sum + cases->wait[0].sizes : NULL;
    room->price = calloc(S, 8);
    room->row = calloc(2 * S, sizeof(int));
    room->at = room->row + S;
    return room->distance && room->sum && room->within && room->list && room->key && room->radius && room->price && room->row;
}

void free_vote_room(vote_room *room)
{
    free(room->distance);
    free(room->within);
    free(room->list);
    free(room->key);
    free(room->radius);
    free(room->sum);
    free(room->price);
    free(room->row);
}

/* The rows that are of use under a leader, of a wait that counts votes. */
const vote_rows *useful_rows(const context *x, const leader_wait *wait, int leader)
{
    unsigned scope = wait->scope[(size_t)leader * (size_t)x->p.sites + (size_t)leader];
    return &wait->rows[wait->class_of_bits[scope]];
}

/* 1 when the only wait counts votes that are known, and the replicas that are given all vote: then no row is needed. */
int counts_all_votes(const context *x, int count)
{
    const wait_cases *cases = &x->p.cases;
    return cases->classes > 0 && cases->wait[0].weight[0] > 0 && x->p.plain_voters && count == x->p.voters;
}

/* Find what all replicas but the one at place `without` tell of the only wait, which counts votes. */
void rest_of_votes(const context *x, int leader, const int *replicas, int count, int without, vote_rest *rest)
{
    const leader_wait *wait = &x->p.cases.wait[0];
    const unsigned char *scope = wait->scope + (size_t)leader * (size_t)x->p.sites;
    rest->count = rest->total = 0;
    rest->far = 0.0;
    for (int i = 0; i < count; i++) {
        if (i == without)
            continue;
        int k = wait->class_of_bits[scope[replicas[i]]], at = rest->count++, votes = k < wait->classes ? wait->weight[k] : 0;
        double d = distance_of(x, leader, replicas[i]);
        if (d > rest->far && scope[replicas[i]] & FORBIDDEN)
            rest->far = d;
        for (; at > 0 && rest->distance[at - 1] > d; at--) {
            rest->distance[at] = rest->distance[at - 1];
            rest->votes[at] = rest->votes[at - 1];
        }
        rest->distance[at] = d;
        rest->votes[at] = votes;
        rest->total += votes;
    }
}

/* The wait of the replicas of `rest` and one more, at a distance, with so many votes; BIG: it never ends. */
static double wait_with_votes(const leader_wait *wait, const vote_rest *rest, double distance, int votes)
{
    int missing = wait->needed ? wait->needed : (rest->total + votes) / 2 + 1;
    for (int i = 0, added = 0; missing > 0; i++) {
        if (!added && (i == rest->count || distance <= rest->distance[i])) {
            added = 1;
            missing -= votes;
            if (missing <= 0)
                return distance > rest->far ? distance : rest->far;
        }
        if (i == rest->count)
            return BIG;
        missing -= rest->votes[i];
        if (missing <= 0)
            return rest->distance[i] > rest->far ? rest->distance[i] : rest->far;
    }
    return rest->far;
}

/* Wait of a leader over the replicas of `rest` and one more; BIG: it never ends. */
double wait_with_voter(const context *x, int leader, const vote_rest *rest, int site)
{
    const leader_wait *wait = &x->p.cases.wait[0];
    unsigned scope = wait->scope[(size_t)leader * (size_t)x->p.sites + (size_t)site];
    int k = wait->class_of_bits[scope];
    double d = distance_of(x, leader, site);
    double length = wait_with_votes(wait, rest, d, k < wait->classes ? wait->weight[k] : 0);
    return length >= BIG ? BIG : wait->rounds * (scope & FORBIDDEN && d > length ? d : length);
}

/* The least wait of a leader over the replicas of `rest` and any other one. */
double least_wait_of_votes(const context *x, const vote_rest *rest)
{
    const leader_wait *wait = &x->p.cases.wait[0];
    double length = wait_with_votes(wait, rest, 0.0, wait->weight[wait->classes - 1]); /* most votes help most */
    return length >= BIG ? BIG : wait->rounds * length;
}

/* The radius of a leader at which a complete set of at most MOST_VOTERS replicas meets a row: the nearest replicas of each
 * class decide. BIG: there is none. */
double radius_of_votes(const context *x, const leader_wait *wait, int leader, const int *replicas, int count)
{
    double nearest[MOST_BLOCKS + 1][MOST_VOTERS], barred = 0.0, shortest = BIG;
    int held[MOST_BLOCKS + 1] = {0}, classes = wait->classes, all = wait->blocks - classes;
    const unsigned char *scope = wait->scope + (size_t)leader * (size_t)x->p.sites;
    const vote_rows *rows = useful_rows(x, wait, leader);
    for (int i = 0; i < count; i++) {
        int k = wait->class_of_bits[scope[replicas[i]]], at = held[k]++;
        double d = distance_of(x, leader, replicas[i]);
        if (d > barred && scope[replicas[i]] & FORBIDDEN)
            barred = d;
        for (; at > 0 && nearest[k][at - 1] > d; at--)
            nearest[k][at] = nearest[k][at - 1];
        nearest[k][at] = d;
    }
    for (int row = 0; row < rows->count; row++) {
        const int *least = rows->least + row * wait->blocks;
        double length = barred;
        int met = 1;
        for (int k = 0; k < classes && met; k++) {
            met = least[k] <= held[k] && (k >= all || least[classes + k] <= held[k]);
            if (met && least[k] > 0 && nearest[k][least[k] - 1] > length)
                length = nearest[k][least[k] - 1];
        }
        if (met && length < shortest)
            shortest = length;
    }
    return shortest;
}
