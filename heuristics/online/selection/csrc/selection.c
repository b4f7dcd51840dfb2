/* Replica selection: the event loop, the policies, rate control, and the Python binding.

   All that is random is in the sample path. Events are served in the order (time, order of
   creation); of operations and events at the same instant the operation comes first. In the order
   of this file: data, the sample path, rate control, dynamic snitching, policies, the loop, the
   binding (limited API, abi3, CPython 3.11 and later). */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_BETWEEN_PAUSES 65536 /* some ten milliseconds */

enum { REACH, DONE, ANSWER, WAKE, RETRY, ISSUE, HEDGE };

enum { POLICY_ORA, POLICY_ORAF, POLICY_ECT, POLICY_ECTF, POLICY_C3, POLICY_LOR, POLICY_RR,
       POLICY_RAND, POLICY_TWO, POLICY_LRT, POLICY_NEAR, POLICY_DS, POLICY_WRT, POLICIES };

typedef struct {
    double window, decrease, growth, step, hysteresis, floor, rate, tokens, capacity, saddle,
        smoothing;
    int mint; /* wake == "absim" */
} limiter_rules;

/* Samples of response times of dynamic snitching, `size` for each pair of client and server. */
typedef struct {
    double update, reset, decay, badness;
    int64_t size, draws;
    const double *draw; /* priorities of responses in the order in which they come */
    /* state */
    double next_update, next_reset;
    int64_t drawn;
    double *value, *rank, *score, *scratch;
    int64_t *count;
} snitch;

typedef struct {
    double rate, tokens, granted, received, saddle, decreased, increased;
    int64_t count, tick;
} bucket;

typedef struct {
    double time, value;
    uint64_t sequence;
    int64_t what;
    int kind;
} event;

/* Numbers that wait at a server, or are on the network to it: a circular buffer. */
typedef struct {
    int64_t *item;
    int64_t head, count, room; /* room is a power of two */
} line;

/* State of a policy about a pair of client and server. */
typedef struct {
    double queue, service, network, last;
    int64_t outstanding;
    int heard;
} knowledge;

typedef struct run {
    /* the sample path, owned by the caller */
    int64_t n, clients, servers, slots, replication, epochs, groups, kinds;
    double period, update_work;
    const double *arrival, *work, *shadow_work, *means, *mix, *uniform;
    const double *delay; /* clients × servers, one way */
    const int64_t *client, *group;
    const int64_t *table; /* groups × replication: servers of each group */
    /* kinds of generators; closed loop where `generators` is not all 0 */
    const int64_t *generators;
    const double *joins, *share;
    const unsigned char *shadowed;
    const signed char *shuffle;
    const int64_t *forced; /* server that a read is sent to whatever the policy says; -1: none */
    /* the policy */
    int policy, random_ties, limited;
    double exponent, weight, alpha;
    limiter_rules rules;
    snitch snitch;
    int hedging;
    double patience, slower, other; /* first estimate of a client; factors of its corrections */
    /* what comes out, owned by the caller */
    double *latency, *start, *issued;
    int64_t *server;
    unsigned char *update;
    double end;
    int64_t tries, refused, events, hedged;
    /* state */
    bucket *buckets;
    knowledge *known;
    int64_t *turn;
    int64_t *backlog_head, *backlog_tail, *next;
    line *lines;  /* waiting, first come first */
    line *coming; /* on the network, by the time at which they reach the server */
    int64_t *busy;
    double *ends;      /* servers × slots: ends of the reads in service */
    double *free_at;   /* servers × slots: books of ECTF */
    double *scratch;   /* slots */
    int64_t *order;    /* replication */
    double *key;       /* replication */
    int32_t *placed;
    double *service, *sent, *reach, *begun;
    double *waits;             /* clients: estimated percentile of the latency */
    unsigned char *duplicated; /* reads that were sent to a second replica */
    int32_t *kind_of;          /* generators that issued an operation */
    int64_t issues, answered;
    int closed;
    event *heap;
    int64_t pending, room;
    uint64_t sequence;
    void *owned[32]; /* what `take` has allocated */
    int owners, out_of_memory;
    /* called every EVENTS_BETWEEN_PAUSES events; not 0: stop */
    int (*pause)(struct run *r);
    void *thread; /* of the binding */
    int raised;
} run;

/* The sample path. */

static int64_t operation_of(const run *r, int64_t number)
{
    return number < r->n ? number : (number - r->n) / (r->replication - 1);
}

static double work_of(const run *r, int64_t number)
{
    double work = number < r->n ? r->work[number] : r->shadow_work[number - r->n];
    return r->update[operation_of(r, number)] ? work * r->update_work : work;
}

static double delay_of(const run *r, int64_t client, int64_t server)
{
    return r->delay[client * r->servers + server];
}

static double mean_at(const run *r, int64_t server, double time)
{
    int64_t epoch = r->epochs > 1 ? (int64_t)floor(time / r->period) % r->epochs : 0;
    return r->means[epoch * r->servers + server];
}

