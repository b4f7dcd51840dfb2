/* Groups of clients, found by a hash table over their cells: in the order of their first clients, so that the same clients
 * always give the same groups and the same sums. */
#include "client_groups.h"

#include <limits.h>
#include <string.h>

#include "sweep_threads.h"

#define FIRST_GROUPS 1024

/* Client, or group of clients, on its way into a group. */
typedef struct {
    int length;
    unsigned char site[MOST_STREAMED_SITES];
    double near[MOST_STREAMED_SITES];
    double relay, weight, most, u;
} member;

typedef struct {
    client_groups *groups;
    int room, failed;
    size_t cell_room, slots;
    int *slot;              /* hash table: a group, -1: none */
    unsigned *hash, *members; /* by group */
} builder;

void free_groups(client_groups *g)
{
    if (!g)
        return;
    free(g->start);
    free(g->site);
    free(g->near);
    free(g->relay);
    free(g->weight);
    free(g->most);
    free(g->u);
    free(g);
}

/* Give an array room for `count` elements; 0 without memory, and the array is as it was. */
static int resize(void *array, size_t count, size_t size)
{
    void **at = array, *moved = realloc(*at, count * size + 8);
    if (!moved)
        return 0;
    *at = moved;
    return 1;
}

static int make_room(builder *b, int room, size_t cells)
{
    client_groups *g = b->groups;
    size_t n = (size_t)room;
    if (!resize(&g->start, n + 1, sizeof(size_t)) || !resize(&g->relay, n, sizeof(double)) ||
        !resize(&g->weight, n, sizeof(double)) || !resize(&g->most, n, sizeof(double)) || !resize(&g->u, n, sizeof(double)) ||
        !resize(&b->hash, n, sizeof(unsigned)) || !resize(&b->members, n, sizeof(unsigned)) ||
        !resize(&g->site, cells, 1) || !resize(&g->near, cells, sizeof(double)))
        return 0;
    b->room = room;
    b->cell_room = cells;
    return 1;
}

static int make_slots(builder *b, size_t slots)
{
    if (!resize(&b->slot, slots, sizeof(int)))
        return 0;
    b->slots = slots;
    memset(b->slot, 0xff, slots * sizeof(int));
    for (int i = 0; i < b->groups->count; i++) {
        size_t at = b->hash[i] & (slots - 1);
        while (b->slot[at] >= 0)
            at = (at + 1) & (slots - 1);
        b->slot[at] = i;
    }
    return 1;
}

static unsigned hash_sites(const unsigned char *site, int length)
{
    unsigned hash = 2166136261u;
    for (int i = 0; i < length; i++)
        hash = (hash ^ site[i]) * 16777619u;
    return hash ^ hash >> 15;
}

static int begin(builder *b)
{
    memset(b, 0, sizeof *b);
    b->groups = calloc(1, sizeof(client_groups));
    if (!b->groups || !make_room(b, FIRST_GROUPS, 4 * FIRST_GROUPS) || !make_slots(b, 4 * FIRST_GROUPS))
        b->failed = 1;
    else
        b->groups->start[0] = 0;
    return !b->failed;
}

/* Add a member to its group, or make one of it. */
static void add_member(builder *b, const member *m)
{
    client_groups *g = b->groups;
    unsigned hash = hash_sites(m->site, m->length);
    size_t at = hash & (b->slots - 1), length = (size_t)m->length;
    for (int i; (i = b->slot[at]) >= 0; at = (at + 1) & (b->slots - 1)) {
        size_t first = g->start[i];
        if (b->hash[i] != hash || g->start[i + 1] - first != length || memcmp(g->site + first, m->site, length) != 0)
            continue;
        for (int k = 0; k < m->length; k++)
            g->near[first + (size_t)k] += m->near[k];
        g->relay[i] += m->relay;
        g->weight[i] += m->weight;
        g->most[i] += m->most;
        g->u[i] += m->u;
        b->members[i]++;
        return;
    }
    size_t first = g->start[g->count];
    int room = b->room, fits = g->count < room && first + length <= b->cell_room;
    if (!fits) {
        size_t cells = first + length > b->cell_room ? 2 * b->cell_room : b->cell_room;
        room = g->count < room ? room : room <= INT_MAX / 2 ? 2 * room : INT_MAX;
        if (room <= g->count || !make_room(b, room, cells)) {
            b->failed = 1;
            return;
        }
    }
    int i = g->count++;
    b->slot[at] = i;
    b->hash[i] = hash;
    b->members[i] = 1;
    g->start[i + 1] = first + length;
    memcpy(g->site + first, m->site, length);
    memcpy(g->near + first, m->near, length * sizeof(double));
    g->relay[i] = m->relay;
    g->weight[i] = m->weight;
    g->most[i] = m->most;
    g->u[i] = m->u;
    if (2 * (size_t)g->count > b->slots && !make_slots(b, 2 * b->slots))
        b->failed = 1;
}

/* Round the sums down, give back what was not needed, and return the groups; NULL when there was no memory. */
static client_groups *finish(builder *b, int exact)
{
    client_groups *g = b->groups;
    unsigned longest = 0;
    if (b->failed || !make_room(b, g->count > 0 ? g->count : 1, g->start[g->count])) {
        free_groups(g);
        g = NULL;
    }
    for (int i = 0; g && i < g->count; i++)
        longest = b->members[i] > longest ? b->members[i] : longest;
    double down = 1.0 - 2.0 * UNIT_ROUNDOFF * ((double)longest + 4.0);
    for (int i = 0; g && !exact && i < g->count; i++) {
        for (size_t k = g->start[i]; k < g->start[i + 1]; k++)
            g->near[k] *= down;
        g->relay[i] *= down;
        g->most[i] = g->most[i] < BIG ? g->most[i] * down : BIG;
    }
    for (int i = 0; g && i < g->count; i++)
        if (g->start[i] == g->start[i + 1] || g->u[i] > g->most[i])
            g->u[i] = g->most[i]; /* nothing but its certain sites, or no more than those */
    free(b->slot);
    free(b->hash);
    free(b->members);
    return g;
}

