/* Questions about losses: their scenarios, the evaluation of a set of replicas, and a swap descent. See losses.h. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "losses.h"
static double least_hop(const loss_problem *x, int interval, int from, const int *leaders, int count);
static int interval_of(const loss_problem *x, int row);
static void losses_thresholds(loss_problem *x);

/* ---- Losses whose clients turn to another site: with separate costs and orders of preference. See losses.h. ---- */

/* 0: no memory. */
static int moved_prepare(loss_problem *x)
{
    moved_clients *m = &x->moved;
    size_t S = (size_t)x->sites, P = (size_t)x->padded;
    m->count = 0;
    m->slot = own(&x->owned, (size_t)x->losses + 1, sizeof(int));
    if (!m->slot)
        return 0;
    for (int l = 0; l < x->losses; l++)
        m->slot[l] = m->moves && m->moves[l] ? m->count++ : -1;
    if (!m->count)
        return 1;
    m->rank = own(&x->owned, (size_t)m->count * S * P + 2, sizeof(int));
    m->cost = own(&x->owned, (size_t)m->count * S * P + 1, sizeof(double));
    m->site_order = own(&x->owned, (size_t)m->count, sizeof(int *));
    if (x->owned.failed)
        return 0;
    for (int l = 0; l < x->losses; l++) {
        if (m->slot[l] < 0)
            continue;
        int *rank = m->rank + (size_t)m->slot[l] * S * P;
        memcpy(rank, x->rank, S * P * sizeof(int));
        for (int r = m->start[l]; r < m->start[l + 1]; r++)
            for (int k = 0; k < x->sites; k++)
                rank[(size_t)m->order[(size_t)r * S + (size_t)k] * P + (size_t)m->client[r]] = k;
        if (!(m->site_order[m->slot[l]] = sites_in_order(rank, x->clients, x->sites, P)))
            return 0;
    }
    return 1;
}

/* Costs and ranks of a loss that moves clients, from the costs under the best of some leaders for clients that stay. */
static void moved_scenario(loss_problem *x, int loss, const double *cost, const int *leaders, int count, scenario *one)
{
    moved_clients *m = &x->moved;
    size_t S = (size_t)x->sites, P = (size_t)x->padded, at = (size_t)m->slot[loss] * S * P;
    memcpy(m->cost + at, cost, S * P * sizeof(double));
    for (int j = 0; j < x->sites; j++) {
        double hop = 0.0;
        int before = -1;
        for (int r = m->start[loss]; r < m->start[loss + 1]; r++) {
            int c = m->client[r], interval = interval_of(x, c);
            if (interval != before)
                hop = least_hop(x, interval, j, leaders, count);
            before = interval;
            m->cost[at + (size_t)j * P + (size_t)c] =
                x->near_weight[c] * m->rtt[(size_t)r * S + (size_t)j] + x->relay_weight[c] * hop;
        }
    }
    one->cost = m->cost + at;
    one->rank = m->rank + at;
    one->order = count > 1 ? NULL : order_of_detours(&x->question, one->cost, m->site_order[m->slot[loss]]);
}

/* Change the reads of a set after a loss, by its places: `gone` of its `count` sites are lost. `relay`: of the loss. */
static void moved_reads(loss_problem *x, int loss, const int *site, int count, replica_mask gone, double *read, double *relay)
{
    const moved_clients *m = &x->moved;
    size_t S = (size_t)x->sites, P = (size_t)x->padded;
    const int *rank = m->rank + (size_t)m->slot[loss] * S * P;
    for (int r = m->start[loss]; r < m->start[loss + 1]; r++) {
        int c = m->client[r], before = -1, after = -1, least = INT_MAX, next = INT_MAX;
        for (int i = 0; i < count; i++) {
            size_t at = (size_t)site[i] * P + (size_t)c;
            if ((gone >> i) & 1)
                continue;
            if (x->rank[at] < least) {
                least = x->rank[at];
                before = i;
            }
            if (rank[at] < next) {
                next = rank[at];
                after = i;
            }
        }
        if (before < 0)
            continue; /* no replica is left: no quorum either */
        *read += x->near_weight[c] * (m->rtt[(size_t)r * S + (size_t)site[after]] - x->rtt[(size_t)site[before] * P + (size_t)c]);
        size_t first = (size_t)interval_of(x, c) * MOST_REPLICAS;
        relay[first + (size_t)before] -= x->relay_weight[c];
        relay[first + (size_t)after] += x->relay_weight[c];
    }
    x->effort += 2.0 * (m->start[loss + 1] - m->start[loss]) * count;
}

