/* Scenarios of late operations and of the mean: the voters' part, and complete sets. See late.h. */
#include "late.h"

#include <string.h>

/* The value at a place of an ascending list over sites, or the sum up to it, at sites IN and at most `room` sites FREE. */
static double least_at(const int *site, const double *value, int count, int place, int summed, const unsigned char *state,
                       int room)
{
    int found = 0;
    double sum = 0.0;
    if (place < 0)
        return 0.0;
    for (int i = 0; i < count; i++) {
        unsigned char at = state[site[i]];
        if (at == IN || (at == FREE && room-- > 0)) {
            sum += value[i];
            if (found++ == place)
                return summed ? sum : value[i];
        }
    }
    return BIG;
}

/* Least sum of the prices of free sites that complete a set: as many as the least size needs, and others below 0. */
static double completion(const late_problem *x, const double *price, const unsigned char *state, int in, int most)
{
    int least = x->question.replicas_min - in, count = 0;
    double sum = 0.0;
    for (int j = 0; j < x->sites; j++) {
        if (state[j] != FREE)
            continue;
        int at = count < most ? count++ : most;
        if (at == most && (most <= 0 || price[j] >= x->cheapest[--at]))
            continue;
        for (; at > 0 && x->cheapest[at - 1] > price[j]; at--)
            x->cheapest[at] = x->cheapest[at - 1];
        x->cheapest[at] = price[j];
    }
    for (int i = 0; i < count && (i < least || x->cheapest[i] < 0.0); i++)
        sum += x->cheapest[i];
    return sum;
}

/* The state without the sites of a loss. */
static const unsigned char *survivors(const late_problem *x, const late_scenario *g, const unsigned char *state)
{
    if (!g->lost)
        return state;
    for (int j = 0; j < x->sites; j++)
        x->surviving[j] = g->lost[j] ? OUT : state[j];
    return x->surviving;
}

static double voters_part(const late_problem *x, const late_scenario *g, const unsigned char *given, int room)
{
    const unsigned char *state = survivors(x, g, given);
    double least = BIG, votes = least_at(g->paid_site, g->vote, g->paid, g->votes - 1, 1, state, room);
    if (votes >= BIG)
        return BIG;
    if (!g->lates)
        least = least_at(g->site, g->wait, g->able, g->place, g->summed, state, room);
    for (int i = 0; i < g->lates; i++) {
        late_voters **of = g->late + (size_t)i * (size_t)g->intervals;
        unsigned char at = state[of[0]->leader];
        double late = 0.0;
        if (at == OUT || (at == FREE && room < 1))
            continue;
        for (int k = 0; k < g->intervals && late < least; k++)
            late += least_late(of[k], state, room - (at == FREE));
        least = late < least ? late : least;
    }
    return least >= BIG ? BIG : votes + least;
}

/* Whether a scenario counts in a state: its loss, if any, is hit. */
static int counts_in(const late_problem *x, const late_scenario *g, const unsigned char *state)
{
    int hit = !g->lost;
    for (int j = 0; j < x->sites && !hit; j++)
        hit = g->lost[j] && state[j] == IN;
    return hit;
}

static double rest(void *self, int s, const unsigned char *state, int most)
{
    const late_problem *x = self;
    const late_scenario *g = &x->given[s];
    double sum = voters_part(x, g, state, most);
    int in = 0;
    if (sum >= BIG)
        return BIG;
    sum += g->constant;
    for (int j = 0; j < x->sites && g->price; j++)
        if (state[j] == IN) {
            sum += g->price[j];
            in++;
        }
    if (!g->cost && g->price && sum + completion(x, g->price, state, in, most) > x->scenario[s].threshold)
        return BIG;
    return sum;
}

static int in_force(void *self, const unsigned char *state, int *which, double *weight)
{
    const late_problem *x = self;
    int count = 0;
    (void)weight;
    for (int s = 0; s < x->scenarios; s++)
        if (counts_in(x, &x->given[s], state))
            which[count++] = s;
    return count;
}