static int64_t server_of(const run *r, int64_t group, int64_t place)
{
    return r->table[group * r->replication + place];
}

/* Allocate zeros that live until the end of the run. */
static void *take(run *r, size_t count, size_t size)
{
    void *found = calloc(count + 1, size);
    if (!found)
        r->out_of_memory = 1;
    return r->owned[r->owners++] = found;
}

/* Rate control: a token bucket per client and server whose rate follows a cubic curve. */

#define ALMOST (1.0 - 1e-9)

static void limiter_start(run *r)
{
    for (int64_t k = 0; k < r->clients * r->servers; k++) {
        bucket *b = &r->buckets[k];
        b->rate = r->rules.rate;
        b->tokens = r->rules.tokens;
        b->saddle = r->rules.saddle;
    }
}

/* Tokens that a grant at `now` finds; nothing is written. */
static double due(const run *r, const bucket *b, double now)
{
    double earned = (now - b->granted) * b->rate / r->rules.window;
    double tokens = b->tokens + earned;
    return r->rules.capacity <= tokens ? r->rules.capacity : tokens;
}

static int limiter_take(run *r, int64_t pair, double now)
{
    bucket *b = &r->buckets[pair];
    double tokens = due(r, b, now);
    if (tokens < ALMOST)
        return 0;
    b->tokens = tokens - 1.0;
    b->granted = now;
    return 1;
}

static void limiter_debit(run *r, int64_t pair)
{
    bucket *b = &r->buckets[pair];
    double left = b->tokens - 1.0;
    b->tokens = left > 0.0 ? left : 0.0;
}

static double limiter_wait(const run *r, int64_t pair, double now)
{
    const bucket *b = &r->buckets[pair];
    double missing = 1.0 - due(r, b, now);
    if (missing < 0.0)
        missing = 0.0;
    return missing * r->rules.window / b->rate;
}

static void limiter_wake(run *r, int64_t pair, double now)
{
    if (r->rules.mint) {
        r->buckets[pair].tokens = 1.0;
        r->buckets[pair].granted = now;
    }
}

static void roll(const run *r, bucket *b, double now)
{
    int64_t tick = (int64_t)floor(now / r->rules.window), passed = tick - b->tick;
    double a = r->rules.smoothing, received;
    if (passed <= 0)
        return;
    received = a * (double)b->count + (1.0 - a) * b->received;
    if (passed > 1)
        received *= pow(1.0 - a, (double)(passed - 1));
    b->received = received;
    b->count = 0;
    b->tick = tick;
}

static void limiter_answered(run *r, int64_t pair, double now)
{
    const limiter_rules *q = &r->rules;
    bucket *b = &r->buckets[pair];
    roll(r, b, now);
    b->count += 1;
    if (b->rate < b->received) {
        double x = now - b->decreased - cbrt(b->saddle * q->decrease / q->growth);
        double wanted = q->growth * (x * x * x) + b->saddle;
        b->increased = now;
        b->rate = wanted - b->rate > q->step ? b->rate + q->step : wanted;
        if (b->rate < q->floor / 2)
            b->rate = q->floor / 2;
    } else if (b->received == 0.0) {
        return;
    } else if (b->rate > b->received && now - b->increased > q->hysteresis * q->window) {
        double lower = b->rate * q->decrease;
        b->saddle = b->rate;
        b->rate = lower >= q->floor ? lower : q->floor;
        b->decreased = now;
    }
}

/* Dynamic snitching: decaying samples of response times. */

static void snitch_start(run *r)
{
    snitch *s = &r->snitch;
    size_t pairs = (size_t)(r->clients * r->servers), all = pairs * (size_t)s->size;
    s->next_update = s->update;
    s->next_reset = s->reset;
    s->value = take(r, all, sizeof(double));
    s->rank = take(r, all, sizeof(double));
    s->score = take(r, pairs, sizeof(double));
    s->scratch = take(r, (size_t)s->size, sizeof(double));
    s->count = take(r, pairs, sizeof(int64_t));
}

/* Move the k-th smallest of n values to its place, smaller ones before it. */
static void select_rank(double *value, int64_t n, int64_t k)
{
    int64_t low = 0, high = n - 1;
    while (low < high) {
        double pivot = value[(low + high) / 2];
        int64_t left = low, right = high;
        while (left <= right) {
            while (value[left] < pivot)
                left++;
            while (value[right] > pivot)
                right--;
            if (left <= right) {
                double other = value[left];
                value[left++] = value[right];
                value[right--] = other;
            }
        }
        if (k <= right)
            high = right;
        else if (k >= left)
            low = left;
        else
            return;
    }
}

static double median(snitch *s, const double *value, int64_t count)
{
    int64_t middle = count / 2;
    double upper, lower;
    if (count == 0)
        return 0.0;
    memcpy(s->scratch, value, (size_t)count * sizeof(double));
    select_rank(s->scratch, count, middle);
    upper = lower = s->scratch[middle];
    if (count % 2 == 0) {
        lower = s->scratch[0];
        for (int64_t k = 1; k < middle; k++)
            if (s->scratch[k] > lower)
                lower = s->scratch[k];
    }
    return (lower + upper) / 2;
}

