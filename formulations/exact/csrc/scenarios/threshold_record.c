/* The record of a tree: a flat list of numbers, in depth-first order.
 *
 * A part of the search is a state of the sites. The root is the state with which the tree was opened (losses.h, late.h). An event
 * is a code and its numbers; ../../threshold_events.py reads them. A bound is written as
 *
 *   [bound]  margin above 0, number of scenarios with a weight, then for each: scenario, weight, u of every client
 *
 * A part has any number of
 *
 *   2 fix        sites that the bound decides: [bound], number of sites out, sites out, number of sites in, sites in. Without
 *                scenarios: sites of domains whose cap is reached
 *
 * and ends with one of
 *
 *   1 close      closed by a bound of scenario.h: [bound]
 *   3 branch     the site. The part with the site IN comes first, then the part with the site OUT
 *   7 vote       the site. The part where the site votes (and is IN) comes first, then the part where it does not.
 *                Only in questions with `votes`
 *   4 enumerate  all sets of the part were evaluated
 *   5 none       the part has no set, because of sizes, rules, or voters
 *   6 voters     [bound]. The assignment bound of each scenario leaves room for the voters; no voters fit all rooms at once.
 *                Only in questions with a function `fit`
 *
 * Example of three sites 0, 1, 2 with one replica and one scenario: 3 0 | 4 | 1 0.5 1 0 1.0 u... reads: branch on site 0; with
 * site 0, all sets were evaluated; without it, scenario 0 with weight 1 and multipliers u closes the part with a margin of 0.5.
 *
 * Scenarios have the numbers of the question. Weights sum to 1 unless they are fixed, and apply to (X - T) / scale. Multipliers
 * are in the order of the clients, without padding; any numbers give a valid bound. A tree that is too large for the list is not
 * recorded, and the proof has no certificate. */
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
        best_multipliers(t->question, b, a, b->direction);
        for (int c = 0; c < t->question->clients; c++)
            record_value(r, b->direction[c]);
    }
}