/* Add the free ones of the first `needed` sites that are neither OUT nor lost; sites that are there already are not added. */
static int add_first(const int *site, int able, int needed, const unsigned char *lost, const unsigned char *state, int *sites,
                     int count)
{
    int before = count;
    for (int i = 0; i < able && needed > 0; i++) {
        int known = 0;
        if (state[site[i]] == OUT || (lost && lost[site[i]]))
            continue;
        needed--;
        for (int k = 0; k < before && !known; k++)
            known = sites[k] == site[i];
        if (state[site[i]] == FREE && !known)
            sites[count++] = site[i];
    }
    return count;
}

/* The first sites that may vote, as many as voters are needed, and of them the free ones. Nothing is said of several who may
 * lead. */
static int matter(void *self, int s, const unsigned char *state, int most, int *sites)
{
    const late_problem *x = self;
    const late_scenario *g = &x->given[s];
    int count = 0;
    (void)most;
    if (!g->lates)
        count = add_first(g->site, g->able, g->place + 1, g->lost, state, sites, count);
    for (int k = 0; g->lates == 1 && k < g->intervals; k++) {
        const late_voters *v = g->late[k];
        count = add_first(v->site, v->others, v->members, g->lost, state, sites, count);
    }
    return add_first(g->paid_site, g->paid, g->votes, g->lost, state, sites, count);
}

/* Voters that keep the late operations within their slack and the waits within theirs, with nothing lost; the terms are
 * bounded one by one, and where the RTTs of the leader are ordered that is all there is to know. */
static voters_found fit(void *self, const unsigned char *state, int most, const double *slack, double *effort, int *voters,
                        int *count)
{
    late_problem *x = self;
    late_voters *v = NULL;
    const unsigned char *near = NULL;
    int far = 0, at = 0;
    double allowed = *effort;
    *effort = 0.0;
    *count = 0;
    for (int s = 0; s < x->scenarios; s++) {
        const late_scenario *g = &x->given[s];
        if (g->lost)
            continue;
        if (g->lates) {
            v = g->intervals == 1 ? g->late[0] : NULL; /* the terms of several intervals are not weighed against each other */
            at = s;
        } else if (slack[s] < BIG) {
            memset(x->near, 0, (size_t)x->sites);
            for (int i = 0; i < g->able && g->wait[i] <= slack[s] - g->constant; i++)
                x->near[g->site[i]] = 1;
            near = x->near;
            far = -g->place;
        }
    }
    if (!v || v->ordered || slack[at] >= BIG)
        return VOTERS_UNKNOWN;
    double times = v->times, rounds = v->kinds ? v->votes[v->kinds - 1] : 0;
    double cost = times * (v->members * (v->needed + 1) + 4) + (rounds > 1 ? (rounds - 1) * times * times / 2 : 0.0);
    long before = v->computed, tries = (long)(allowed / cost) + 2 * v->members;
    voters_found found =
        find_voters(v, state, most, slack[at] - x->given[at].constant, near, far + v->members, tries, voters);
    *effort = cost * (double)(v->computed - before);
    *count = found == VOTERS_FOUND ? v->members : 0;
    return found;
}

/* Sum of the costs of the clients at their first replica that is not lost; 0 if there is none. */
VECTORISED static double assigned(const late_scenario *g, const int *rank, const int *replicas, int count, int clients,
                                  size_t padded)
{
    double sum = 0.0;
    int first = 0;
    while (first < count && g->lost && g->lost[replicas[first]])
        first++;
    if (first == count)
        return 0.0;
    for (int c = 0; c < clients; c++) {
        size_t at = (size_t)replicas[first] * padded + (size_t)c;
        for (int i = first + 1; i < count; i++) {
            size_t other = (size_t)replicas[i] * padded + (size_t)c;
            at = rank[other] < rank[at] && !(g->lost && g->lost[replicas[i]]) ? other : at;
        }
        sum += g->cost[at];
    }
    return sum;
}

