/* The context of a kernel: its memory, and the record of the proof. */
#include <math.h>
#include <stdlib.h>

#include "kernel.h"

/* ---- Memory of a context: made once per problem, freed once. ---- */

static void scratch_prepare(context *x)
{
    const problem *p = &x->p;
    scratch *m = &x->scratch;
    owned_memory *owned = &x->owned;
    size_t S = (size_t)p->sites, P = (size_t)p->padded + 1;
    int replicas = longest_count(&p->replica_families), voters = longest_count(&p->voter_families);
    m->count_length = replicas > voters ? replicas : voters;
    m->sites = own(owned, 3 * S + 8, sizeof(int));
    m->by_site = own(owned, S, 8);
    m->beta_by_site = own(owned, S, 8);
    m->u = own(owned, P, 8);
    m->direction = own(owned, P, 8);
    m->gradient = own(owned, P, 8);
    m->pick = own(owned, S + 2, sizeof(int));
    m->order = own(owned, S + 2, sizeof(int));
    m->key = own(owned, 4 * S + 8, 8);
    m->family_counts = own(owned, (2 * MOST_FAMILIES + 2) * (size_t)m->count_length, sizeof(int));
    m->set_counts = own(owned, MOST_FAMILIES * (size_t)m->count_length, sizeof(int));
    m->cost = own(owned, 2 * P, 8);
    m->rank = own(owned, 4 * P, sizeof(int));
    m->level_cost = own(owned, (MAX_ENUMERATED + 1) * P, 8);
    m->level_rank = own(owned, (MAX_ENUMERATED + 1) * P, sizeof(int));
}

void context_free(context *x)
{
    for (int i = 0; x->tree.stack && i < x->tree.capacity; i++)
        node_free(&x->tree.stack[i]);
    free_cases(&x->p.cases);
    open_parts_free(x);
    cells_release(&x->scratch.cells);
    free(x->proof.data);
    release(&x->owned);
    free(x);
}

/* Ranks of the sites from the order of each client, some clients at a time: what they write stays in the cache. */
static void set_ranks(problem *p)
{
    enum { BLOCK = 16 };
    size_t S = (size_t)p->sites, P = (size_t)p->padded, clients = (size_t)p->clients;
    for (size_t first = 0; first < clients; first += BLOCK)
        for (size_t c = first; c < clients && c < first + BLOCK; c++)
            for (size_t t = 0; t < S; t++)
                p->rank[(size_t)p->by_client[c * S + t] * P + c] = (int)t;
}

/* The scale of each client's multipliers: its weight, as a share of the largest, 0 for the padding. What weighs next to
 * nothing counts as LEAST_SCALE, so that the length of a step is a number. */
static void set_step_scale(problem *p)
{
    double largest = 0.0;
    for (int c = 0; c < p->clients; c++) {
        p->step_scale[c] = p->near_weight[c] + p->relay_weight[c];
        largest = p->step_scale[c] > largest ? p->step_scale[c] : largest;
    }
    for (int c = 0; c < p->clients; c++) {
        double share = largest > 0.0 ? p->step_scale[c] / largest : 1.0;
        p->step_scale[c] = share > LEAST_SCALE ? share : LEAST_SCALE;
    }
}

/* Find the heaviest clients that have a share of the demand, where they are no more than the share `most` of all. */
void find_heavy(context *x, double demand, double most)
{
    const double *scale = x->p.step_scale;
    size_t clients = (size_t)x->p.clients;
    keyed *sorted = own(&x->owned, 2 * clients + 1, sizeof(keyed));
    heavy_clients *h = &x->heavy;
    h->client = own(&x->owned, clients + 1, sizeof(int));
    double all = 0.0, part = 0.0;
    int enough = 0;
    if (x->owned.failed)
        return;
    for (int c = 0; c < x->p.clients; c++) {
        sorted[c] = (keyed){-scale[c], c};
        all += scale[c];
    }
    merge_runs(sorted, x->p.clients, sorted + clients);
    while (enough < x->p.clients && part < demand * all)
        part -= sorted[enough++].key;
    if (enough == 0 || enough > most * x->p.clients)
        return;
    for (int c = 0; c < x->p.clients; c++) /* in order: columns are copied from */
        if (scale[c] >= -sorted[enough - 1].key)
            h->client[h->count++] = c;
    h->padded = (h->count + PAD - 1) / PAD * PAD;
}