/* Compute the scores as they were at the last update before `now`. */
static void advance(run *r, double now)
{
    snitch *s = &r->snitch;
    if (now < s->next_update)
        return;
    s->next_update = (floor(now / s->update) + 1) * s->update;
    for (int64_t client = 0; client < r->clients; client++) {
        double *score = s->score + client * r->servers, largest = 0.0;
        for (int64_t server = 0; server < r->servers; server++) {
            int64_t pair = client * r->servers + server;
            score[server] = median(s, s->value + pair * s->size, s->count[pair]);
            if (score[server] > largest)
                largest = score[server];
        }
        for (int64_t server = 0; server < r->servers; server++)
            score[server] = largest > 0 ? score[server] / largest : 0.0;
    }
    if (now >= s->next_reset) {
        memset(s->count, 0, (size_t)(r->clients * r->servers) * sizeof(int64_t));
        s->next_reset += s->reset;
    }
}

/* Sort r->order, stable, by delays or scores of its servers. */
static void sort_by(run *r, const double *key)
{
    for (int64_t k = 1; k < r->replication; k++) {
        int64_t server = r->order[k], at = k;
        for (; at > 0 && key[server] < key[r->order[at - 1]]; at--)
            r->order[at] = r->order[at - 1];
        r->order[at] = server;
    }
}

static void snitch_rank(run *r, int64_t read, double now)
{
    snitch *s = &r->snitch;
    const double *delay = r->delay + r->client[read] * r->servers;
    const double *score = s->score + r->client[read] * r->servers;
    double factor = 1.0 + s->badness;
    advance(r, now);
    for (int64_t k = 0; k < r->replication; k++)
        r->order[k] = server_of(r, r->group[read], k);
    sort_by(r, delay);
    for (int64_t k = 0; k < r->replication; k++)
        r->key[k] = (double)r->order[k]; /* the static order */
    sort_by(r, score);
    for (int64_t k = 0; k < r->replication; k++)
        if (score[(int64_t)r->key[k]] > score[r->order[k]] * factor)
            return;
    for (int64_t k = 0; k < r->replication; k++)
        r->order[k] = (int64_t)r->key[k];
}

static void snitch_answered(run *r, int64_t pair, double response, double now)
{
    snitch *s = &r->snitch;
    double *value = s->value + pair * s->size, *ranks = s->rank + pair * s->size, rank;
    int64_t at = 0;
    advance(r, now);
    /* There is a draw for every number that can be answered. */
    rank = s->decay * now / 1000.0 + s->draw[s->drawn < s->draws ? s->drawn++ : 0];
    if (s->count[pair] < s->size) {
        at = s->count[pair]++;
    } else {
        for (int64_t k = 1; k < s->size; k++)
            if (ranks[k] < ranks[at])
                at = k;
        if (!(rank > ranks[at]))
            return;
    }
    ranks[at] = rank;
    value[at] = response;
}

/* Policies. */

static int64_t least(const double *values, int64_t count)
{
    int64_t at = 0;
    for (int64_t k = 1; k < count; k++)
        if (values[k] < values[at])
            at = k;
    return at;
}

static double score(const run *r, const knowledge *k)
{
    double estimate;
    if (!k->heard)
        return 0.0;
    estimate = 1.0 + (double)k->outstanding * r->weight + k->queue;
    return k->network + pow(estimate, r->exponent) * k->service;
}

/* When `read` would end at `server` if it left now and no speed changed. */
static double replayed(run *r, int64_t read, int64_t server, double now)
{
    double mean = mean_at(r, server, now), *slot = r->scratch, begin;
    double there = now + delay_of(r, r->client[read], server);
    const line *queues[2] = {&r->lines[server], &r->coming[server]};
    int64_t busy = r->busy[server], at;
    int after = 0;
    for (int64_t k = 0; k < r->slots; k++)
        slot[k] = k < busy ? r->ends[server * r->slots + k] : now;
    for (int which = 0; which < 2 && !after; which++) {
        const line *queue = queues[which];
        for (int64_t k = 0; k < queue->count; k++) {
            int64_t number = queue->item[(queue->head + k) & (queue->room - 1)];
            double arrives = r->reach[number];
            if (arrives > there) { /* it comes after this read */
                after = 1;
                break;
            }
            at = least(slot, r->slots);
            begin = slot[at] >= arrives ? slot[at] : arrives;
            slot[at] = begin + work_of(r, number) * mean;
        }
    }
    at = least(slot, r->slots);
    begin = slot[at] >= there ? slot[at] : there;
    return begin + r->work[read] * mean;
}

/* When work sent now to a server will end, with the speeds to come. */
static double foreseen(const run *r, double work, int64_t client, int64_t server, double now,
                       int64_t *slot)
{
    double there = now + delay_of(r, client, server);
    const double *free_at = r->free_at + server * r->slots;
    int64_t at = least(free_at, r->slots);
    double begin = free_at[at] >= there ? free_at[at] : there;
    if (slot)
        *slot = at;
    return begin + work * mean_at(r, server, begin);
}

