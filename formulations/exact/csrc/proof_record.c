/* The record of the proof: a flat list of numbers, which ../certificate_events.py decodes.
 *
 * The events of a part that is put off come later: PART with its number stands in its place, EVENTS_OF with its number before
 * them. What is recorded last of a part counts: a tree may begin again. */
#include <math.h>
#include <stdlib.h>

#include "kernel.h"

void record_number(context *x, double value)
{
    event_stream *s = &x->proof.events;
    if (s->failed)
        return;
    if (s->length == s->capacity) {
        size_t grown = s->capacity ? 2 * s->capacity : 4096;
        double *data = realloc(s->data, grown * sizeof(double));
        if (!data) {
            s->failed = 1;
            return;
        }
        s->data = data;
        s->capacity = grown;
    }
    s->data[s->length++] = value;
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

void record_beta(context *x, const double *beta)
{
    size_t at = x->proof.events.length + 1;
    double entries = 0.0;
    record_event(x, BETA, 0.0);
    for (int j = 0; j < x->p.sites; j++)
        for (int c = 0; c < x->p.clients; c++) {
            double value = beta[(size_t)j * (size_t)x->p.padded + (size_t)c];
            if (value > 0.0) {
                record_number(x, j);
                record_number(x, c);
                record_number(x, value);
                entries++;
            }
        }
    if (!x->proof.events.failed)
        x->proof.events.data[at] = entries;
}

/* The multipliers beta in force, in the form in which record_beta records a dense node. */
void record_sparse_beta(context *x, const tree_node *f)
{
    size_t at = x->proof.events.length + 1;
    double entries = 0.0;
    record_event(x, BETA, 0.0);
    for (int c = 0; c < x->p.clients; c++)
        for (size_t k = f->cells.start[c]; k < f->cells.start[c + 1]; k++)
            if (f->cells.beta[k] > 0.0) {
                record_number(x, f->cells.site[k]);
                record_number(x, c);
                record_number(x, f->cells.beta[k]);
                entries++;
            }
    if (!x->proof.events.failed)
        x->proof.events.data[at] = entries;
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
