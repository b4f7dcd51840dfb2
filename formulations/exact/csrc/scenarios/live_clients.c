/* The clients of a scenario that a state leaves open. A client is live where a free site comes before its first fixed
 * replica and costs less: any other pays what that replica costs, at multipliers of just as much, and never enters rho.
 * Deep in a tree few are live, so that the arrays of the bound have these clients alone, one behind the other. */
#include <string.h>

#include "scenario.h"

#define WORTH 0.75 /* so large a share of the clients is not worth the gathering: all are taken for live */

VECTORISED static void lower_to_nearer(const double *cost, const int *rank, const int *fixed, int padded, double *least)
{
    for (int c = 0; c < padded; c++) {
        double nearer = rank[c] < fixed[c] ? cost[c] : BIG;
        least[c] = nearer < least[c] ? nearer : least[c];
    }
}

VECTORISED static void copy_column(const double *cost, const int *rank, const int *fixed, int padded, double *out)
{
    for (int c = 0; c < padded; c++)
        out[c] = rank[c] < fixed[c] ? cost[c] : BIG;
}

VECTORISED static void gather_column(const double *cost, const int *rank, const int *fixed, const int *live, int count,
                                     int length, double *out)
{
    for (int k = 0; k < count; k++) {
        double nearer = cost[live[k]];
        out[k] = rank[live[k]] < fixed[live[k]] ? nearer : BIG;
    }
    for (int k = count; k < length; k++)
        out[k] = BIG;
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

/* List the live clients of scenario a; the multipliers of the others are set. */
static void list_live(const scenario_question *q, scenario_bound *b, int a)
{
    const scenario *s = &q->scenario[b->which[a]];
    size_t P = (size_t)q->padded;
    const int *rank = b->rank_fixed + (size_t)a * P;
    const double *fixed = b->fixed + (size_t)a * P;
    double *least = b->direction, *u = b->all_u + (size_t)a * P, settled = 0.0;
    int *live = b->live + (size_t)a * P, count = 0;
    memcpy(least, fixed, P * sizeof(double));
    for (int i = 0; i < b->free_count; i++) {
        int site = b->free_site[i];
        size_t row = (size_t)site * P;
        if (!(s->lost && s->lost[site]))
            lower_to_nearer(s->cost + row, s->rank + row, rank, q->padded, least);
    }
    for (int c = 0; c < q->clients; c++) {
        if (least[c] < fixed[c]) {
            live[count++] = c;
            continue;
        }
        settled += fixed[c];
        u[c] = fixed[c];
    }
    if (count > WORTH * q->clients) {
        list_all(q, b, a);
        return;
    }
    b->live_count[a] = count;
    b->length[a] = (count + PAD - 1) / PAD * PAD;
    b->settled[a] = settled;
}

void live_columns(const scenario_question *q, scenario_bound *b, int a, int some)
{
    const scenario *s = &q->scenario[b->which[a]];
    size_t P = (size_t)q->padded;
    if (some)
        list_live(q, b, a);
    else
        list_all(q, b, a);
    const int *rank_fixed = b->rank_fixed + (size_t)a * P, *live = b->live + (size_t)a * P;
    int length = b->length[a], count = b->live_count[a];
    for (int i = 0; i < b->free_count; i++) {
        size_t row = (size_t)b->free_site[i] * P;
        double **column = &b->column[(size_t)a * (size_t)q->sites + (size_t)i];
        if (!s->cost || (s->lost && s->lost[b->free_site[i]])) {
            *column = NULL;
            continue;
        }
        if (!some) {
            *column = (double *)(s->cost + row); /* only read */
            continue;
        }
        *column = b->block + (size_t)a * (size_t)b->free_count * P + (size_t)i * (size_t)length;
        if (length == q->padded)
            copy_column(s->cost + row, s->rank + row, rank_fixed, q->padded, *column);
        else
            gather_column(s->cost + row, s->rank + row, rank_fixed, live, count, length, *column);
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