/* A complete set: first what is cheap, then voters, then the caller. */
static int leaf(void *self, const int *replicas, int count)
{
    late_problem *x = self;
    int voters;
    double effort = LATE_SET_EFFORT;
    memset(x->state, OUT, (size_t)x->sites);
    for (int i = 0; i < count; i++)
        x->state[replicas[i]] = IN;
    for (int s = 0; s < x->scenarios; s++) {
        const late_scenario *g = &x->given[s];
        x->left[s] = x->scenario[s].threshold;
        if (!counts_in(x, g, x->state))
            continue;
        if (g->cost)
            x->left[s] -= assigned(g, x->rank, replicas, count, x->clients, (size_t)x->padded);
        for (int i = 0; i < count && g->price; i++)
            x->left[s] -= g->price[replicas[i]];
        int below_zero = g->summed || g->votes; /* prices of votes may be */
        if ((!below_zero && x->left[s] < g->constant) || g->constant + voters_part(x, g, x->state, 0) > x->left[s])
            return 0;
    }
    voters_found found = fit(x, x->state, 0, x->left, &effort, x->voters, &voters);
    x->tree.effort += effort;
    return found == VOTERS_NONE ? 0 : x->keeps(x, replicas, count);
}

int late_open(late_problem *x)
{
    size_t S = (size_t)x->sites;
    int late = 0, lost = 0;
    scenario_question *q = &x->question;
    x->state = malloc(S + 1);
    x->near = malloc(S + 1);
    x->surviving = malloc(S + 1);
    x->left = malloc(((size_t)x->scenarios + 1) * sizeof(double));
    x->voters = malloc((S + 1) * sizeof(int));
    x->cheapest = malloc((S + 1) * sizeof(double));
    x->site_order = sites_in_order(x->rank, x->clients, x->sites, (size_t)x->padded);
    q->sites = x->sites;
    q->clients = x->clients;
    q->padded = x->padded;
    if (!x->site_order || !x->state || !x->near || !x->surviving || !x->left || !x->voters || !x->cheapest)
        return 0;
    for (int s = 0; s < x->scenarios; s++) {
        late_scenario *g = &x->given[s];
        late = late || g->lates;
        lost = lost || g->lost;
        x->scenario[s].price = g->price;
        x->scenario[s].lost = g->lost;
        if (!g->cost)
            continue;
        if (!(g->first = malloc(((size_t)x->padded + 1) * sizeof(double))))
            return 0;
        for (int c = 0; c < x->padded; c++)
            g->first[c] = 0.5 * g->cost[(size_t)x->leader * (size_t)x->padded + (size_t)c];
        x->scenario[s].cost = g->cost;
        x->scenario[s].rank = x->rank;
        x->scenario[s].first = g->first;
        x->scenario[s].order = g->lost ? NULL : order_of_detours(q, g->cost, x->site_order);
    }
    q->rules = &x->rules;
    q->scenarios = x->scenarios;
    q->scenario = x->scenario;
    q->weigh_selection = !lost;
    q->self = x;
    q->in_force = in_force;
    q->rest = rest;
    q->matter = matter;
    q->fit = late ? fit : NULL;
    q->leaf = leaf;
    for (int j = 0; j < x->sites; j++)
        x->state[j] = x->must[j] || j == x->leader ? IN : x->may[j] ? FREE : OUT;
    x->opened = tree_open(&x->tree, q, x->state, NULL);
    if (late)
        x->tree.first_step = LATE_FIRST_STEP;
    return x->opened;
}

void late_close(late_problem *x)
{
    if (x->opened)
        tree_close(&x->tree);
    for (int s = 0; s < x->scenarios && x->given; s++) {
        if (!x->given[s].borrowed)
            free(x->given[s].cost);
        free(x->given[s].price);
        free(x->given[s].first);
        free(x->given[s].lost);
        free(x->given[s].late);
        free(x->given[s].site);
        free(x->given[s].wait);
        free(x->given[s].paid_site);
        free(x->given[s].vote);
    }
    free(x->given);
    free(x->scenario);
    families_free(&x->rules);
    free(x->rank);
    free(x->site_order);
    free(x->may);
    free(x->must);
    free(x->state);
    free(x->near);
    free(x->surviving);
    free(x->left);
    free(x->cheapest);
    free(x->voters);
    memset(x, 0, sizeof *x);
}