/* ---- Configurations of a set of replicas: every voter set, leader and successor, under every loss that hits the set. ---- */

#if defined(__GNUC__)
#define bits_of(mask) __builtin_popcountll(mask)
#else
static int bits_of(replica_mask mask)
{
    int n = 0;
    for (; mask; mask &= mask - 1)
        n++;
    return n;
}
#endif

typedef struct {
    loss_problem *x;
    const int *site;                      /* the replicas */
    int count, hit;                       /* how many, and how many losses hit them or move clients */
    int loss[MOST_HITS];                  /* by hit: the loss */
    replica_mask members[MOST_HITS];      /* by hit: the replicas it takes */
    int hit_of[MOST_REPLICAS];            /* by replica: the hit, -1: none */
    double base[MOST_REPLICAS][MOST_HITS + 1]; /* by replica as a leader: score without the quorum; 0: normal, 1 + hit */
    int based[MOST_REPLICAS];
    replica_mask may_vote, must_vote, may_lead;
    double best;                          /* what must be undercut, then what was found */
    int only;                             /* the leader's position, -1: any */
    double found_value;
} evaluation_of_set;

/* Reads of the set, and after each loss: sums over clients, and the weight of relayed reads at each replica. */
static void read_part(evaluation_of_set *e)
{
    loss_problem *x = e->x;
    size_t P = (size_t)x->padded, n = (size_t)x->intervals * MOST_REPLICAS, first_place = 0;
    int interval = 0;
    memset(x->relay, 0, (size_t)(e->hit + 1) * n * sizeof(double));
    for (int h = 0; h <= e->hit; h++)
        x->read[h] = 0.0;
    for (int c = 0; c < x->clients; c++) {
        int first = -1, second = -1, least = INT_MAX, next = INT_MAX;
        for (int i = 0; i < e->count; i++) {
            int rank = x->rank[(size_t)e->site[i] * P + (size_t)c];
            if (rank < least) {
                if (first >= 0 && (e->hit_of[first] != e->hit_of[i] || e->hit_of[i] < 0)) {
                    second = first;
                    next = least;
                }
                first = i;
                least = rank;
            } else if (rank < next && (e->hit_of[i] != e->hit_of[first] || e->hit_of[first] < 0)) {
                second = i;
                next = rank;
            }
        }
        for (; c >= x->first_row[interval + 1]; interval++)
            first_place += MOST_REPLICAS;
        double near = x->near_weight[c], relay = x->relay_weight[c], *place = x->relay + first_place;
        double cost = near * x->rtt[(size_t)e->site[first] * P + (size_t)c];
        x->read[0] += cost;
        place[first] += relay;
        int h = e->hit_of[first];
        if (h >= 0 && second >= 0) {
            x->read[1 + h] += near * x->rtt[(size_t)e->site[second] * P + (size_t)c] - cost;
            place[(size_t)(1 + h) * n + (size_t)first] -= relay;
            place[(size_t)(1 + h) * n + (size_t)second] += relay;
        }
    }
    for (int h = 0; h < e->hit && x->moved.count; h++)
        if (x->moved.slot[e->loss[h]] >= 0)
            moved_reads(x, e->loss[h], e->site, e->count, e->members[h], &x->read[1 + h], x->relay + (size_t)(1 + h) * n);
    x->effort += 2.0 * x->clients * e->count;
}

/* The score without the quorum under the leader at position a, normally and after each loss. */
static void base_of(evaluation_of_set *e, int a)
{
    loss_problem *x = e->x;
    size_t n = MOST_REPLICAS, K = (size_t)x->intervals, S = (size_t)x->sites;
    int leader = e->site[a];
    if (e->based[a])
        return;
    e->based[a] = 1;
    for (int h = 0; h <= e->hit; h++) {
        double sum = h == 0 ? x->direct[leader] : e->base[a][0];
        if (h > 0 && x->moved.count)
            sum += x->moved.direct[(size_t)e->loss[h - 1] * S + (size_t)leader] - x->direct[leader];
        for (size_t k = 0; k < K; k++)
            for (int i = 0; i < e->count; i++)
                sum += x->relay[((size_t)h * K + k) * n + (size_t)i] * x->hop[(k * S + (size_t)e->site[i]) * S + (size_t)leader];
        e->base[a][h] = sum + x->read[h];
    }
}

