/* Depth-first search over the sites of a threshold question, and its record. See scenario.h. */
#include <math.h>
#include <string.h>

#include "scenario.h"

/* ---- The record of a tree: a flat list of numbers, in depth-first order.
 *
 * A part of the search is a state of the sites. The root is the state with which the tree was opened (losses.h, late.h). An event
 * is a code and its numbers; ../../threshold_certificate.py reads them. A bound is written as
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

/* The bound of scenario s alone: multiplier u of its only client, 0 of all others, which cost nothing there. */
static void record_client(scenario_tree *t, double kind, double spare, int s, double u)
{
    append_number(&t->record, kind);
    append_number(&t->record, spare);
    append_number(&t->record, 1.0);
    append_number(&t->record, s);
    append_number(&t->record, 1.0);
    for (int c = 0; c < t->question->clients; c++)
        append_number(&t->record, c == t->only[s] ? u : 0.0);
}

static void record_state(scenario_tree *t, double kind, double spare)
{
    event_stream *r = &t->record;
    const scenario_bound *b = t->work;
    if (!r->on || r->failed)
        return;
    int used = 0;
    for (int a = 0; a < b->active; a++)
        used += b->best_weight[a] > 0.0;
    append_number(r, kind);
    append_number(r, spare);
    append_number(r, used);
    for (int a = 0; a < b->active; a++) {
        if (!(b->best_weight[a] > 0.0))
            continue;
        append_number(r, b->which[a]);
        append_number(r, b->best_weight[a]);
        best_multipliers(t->question, b, a, b->direction);
        for (int c = 0; c < t->question->clients; c++)
            append_number(r, b->direction[c]);
    }
}

/* ---- Depth-first search over the sites of a threshold question. See scenario.h. ---- */

int tree_must_pause(scenario_tree *t)
{
    if (!t->paused && t->pause && t->effort > t->next_pause) {
        t->next_pause = t->effort + WORK_BETWEEN_PAUSES;
        t->paused = t->pause(t->pause_self) != 0;
    }
    return t->paused;
}

static size_t state_length(const scenario_question *q)
{
    return (size_t)q->sites * (q->votes ? 2 : 1);
}

static int push(scenario_tree *t, const unsigned char *state, multiplier_block *from, double bound, double normal)
{
    size_t length = state_length(t->question);
    if (t->depth == t->capacity) {
        int grown = t->capacity ? 2 * t->capacity : 64;
        scenario_node *stack = realloc(t->stack, (size_t)grown * sizeof(scenario_node));
        if (!stack)
            return 0;
        t->stack = stack;
        t->capacity = grown;
    }
    scenario_node *n = &t->stack[t->depth];
    if (!(n->state = malloc(length + 1)))
        return 0;
    memcpy(n->state, state, length);
    n->from = block_hold(from);
    n->bound = bound;
    n->normal_bound = normal;
    n->root = 0;
    t->depth++;
    return 1;
}

static void pop(scenario_tree *t)
{
    scenario_node *n = &t->stack[--t->depth];
    free(n->state);
    block_release(n->from);
}

/* The client that pays in a scenario, -1: none or several. */
static int only_client(const scenario_question *q, const scenario *s)
{
    int found = -1;
    if (!s->cost || s->price || s->lost || s->discount || q->fixed_weights)
        return -1;
    for (int j = 0; j < q->sites; j++)
        for (int c = 0; c < q->clients; c++)
            if (s->cost[(size_t)j * (size_t)q->padded + (size_t)c] > 0.0 && c != found) {
                if (found >= 0)
                    return -1;
                found = c;
            }
    return found;
}

