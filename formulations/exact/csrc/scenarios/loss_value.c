/* Configurations of a set of replicas: every voter set, leader and successor, under every loss that hits the set. */
#include <limits.h>
#include <string.h>

#include "losses.h"

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
    double best, best_normal;             /* what must be undercut, then what was found */
    int only;                             /* the leader's position, -1: any */
    int found;
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
static double value_of(evaluation_of_set *e, int a, replica_mask voters, double *normal)
{
    const loss_problem *x = e->x;
    double value = score_under(e, a, 0, voters), weighted = value, hit = 0.0;
    *normal = value;
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
        value = e->hit ? weighted + (1.0 - hit) * *normal : *normal;
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

static void take(evaluation_of_set *e, int a, replica_mask voters, double value, double normal)
{
    loss_problem *x = e->x;
    e->best = value;
    e->found_value = value;
    if (!(value < losses_below(x, x->value)))
        return;
    x->value = value;
    x->normal = normal;
    x->leader = e->site[a];
    x->count = e->count;
    x->voter_count = 0;
    for (int i = 0; i < e->count; i++) {
        x->replicas[i] = e->site[i];
        if ((voters >> i) & 1)
            x->voter[x->voter_count++] = e->site[i];
    }
    x->changed++;
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
            double normal, value;
            if (!((voters & leaders) >> a & 1))
                continue;
            x->effort += 20.0 * (e->hit + 1.0);
            value = value_of(e, a, voters, &normal);
            if (value < e->best)
                take(e, a, voters, value, normal);
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
    e.hit = e.found = 0;
    e.best = limit;
    e.found_value = BIG;
    e.may_vote = e.must_vote = e.may_lead = 0;
    x->evaluations++;
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
