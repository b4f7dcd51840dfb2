/* The rows of the steps on transfers: room for them, rows that a mean answer violates, and rows that served another leader. */
#include <stdlib.h>
#include <string.h>

#include "transfer_rows.h"

/* ---- memory ---- */

int make_rows(transfer_steps *s)
{
    size_t clients = (size_t)s->x->p.clients, sites = (size_t)s->x->p.sites;
    s->giver = malloc(TRANSFER_ROWS * sizeof(int));
    s->place = malloc(TRANSFER_ROWS * sizeof(int));
    s->taker = malloc(TRANSFER_ROWS * sizeof(int));
    s->next_given = malloc(TRANSFER_ROWS * sizeof(int));
    s->next_taken = malloc(TRANSFER_ROWS * sizeof(int));
    s->amount = calloc(TRANSFER_ROWS, sizeof(double));
    s->move = calloc(TRANSFER_ROWS, sizeof(double));
    s->best = calloc(TRANSFER_ROWS, sizeof(double));
    s->start = calloc(TRANSFER_ROWS + 1, sizeof(size_t));
    s->given = malloc(clients * sizeof(int));
    s->taken = malloc(clients * sizeof(int));
    s->length = malloc(clients * sizeof(int));
    s->cost = malloc(clients * sites * sizeof(double));
    s->limit = malloc(clients * sizeof(double));
    s->best_u = malloc(clients * sizeof(double));
    s->share = calloc(clients * sites, sizeof(float));
    s->window = calloc(clients * sites, sizeof(float));
    s->listed_at = malloc((sites + 1) * sizeof(int));
    s->listed = malloc(clients * LISTED * sizeof(int));
    s->listed_share = malloc(clients * LISTED * sizeof(float));
    s->served = malloc(clients * sizeof(double));
    s->serves = malloc(clients * sizeof(site_set));
    s->rank_of_selected = malloc(clients * MOST_SELECTED * sizeof(int));
    s->by_place = malloc(sites * sizeof(double));
    s->where = malloc(sites * sizeof(int));
    s->where_in_order = malloc(clients * sites * sizeof(int));
    return s->giver && s->place && s->taker && s->next_given && s->next_taken && s->amount && s->move && s->best && s->start &&
           s->given && s->taken && s->length && s->cost && s->limit && s->best_u && s->share && s->window && s->listed_at &&
           s->listed && s->listed_share && s->served && s->serves && s->rank_of_selected && s->by_place && s->where &&
           s->where_in_order;
}