int tree_open(scenario_tree *t, const scenario_question *q, const unsigned char *state, const double *u)
{
    size_t S = (size_t)q->sites;
    multiplier_block *from = NULL;
    memset(t, 0, sizeof(*t));
    t->question = q;
    t->root_steps = THRESHOLD_FIRST_STEPS;
    t->node_steps = THRESHOLD_LATER_STEPS;
    t->first_step = 1.0;
    t->work = bound_alloc(q);
    t->set = own(&t->owned, S + 1, sizeof(int));
    t->counts = own(&t->owned, (size_t)longest_count(q->rules), sizeof(int));
    t->listed = own(&t->owned, S + 1, sizeof(int));
    t->gain = own(&t->owned, S + 1, sizeof(double));
    t->vote_gain = own(&t->owned, S + 1, sizeof(double));
    t->vote_cost = own(&t->owned, S + 1, sizeof(double));
    t->slack = own(&t->owned, (size_t)q->scenarios + 1, sizeof(double));
    t->only = own(&t->owned, (size_t)q->scenarios + 1, sizeof(int));
    t->scratch_state = own(&t->owned, state_length(q) + 1, 1);
    int ok = t->work && !t->owned.failed;
    for (int s = 0; ok && s < q->scenarios; s++)
        t->only[s] = only_client(q, &q->scenario[s]);
    if (ok && u) { /* one row that every scenario begins with; -1 is no scenario's number */
        ok = (from = block_make(1, q->padded)) != NULL;
        if (ok) {
            from->which[0] = -1;
            from->weight[0] = 1.0;
            memcpy(from->u, u, (size_t)q->padded * sizeof(double));
        }
    }
    ok = ok && push(t, state, from, -BIG, -BIG);
    block_release(from);
    if (!ok) {
        tree_close(t);
        return 0;
    }
    t->stack[0].root = 1;
    return 1;
}

void tree_close(scenario_tree *t)
{
    while (t->depth > 0)
        pop(t);
    free(t->stack);
    bound_free(t->work);
    free(t->record.data);
    release(&t->owned);
    memset(t, 0, sizeof(*t));
}

double tree_least(const scenario_tree *t)
{
    double least = BIG;
    for (int i = 0; i < t->depth; i++)
        if (t->stack[i].bound < least)
            least = t->stack[i].bound;
    return least;
}

double tree_least_normal(const scenario_tree *t)
{
    double least = BIG;
    for (int i = 0; i < t->depth; i++)
        if (t->stack[i].normal_bound < least)
            least = t->stack[i].normal_bound;
    return least;
}

/* Sets of `size` sites, those after `count` from the free sites behind `first`. `bound` is the bound of the node without
 * the reduced costs of sites that are left, and with those of the set so far: it closes most sets. 1: stop. */
static int enumerate(scenario_tree *t, int first, int count, int size, double bound)
{
    const scenario_bound *b = t->work;
    if (count == size) {
        if (bound >= 0.0 || !sites_obey(t->question->rules, t->set, count, t->counts))
            return 0;
        t->leaves++;
        t->effort += 1000.0 + 20.0 * t->question->clients;
        return t->question->leaf(t->question->self, t->set, count);
    }
    for (int i = first; i < b->free_count && b->free_count - i >= size - count; i++) {
        t->set[count] = b->free_site[i];
        if (enumerate(t, i + 1, count + 1, size, bound + b->best_rho[i]))
            return 1;
    }
    return 0;
}

/* Number of sets that are left, at most THRESHOLD_FEW_SETS + 1. */
static int sets_left(const scenario_question *q, int in, int free_count)
{
    int least = q->replicas_min > in ? q->replicas_min - in : 0, most = q->replicas_max - in;
    double total = 0.0;
    for (int k = least; k <= most && k <= free_count; k++) {
        double ways = 1.0;
        for (int i = 0; i < k && ways <= THRESHOLD_FEW_SETS; i++)
            ways = ways * (free_count - i) / (i + 1);
        total += ways;
        if (total > THRESHOLD_FEW_SETS)
            return THRESHOLD_FEW_SETS + 1;
    }
    return (int)(total + 0.5);
}

/* Sites that the best multipliers decide: closed with the site on the other side. */
static void fix_sites(scenario_tree *t, unsigned char *state, double value)
{
    scenario_bound *b = t->work;
    int out = 0, in = 0;
    int *which = b->order, *held = b->order + b->free_count;
    double spare = BIG;
    for (int i = 0; i < b->free_count; i++) {
        double gain = b->best_chosen[i] ? b->next - b->best_rho[i] : b->best_rho[i] - b->last;
        if (!b->best_chosen[i] && b->best_rho[i] >= 0.0 && b->best_count < b->most && b->last < 0.0)
            gain = b->best_rho[i]; /* it takes no site's place, though rules may leave one of 0 unchosen */
        double left = value + gain - 4.0 * b->error;
        if (left < 0.0 || (!b->best_chosen[i] && b->last <= -BIG))
            continue;
        if (b->best_chosen[i])
            held[in++] = b->free_site[i];
        else
            which[out++] = b->free_site[i];
        spare = left < spare ? left : spare;
    }
    if (out + in == 0)
        return;
    record_state(t, 2.0, spare);
    append_number(&t->record, out);
    for (int i = 0; i < out; i++) {
        append_number(&t->record, which[i]);
        state[which[i]] = OUT;
    }
    append_number(&t->record, in);
    for (int i = 0; i < in; i++) {
        append_number(&t->record, held[i]);
        state[held[i]] = IN;
    }
}

