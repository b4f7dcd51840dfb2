/* The record of a tree as a flat list of numbers, in depth-first order. A part of the search is a state of the sites; the
 * root is the state with which the tree was opened (losses.h, late.h). A part has, any number of times,
 *
 *   2 F   sites that the bound decides: what it has to spare, active, (scenario, weight, u of every client) for each; then
 *         sites out (count, sites), sites in (count, sites). Without scenarios: sites of domains whose cap is reached
 *
 * and ends with one of
 *
 *   1 X   closed: what the bound of scenario.h has to spare above 0, active, (scenario, weight, u of every client) for each
 *   3 B   site: the part where the site is IN comes first, then that where it is OUT
 *   7 B   site: the part where it votes (and is IN), then that where it does not vote (only questions with `votes`)
 *   4 E   all sets that are left were evaluated
 *   5 Z   there is no set: sizes, rules, or voters
 *   6 V   no voters: as X; the assignment bound of each scenario alone leaves too little for the voters of any set, all
 *         scenarios together (only questions with a function `fit`)
 *
 * Scenarios are numbered as in the question. Weights sum to 1 unless they are fixed, and count on (X - T) / scale.
 * Multipliers are those of the clients in their order, without padding; any numbers give a valid bound.
 * A tree that is too large for the list is not recorded, and the proof has no certificate. */
#include "scenario.h"

void record_value(threshold_record *r, double value)
{
    if (!r->on || r->failed)
        return;
    if (r->length == r->capacity) {
        size_t grown = r->capacity ? 2 * r->capacity : 4096;
        double *data = grown > r->most ? NULL : realloc(r->data, grown * sizeof(double));
        if (!data) {
            r->failed = 1;
            return;
        }
        r->data = data;
        r->capacity = grown;
    }
    r->data[r->length++] = value;
}

void record_state(scenario_tree *t, double kind, double spare)
{
    threshold_record *r = &t->record;
    const scenario_bound *b = t->work;
    if (!r->on || r->failed)
        return;
    int used = 0;
    for (int a = 0; a < b->active; a++)
        used += b->best_weight[a] > 0.0;
    record_value(r, kind);
    record_value(r, spare);
    record_value(r, used);
    for (int a = 0; a < b->active; a++) {
        if (!(b->best_weight[a] > 0.0))
            continue;
        record_value(r, b->which[a]);
        record_value(r, b->best_weight[a]);
        const double *u = b->best_u + (size_t)a * (size_t)t->question->padded;
        for (int c = 0; c < t->question->clients; c++)
            record_value(r, u[c]);
    }
}