/* sum_k D_k q_k of the leader at position a with these voters. */
static double wait_of(const evaluation_of_set *e, int a, replica_mask voters)
{
    const loss_problem *x = e->x;
    size_t S = (size_t)x->sites;
    double sum = 0.0;
    if (bits_of(voters) < x->quorum)
        return BIG;
    for (int k = 0; k < x->intervals; k++) {
        const int *order = x->near_replica + ((size_t)k * MOST_REPLICAS + (size_t)a) * MOST_REPLICAS;
        int left = x->quorum, o = 0;
        for (;; o++)
            if ((voters >> order[o]) & 1 && --left == 0)
                break;
        sum += x->rounds[k] * x->hop[((size_t)k * S + (size_t)e->site[a]) * S + (size_t)e->site[order[o]]];
    }
    return sum;
}

/* Sort the replicas by distance from that at position a in every interval, then by place. */
static void sort_replicas(const evaluation_of_set *e, int a)
{
    const loss_problem *x = e->x;
    size_t S = (size_t)x->sites;
    for (int k = 0; k < x->intervals; k++) {
        const double *from = x->hop + ((size_t)k * S + (size_t)e->site[a]) * S;
        int *order = x->near_replica + ((size_t)k * MOST_REPLICAS + (size_t)a) * MOST_REPLICAS;
        for (int i = 0; i < e->count; i++) {
            int at = i;
            for (; at > 0 && from[e->site[order[at - 1]]] > from[e->site[i]]; at--)
                order[at] = order[at - 1];
            order[at] = i;
        }
    }
}

static double score_under(evaluation_of_set *e, int a, int scenario, replica_mask voters)
{
    double wait = wait_of(e, a, voters);
    base_of(e, a);
    return wait >= BIG ? BIG : e->base[a][scenario] + wait;
}

static double elected(evaluation_of_set *e, int scenario, replica_mask alive)
{
    replica_mask from = alive & e->may_lead ? alive & e->may_lead : alive;
    double best = BIG;
    for (int i = 0; i < e->count; i++)
        if ((from >> i) & 1) {
            double score = score_under(e, i, scenario, alive);
            if (score < best)
                best = score;
        }
    return best;
}

/* Value of (leader at position a, voters) under the goal, or BIG as soon as it is seen not to undercut. */
static double value_of(evaluation_of_set *e, int a, replica_mask voters)
{
    const loss_problem *x = e->x;
    const double normal = score_under(e, a, 0, voters);
    double value = normal, weighted = normal, hit = 0.0;
    if ((value >= e->best && x->goal != GOAL_WEIGHTED) || value > x->ceiling)
        return BIG; /* a loss that does not hit the plan changes nothing: the normal score keeps the ceiling as well */
    for (int h = 0; h < e->hit; h++) {
        replica_mask alive = voters & ~e->members[h];
        if (bits_of(alive) < x->quorum)
            return BIG;
        int stays = (alive >> a) & 1 && !x->leader_may_move;
        double score = stays ? score_under(e, a, 1 + h, alive) : elected(e, 1 + h, alive);
        if (x->goal == GOAL_WEIGHTED) {
            hit += x->probability[e->loss[h]];
            weighted = h == 0 ? x->probability[e->loss[h]] * score : weighted + x->probability[e->loss[h]] * score;
            if (score >= BIG || weighted >= e->best)
                return BIG;
        } else if (score >= (x->goal == GOAL_BOUNDED ? BIG : e->best) || score > x->ceiling)
            return BIG;
        else if (x->goal == GOAL_WORST && score > value)
            value = score;
    }
    if (x->goal == GOAL_WEIGHTED) {
        value = e->hit ? weighted + (1.0 - hit) * normal : normal;
        if (value >= e->best)
            return BIG;
    }
    return value;
}

static int voters_obey(const evaluation_of_set *e, replica_mask voters)
{
    const loss_problem *x = e->x;
    int set[MOST_REPLICAS], count = 0;
    for (int i = 0; i < e->count && x->voter_rules.rules; i++)
        if ((voters >> i) & 1)
            set[count++] = e->site[i];
    return sites_obey(&x->voter_rules, set, count, x->counts);
}

static void take(evaluation_of_set *e, int a, replica_mask voters, double value)
{
    loss_problem *x = e->x;
    e->best = value;
    e->found_value = value;
    if (!(value < losses_below(x->value)))
        return;
    x->value = value;
    x->leader = e->site[a];
    x->count = e->count;
    x->voter_count = 0;
    for (int i = 0; i < e->count; i++) {
        x->replicas[i] = e->site[i];
        if ((voters >> i) & 1)
            x->voter[x->voter_count++] = e->site[i];
    }
    if (x->opened)
        losses_thresholds(x);
}