void free_rows(transfer_steps *s)
{
    void *all[] = {s->giver, s->place, s->taker, s->next_given, s->next_taken, s->amount, s->move, s->best, s->start, s->cell,
                   s->given, s->taken, s->length, s->cost, s->limit, s->best_u, s->share, s->window, s->listed_at,
                   s->listed, s->listed_share, s->served, s->serves, s->rank_of_selected, s->by_place, s->where,
                   s->where_in_order};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* Lengths, limits and positions of a node without any beta, and its multipliers. */
void note_cells(transfer_steps *s)
{
    const problem *p = &s->x->p;
    for (int j = 0; j < p->sites; j++)
        s->where[j] = -1;
    for (int i = 0; i < s->f->free_count; i++)
        s->where[s->f->free_site[i]] = i;
    for (int c = 0; c < p->clients; c++) {
        const int *order = p->by_client + (size_t)c * (size_t)p->sites;
        for (int t = 0; t < p->sites; t++)
            s->where_in_order[(size_t)c * (size_t)p->sites + (size_t)t] = s->where[order[t]];
        s->given[c] = s->taken[c] = -1;
        s->length[c] = s->f->fixed_rank[c] < p->sites ? s->f->fixed_rank[c] : p->sites;
        s->limit[c] = s->f->fixed_cost[c];
        s->best_u[c] = s->f->u[c];
    }
}

/* ---- rows ---- */

static int is_known(const transfer_steps *s, int giver, int place, int taker)
{
    for (int i = s->given[giver]; i >= 0; i = s->next_given[i])
        if (s->place[i] == place && s->taker[i] == taker)
            return 1;
    return 0;
}

/* Link a row with those of its giver and its taker. */
static void link_row(transfer_steps *s, int i)
{
    s->next_given[i] = s->given[s->giver[i]];
    s->given[s->giver[i]] = i;
    s->next_taken[i] = s->taken[s->taker[i]];
    s->taken[s->taker[i]] = i;
}

static void add_row(transfer_steps *s, int giver, int place, int taker)
{
    const problem *p = &s->x->p;
    const int *order = p->by_client + (size_t)giver * (size_t)p->sites;
    size_t at = s->start[s->count], wanted = at + (size_t)place + 1;
    if (wanted > s->cells_room) {
        size_t room = 2 * wanted + 4096;
        int *cell = realloc(s->cell, room * sizeof(int));
        if (!cell)
            return; /* no memory: fewer rows will do */
        s->cell = cell;
        s->cells_room = room;
    }
    for (int k = 0; k <= place; k++) {
        int at_taker = p->rank[(size_t)order[k] * (size_t)p->padded + (size_t)taker];
        if (at_taker < s->length[taker] && s->where[order[k]] >= 0)
            s->cell[at++] = at_taker;
    }
    int i = s->count++;
    s->start[i + 1] = at;
    s->giver[i] = giver;
    s->place[i] = place;
    s->taker[i] = taker;
    link_row(s, i);
}

/* Begin with the transfers of another leader: rows are the same under all leaders, and amounts that served one serve another. */
void adopt_transfers(transfer_steps *s, const cost_transfers *from)
{
    for (int i = 0; i < from->count && s->count < TRANSFER_ROWS; i++)
        if (from->place[i] < s->length[from->giver[i]]) {
            int before = s->count;
            add_row(s, from->giver[i], from->place[i], from->taker[i]);
            if (s->count > before)
                s->amount[before] = from->amount[i];
        }
    for (int c = 0; c < s->x->p.clients; c++) {
        double u = s->best_u[c] + from->lift[c];
        u = u < 0.0 ? 0.0 : u;
        s->best_u[c] = u < s->limit[c] ? u : s->limit[c];
    }
}

/* Drop the rows whose amounts have come back to 0, so that there is room for others. */
static void drop_idle_rows(transfer_steps *s)
{
    int kept = 0;
    size_t end = 0;
    for (int c = 0; c < s->x->p.clients; c++)
        s->given[c] = s->taken[c] = -1;
    for (int i = 0; i < s->count; i++) {
        size_t from = s->start[i], length = s->start[i + 1] - from;
        if (s->amount[i] <= 0.0 && s->best[i] <= 0.0 && s->move[i] <= 0.0)
            continue;
        memmove(s->cell + end, s->cell + from, length * sizeof(int));
        s->start[kept] = end;
        end += length;
        s->giver[kept] = s->giver[i];
        s->place[kept] = s->place[i];
        s->taker[kept] = s->taker[i];
        s->amount[kept] = s->amount[i];
        s->best[kept] = s->best[i];
        s->move[kept] = s->move[i];
        link_row(s, kept++);
    }
    for (int i = kept; i < s->count; i++)
        s->amount[i] = s->best[i] = s->move[i] = 0.0;
    s->start[kept] = end;
    s->count = kept;
}

/* List for each site the clients that the mean answer serves by it: of each client at most LISTED sites. */
static void list_shares(transfer_steps *s)
{
    size_t clients = (size_t)s->x->p.clients, sites = (size_t)s->x->p.sites;
    int *end = s->listed_at;
    memset(end, 0, (sites + 1) * sizeof(int));
    for (int counts = 1; counts >= 0; counts--) { /* first how many there are, then which */
        for (size_t c = 0; c < clients; c++) {
            const float *share = s->share + c * sites;
            int found = 0;
            for (size_t j = 0; j < sites && found < LISTED; j++) {
                if (!(share[j] > TRANSFER_LISTED))
                    continue;
                found++;
                if (counts)
                    end[j + 1]++;
                else {
                    s->listed[end[j]] = (int)c;
                    s->listed_share[end[j]++] = share[j];
                }
            }
        }
        for (size_t j = 0; j < sites && counts; j++)
            end[j + 1] += end[j];
    }
    memmove(end + 1, end, sites * sizeof(int)); /* each start has become the next one */
    end[0] = 0;
}

/* Make for each client, as the giver, the row that the mean answer violates most; `steps`: since the last time. Returns how many. */
int make_violated_rows(transfer_steps *s, int steps)
{
    const problem *p = &s->x->p;
    size_t sites = (size_t)p->sites, all = (size_t)p->clients * sites;
    drop_idle_rows(s);
    int before = s->count;
    for (size_t i = 0; i < all; i++) {
        s->share[i] = (float)(1.0 - TRANSFER_NEW) * s->share[i] + (float)(TRANSFER_NEW / steps) * s->window[i];
        s->window[i] = 0.0F;
    }
    list_shares(s);
    for (int giver = 0; giver < p->clients && s->count < TRANSFER_ROWS; giver++) {
        const int *order = p->by_client + (size_t)giver * sites;
        double own = 0.0, most = TRANSFER_VIOLATION;
        int place = -1, taker = -1;
        memset(s->served, 0, (size_t)p->clients * sizeof(double));
        for (int t = 0; t < s->length[giver]; t++) {
            int site = order[t];
            own += (double)s->share[(size_t)giver * sites + (size_t)site];
            for (int i = s->listed_at[site]; i < s->listed_at[site + 1]; i++) {
                int h = s->listed[i];
                double violation = (s->served[h] += (double)s->listed_share[i]) - own;
                if ((violation > most || (violation == most && h < taker)) && h != giver && !is_known(s, giver, t, h)) {
                    most = violation;
                    place = t;
                    taker = h;
                }
            }
        }
        if (taker >= 0)
            add_row(s, giver, place, taker);
    }
    s->x->effort.work += (double)p->clients * p->clients * 10.0;
    return s->count - before;
}
