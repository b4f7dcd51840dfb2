/* Memory of a context: made once per problem, freed once. */
#include <stdlib.h>

#include "kernel.h"

static void free_levels(levels *v)
{
    for (int k = 0; k < v->count; k++)
        free(v->label[k]);
    v->count = 0;
}

void context_free(context *x)
{
    problem *p = &x->p;
    if (x->stack)
        for (int i = 0; i < x->stack_size; i++)
            frame_release(&x->stack[i]);
    free(p->rtt);
    free(p->rank);
    free(p->near_weight);
    free(p->relay_weight);
    free(p->site_rtt);
    free(p->direct);
    free(p->price);
    free(p->may_hold);
    free_levels(&p->replica_caps);
    free_levels(&p->voter_caps);
    free(x->replicas);
    free(x->costs);
    free(x->near_order);
    free(x->near_free);
    free(x->stack);
    free(x->record.data);
    free(x->rho);
    free(x->trial);
    free(x->direction);
    free(x->best_u);
    free(x->selected);
    free(x->pick);
    free(x->order);
    free(x->key);
    free(x->radii);
    free(x->counts);
    for (int side = IN; side <= OUT; side++) {
        free(x->forced[side]);
        free(x->gain[side]);
        free(x->tries[side]);
    }
    free(x->enum_cost);
    free(x->enum_rank);
    free(x->level_cost);
    free(x->level_rank);
    free(x->by_client);
    free(x->ordered);
    free(x->by_site);
    free(x->charge);
    cells_release(&x->spare);
    free(x->together);
    free(x->item_cost);
    free(x->item_beta);
    free(x->item_move);
    free(x->item_best);
    free(x->item_free);
    free(x->item_site);
    free(x->item_start);
    free(x->item_step);
    memory_free(x);
    span_free(x);
    free(x);
}

/* What follows from the problem, and all scratch memory; 0 when there is none left. */
int context_prepare(context *x)
{
    problem *p = &x->p;
    size_t S = (size_t)p->sites, P = (size_t)p->padded;
    int sites = p->sites, clients = p->clients;
    p->must_hold = p->may_hold + S;
    p->may_vote = p->must_hold + S;
    p->must_vote = p->may_vote + S;
    p->may_lead = p->must_vote + S;
    p->plain_voters = p->voter_caps.count == 0;
    for (int s = 0; s < sites; s++)
        if ((p->may_hold[s] && !p->may_vote[s]) || p->must_vote[s])
            p->plain_voters = 0;
    x->score = BIG;
    x->cutoff = BIG;
    x->leader = x->costed = -2;
    x->closed = BIG;
    x->sparse_from = SPARSE_FROM;
    x->sparse_share = SPARSE_SHARE;
    x->stack_size = sites + 2;
    x->replicas = malloc(S * sizeof(int));
    x->costs = malloc(S * P * 8 + 8);
    x->near_order = malloc(S * sizeof(int));
    x->near_free = malloc((3 * S + 8) * sizeof(int));
    x->by_client = malloc((S * (size_t)clients + 1) * sizeof(int));
    x->by_site = malloc(S * 8);
    x->charge = calloc(S, 8);
    x->stack = calloc((size_t)x->stack_size, sizeof(frame));
    x->rho = malloc(S * 8);
    x->trial = malloc(P * 8 + 8);
    x->direction = malloc(P * 8 + 8);
    x->best_u = malloc(P * 8 + 8);
    x->selected = malloc(5 * S * sizeof(int));
    x->pick = malloc((S + 2) * sizeof(int));
    x->order = malloc((S + 2) * sizeof(int));
    x->key = malloc((4 * S + 8) * 8);
    x->radii = malloc((S + 2) * sizeof(radius_answer));
    x->counts = malloc(2 * (size_t)MAX_LEVELS * S * sizeof(int));
    x->enum_cost = malloc(2 * P * 8 + 8);
    x->enum_rank = malloc(3 * P * sizeof(int) + 8);
    x->level_cost = malloc((MAX_ENUMERATED + 1) * P * 8 + 8);
    x->level_rank = malloc((MAX_ENUMERATED + 1) * P * sizeof(int) + 8);
    for (int side = IN; side <= OUT; side++) {
        x->forced[side] = calloc(S, 8);
        x->gain[side] = calloc(S, 8);
        x->tries[side] = calloc(S, 8);
        if (!x->forced[side] || !x->gain[side] || !x->tries[side])
            return 0;
    }
    if (!x->level_cost || !x->level_rank || !x->by_client || !x->by_site || !x->charge || !x->replicas || !x->costs ||
        !x->near_order || !x->near_free || !x->stack || !x->rho || !x->trial || !x->direction ||
        !x->best_u || !x->selected || !x->pick || !x->order || !x->key || !x->radii || !x->counts ||
        !x->enum_cost || !x->enum_rank || !memory_prepare(x))
        return 0;
    for (int j = 0; j < sites; j++)
        for (int c = 0; c < clients; c++)
            x->by_client[(size_t)c * S + (size_t)p->rank[(size_t)j * P + (size_t)c]] = j;
    for (int c = 0; c < clients; c++)
        x->relays |= p->relay_weight[c] > 0.0;
    return 1;
}