static double key_of(run *r, int64_t read, int64_t server, double now)
{
    const knowledge *k = &r->known[r->client[read] * r->servers + server];
    int64_t ahead;
    switch (r->policy) {
    case POLICY_ORA:
    case POLICY_ORAF:
        ahead = r->busy[server] + r->lines[server].count;
        if (r->policy == POLICY_ORAF)
            ahead += r->coming[server].count;
        return (double)(1 + ahead) * mean_at(r, server, now);
    case POLICY_ECT:
        return replayed(r, read, server, now);
    case POLICY_ECTF:
        return foreseen(r, r->work[read], r->client[read], server, now, 0);
    case POLICY_C3:
    case POLICY_TWO:
        return score(r, k);
    case POLICY_LOR:
        return (double)k->outstanding;
    case POLICY_LRT:
    case POLICY_WRT:
        return k->last;
    case POLICY_NEAR:
        return delay_of(r, r->client[read], server);
    default: /* rotation and chance sort by nothing */
        return 0.0;
    }
}

/* Put the servers of the group into r->order, best first. */
/* WRT: put a replica drawn in inverse proportion to its last response time first. */
static void draw_first(run *r, double uniform)
{
    double left = 0.0;
    for (int64_t k = 0; k < r->replication; k++)
        left += 1.0 / r->key[k];
    left *= uniform;
    for (int64_t k = 0; k < r->replication; k++) {
        left -= 1.0 / r->key[k];
        if (left < 0.0) {
            int64_t server = r->order[k];
            for (; k > 0; k--)
                r->order[k] = r->order[k - 1];
            r->order[0] = server;
            return;
        }
    }
}

static void policy_rank(run *r, int64_t read, double now)
{
    int64_t size = r->replication, group = r->group[read], sorted = size;
    const signed char *shuffle = r->shuffle + read * size;
    if (r->policy == POLICY_DS) {
        snitch_rank(r, read, now);
        return;
    }
    for (int64_t k = 0; k < size; k++) {
        int64_t place = r->random_ties ? shuffle[k] : k;
        if (r->policy == POLICY_RR)
            place = (k + r->turn[r->client[read] * r->groups + group]) % size;
        r->order[k] = server_of(r, group, place);
    }
    if (r->policy == POLICY_RR || r->policy == POLICY_RAND)
        return;
    if (r->policy == POLICY_TWO && sorted > 2)
        sorted = 2;
    for (int64_t k = 0; k < sorted; k++) { /* stable insertion */
        int64_t server = r->order[k], at = k;
        double key = key_of(r, read, server, now);
        for (; at > 0 && key < r->key[at - 1]; at--) {
            r->key[at] = r->key[at - 1];
            r->order[at] = r->order[at - 1];
        }
        r->key[at] = key;
        r->order[at] = server;
    }
    if (r->policy == POLICY_WRT && r->key[0] > 0.0)
        draw_first(r, r->uniform[read]);
}

static void policy_sent(run *r, int64_t number, int64_t read, int64_t server, double now, int told)
{
    int64_t client = r->client[read], slot;
    if (told)
        r->known[client * r->servers + server].outstanding += 1;
    if (told && r->policy == POLICY_RR && number < r->n) {
        int64_t *turn = &r->turn[client * r->groups + r->group[read]];
        *turn = (*turn + 1) % r->replication;
    }
    if (r->policy == POLICY_ECTF) {
        double end = foreseen(r, work_of(r, number), client, server, now, &slot);
        r->free_at[server * r->slots + slot] = end;
    }
}

static void policy_answered(run *r, int64_t pair, double response, double service, double queue,
                     double now)
{
    knowledge *k = &r->known[pair];
    double network = response - service, fresh = r->alpha, old = 1.0 - r->alpha;
    if (r->policy == POLICY_DS)
        snitch_answered(r, pair, response, now);
    k->outstanding -= 1;
    k->last = response;
    if (!k->heard) {
        k->heard = 1;
        k->queue = queue;
        k->service = service;
        k->network = network;
        return;
    }
    k->queue = fresh * queue + old * k->queue;
    k->service = fresh * service + old * k->service;
    k->network = fresh * network + old * k->network;
}

/* The event loop. */

static int before(const event *a, const event *b)
{
    return a->time < b->time || (a->time == b->time && a->sequence < b->sequence);
}

static void push(run *r, double time, int kind, int64_t what, double value)
{
    event e = {time, value, ++r->sequence, what, kind};
    int64_t at = r->pending;
    if (at == r->room) {
        event *more = realloc(r->heap, (size_t)(2 * r->room) * sizeof(event));
        if (!more) {
            r->out_of_memory = 1;
            return;
        }
        r->heap = more;
        r->room *= 2;
    }
    r->pending += 1;
    for (; at > 0 && before(&e, &r->heap[(at - 1) / 2]); at = (at - 1) / 2)
        r->heap[at] = r->heap[(at - 1) / 2];
    r->heap[at] = e;
}