/* The groups at the end of a call; none when it was paused. */
static client_groups *finish_call(context *x, builder *b)
{
    x->control.out_of_memory |= b->failed;
    b->failed |= x->control.paused;
    client_groups *g = finish(b, x->p.granularity > 0.0);
    x->control.out_of_memory |= !g && !x->control.paused;
    return g;
}

/* Clients that are made members at a time, block by block. */
typedef struct {
    const client_stream *clients;
    const double *u, *relay;
    int sites, open_count, certain_count, first; /* first: the first client of the batch */
    int open[MOST_STREAMED_SITES], certain[MOST_STREAMED_SITES];
    member *made;
} batch;

static member member_of(const batch *t, int c)
{
    const client_stream *clients = t->clients;
    const double *d = clients->rtt + (size_t)(clients->row ? clients->row[c] : (long long)c) * (size_t)t->sites;
    double near = clients->near_weight[c], key[MOST_STREAMED_SITES];
    member m = {.relay = clients->relay_weight[c], .most = BIG};
    int certain = -1;
    for (int i = 0; i < t->certain_count; i++)
        if (certain < 0 || d[t->certain[i]] < d[certain])
            certain = t->certain[i];
    m.weight = near + m.relay;
    for (int i = 0; i < t->open_count; i++) { /* sorted by RTT, then by site */
        int j = t->open[i], at = m.length;
        if (certain >= 0 && (d[j] > d[certain] || (d[j] == d[certain] && j > certain)))
            continue;
        for (; at > 0 && key[at - 1] > d[j]; at--) {
            key[at] = key[at - 1];
            m.site[at] = m.site[at - 1];
        }
        key[at] = d[j];
        m.site[at] = (unsigned char)j;
        m.length++;
    }
    for (int i = 0; i < m.length; i++)
        m.near[i] = near * key[i];
    if (certain >= 0)
        m.most = near * d[certain] + m.relay * t->relay[certain];
    m.u = t->u[c] < m.most ? t->u[c] : m.most;
    return m;
}

static void make_members(void *task, size_t block)
{
    const batch *t = task;
    int first = (int)block * BLOCK_MEMBERS, last = first + BLOCK_MEMBERS, left = t->clients->clients - t->first;
    for (int i = first; i < last && i < left; i++)
        t->made[i] = member_of(t, t->first + i);
}

client_groups *group_clients(context *x, const client_stream *clients, const double *u, int leader, const unsigned char *state)
{
    builder b;
    double relay[MOST_STREAMED_SITES];
    batch t = {.clients = clients, .u = u, .relay = relay, .sites = x->p.sites};
    relay_to_leader(x, leader, relay);
    for (int j = 0; j < t.sites; j++)
        if (state[j] == FREE)
            t.open[t.open_count++] = j;
        else if (state[j] == IN)
            t.certain[t.certain_count++] = j;
    begin(&b);
    t.made = malloc(BATCH_BLOCKS * BLOCK_MEMBERS * sizeof(member));
    b.failed |= !t.made;
    for (; t.first < clients->clients && !b.failed && !must_pause(x); t.first += BATCH_BLOCKS * BLOCK_MEMBERS) {
        int left = clients->clients - t.first, size = BATCH_BLOCKS * BLOCK_MEMBERS < left ? BATCH_BLOCKS * BLOCK_MEMBERS : left;
        run_in_threads(make_members, &t, ((size_t)size + BLOCK_MEMBERS - 1) / BLOCK_MEMBERS, clients->threads);
        for (int i = 0; i < size && !b.failed; i++)
            add_member(&b, &t.made[i]);
        x->effort.work += WORK_OF_GROUPING * t.sites * size;
    }
    free(t.made);
    return finish_call(x, &b);
}

client_groups *regroup_clients(context *x, const client_groups *from, int leader, const unsigned char *state)
{
    builder b;
    double relay[MOST_STREAMED_SITES];
    relay_to_leader(x, leader, relay);
    begin(&b);
    for (int i = 0; i < from->count && !b.failed && !must_pause(x); i++) {
        member m = {.relay = from->relay[i], .weight = from->weight[i], .most = from->most[i]};
        for (size_t k = from->start[i]; k < from->start[i + 1]; k++) {
            int j = from->site[k];
            if (state[j] == IN) {
                m.most = from->near[k] + m.relay * relay[j];
                break;
            }
            if (state[j] == FREE) {
                m.site[m.length] = (unsigned char)j;
                m.near[m.length++] = from->near[k];
            }
        }
        m.u = from->u[i] < m.most ? from->u[i] : m.most;
        add_member(&b, &m);
        x->effort.work += WORK_OF_GROUPING * (double)(from->start[i + 1] - from->start[i]);
    }
    return finish_call(x, &b);
}

double cost_of_groups(const client_groups *g, const unsigned char *chosen, const double *relay)
{
    double total = 0.0;
    for (int i = 0; i < g->count; i++) {
        size_t k = g->start[i];
        while (k < g->start[i + 1] && !chosen[g->site[k]])
            k++;
        total += k < g->start[i + 1] ? g->near[k] + g->relay[i] * relay[g->site[k]] : g->most[i];
    }
    return total;
}
