/* Swap descent on the goal with the exact evaluation, and kicks of two random swaps. */
#include <string.h>

#include "losses.h"

static int pauses(loss_problem *x)
{
    if (!x->paused && x->pause && x->effort > x->next_pause) {
        x->next_pause = x->effort + 1e7;
        x->paused = x->pause(x->pause_self) != 0;
    }
    return x->paused;
}

/* May the replica at `place` give way to `site`? Leaves the swap made when it may. */
static int swap(loss_problem *x, int *set, int count, int place, int site)
{
    int out = set[place];
    if (x->must_hold[out] || !x->may_hold[site])
        return 0;
    for (int i = 0; i < count; i++)
        if (set[i] == site)
            return 0;
    set[place] = site;
    if (sites_obey(&x->replica_rules, set, count, x->counts))
        return 1;
    set[place] = out;
    return 0;
}

static double descend(loss_problem *x, int *set, int count)
{
    double value = losses_evaluate(x, set, count, -1, BIG);
    for (;;) {
        int best_place = -1, best_site = -1;
        for (int place = 0; place < count; place++)
            for (int site = 0; site < x->sites; site++) {
                int out = set[place];
                if (pauses(x))
                    return value;
                if (!swap(x, set, count, place, site))
                    continue;
                double other = losses_evaluate(x, set, count, -1, losses_below(x, value));
                if (other < value) {
                    value = other;
                    best_place = place;
                    best_site = site;
                }
                set[place] = out;
            }
        if (best_place < 0)
            return value;
        set[best_place] = best_site;
    }
}

double losses_descend(loss_problem *x, const int *replicas, int count, int kicks, unsigned seed)
{
    int *set = x->set;
    memcpy(set, replicas, (size_t)count * sizeof(int));
    descend(x, set, count);
    for (int kick = 0; kick < kicks && x->value < BIG && !x->paused; kick++) {
        count = x->count;
        memcpy(set, x->replicas, (size_t)count * sizeof(int));
        for (int swaps = 0, tries = 0; swaps < 2 && tries < 100; tries++) {
            seed = seed * 1664525u + 1013904223u;
            int place = (int)((seed >> 8) % (unsigned)count);
            seed = seed * 1664525u + 1013904223u;
            swaps += swap(x, set, count, place, (int)((seed >> 8) % (unsigned)x->sites));
        }
        descend(x, set, count);
    }
    return x->value;
}
