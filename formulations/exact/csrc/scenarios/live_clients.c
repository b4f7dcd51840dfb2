/* The clients of a scenario that a state leaves open. A client is live where a free site comes before its first fixed
 * replica and costs less: any other pays what that replica costs, at multipliers of just as much, and never enters rho.
 * Deep in a tree few are live, so that the arrays of the bound have these clients alone, one behind the other. */
#include <string.h>

#include "scenario.h"

/* The column of a free site, BIG where the fixed replica comes first, and the least of all so far. */
VECTORISED static void nearer_column(const double *cost, const int *rank, const int *fixed, int padded, double *out,
                                   double *least)
{
    for (int c = 0; c < padded; c++) {
        double nearer = rank[c] < fixed[c] ? cost[c] : BIG;
        out[c] = nearer;
        least[c] = nearer < least[c] ? nearer : least[c];
    }
}

VECTORISED static void gather(const double *from, const int *live, int count, double *restrict out)
{
    for (int k = 0; k < count; k++)
        out[k] = from[live[k]];
}

/* Take every client for live; none where the clients cost nothing. */
static void list_all(const scenario_question *q, scenario_bound *b, int a)
{
    int *live = b->live + (size_t)a * (size_t)q->padded, some = q->scenario[b->which[a]].cost != NULL;
    for (int c = 0; c < q->clients; c++)
        live[c] = c;
    b->live_count[a] = some ? q->clients : 0;
    b->length[a] = some ? q->padded : 0;
    b->settled[a] = 0.0;
}

/* List the live clients of scenario a, those with a column below their fixed cost; the multipliers of the others are set. */
static void list_live(const scenario_question *q, scenario_bound *b, int a, const double *least)
{
    size_t P = (size_t)q->padded;
    const double *fixed = b->fixed + (size_t)a * P;
    double *u = b->all_u + (size_t)a * P, settled = 0.0;
    int *live = b->live + (size_t)a * P, count = 0;
    for (int c = 0; c < q->clients; c++) {
        int open = least[c] < fixed[c];
        live[count] = c; /* no branch: which clients are live is hard to predict */
        count += open;
        settled += open ? 0.0 : fixed[c];
        u[c] = open ? u[c] : fixed[c];
    }
    int length = (count + PAD - 1) / PAD * PAD;
    if (length > LIVE_SHARE * q->padded) {
        list_all(q, b, a);
        return;
    }
    b->live_count[a] = count;
    b->length[a] = length;
    b->settled[a] = settled;
}

void live_columns(const scenario_question *q, scenario_bound *b, int a, int some)
{
    const scenario *s = &q->scenario[b->which[a]];
    size_t P = (size_t)q->padded, first = (size_t)a * (size_t)b->free_count * P;
    double **column = b->column + (size_t)a * (size_t)q->sites, *least = b->direction;
    memcpy(least, b->fixed + (size_t)a * P, P * sizeof(double));
    for (int i = 0; i < b->free_count; i++) {
        size_t row = (size_t)b->free_site[i] * P;
        if (!s->cost || (s->lost && s->lost[b->free_site[i]]))
            column[i] = NULL;
        else if (!some)
            column[i] = (double *)(s->cost + row); /* only read */
        else {
            column[i] = b->block + first + (size_t)i * P;
            nearer_column(s->cost + row, s->rank + row, b->rank_fixed + (size_t)a * P, q->padded, column[i], least);
        }
    }
    if (!some) {
        list_all(q, b, a);
        return;
    }
    list_live(q, b, a, least);
    int count = b->live_count[a], length = b->length[a], gathered = 0;
    for (int i = 0; i < b->free_count && length < q->padded; i++) {
        if (!column[i])
            continue;
        double *out = b->gathered + first + (size_t)gathered++ * (size_t)length;
        gather(column[i], b->live + (size_t)a * P, count, out);
        for (int k = count; k < length; k++)
            out[k] = BIG;
        column[i] = out;
    }
}

void live_multipliers(const scenario_question *q, scenario_bound *b, int a)
{
    size_t at = (size_t)a * (size_t)q->padded;
    const int *live = b->live + at;
    for (int k = 0; k < b->live_count[a]; k++) {
        b->u[at + (size_t)k] = b->all_u[at + (size_t)live[k]];
        b->live_fixed[at + (size_t)k] = b->fixed[at + (size_t)live[k]];
    }
    for (int k = b->live_count[a]; k < b->length[a]; k++)
        b->u[at + (size_t)k] = b->live_fixed[at + (size_t)k] = 0.0;
}

void best_multipliers(const scenario_question *q, const scenario_bound *b, int a, double *out)
{
    size_t at = (size_t)a * (size_t)q->padded;
    memcpy(out, b->all_u + at, (size_t)q->padded * sizeof(double));
    for (int k = 0; k < b->live_count[a]; k++)
        out[b->live[at + (size_t)k]] = b->best_u[at + (size_t)k];
}
