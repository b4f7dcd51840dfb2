/* Detours: clients that a replica takes away from a less preferred one at which they would pay less.
 *
 * Let f be the client's first fixed replica, w its cost there, and 1, 2, ..., p the free sites that the client prefers to f,
 * the most preferred first, with costs w_1, ..., w_p. With M_i = max(w, min(w_1, ..., w_i)) and M_(p+1) = w let
 *
 *   r_i = M_i - M_(i+1) >= 0.
 *
 * For any u, the client pays at least min(u, w) + sum over the chosen free sites i of ( r_i + min(0, w_i - u) ); the proof
 * is in placement/proof/costs/detours.py. So the sum of r_i over the clients is a price of the site i that depends on the state and
 * not on the multipliers: it is what the multipliers beta_ci = r_i and u_c + M_1 - w give. It binds where reads are relayed
 * to a leader, as nearly every site that is not on the way to it makes a detour.
 *
 * A site that goes out passes its detours on to those that the client prefers to it, and so the prices rise. A node keeps the
 * detours of each client as a list, and renews only what a decision has changed. */
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

/* List the detours of client c, as far as there is room, in order: a smaller price is valid too. Return the number of
 * sites passed. With kept >= 0, the first `kept` entries stay, and the setter of the next one is still free: the list is
 * made from that site on. With -1 the whole list is made. */
static int list_detours(const context *x, tree_node *f, int c, double fixed, int kept)
{
    size_t sites = (size_t)x->p.sites;
    const int *order = x->p.by_client + (size_t)c * sites;
    const double *cost = x->view.ordered + (size_t)c * sites;
    detour *list = f->detours + (size_t)c * MOST_DETOURS;
    int count = 0, before = -1, setter = -1, last = f->fixed_rank[c], ends = 0, k = 0;
    double most = BIG; /* M of the free site `before` */
    if (kept >= 0) {
        count = kept;
        before = setter = list[kept].setter;
        k = x->p.rank[(size_t)setter * (size_t)x->p.padded + (size_t)c];
        most = cost[k++];
    }
    int first = k;
    for (; k < last && !ends; k++) {
        int j = order[k];
        if (f->state[j] != FREE)
            continue;
        if (cost[k] < most) {
            double next = cost[k] > fixed ? cost[k] : fixed;
            if (before >= 0)
                list[count++] = (detour){setter, before, most - next};
            most = next;
            setter = j;
            ends = most == fixed || count == MOST_DETOURS - 1;
        }
        before = j;
    }
    if (before >= 0)
        list[count++] = (detour){setter, before, ends ? 0.0 : most - fixed};
    f->detour_count[c] = (unsigned char)count;
    f->detour_rank[c] = last;
    return k - first;
}

/* Bring the list of client c up to date; return the number of sites passed.
 *
 * Sites only leave. Where one that is charged left, the free site before it is charged with the same amount. Where one
 * that set M left, the list is new from the site on that set M before. */
static int renew_detours(const context *x, tree_node *f, int c, double fixed)
{
    detour *list = f->detours + (size_t)c * MOST_DETOURS;
    const int *order = x->p.by_client + (size_t)c * (size_t)x->p.sites;
    int passed = 0;
    if (f->detour_rank[c] != f->fixed_rank[c])
        return list_detours(x, f, c, fixed, -1);
    for (int i = 0; i < f->detour_count[c]; i++) {
        if (f->state[list[i].setter] != FREE)
            return passed + list_detours(x, f, c, fixed, i - 1);
        if (f->state[list[i].charged] == FREE)
            continue;
        int k = x->p.rank[(size_t)list[i].charged * (size_t)x->p.padded + (size_t)c];
        for (; f->state[order[k]] != FREE; k--)
            passed++;
        list[i].charged = order[k];
    }
    return passed;
}

static int detours_alloc(const context *x, tree_node *f)
{
    size_t clients = (size_t)x->p.clients;
    if (f->detours)
        return 1;
    f->detours = malloc(clients * MOST_DETOURS * sizeof(detour) + 8);
    f->detour_count = malloc(clients + 8);
    f->detour_rank = malloc(clients * sizeof(int) + 8);
    return f->detours && f->detour_count && f->detour_rank;
}

void free_detours(tree_node *f)
{
    free(f->detours);
    free(f->detour_count);
    free(f->detour_rank);
}

/* Bring the detours of a node up to date. There are none where no read is relayed or no replica is certain, nor beside
 * beta, which can say the same; a large tree soon gets beta. */
void update_detours(context *x, tree_node *f)
{
    const problem *p = &x->p;
    double *by_site = x->scratch.by_site;
    if (!p->relays || x->limits.large || x->view.leader < 0 || f->beta || f->has_beta || current_tree(x)->tight ||
        !order_costs(x) || !detours_alloc(x, f)) {
        f->has_detours = 0;
        return;
    }
    memset(by_site, 0, (size_t)p->sites * sizeof(double));
    f->detour_scale = 0.0;
    x->effort.work += 4.0 * p->clients;
    for (int c = 0; c < p->clients; c++) {
        const detour *list = f->detours + (size_t)c * MOST_DETOURS;
        double fixed = f->sparse ? f->plain_cost[c] : f->fixed_cost[c];
        x->effort.work += f->has_detours ? renew_detours(x, f, c, fixed) : list_detours(x, f, c, fixed, -1);
        f->detour_scale += fixed;
        for (int k = 0; k < f->detour_count[c]; k++) {
            by_site[list[k].charged] += list[k].amount;
            f->detour_scale += list[k].amount;
        }
    }
    for (int i = 0; i < f->free_count; i++)
        f->detour[i] = by_site[f->free_site[i]];
    f->has_detours = 1;
}

/* A child begins with the lists of its parent. */
void inherit_detours(const context *x, tree_node *child, const tree_node *parent)
{
    size_t clients = (size_t)x->p.clients;
    child->has_detours = parent->has_detours && detours_alloc(x, child);
    if (!child->has_detours)
        return;
    memcpy(child->detours, parent->detours, clients * MOST_DETOURS * sizeof(detour));
    memcpy(child->detour_count, parent->detour_count, clients);
    memcpy(child->detour_rank, parent->detour_rank, clients * sizeof(int));
}