static event pop(run *r)
{
    event top = r->heap[0], last = r->heap[--r->pending];
    int64_t at = 0, child;
    while ((child = 2 * at + 1) < r->pending) {
        if (child + 1 < r->pending && before(&r->heap[child + 1], &r->heap[child]))
            child += 1;
        if (!before(&r->heap[child], &last))
            break;
        r->heap[at] = r->heap[child];
        at = child;
    }
    r->heap[at] = last;
    return top;
}

static void join(run *r, line *queue, int64_t number)
{
    if (queue->count == queue->room) {
        int64_t *more = malloc((size_t)(2 * queue->room) * sizeof(int64_t));
        if (!more) {
            r->out_of_memory = 1;
            return;
        }
        for (int64_t k = 0; k < queue->count; k++)
            more[k] = queue->item[(queue->head + k) & (queue->room - 1)];
        free(queue->item);
        queue->item = more;
        queue->head = 0;
        queue->room *= 2;
    }
    queue->item[(queue->head + queue->count++) & (queue->room - 1)] = number;
}

/* Put a number into a line that is ordered by the time at which servers are reached. */
static void join_in_order(run *r, line *queue, int64_t number)
{
    int64_t at = queue->count, mask, before_it;
    join(r, queue, number);
    if (r->out_of_memory)
        return;
    for (mask = queue->room - 1; at > 0; at--) {
        before_it = queue->item[(queue->head + at - 1) & mask];
        if (r->reach[before_it] <= r->reach[number])
            break;
        queue->item[(queue->head + at) & mask] = before_it;
    }
    queue->item[(queue->head + at) & mask] = number;
}

static int64_t take_first(line *queue)
{
    int64_t number = queue->item[queue->head & (queue->room - 1)];
    queue->head = (queue->head + 1) & (queue->room - 1);
    queue->count -= 1;
    return number;
}

/* Start the first in line. */
static void begin(run *r, int64_t server, double now)
{
    int64_t number = take_first(&r->lines[server]);
    double service = work_of(r, number) * mean_at(r, server, now);
    r->ends[server * r->slots + r->busy[server]++] = now + service;
    r->service[number] = service;
    r->begun[number] = now;
    push(r, now + service, DONE, number, 0.0);
}

static void reached(run *r, int64_t number, double now)
{
    int64_t server = r->placed[number];
    join(r, &r->lines[server], take_first(&r->coming[server]));
    if (!r->out_of_memory && r->busy[server] < r->slots)
        begin(r, server, now);
}

static void send_to(run *r, int64_t number, int64_t read, int64_t server, double now, int told)
{
    r->sent[number] = now;
    r->reach[number] = now + delay_of(r, r->client[read], server);
    r->placed[number] = (int32_t)server;
    join_in_order(r, &r->coming[server], number);
    policy_sent(r, number, read, server, now, told);
    push(r, r->reach[number], REACH, number, 0.0);
}

static void dispatch(run *r, int64_t read, int64_t server, double now)
{
    int64_t copy = r->n + read * (r->replication - 1), base = r->client[read] * r->servers;
    r->server[read] = server;
    send_to(r, read, read, server, now, 1);
    if (!r->shadowed[read]) {
        if (r->hedging && r->replication > 1) {
            double due = r->issued[read] + r->waits[r->client[read]];
            push(r, due > now ? due : now, HEDGE, read, 0.0);
        }
        return;
    }
    for (int64_t k = 0; k < r->replication; k++) {
        int64_t other = server_of(r, r->group[read], k);
        if (other == server)
            continue;
        if (r->limited)
            limiter_debit(r, base + other);
        send_to(r, copy++, read, other, now, 1);
    }
}

/* Send a read that is not answered yet to the best of the other replicas. */
static void duplicate(run *r, int64_t read, double now)
{
    int64_t k = 0;
    if (!isnan(r->latency[read]))
        return;
    policy_rank(r, read, now);
    while (k < r->replication && r->order[k] == r->server[read])
        k++;
    if (r->limited)
        limiter_debit(r, r->client[read] * r->servers + r->order[k]);
    r->duplicated[read] = 1;
    r->hedged += 1;
    send_to(r, r->n + read * (r->replication - 1), read, r->order[k], now, 1);
}

/* Send an update to all replicas. */
static void send_update(run *r, int64_t operation, double now)
{
    int64_t number = operation;
    r->update[operation] = 1;
    for (int64_t k = 0; k < r->replication; k++) {
        send_to(r, number, operation, server_of(r, r->group[operation], k), now, 0);
        number = r->n + operation * (r->replication - 1) + k;
    }
}