/* Derive what follows from the problem, and make all memory; 0 when there is none left. */
int context_prepare(context *x)
{
    problem *p = &x->p;
    size_t S = (size_t)p->sites, P = (size_t)p->padded;
    int sites = p->sites, clients = p->clients;
    p->must_hold = p->may_hold + S;
    p->may_vote = p->must_hold + S;
    p->must_vote = p->may_vote + S;
    p->may_lead = p->must_vote + S;
    p->plain_voters = !p->voter_families.rules;
    for (int s = 0; s < sites; s++)
        if ((p->may_hold[s] && !p->may_vote[s]) || p->must_vote[s])
            p->plain_voters = 0;
    find_balls(p);
    forget_incumbent(x);
    x->proof.most = SIZE_MAX;
    x->view.costed_leader = -2;
    x->tree.closed = x->tree.enough = BIG;
    x->limits.sparse_from = SPARSE_FROM;
    x->limits.sparse_share = SPARSE_SHARE;
    x->limits.large = (double)sites * x->p.padded >= LARGE_FROM;
    x->limits.tight_nodes = x->limits.large ? TIGHT_NODES_LARGE : TIGHT_NODES;
    x->limits.tight_nodes_few = x->limits.large ? TIGHT_NODES_LARGE : TIGHT_NODES_FEW;
    x->limits.burst_nodes = BURST_NODES;
    x->limits.transfer_nodes = x->limits.large ? TRANSFER_NODES : 0;
    x->limits.transfer_pays = TRANSFER_PAYS;
    x->limits.interval_gain = INTERVAL_GAIN;
    x->limits.patience = x->limits.large ? PUT_OFF_FROM_LARGE : PUT_OFF_FROM;
    x->tree.capacity = sites + 2;
    owned_memory *owned = &x->owned;
    x->best.replicas = own(owned, S, sizeof(int));
    x->view.costs = own(owned, S * P + 1, 8);
    x->view.costed = own(owned, S, 1);
    x->view.near_order = own(owned, S, sizeof(int));
    p->rank = own(owned, S * P + 1, sizeof(int));
    p->step_scale = own(owned, P + 1, 8);
    x->tree.stack = own(owned, (size_t)x->tree.capacity, sizeof(tree_node));
    x->inner.rho = own(owned, S, 8);
    x->inner.blocked = own(owned, S, 1);
    x->inner.blocks = own(owned, S, 1);
    x->inner.floors = own(owned, S, 8);
    size_t intervals = p->scenarios > 1 ? (size_t)p->scenarios * S : 1;
    x->inner.interval_order = own(owned, intervals, sizeof(int));
    x->inner.members = own(owned, intervals, sizeof(int));
    x->inner.missed = own(owned, intervals, 8);
    x->inner.decided = own(owned, p->scenarios > 1 ? S * S : 1, 1);
    x->inner.voter = own(owned, intervals, sizeof(int));
    x->inner.voter_wait = own(owned, intervals, 8);
    x->inner.floors_state = own(owned, S, 1);
    x->inner.ordered_leader = x->inner.floors_leader = -2;
    x->inner.searches = 1;
    x->inner.closing = BIG;
    x->inner.places = own(owned, p->cases.balls ? S * (size_t)p->voters : 1, sizeof(int));
    x->inner.selected = own(owned, 5 * S, sizeof(int));
    size_t radii = S;
    for (int s = 0; s < sites && p->cases.count; s++)
        if (cells_of_leader(&p->cases, s) > radii)
            radii = cells_of_leader(&p->cases, s);
    x->inner.radii = own(owned, radii + 2, sizeof(radius_minimum));
    for (int side = IN; side <= OUT; side++)
        x->evaluated.forced[side] = own(owned, S, 8);
    scratch_prepare(x);
    memory_prepare(x);
    open_parts_prepare(x);
    rule_room *room = &x->inner.room;
    room->in_count = -1;
    room->in = own(owned, S, sizeof(int));
    room->counts = own(owned, MOST_FAMILIES * (size_t)x->scratch.count_length, sizeof(int));
    room->blocked = own(owned, S, 1);
    if (owned->failed)
        return 0;
    set_ranks(p);
    set_step_scale(p);
    if ((double)sites * x->p.padded >= HEAVY_FROM)
        find_heavy(x, HEAVY_SHARE, HEAVY_MOST);
    for (int c = 0; c < clients; c++)
        p->relays |= p->relay_weight[c] > 0.0;
    return 1;
}