/* Voter sets that go on from `voters` with the positions from `first`. */
static void try_voters(evaluation_of_set *e, replica_mask voters, int chosen, int first, replica_mask leaders)
{
    loss_problem *x = e->x;
    if (chosen == x->voters) {
        if ((voters & e->must_vote) != e->must_vote || !(voters & leaders) || !voters_obey(e, voters))
            return;
        for (int a = 0; a < e->count; a++) {
            if (!((voters & leaders) >> a & 1))
                continue;
            x->effort += 20.0 * (e->hit + 1.0);
            double value = value_of(e, a, voters);
            if (value < e->best)
                take(e, a, voters, value);
        }
        return;
    }
    for (int i = first; i < e->count; i++) {
        if ((e->may_vote >> i) & 1)
            try_voters(e, voters | (replica_mask)1 << i, chosen + 1, i + 1, leaders);
        if ((e->must_vote >> i) & 1)
            return;
    }
}

double losses_evaluate(loss_problem *x, const int *replicas, int count, int leader, double limit)
{
    evaluation_of_set e;
    replica_mask leaders = 0;
    memset(&e, 0, offsetof(evaluation_of_set, loss));
    e.x = x;
    e.site = replicas;
    e.count = count;
    e.hit = 0;
    e.best = limit;
    e.found_value = BIG;
    e.may_vote = e.must_vote = e.may_lead = 0;
    for (int i = 0; i < count; i++) {
        int site = replicas[i], loss = x->loss_of[site], h = 0;
        replica_mask bit = (replica_mask)1 << i;
        e.based[i] = 0;
        e.may_vote |= x->may_vote[site] ? bit : 0;
        e.must_vote |= x->must_vote[site] ? bit : 0;
        e.may_lead |= x->may_lead[site] ? bit : 0;
        leaders |= x->may_lead[site] && (leader < 0 || leader == site) ? bit : 0;
        while (h < e.hit && e.loss[h] != loss)
            h++;
        e.hit_of[i] = loss < 0 ? -1 : h;
        if (loss >= 0 && h == e.hit) {
            e.loss[e.hit] = loss;
            e.members[e.hit++] = 0;
        }
        if (loss >= 0)
            e.members[h] |= bit;
        sort_replicas(&e, i);
    }
    for (int loss = 0; loss < x->losses && x->moved.count; loss++) {
        int h = 0;
        while (h < e.hit && e.loss[h] != loss)
            h++;
        if (h == e.hit && x->moved.slot[loss] >= 0) {
            e.loss[e.hit] = loss;
            e.members[e.hit++] = 0;
        }
    }
    if (bits_of(e.may_vote) < x->voters || !leaders)
        return BIG;
    for (int j = 0; j < x->sites; j++)
        if (x->must_vote[j]) {
            int held = 0;
            for (int i = 0; i < count; i++)
                held |= replicas[i] == j;
            if (!held)
                return BIG;
        }
    read_part(&e);
    /* with every replica as a voter no leader waits longer: leaders that even so do not undercut */
    for (int a = 0; a < count && x->goal != GOAL_WEIGHTED; a++) {
        if (!(leaders >> a & 1))
            continue;
        double most = score_under(&e, a, 0, e.may_vote);
        for (int h = 0; h < e.hit && most < limit; h++)
            if (x->goal == GOAL_WORST) {
                replica_mask alive = e.may_vote & ~e.members[h];
                int stays = (alive >> a) & 1 && !x->leader_may_move;
                if (!stays)
                    continue;
                double score = score_under(&e, a, 1 + h, alive);
                most = score > most ? score : most;
            }
        if (most >= limit)
            leaders &= ~((replica_mask)1 << a);
    }
    if (leaders)
        try_voters(&e, 0, 0, 0, leaders);
    return e.found_value;
}

/* ---- Scenarios of losses: which are in force, their costs, their voters' part, the tree of one leader. See losses.h. ---- */

static int interval_of(const loss_problem *x, int row)
{
    int k = 0;
    while (row >= x->first_row[k + 1])
        k++;
    return k;
}

static double least_hop(const loss_problem *x, int interval, int from, const int *leaders, int count)
{
    const double *row = x->hop + ((size_t)interval * (size_t)x->sites + (size_t)from) * (size_t)x->sites;
    double hop = count ? BIG : 0.0;
    for (int i = 0; i < count; i++)
        if (row[leaders[i]] < hop)
            hop = row[leaders[i]];
    return hop;
}

/* Scores below this, and only those, improve on a value: equal scores may differ by rounding. */
double losses_below(double value)
{
    return value >= BIG ? BIG : value - 5e-10 * fabs(value);
}