/* Send the head of a backlog, and the next, until a token is missing. */
static void serve(run *r, int64_t index, double now)
{
    int64_t client = index / r->groups, group = index % r->groups, base = client * r->servers;
    while (r->backlog_head[index] >= 0 && !r->out_of_memory) {
        int64_t read = r->backlog_head[index], k;
        policy_rank(r, read, now);
        for (k = 0; k < r->replication; k++) {
            r->tries += 1;
            if (limiter_take(r, base + r->order[k], now))
                break;
            r->refused += 1;
        }
        if (k < r->replication) {
            dispatch(r, read, r->order[k], now);
            r->backlog_head[index] = r->next[read];
            continue;
        }
        int64_t cheapest = server_of(r, group, 0);
        double wait = limiter_wait(r, base + cheapest, now);
        for (k = 1; k < r->replication; k++) {
            int64_t server = server_of(r, group, k);
            double other = limiter_wait(r, base + server, now);
            if (other < wait) {
                wait = other;
                cheapest = server;
            }
        }
        /* Late in a long run a wait may be lost in rounding; time has to pass all the same. */
        push(r, now + wait > now ? now + wait : nextafter(now, INFINITY), WAKE, index,
             (double)cheapest);
        return;
    }
}

static void arrive(run *r, int64_t read, double now)
{
    int64_t index = r->client[read] * r->groups + r->group[read];
    if (r->mix[read] < r->share[r->kind_of[read]]) {
        send_update(r, read, now);
        return;
    }
    if (!r->limited) {
        if (r->forced[read] < 0)
            policy_rank(r, read, now);
        dispatch(r, read, r->forced[read] < 0 ? r->order[0] : r->forced[read], now);
        return;
    }
    r->next[read] = -1;
    if (r->backlog_head[index] < 0) {
        r->backlog_head[index] = r->backlog_tail[index] = read;
        serve(r, index, now);
    } else { /* it is asleep, and serves its head first */
        r->next[r->backlog_tail[index]] = read;
        r->backlog_tail[index] = read;
    }
}

/* Let a generator in a closed loop issue the next operation, if there is one. */
static void issue(run *r, int64_t kind, double now)
{
    int64_t operation = r->issues;
    if (operation >= r->n)
        return;
    r->issues += 1;
    r->issued[operation] = now;
    r->kind_of[operation] = (int32_t)kind;
    arrive(r, operation, now);
}

static void done(run *r, int64_t number, double now)
{
    int64_t server = r->placed[number], last = --r->busy[server], k = 0;
    double *ends = r->ends + server * r->slots;
    const line *queue = &r->lines[server];
    while (k < last && ends[k] != now)
        k++;
    ends[k] = ends[last];
    if (queue->count > 0)
        begin(r, server, now);
    push(r, now + delay_of(r, r->client[operation_of(r, number)], server), ANSWER, number,
         (double)queue->count);
}

static void first_answer(run *r, int64_t read, int64_t server, double now)
{
    double latency = now - r->issued[read], *wait = &r->waits[r->client[read]];
    r->latency[read] = latency;
    r->server[read] = server;
    r->answered += 1;
    if (r->hedging && !r->update[read])
        *wait *= latency > *wait ? r->slower : r->other;
    if (r->closed)
        issue(r, r->kind_of[read], now);
}

static void answer(run *r, int64_t number, double waiting, double now)
{
    int64_t read = operation_of(r, number), server = r->placed[number];
    int64_t pair = r->client[read] * r->servers + server;
    if (!r->update[read]) {
        policy_answered(r, pair, now - r->sent[number], r->service[number], waiting, now);
        if (r->limited)
            limiter_answered(r, pair, now);
    }
    if ((number < r->n || r->update[read] || r->duplicated[read]) && isnan(r->latency[read])) {
        r->start[read] = r->begun[number];
        first_answer(r, read, server, now);
    }
}

static line *prepare_lines(run *r, size_t servers)
{
    line *lines = take(r, servers, sizeof(line));
    for (size_t k = 0; lines && k < servers; k++) {
        lines[k].room = 16;
        if (!(lines[k].item = malloc(16 * sizeof(int64_t))))
            r->out_of_memory = 1;
    }
    return lines;
}

static int prepare(run *r)
{
    size_t pairs = (size_t)(r->clients * r->servers), servers = (size_t)r->servers;
    size_t slots = servers * (size_t)r->slots, numbers = (size_t)(r->n * r->replication);
    size_t queues = (size_t)(r->clients * r->groups), n = (size_t)r->n;
    size_t copies = (size_t)r->replication;
    r->buckets = take(r, pairs, sizeof(bucket));
    r->known = take(r, pairs, sizeof(knowledge));
    r->turn = take(r, queues, sizeof(int64_t));
    r->backlog_head = take(r, queues, sizeof(int64_t));
    r->backlog_tail = take(r, queues, sizeof(int64_t));
    r->next = take(r, n, sizeof(int64_t));
    r->busy = take(r, servers, sizeof(int64_t));
    r->ends = take(r, slots, sizeof(double));
    r->free_at = take(r, slots, sizeof(double));
    r->scratch = take(r, (size_t)r->slots, sizeof(double));
    r->order = take(r, copies, sizeof(int64_t));
    r->key = take(r, copies, sizeof(double));
    r->placed = take(r, numbers, sizeof(int32_t));
    r->service = take(r, numbers, sizeof(double));
    r->sent = take(r, numbers, sizeof(double));
    r->reach = take(r, numbers, sizeof(double));
    r->begun = take(r, numbers, sizeof(double));
    r->waits = take(r, (size_t)r->clients, sizeof(double));
    r->duplicated = take(r, n, 1);
    r->kind_of = take(r, n, sizeof(int32_t));
    r->lines = prepare_lines(r, servers);
    r->coming = prepare_lines(r, servers);
    r->room = 1024;
    r->heap = malloc((size_t)r->room * sizeof(event));
    if (r->policy == POLICY_DS)
        snitch_start(r);
    if (r->out_of_memory || !r->heap)
        return 0;
    for (size_t k = 0; k < queues; k++)
        r->backlog_head[k] = -1;
    for (int64_t k = 0; k < r->clients; k++)
        r->waits[k] = r->patience;
    for (int64_t kind = 0; kind < r->kinds; kind++)
        for (int64_t k = 0; k < r->generators[kind]; k++) {
            push(r, r->joins[kind], ISSUE, kind, 0.0);
            r->closed = 1;
        }
    if (r->limited)
        limiter_start(r);
    return !r->out_of_memory;
}

