/* The event loop: placement/online/selection/simulator.py. */
#include "selection.h"

#include <math.h>
#include <stdlib.h>

#define EVENTS_BETWEEN_PAUSES 65536 /* some ten milliseconds */

enum { REACH, DONE, ANSWER, WAKE, RETRY, ISSUE, HEDGE };

int64_t operation_of(const run *r, int64_t number)
{
    return number < r->n ? number : (number - r->n) / (r->replication - 1);
}

double work_of(const run *r, int64_t number)
{
    double work = number < r->n ? r->work[number] : r->shadow_work[number - r->n];
    return r->update[operation_of(r, number)] ? work * r->update_work : work;
}

double delay_of(const run *r, int64_t client, int64_t server)
{
    return r->delay[client * r->servers + server];
}

double mean_at(const run *r, int64_t server, double time)
{
    int64_t epoch = r->epochs > 1 ? (int64_t)floor(time / r->period) % r->epochs : 0;
    return r->means[epoch * r->servers + server];
}

int64_t server_of(const run *r, int64_t group, int64_t place)
{
    return r->table[group * r->replication + place];
}

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
        policy_rank(r, read, now);
        dispatch(r, read, r->order[0], now);
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

static int prepare_lines(line **lines, size_t servers)
{
    if (!(*lines = calloc(servers, sizeof(line))))
        return 0;
    for (size_t k = 0; k < servers; k++) {
        (*lines)[k].room = 16;
        if (!((*lines)[k].item = malloc(16 * sizeof(int64_t))))
            return 0;
    }
    return 1;
}

static int prepare(run *r)
{
    size_t pairs = (size_t)(r->clients * r->servers), servers = (size_t)r->servers;
    size_t slots = servers * (size_t)r->slots, numbers = (size_t)(r->n * r->replication);
    size_t queues = (size_t)(r->clients * r->groups);
    r->room = 1024;
    r->buckets = calloc(pairs, sizeof(bucket));
    r->known = calloc(pairs, sizeof(knowledge));
    r->turn = calloc(queues, sizeof(int64_t));
    r->backlog_head = malloc(queues * sizeof(int64_t));
    r->backlog_tail = malloc(queues * sizeof(int64_t));
    r->next = malloc(((size_t)r->n + 1) * sizeof(int64_t));
    r->busy = calloc(servers, sizeof(int64_t));
    r->ends = calloc(slots, sizeof(double));
    r->free_at = calloc(slots, sizeof(double));
    r->scratch = calloc((size_t)r->slots, sizeof(double));
    r->order = calloc((size_t)r->replication, sizeof(int64_t));
    r->key = calloc((size_t)r->replication, sizeof(double));
    r->placed = malloc((numbers + 1) * sizeof(int32_t));
    r->service = malloc((numbers + 1) * sizeof(double));
    r->sent = malloc((numbers + 1) * sizeof(double));
    r->reach = malloc((numbers + 1) * sizeof(double));
    r->begun = malloc((numbers + 1) * sizeof(double));
    r->waits = malloc((size_t)r->clients * sizeof(double));
    r->duplicated = calloc((size_t)r->n + 1, 1);
    r->kind_of = calloc((size_t)r->n + 1, sizeof(int32_t));
    r->heap = malloc((size_t)r->room * sizeof(event));
    if (!prepare_lines(&r->lines, servers) || !prepare_lines(&r->coming, servers))
        return 0;
    if (!r->buckets || !r->known || !r->turn || !r->backlog_head || !r->backlog_tail || !r->next ||
        !r->busy || !r->ends || !r->free_at || !r->scratch ||
        !r->order || !r->key || !r->placed || !r->service || !r->sent || !r->reach || !r->begun ||
        !r->waits || !r->duplicated || !r->kind_of || !r->heap)
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
    return r->policy != POLICY_DS || snitch_start(r);
}

int run_all(run *r)
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

void run_free(run *r)
{
    for (int64_t k = 0; r->lines && k < r->servers; k++)
        free(r->lines[k].item);
    for (int64_t k = 0; r->coming && k < r->servers; k++)
        free(r->coming[k].item);
    snitch_free(r);
    free(r->coming);
    free(r->reach);
    free(r->begun);
    free(r->waits);
    free(r->duplicated);
    free(r->kind_of);
    free(r->buckets);
    free(r->known);
    free(r->turn);
    free(r->backlog_head);
    free(r->backlog_tail);
    free(r->next);
    free(r->lines);
    free(r->busy);
    free(r->ends);
    free(r->free_at);
    free(r->scratch);
    free(r->order);
    free(r->key);
    free(r->placed);
    free(r->service);
    free(r->sent);
    free(r->heap);
}