static void losses_thresholds(loss_problem *x)
{
    double least = losses_below(x->value);
    double kept = x->ceiling >= BIG ? BIG : x->ceiling * (1.0 + 1e-10); /* so that rounding is safe: a checker asks for less */
    x->question.total = least;
    for (int s = 0; s < x->question.scenarios; s++)
        x->scenario[s].threshold = x->goal == GOAL_BOUNDED && (s > 0 || kept < least) ? kept : least;
}

enum { NO_VOTER, VOTER, HELD_SITE, OPEN_SITE };

/* Who may vote after a loss, into x->standing; how many votes are open, negative: there are too many voters. */
static int count_votes(loss_problem *x, const unsigned char *lost, const unsigned char *state)
{
    const unsigned char *vote = state + x->sites;
    unsigned char *standing = x->standing;
    int votes = x->voters;
    for (int j = 0; j < x->sites; j++) {
        votes -= vote[j] == IN;
        standing[j] = vote[j] == IN ? VOTER : state[j] == IN ? HELD_SITE : OPEN_SITE;
        if (state[j] == OUT || vote[j] == OUT || (lost && lost[j]))
            standing[j] = NO_VOTER;
    }
    return votes;
}

/* Place of a site in the order of a leader in an interval: no quorum is nearer; -1: there cannot be one. Voters are replicas, v in all: of the sites whose vote is open no more count than votes are left, and of those without a replica no
 * more than replicas are left. Where the rules of voters are one family, closest-first finds a quorum that leaves room for them. */
static int quorum_place(const loss_problem *x, int interval, int leader, int most, int votes)
{
    size_t row = ((size_t)interval * (size_t)x->sites + (size_t)leader) * (size_t)x->sites;
    const int *order = x->near_order + row;
    const unsigned char *standing = x->standing;
    const site_family *rules = x->voter_rules.rules && x->voter_rules.count == 1 ? &x->voter_rules.family[0] : NULL;
    int in = 0, held = 0, open = 0, fitting = 0;
    if (rules)
        begin_count(rules, x->counts);
    for (int o = 0; o < x->sites; o++) {
        int j = order[o];
        if (standing[j] == NO_VOTER)
            continue;
        in += standing[j] == VOTER;
        held += standing[j] == HELD_SITE;
        open += standing[j] == OPEN_SITE;
        fitting += !rules || take_site(rules, x->counts, j, x->voters, x->voters);
        int more = held + (open < most ? open : most);
        if (fitting >= x->quorum && in + (more < votes ? more : votes) >= x->quorum)
            return o;
    }
    return -1;
}

/* sum_k D_k q_k of a leader from below, as if each interval had voters of its own; BIG where it is known to reach `limit`. After
 * count_votes. */
static double least_wait(const loss_problem *x, int leader, int most, int votes, double limit)
{
    double sum = 0.0;
    for (int k = 0; k < x->intervals; k++) {
        size_t row = ((size_t)k * (size_t)x->sites + (size_t)leader) * (size_t)x->sites;
        int place = votes < 0 ? -1 : quorum_place(x, k, leader, most, votes);
        if (place < 0 || (sum += x->rounds[k] * x->hop[row + (size_t)x->near_order[row + (size_t)place]]) >= limit)
            return BIG;
    }
    return x->intervals > 1 ? sum * (1.0 - UNIT_ROUNDOFF * (x->intervals + 2.0)) : sum;
}

/* The least constant and wait under one of a list; `who`: that one. */
static double least_of_group(const loss_problem *x, const int *list, int count, const double *direct, int most, int votes, int *who)
{
    double best = BIG;
    for (int i = 0; i < count; i++) {
        int a = list[i];
        if (direct[a] >= best && direct == x->direct)
            break; /* the list is sorted by it */
        if (direct[a] >= best || x->standing[a] == NO_VOTER)
            continue;
        double wait = least_wait(x, a, most, votes, best >= BIG ? BIG : best - direct[a]);
        if (wait < BIG && direct[a] + wait < best) {
            best = direct[a] + wait;
            *who = a;
        }
    }
    return best;
}

/* The loss of a scenario; -1: the normal one. */
static int loss_of_scenario(const loss_problem *x, int s)
{
    return s > x->losses ? s - 1 - x->losses : s - 1;
}