/* ---- The record of the proof: a flat list of numbers, which ../certificate_events.py decodes.
 *
 * The events of a part that is put off come later: PART with its number stands in its place, EVENTS_OF with its number before
 * them. What is recorded last of a part counts: a tree may begin again. */

void record_number(context *x, double value)
{
    append_number(&x->proof, value);
}

void record_event(context *x, double kind, double value)
{
    record_number(x, kind);
    record_number(x, value);
}

void record_vector(context *x, const double *u)
{
    for (int c = 0; c < x->p.clients; c++)
        record_number(x, u[c]);
}

/* Record one multiplier beta, where it is not 0; how many were recorded. */
static int record_entry(context *x, int site, int client, double value)
{
    if (!(value > 0.0))
        return 0;
    record_number(x, site);
    record_number(x, client);
    record_number(x, value);
    return 1;
}

/* Record the multipliers beta in force at a node. */
void record_beta(context *x, const tree_node *f)
{
    size_t at = x->proof.length + 1, padded = (size_t)x->p.padded;
    double entries = 0.0;
    record_event(x, BETA, 0.0);
    for (int j = 0; j < x->p.sites && !f->sparse && f->beta; j++)
        for (int c = 0; c < x->p.clients; c++)
            entries += record_entry(x, j, c, f->beta[(size_t)j * padded + (size_t)c]);
    for (int c = 0; c < x->p.clients && f->sparse; c++)
        for (size_t k = f->cells.start[c]; k < f->cells.start[c + 1]; k++)
            entries += record_entry(x, f->cells.site[k], c, f->cells.beta[k]);
    if (!x->proof.failed)
        x->proof.data[at] = entries;
}

/* Transfers of cost: giver, the last of its sites, taker, amount. */
void record_transfers(context *x, const cost_transfers *t)
{
    record_event(x, TRANSFER, t->count);
    for (int i = 0; i < t->count; i++) {
        record_number(x, t->giver[i]);
        record_number(x, x->p.by_client[(size_t)t->giver[i] * (size_t)x->p.sites + (size_t)t->place[i]]);
        record_number(x, t->taker[i]);
        record_number(x, t->amount[i]);
    }
}

/* Leave CLOSE_BITS bits of the largest multiplier, and of the others what is as large as these; 0: none is. */
int round_multipliers(double *u, int clients)
{
    double largest = 0.0;
    int exponent;
    for (int c = 0; c < clients; c++)
        largest = u[c] > largest ? u[c] : largest;
    if (!(largest > 0.0 && largest < BIG))
        return 0;
    frexp(largest, &exponent);
    double grain = ldexp(1.0, exponent - CLOSE_BITS);
    for (int c = 0; c < clients; c++)
        u[c] = rint(u[c] / grain) * grain;
    return 1;
}