static int run_all(run *r)
{
    int64_t coming = 0, waits;
    double now = 0.0;
    if (!prepare(r))
        return 0;
    waits = r->closed ? 0 : r->n;
    while (r->answered < r->n && !r->out_of_memory) {
        r->events += 1;
        if (r->events % EVENTS_BETWEEN_PAUSES == 0 && r->pause(r))
            return 0;
        if (coming < waits && (!r->pending || r->arrival[coming] <= r->heap[0].time)) {
            r->issued[coming] = r->arrival[coming];
            arrive(r, coming, r->arrival[coming]);
            coming += 1;
            continue;
        }
        event e = pop(r);
        now = e.time;
        switch (e.kind) {
        case REACH:
            reached(r, e.what, now);
            break;
        case DONE:
            done(r, e.what, now);
            break;
        case ANSWER:
            answer(r, e.what, e.value, now);
            break;
        case WAKE:
            limiter_wake(r, e.what / r->groups * r->servers + (int64_t)e.value, now);
            push(r, now, RETRY, e.what, 0.0);
            break;
        case ISSUE:
            issue(r, e.what, now);
            break;
        case HEDGE:
            duplicate(r, e.what, now);
            break;
        default: /* a separate event: all that wake now, wake before it */
            serve(r, e.what, now);
        }
    }
    r->end = now;
    return !r->out_of_memory;
}

static void run_free(run *r)
{
    for (int64_t k = 0; r->lines && k < r->servers; k++)
        free(r->lines[k].item);
    for (int64_t k = 0; r->coming && k < r->servers; k++)
        free(r->coming[k].item);
    while (r->owners > 0)
        free(r->owned[--r->owners]);
    free(r->heap);
}

/* The binding. */

#define BUFFERS 22
#define READ_ONLY 17 /* the buffers before this one are inputs */

/* Reads, clients, servers, slots, replication, epochs; sizes whose product could overflow are
   refused by the caller. */
static int sane(const run *r)
{
    return r->n >= 0 && r->clients > 0 && r->servers > 0 && r->servers < INT32_MAX &&
           r->slots > 0 && r->replication > 0 && r->replication <= r->servers && r->epochs > 0 &&
           r->replication < 128 && r->groups > 0 && r->kinds > 0 && r->kinds < INT32_MAX;
}

static int in_range(const int64_t *values, int64_t n, int64_t below)
{
    for (int64_t k = 0; k < n; k++)
        if (values[k] < 0 || values[k] >= below)
            return 0;
    return 1;
}

PyDoc_STRVAR(run_doc,
             "run(sizes, times, policy, limiter, hedge, snitch, (arrival, client, group, work,\n"
             "    shadowed, shadow_work, shuffle, means, mix, delay, table, generators, joins,\n"
             "    share, draws, uniform, forced, latency, server, start, issued, update))\n"
             "    -> (end_ms, tries, refused, events, hedged)\n\n"
             "Simulate; the last five buffers are written. Releases the interpreter lock, and takes\n"
             "it now and then to let signal handlers run; what they raise ends the run.");

static int pause_now(run *r)
{
    PyEval_RestoreThread(r->thread);
    r->raised = PyErr_CheckSignals() != 0;
    r->thread = PyEval_SaveThread();
    return r->raised;
}