/* The least constant and wait of a scenario, whose leader that is and how many votes are open. */
static double led(loss_problem *x, int s, const unsigned char *state, int most, int *who, int *votes)
{
    int loss = loss_of_scenario(x, s);
    const unsigned char *lost = loss >= 0 ? x->lost + (size_t)loss * (size_t)x->sites : NULL;
    const double *direct = loss >= 0 && x->moved.count ? x->moved.direct + (size_t)loss * (size_t)x->sites : x->direct;
    *votes = count_votes(x, lost, state);
    *who = x->tree_leader;
    if (loss >= 0 && x->leader_may_move)
        return least_of_group(x, x->mover_list, x->movers, direct, most, *votes, who);
    if (loss >= 0 && lost[x->tree_leader])
        return least_of_group(x, x->successor_list, x->successors, direct, most, *votes, who);
    double wait = least_wait(x, x->tree_leader, most, *votes, BIG);
    return wait >= BIG ? BIG : direct[x->tree_leader] + wait;
}

static double rest(void *self, int s, const unsigned char *state, int most)
{
    int who, votes;
    return led(self, s, state, most, &who, &votes);
}

/* The leader of the least `rest`, and those whom its quorums count on: without another site nothing rises. */
static int matter(void *self, int s, const unsigned char *state, int most, int *sites)
{
    loss_problem *x = self;
    unsigned char *listed = x->standing + x->sites;
    int count = 0, who, votes;
    if (led(x, s, state, most, &who, &votes) >= BIG)
        return 0;
    memset(listed, 0, (size_t)x->sites);
    for (int k = 0; k < x->intervals; k++) {
        const int *order = x->near_order + ((size_t)k * (size_t)x->sites + (size_t)who) * (size_t)x->sites;
        int last = quorum_place(x, k, who, most, votes);
        for (int o = 0; o <= last; o++)
            if (x->standing[order[o]] != NO_VOTER && !listed[order[o]]) {
                sites[count++] = order[o];
                listed[order[o]] = 1;
            }
    }
    if (!listed[who] && x->standing[who] != NO_VOTER)
        sites[count++] = who;
    return count;
}

static int in_force(void *self, const unsigned char *state, int *which, double *weight)
{
    loss_problem *x = self;
    int count = 1;
    double left = 1.0;
    which[0] = 0;
    memset(x->hits, 0, (size_t)x->losses * sizeof(int));
    for (int j = 0; j < x->sites; j++) {
        int loss = x->loss_of[j];
        if (state[j] != IN || loss < 0 || x->hits[loss])
            continue;
        x->hits[loss] = 1;
        weight[count] = x->probability[loss];
        left -= x->probability[loss];
        which[count++] = 1 + loss;
    }
    for (int loss = 0; loss < x->losses && x->moved.count; loss++) {
        if (x->moved.slot[loss] < 0)
            continue;
        if (x->goal != GOAL_WEIGHTED)
            which[count++] = 1 + x->losses + loss;
        else if (!x->hits[loss]) {
            x->hits[loss] = 1;
            weight[count] = x->probability[loss];
            left -= x->probability[loss];
            which[count++] = 1 + loss;
        }
    }
    for (int loss = 0; loss < x->losses && x->goal == GOAL_WORST && !x->moved.count && !x->leader_may_move; loss++)
        if (x->taken[loss] >= LARGE_LOSS && !x->hits[loss])
            which[count++] = 1 + loss;
    weight[0] = left > 0.0 ? left : 0.0;
    /* The other losses cost at least what is normal, without the sites that they take. */
    for (int j = 0; j < x->sites && x->goal == GOAL_WEIGHTED; j++)
        x->discount[j] = x->loss_of[j] >= 0 && !x->hits[x->loss_of[j]] ? x->probability[x->loss_of[j]] : 0.0;
    return count;
}

static int leaf(void *self, const int *replicas, int count)
{
    loss_problem *x = self;
    losses_evaluate(x, replicas, count, x->tree_leader, losses_below(x->value));
    return 0;
}

static int *sort_group(const loss_problem *x, const unsigned char *member, int *list, int *count)
{
    *count = 0;
    for (int a = 0; a < x->sites; a++)
        if (member[a])
            *count = insert_position(x->direct, list, *count, x->sites, a);
    return list;
}

VECTORISED static void cost_row(const double *rtt, const double *near, const double *relay, double hop, int clients, double *out)
{
    for (int c = 0; c < clients; c++)
        out[c] = near[c] * rtt[c] + relay[c] * hop;
}

/* Costs under the best of a group for every site: no member's are less. */
static void group_costs(const loss_problem *x, const int *list, int count, double *cost)
{
    for (int j = 0; j < x->sites; j++) {
        for (int k = 0; k < x->intervals; k++) {
            size_t first = (size_t)x->first_row[k], row = (size_t)j * (size_t)x->padded + first;
            int end = k + 1 < x->intervals ? x->first_row[k + 1] : x->padded;
            double hop = least_hop(x, k, j, list, count);
            cost_row(x->rtt + row, x->near_weight + first, x->relay_weight + first, hop, end - x->first_row[k], cost + row);
        }
    }
}