/* By how much the voters' part rises for scenario s of weight `share`, with a site in another state. */
static double rise(const scenario_tree *t, int s, double share, double before, const unsigned char *state, int most)
{
    double after = t->question->rest(t->question->self, s, state, most);
    return after >= BIG ? BIG : share * (after - before);
}

/* The same with a site as a voter. */
static double rise_by_vote(const scenario_tree *t, int s, double share, double before, unsigned char *state, int site)
{
    unsigned char *vote = state + t->question->sites, held = state[site];
    vote[site] = state[site] = IN;
    double found = rise(t, s, share, before, state, t->work->most - (held == FREE));
    vote[site] = FREE;
    state[site] = held;
    return found;
}

/* Cost of each site as a voter, added to t->vote_cost: the same for all that do not matter to `rest` and are free, or all
 * that hold a replica. */
static void add_vote_costs(scenario_tree *t, int s, double share, double before, unsigned char *state, int mattering)
{
    const scenario_question *q = t->question;
    int *matters = t->work->candidate;
    double of_others[2] = {-1.0, -1.0}; /* not known */
    for (int j = 0; j < q->sites; j++)
        matters[j] = 0;
    for (int i = 0; i < mattering; i++)
        matters[t->work->order[i]] = 1;
    for (int j = 0; j < q->sites; j++) {
        double *others = &of_others[state[j] == IN];
        if (state[j] == OUT || state[q->sites + j] != FREE)
            continue;
        if (matters[j])
            t->vote_cost[j] += rise_by_vote(t, s, share, before, state, j);
        else {
            if (*others < 0.0)
                *others = rise_by_vote(t, s, share, before, state, j);
            t->vote_cost[j] += *others;
        }
    }
}

/* Estimate the rise of the bound for each free site: t->gain without it as a replica, t->vote_gain without it as a voter, t->vote_cost
 * with it as a voter. */
static void measure_gains(scenario_tree *t, unsigned char *state)
{
    const scenario_question *q = t->question;
    scenario_bound *b = t->work;
    unsigned char *vote = q->votes ? state + q->sites : state;
    for (int j = 0; j < q->sites; j++)
        t->gain[j] = t->vote_gain[j] = t->vote_cost[j] = 0.0;
    for (int i = 0; i < b->free_count; i++)
        t->gain[b->free_site[i]] = b->best_chosen[i] ? b->next - b->best_rho[i] + THRESHOLD_NO_GAIN : 0.0;
    for (int a = 0; a < b->active; a++) {
        int s = b->which[a], tried = 0;
        double share = b->best_weight[a] / q->scenario[s].scale;
        if (!(share > 0.0))
            continue;
        if (q->matter)
            tried = q->matter(q->self, s, state, b->most, b->order);
        else
            for (int j = 0; j < q->sites; j++)
                if (state[j] != OUT)
                    b->order[tried++] = j;
        for (int i = 0; i < tried; i++) {
            int site = b->order[i];
            if (vote[site] != FREE)
                continue;
            vote[site] = OUT;
            t->vote_gain[site] += rise(t, s, share, b->rest[a], state, b->most);
            vote[site] = FREE;
        }
        if (q->votes)
            add_vote_costs(t, s, share, b->rest[a], state, tried);
        t->effort += 60.0 * tried;
    }
}

/* ---- Scenarios of one client, such as a limit for it: one of the sites that serve it below the threshold holds a replica. */

/* The number of sites that may serve the client of scenario s below its threshold, and the last of them; -1: one is fixed, or
 * the scenario is not of one client. `reach`: the voters' part, and the least cost at any other site. */