static PyObject *simulate(PyObject *self, PyObject *args)
{
    PyObject *limiter, *hedge, *snitching, *inputs, *result = NULL;
    Py_buffer view[BUFFERS];
    run r;
    limiter_rules *q = &r.rules;
    int held = 0, finished;
    (void)self;
    memset(&r, 0, sizeof r);
    if (!PyArg_ParseTuple(args, "(LLLLLLLL)(dd)(iiddd)OOOO!", &r.n, &r.clients, &r.servers, &r.slots,
                          &r.replication, &r.epochs, &r.groups, &r.kinds, &r.period,
                          &r.update_work, &r.policy, &r.random_ties, &r.exponent, &r.weight,
                          &r.alpha, &limiter, &hedge, &snitching, &PyTuple_Type, &inputs))
        return NULL;
    if (!sane(&r) || r.policy < 0 || r.policy >= POLICIES || PyTuple_Size(inputs) != BUFFERS)
        return PyErr_Format(PyExc_ValueError, "sizes, policy or number of buffers out of range");
    if (snitching != Py_None &&
        !PyArg_ParseTuple(snitching, "ddddLL", &r.snitch.update, &r.snitch.reset, &r.snitch.decay,
                          &r.snitch.badness, &r.snitch.size, &r.snitch.draws))
        return NULL;
    if (r.policy == POLICY_DS &&
        (r.snitch.size < 1 || r.snitch.draws < r.n * r.replication || r.snitch.draws < 1))
        return PyErr_Format(PyExc_ValueError, "no sample size, or fewer draws than responses");
    if (hedge != Py_None) {
        r.hedging = 1;
        if (!PyArg_ParseTuple(hedge, "ddd", &r.patience, &r.slower, &r.other))
            return NULL;
    }
    if (limiter != Py_None) {
        r.limited = 1;
        if (!PyArg_ParseTuple(limiter, "dddddddddddi", &q->window, &q->decrease, &q->growth,
                              &q->step, &q->hysteresis, &q->floor, &q->rate, &q->tokens,
                              &q->capacity, &q->saddle, &q->smoothing, &q->mint))
            return NULL;
    }
    Py_ssize_t n = (Py_ssize_t)r.n, copies = (Py_ssize_t)(r.replication - 1);
    Py_ssize_t pairs = 8 * (Py_ssize_t)(r.clients * r.servers), kinds = 8 * (Py_ssize_t)r.kinds;
    const Py_ssize_t bytes[BUFFERS] = {
        8 * n, 8 * n, 8 * n, 8 * n, n, 8 * n * copies, n * (Py_ssize_t)r.replication,
        8 * (Py_ssize_t)(r.epochs * r.servers), 8 * n, pairs,
        8 * (Py_ssize_t)(r.groups * r.replication), kinds, kinds, kinds,
        8 * (Py_ssize_t)r.snitch.draws, 8 * n, 8 * n, 8 * n, 8 * n, 8 * n, 8 * n, n};
    for (; held < BUFFERS; held++) {
        int flags = held < READ_ONLY ? PyBUF_C_CONTIGUOUS : PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE;
        if (PyObject_GetBuffer(PyTuple_GetItem(inputs, held), &view[held], flags))
            goto out;
        if (view[held].len != bytes[held]) {
            PyErr_Format(PyExc_ValueError, "buffer %d has %zd bytes, expected %zd", held,
                         view[held].len, bytes[held]);
            held++;
            goto out;
        }
    }
    r.arrival = view[0].buf;
    r.client = view[1].buf;
    r.group = view[2].buf;
    r.work = view[3].buf;
    r.shadowed = view[4].buf;
    r.shadow_work = view[5].buf;
    r.shuffle = view[6].buf;
    r.means = view[7].buf;
    r.mix = view[8].buf;
    r.delay = view[9].buf;
    r.table = view[10].buf;
    r.generators = view[11].buf;
    r.joins = view[12].buf;
    r.share = view[13].buf;
    r.snitch.draw = view[14].buf;
    r.uniform = view[15].buf;
    r.forced = view[16].buf;
    r.latency = view[17].buf;
    r.server = view[18].buf;
    r.start = view[19].buf;
    r.issued = view[20].buf;
    r.update = view[21].buf;
    for (int64_t k = 0; k < r.n; k++)
        if (r.forced[k] < -1 || r.forced[k] >= r.servers || (r.forced[k] >= 0 && r.limited)) {
            PyErr_SetString(PyExc_ValueError, "a forced server is out of range, or is rate limited");
            goto out;
        }
    if (!in_range(r.client, r.n, r.clients) || !in_range(r.group, r.n, r.groups) ||
        !in_range(r.table, r.groups * r.replication, r.servers)) {
        PyErr_SetString(PyExc_ValueError, "a client, a group or a server is out of range");
        goto out;
    }
    r.pause = pause_now;
    r.thread = PyEval_SaveThread();
    finished = run_all(&r);
    run_free(&r);
    PyEval_RestoreThread(r.thread);
    if (finished)
        result = Py_BuildValue("dLLLL", r.end, (long long)r.tries, (long long)r.refused,
                               (long long)r.events, (long long)r.hedged);
    else if (!r.raised)
        PyErr_NoMemory();
out:
    while (held > 0)
        PyBuffer_Release(&view[--held]);
    return result;
}

static PyMethodDef methods[] = {{"run", simulate, METH_VARARGS, run_doc}, {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                        "_kernel",
                                        "Compiled event loop of replica selection.",
                                        -1,
                                        methods,
                                        NULL,
                                        NULL,
                                        NULL,
                                        NULL};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModule_Create(&definition);
}