int losses_prepare(loss_problem *x)
{
    size_t S = (size_t)x->sites, P = (size_t)x->padded, L = (size_t)x->losses, n = MOST_HITS + 1, K = (size_t)x->intervals;
    x->site_order = sites_in_order(x->rank, x->clients, x->sites, P);
    owned_memory *owned = &x->owned;
    x->near_order = own(owned, K * S * S + 1, sizeof(int));
    x->lost = own(owned, L * S + 1, 1);
    x->successor = own(owned, S + 1, 1);
    x->successor_list = own(owned, S + 1, sizeof(int));
    x->mover_list = own(owned, S + 1, sizeof(int));
    x->cost_leader = own(owned, S * P + 1, sizeof(double));
    x->cost_successors = own(owned, S * P + 1, sizeof(double));
    x->cost_movers = own(owned, S * P + 1, sizeof(double));
    x->scenario = own(owned, 2 * L + 1, sizeof(scenario));
    x->discount = own(owned, S + 1, sizeof(double));
    x->hits = own(owned, L + 1, sizeof(int));
    x->taken = own(owned, L + 1, sizeof(int));
    x->replicas = own(owned, S + 1, sizeof(int));
    x->voter = own(owned, S + 1, sizeof(int));
    x->read = own(owned, n, sizeof(double));
    x->relay = own(owned, n * K * MOST_REPLICAS, sizeof(double));
    x->near_replica = own(owned, K * MOST_REPLICAS * MOST_REPLICAS, sizeof(int));
    x->set = own(owned, 3 * (S + 1), sizeof(int));
    int longest = longest_count(&x->voter_rules), of_replicas = longest_count(&x->replica_rules);
    x->standing = own(owned, 2 * S + 1, 1);
    x->first_state = own(owned, 2 * S + 1, 1);
    x->counts = own(owned, (size_t)(longest > of_replicas ? longest : of_replicas), sizeof(int));
    if (!x->site_order || owned->failed || !moved_prepare(x))
        return 0;
    for (size_t row = 0; row < K * S; row++)
        for (int j = 0; j < x->sites; j++)
            insert_position(x->hop + row * S, x->near_order + row * S, j, x->sites, j);
    for (int i = 0; i < x->sites; i++) {
        if (x->loss_of[i] >= 0) {
            x->lost[(size_t)x->loss_of[i] * S + (size_t)i] = 1;
            x->taken[x->loss_of[i]]++;
        }
    }
    sort_group(x, x->may_vote, x->mover_list, &x->movers);
    if (x->leader_may_move)
        group_costs(x, x->mover_list, x->movers, x->cost_movers);
    x->value = BIG;
    x->leader = -1;
    scenario_question *q = &x->question;
    q->sites = x->sites;
    q->clients = x->clients;
    q->padded = x->padded;
    q->replicas_min = x->replicas_min;
    q->replicas_max = x->replicas_max;
    q->rules = &x->replica_rules;
    q->scenarios = 1 + x->losses * (x->moved.count ? 2 : 1);
    q->scenario = x->scenario;
    q->votes = 1;
    q->fixed_weights = x->goal == GOAL_WEIGHTED;
    q->self = x;
    q->in_force = in_force;
    q->rest = rest;
    q->matter = matter;
    q->leaf = leaf;
    return 1;
}

void losses_free(loss_problem *x)
{
    if (x->opened)
        tree_close(&x->tree);
    for (int k = 0; k < x->moved.count && x->moved.site_order; k++)
        free(x->moved.site_order[k]);
    free(x->site_order);
    release(&x->owned);
    free(x);
}