static int serving_sites(const scenario_tree *t, int s, const unsigned char *state, int most, int *site, double reach[2])
{
    const scenario_question *q = t->question;
    const scenario *of = &q->scenario[s];
    size_t P = (size_t)q->padded, c = (size_t)t->only[s];
    int first = -1, count = 0;
    reach[1] = BIG;
    if (t->only[s] < 0 || of->threshold >= BIG || (reach[0] = q->rest(q->self, s, state, most)) >= BIG)
        return -1;
    /* what reaches the threshold by no more than rounding is below it */
    double room = of->threshold - reach[0] + 8.0 * UNIT_ROUNDOFF * (fabs(reach[0]) + fabs(of->threshold));
    for (int j = 0; j < q->sites; j++)
        if (state[j] == IN && (first < 0 || of->rank[(size_t)j * P + c] < of->rank[(size_t)first * P + c]))
            first = j;
    if (first >= 0 && of->cost[(size_t)first * P + c] < room)
        return -1;
    for (int j = 0; j < q->sites; j++) {
        double cost = of->cost[(size_t)j * P + c];
        if (state[j] == OUT || (first >= 0 && of->rank[(size_t)j * P + c] > of->rank[(size_t)first * P + c]))
            continue;
        if (cost < room) {
            count++;
            *site = j;
        } else
            reach[1] = fmin(reach[1], cost);
    }
    return count;
}

/* The site to branch on for the client that the fewest sites may serve: that of the largest gain; -1: all are served. */
static int serving_site(const scenario_tree *t, const unsigned char *state, int most)
{
    const scenario_question *q = t->question;
    int fewest = q->sites + 1, found = -1;
    for (int s = 0; s < q->scenarios; s++) {
        double reach[2], best = -1.0;
        int site, count = serving_sites(t, s, state, most, &site, reach);
        if (count < 0 || count >= fewest)
            continue;
        fewest = count;
        for (int j = 0; j < q->sites; j++) {
            double cost = q->scenario[s].cost[(size_t)j * (size_t)q->padded + (size_t)t->only[s]];
            if (state[j] != FREE || cost + reach[0] >= q->scenario[s].threshold || t->gain[j] + t->vote_gain[j] <= best)
                continue;
            best = t->gain[j] + t->vote_gain[j];
            found = j;
        }
    }
    return found;
}

/* The site to branch on: one that serves the client with the fewest choices; where all are served, that whose loss as a
 * candidate raises the bound most; -1: none is free. Where nothing tells them apart, one of the `voters`. `vote`: on its vote rather than on its replica. So it is where most of the rise is that of the
 * voters' part, or where any further voter costs more than a replica less: sites near each other stand in for one another,
 * and none of them is missed alone. */
static int branching_site(scenario_tree *t, unsigned char *state, const int *voters, int count, int *vote)
{
    const scenario_question *q = t->question;
    double most = -1.0;
    int found = -1, voter = -1;
    *vote = 0;
    measure_gains(t, state);
    int serving = serving_site(t, state, t->work->most);
    if (serving >= 0)
        return serving;
    for (int j = 0; j < q->sites; j++) {
        double gain = t->gain[j] + t->vote_gain[j];
        int open = q->votes && state[j] != OUT && state[q->sites + j] == FREE;
        if (open && (voter < 0 || t->vote_cost[j] < t->vote_cost[voter]))
            voter = j;
        if (gain > most && (state[j] == FREE || (open && gain > 0.0))) {
            most = gain;
            found = j;
        }
    }
    for (int i = 0; i < count && most <= 0.0; i++)
        if (state[voters[i]] == FREE)
            return voters[i];
    if (voter >= 0 && (found < 0 || most <= THRESHOLD_NO_GAIN || t->vote_cost[voter] > most)) {
        *vote = 1;
        return voter;
    }
    if (found >= 0 && q->votes && state[q->sites + found] == FREE)
        *vote = state[found] == IN || t->vote_gain[found] > t->gain[found];
    return found;
}

/* Evaluate every set that is left and that the bound of the node does not close. 1: stop. */
static int evaluate_sets(scenario_tree *t, const unsigned char *state, int in, double value)
{
    const scenario_question *q = t->question;
    const scenario_bound *b = t->work;
    int at = 0, stop = 0;
    double bound = value > -BIG ? value - 4.0 * b->error : -BIG;
    for (int j = 0; j < q->sites; j++)
        if (state[j] == IN)
            t->set[at++] = j;
    for (int i = 0; i < b->free_count && value > -BIG; i++)
        bound -= b->best_chosen[i] ? b->best_rho[i] : 0.0;
    for (int size = q->replicas_max; size >= q->replicas_min && !stop; size--)
        if (size >= in)
            stop = enumerate(t, 0, in, size, bound);
    return stop;
}

/* Take the free sites away for which a rule leaves no room; 0 where no set that obeys each rule is left. */
static int close_without_room(scenario_tree *t, unsigned char *state)
{
    const scenario_question *q = t->question;
    int in = 0, least = q->replicas_min, most = q->replicas_max;
    if (!q->rules->rules)
        return 1;
    for (int j = 0; j < q->sites; j++)
        if (state[j] == IN)
            t->set[in++] = j;
    for (int k = 0; k < q->rules->count; k++) {
        const site_family *f = &q->rules->family[k];
        begin_count(f, t->counts);
        if (!count_all(f, t->counts, t->set, in, least, most))
            return 0;
        for (int j = 0; j < q->sites; j++) {
            if (state[j] != FREE)
                continue;
            if (take_site(f, t->counts, j, least, most))
                count_site(f, t->counts, j, -1);
            else
                state[j] = OUT;
        }
    }
    for (int k = 0; k < q->rules->count; k++) {
        const site_family *f = &q->rules->family[k];
        begin_count(f, t->counts);
        count_all(f, t->counts, t->set, in, least, most);
        for (int j = 0; j < q->sites; j++)
            if (state[j] == FREE)
                take_needed_site(f, t->counts, j, least, most);
        if (still_needed(f, t->counts, least) > 0)
            return 0;
    }
    return 1;
}

/* Take in the sites that alone serve a client below its threshold. 0: nothing serves some client so; the part is closed. */
static int serve_clients(scenario_tree *t, unsigned char *state, int *in, int *free_count)
{
    const scenario_question *q = t->question;
    for (int s = 0, since = 0; since < q->scenarios; s = (s + 1) % q->scenarios, since++) {
        double reach[2], threshold = q->scenario[s].threshold;
        int site, count = serving_sites(t, s, state, q->replicas_max - *in, &site, reach);
        t->effort += t->only[s] < 0 ? 0.0 : 4.0 * q->sites;
        if (count < 0 || count > 1)
            continue;
        double u = reach[1] >= BIG ? fabs(threshold) + fabs(reach[0]) + 1.0 : reach[1];
        double spare = 0.5 * (u + reach[0] - threshold) / q->scenario[s].scale;
        int closed = count == 0 || *in == q->replicas_max; /* where there is room for no more, one site is none */
        record_client(t, closed ? 1.0 : 2.0, spare, s, u);
        if (closed)
            return 0;
        append_number(&t->record, 0.0); /* sites out */
        append_number(&t->record, 1.0);
        append_number(&t->record, site);
        state[site] = IN;
        ++*in;
        --*free_count;
        since = -1;
    }
    return 1;
}

static void record_without_room(scenario_tree *t, const unsigned char *before, const unsigned char *state)
{
    int sites = t->question->sites, out = 0;
    for (int j = 0; j < sites; j++)
        out += state[j] != before[j];
    if (out == 0)
        return;
    append_number(&t->record, 2.0);
    append_number(&t->record, 0.0); /* to spare */
    append_number(&t->record, 0.0); /* scenarios */
    append_number(&t->record, out);
    for (int j = 0; j < sites; j++)
        if (state[j] != before[j])
            append_number(&t->record, j);
    append_number(&t->record, 0.0);
}

/* Look for a plan near the sites that are IN and those that the last bound selects. 1: it ends the search. */
static int propose_near(scenario_tree *t, const unsigned char *state)
{
    int count = 0;
    for (int j = 0; j < t->question->sites; j++)
        if (state[j] == IN)
            t->set[count++] = j;
    for (int i = 0; i < t->work->free_count; i++)
        if (t->work->best_chosen[i])
            t->set[count++] = t->work->free_site[i];
    return t->question->propose(t->question->self, t->set, count);
}