/* Costs and scenarios under a leader; `group` of successors in x->successor. */
static void set_leader(loss_problem *x, int leader)
{
    x->tree_leader = leader;
    int own = x->loss_of[leader];
    group_costs(x, &leader, 1, x->cost_leader);
    sort_group(x, x->successor, x->successor_list, &x->successors);
    if (own >= 0 && !x->leader_may_move)
        group_costs(x, x->successor_list, x->successors, x->cost_successors);
    for (int s = 0; s < x->question.scenarios; s++) {
        scenario *one = &x->scenario[s];
        int loss = loss_of_scenario(x, s), led = loss < 0 || (loss != own && !x->leader_may_move);
        one->rank = x->rank;
        one->scale = 1.0;
        one->lost = loss >= 0 ? x->lost + (size_t)loss * (size_t)x->sites : NULL;
        one->cost = led ? x->cost_leader : x->leader_may_move ? x->cost_movers : x->cost_successors;
        /* a group costs the least of its sites, and fewer of them may be left to a checker: then detours may be less */
        int alone = led || (!x->leader_may_move && x->successors == 1);
        const scenario *alike = s == 0 ? NULL : one->cost == x->scenario[0].cost ? x->scenario : one - 1;
        if (!alone)
            one->order = NULL;
        else if (alike && alike->cost == one->cost)
            one->order = alike->order;
        else
            one->order = order_of_detours(&x->question, one->cost, x->site_order);
        one->discount = s == 0 && x->goal == GOAL_WEIGHTED ? x->discount : NULL;
        if (loss < 0 || x->moved.slot[loss] < 0)
            continue;
        if (s > x->losses) {
            one->cost = x->scenario[1 + loss].cost;
            one->rank = x->scenario[1 + loss].rank;
            one->order = x->scenario[1 + loss].order;
        } else
            moved_scenario(x, loss, one->cost, led ? &leader : x->leader_may_move ? x->mover_list : x->successor_list,
                           led ? 1 : x->leader_may_move ? x->movers : x->successors, one);
    }
    losses_thresholds(x);
}

int losses_open(loss_problem *x, int leader, const unsigned char *successor, int fixed, const double *u)
{
    unsigned char *state = x->first_state;
    if (x->opened)
        tree_close(&x->tree);
    x->opened = 0;
    memcpy(x->successor, successor, (size_t)x->sites);
    set_leader(x, leader);
    for (int j = 0; j < x->sites; j++) {
        state[j] = !x->may_hold[j] ? OUT : x->must_hold[j] || j == leader || j == fixed ? IN : FREE;
        state[x->sites + j] = !x->may_vote[j] ? OUT : x->must_vote[j] || j == leader || j == fixed ? IN : FREE;
    }
    return x->opened = tree_open(&x->tree, &x->question, state, u);
}

static int only_normal(void *self, const unsigned char *state, int *which, double *weight)
{
    (void)self;
    (void)state;
    which[0] = 0;
    weight[0] = 1.0;
    return 1;
}

double losses_floor(loss_problem *x, int leader, int most, int steps, double *u, int *memory)
{
    scenario_question q = x->question;
    scenario_tree t;
    unsigned char *state = x->first_state;
    double value = -BIG;
    memset(x->successor, 0, (size_t)x->sites);
    set_leader(x, leader);
    q.fixed_weights = 1; /* one scenario, whose bound is wanted and not whether it closes */
    q.total = x->value < BIG ? 1.2 * x->value : BIG;
    memset(x->discount, 0, (size_t)x->sites * sizeof(double));
    x->scenario[0].order = NULL; /* detours would not bound what is left after a loss */
    q.in_force = only_normal;
    q.replicas_max = most;
    q.replicas_min = q.replicas_min < most ? q.replicas_min : most;
    for (int j = 0; j < x->sites; j++) {
        state[j] = !x->may_hold[j] ? OUT : j == leader ? IN : FREE;
        state[x->sites + j] = x->may_vote[j] ? FREE : OUT;
    }
    if (q.total >= BIG) { /* something to aim at: the cost with the leader alone, and all that may be asked */
        double sum = x->direct[leader];
        for (int c = 0; c < x->padded; c++)
            sum += x->cost_leader[(size_t)leader * (size_t)x->padded + (size_t)c];
        q.total = 2.0 * sum;
        for (int k = 0; k < x->intervals; k++) {
            size_t row = ((size_t)k * (size_t)x->sites + (size_t)leader) * (size_t)x->sites;
            q.total += x->rounds[k] * x->hop[row + (size_t)x->near_order[row + (size_t)x->sites - 1]];
        }
    }
    *memory = !tree_open(&t, &q, state, NULL);
    if (*memory)
        return value;
    t.pause = x->pause;
    t.pause_self = x->pause_self;
    double found = bound_state(&t, state, NULL, steps);
    *memory = t.paused == 2;
    x->paused |= t.paused == 1;
    if (found >= BIG)
        value = BIG;
    else if (found > -BIG) {
        value = found + q.total - 2.0 * UNIT_ROUNDOFF * fabs(q.total);
        best_multipliers(t.question, t.work, 0, u);
    }
    tree_close(&t);
    return value;
}

/* ---- Swap descent on the goal with the exact evaluation, and kicks of two random swaps. ---- */

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
                double other = losses_evaluate(x, set, count, -1, losses_below(value));
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