/* Bound the node on top of the stack and put its children there. */
static tree_outcome step(scenario_tree *t)
{
    const scenario_question *q = t->question;
    scenario_node node = t->stack[t->depth - 1];
    unsigned char *state = t->scratch_state;
    int in = 0, free_count = 0, voters = 0, vote = 0;
    size_t recorded = t->record.length;
    memcpy(state, node.state, state_length(q));
    int kept = close_without_room(t, state);
    for (int j = 0; j < q->sites; j++) {
        in += state[j] == IN;
        free_count += state[j] == FREE;
    }
    if (!kept || in > q->replicas_max || in + free_count < q->replicas_min) {
        append_number(&t->record, 5.0);
        pop(t);
        return TREE_OPEN;
    }
    record_without_room(t, node.state, state);
    if (!serve_clients(t, state, &in, &free_count)) {
        pop(t);
        return TREE_OPEN;
    }
    int few = sets_left(q, in, free_count) <= THRESHOLD_FEW_SETS;
    int steps = few ? THRESHOLD_FEW_STEPS : node.root ? t->root_steps : t->node_steps;
    double value = bound_state(t, state, node.from, steps);
    if (t->paused) { /* the node stays where it is */
        t->record.length = recorded;
        return t->paused == 2 ? TREE_NO_MEMORY : TREE_PAUSED;
    }
    t->nodes += !few;
    if (value >= 0.0) {
        if (value >= BIG)
            append_number(&t->record, 5.0);
        else
            record_state(t, 1.0, value);
        pop(t);
        return TREE_OPEN;
    }
    if (few) {
        int stop = evaluate_sets(t, state, in, value);
        append_number(&t->record, 4.0);
        pop(t);
        return stop ? TREE_STOPPED : TREE_OPEN;
    }
    if (node.root && q->propose) {
        double before = q->scenario[q->scenarios - 1].threshold;
        if (propose_near(t, state))
            return TREE_STOPPED;
        if (before >= BIG && q->scenario[q->scenarios - 1].threshold < BIG) { /* the root again, with a threshold more */
            t->record.length = recorded;
            return TREE_OPEN;
        }
    }
    double bound = node.bound, normal = node.normal_bound;
    if (value > -BIG) {
        if (value + t->work->total - t->work->error > bound)
            bound = value + t->work->total - t->work->error;
        if (t->work->weight_zero > 0.0 && value / t->work->weight_zero > normal)
            normal = value / t->work->weight_zero;
    }
    if (value > -BIG && q->fit) {
        double effort = node.root ? THRESHOLD_ROOT_FIT_EFFORT : THRESHOLD_FIT_EFFORT;
        bound_slacks(t, state);
        voters_found found = q->fit(q->self, state, t->work->most, t->slack, &effort, t->listed, &voters);
        t->effort += effort;
        if (found == VOTERS_NONE) {
            record_state(t, 6.0, 0.0);
            pop(t);
            return TREE_OPEN;
        }
    }
    if (value > -BIG)
        fix_sites(t, state, value);
    multiplier_block *own = bound_block(t, node.from);
    int site = own ? branching_site(t, state, t->listed, voters, &vote) : -1, ok = own != NULL;
    pop(t);
    if (ok && site < 0) /* everything is decided: one set, or none */
        ok = push(t, state, own, bound, normal);
    else if (ok) {
        append_number(&t->record, vote ? 7.0 : 3.0);
        append_number(&t->record, site);
        state[vote ? q->sites + site : site] = OUT;
        ok = push(t, state, own, bound, normal);
        state[site] = IN;
        if (vote)
            state[q->sites + site] = IN;
        ok = ok && push(t, state, own, bound, normal);
    }
    block_release(own);
    return ok ? TREE_OPEN : TREE_NO_MEMORY;
}

tree_outcome tree_run(scenario_tree *t, long nodes)
{
    long last = t->nodes + nodes;
    if (t->paused == 1)
        t->paused = 0;
    while (t->depth > 0) {
        if (t->nodes >= last)
            return TREE_LIMIT;
        if (tree_must_pause(t))
            return TREE_PAUSED;
        tree_outcome outcome = step(t);
        if (outcome != TREE_OPEN)
            return outcome;
    }
    return TREE_CLOSED;
}
