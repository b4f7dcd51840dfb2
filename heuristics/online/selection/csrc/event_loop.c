/* The event loop: placement/online/selection/simulator.py. */
#include "selection.h"

#include <math.h>
#include <stdlib.h>

#define EVENTS_BETWEEN_PAUSES 65536 /* some ten milliseconds */

enum { REACH, DONE, ANSWER, WAKE, RETRY };

double work_of(const run *r, int64_t number)
{
    return number < r->n ? r->work[number] : r->shadow_work[number - r->n];
}

double mean_at(const run *r, int64_t server, double time)
{
    int64_t epoch = r->epochs > 1 ? (int64_t)floor(time / r->period) % r->epochs : 0;
    return r->means[epoch * r->servers + server];
}

int64_t server_of(const run *r, int64_t group, int64_t place)
{
    return (group + place) % r->servers;
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

/* Start the first in line; delays are equal, so that it has arrived. */
static void begin(run *r, int64_t server, double now)
{
    line *queue = &r->lines[server];
    int64_t number = queue->item[queue->head & (queue->room - 1)];
    double service = work_of(r, number) * mean_at(r, server, now);
    queue->head = (queue->head + 1) & (queue->room - 1);
    queue->count -= 1;
    r->ends[server * r->slots + r->busy[server]++] = now + service;
    r->service[number] = service;
    if (number < r->n)
        r->start[number] = now;
    push(r, now + service, DONE, number, 0.0);
}

static void send_to(run *r, int64_t number, int64_t read, int64_t server, double now)
{
    join(r, &r->lines[server], number);
    r->in_flight[server] += 1;
    r->sent[number] = now;
    r->placed[number] = (int32_t)server;
    policy_sent(r, number, read, server, now);
    push(r, now + r->delay, REACH, number, 0.0);
}

static void dispatch(run *r, int64_t read, int64_t server, double now)
{
    int64_t copy = r->n + read * (r->replication - 1), base = r->client[read] * r->servers;
    r->server[read] = server;
    send_to(r, read, read, server, now);
    if (!r->shadowed[read])
        return;
    for (int64_t k = 0; k < r->replication; k++) {
        int64_t other = server_of(r, r->group[read], k);
        if (other == server)
            continue;
        if (r->limited)
            limiter_debit(r, base + other);
        send_to(r, copy++, read, other, now);
    }
}

/* Send the head of a backlog, and the next, until a token is missing. */
static void serve(run *r, int64_t index, double now)
{
    int64_t client = index / r->servers, group = index % r->servers, base = client * r->servers;
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
    int64_t index = r->client[read] * r->servers + r->group[read];
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

static void done(run *r, int64_t number, double now)
{
    int64_t server = r->placed[number], last = --r->busy[server], k = 0;
    double *ends = r->ends + server * r->slots;
    const line *queue = &r->lines[server];
    while (k < last && ends[k] != now)
        k++;
    ends[k] = ends[last];
    if (queue->count > r->in_flight[server])
        begin(r, server, now);
    push(r, now + r->delay, ANSWER, number, (double)(queue->count - r->in_flight[server]));
}

static void answer(run *r, int64_t number, double waiting, double now)
{
    int64_t read = number < r->n ? number : (number - r->n) / (r->replication - 1);
    int64_t pair = r->client[read] * r->servers + r->placed[number];
    policy_answered(r, pair, now - r->sent[number], r->service[number], waiting);
    if (r->limited)
        limiter_answered(r, pair, now);
    if (number < r->n)
        r->latency[read] = now - r->arrival[read];
}

static int prepare(run *r)
{
    size_t pairs = (size_t)(r->clients * r->servers), servers = (size_t)r->servers;
    size_t slots = servers * (size_t)r->slots, numbers = (size_t)(r->n * r->replication);
    r->room = 1024;
    r->buckets = calloc(pairs, sizeof(bucket));
    r->known = calloc(pairs, sizeof(knowledge));
    r->turn = calloc(pairs, sizeof(int64_t));
    r->backlog_head = malloc(pairs * sizeof(int64_t));
    r->backlog_tail = malloc(pairs * sizeof(int64_t));
    r->next = malloc(((size_t)r->n + 1) * sizeof(int64_t));
    r->lines = calloc(servers, sizeof(line));
    r->busy = calloc(servers, sizeof(int64_t));
    r->in_flight = calloc(servers, sizeof(int64_t));
    r->ends = calloc(slots, sizeof(double));
    r->free_at = calloc(slots, sizeof(double));
    r->scratch = calloc((size_t)r->slots, sizeof(double));
    r->order = calloc((size_t)r->replication, sizeof(int64_t));
    r->key = calloc((size_t)r->replication, sizeof(double));
    r->placed = malloc((numbers + 1) * sizeof(int32_t));
    r->service = malloc((numbers + 1) * sizeof(double));
    r->sent = malloc((numbers + 1) * sizeof(double));
    r->heap = malloc((size_t)r->room * sizeof(event));
    if (!r->buckets || !r->known || !r->turn || !r->backlog_head || !r->backlog_tail || !r->next ||
        !r->lines || !r->busy || !r->in_flight || !r->ends || !r->free_at || !r->scratch ||
        !r->order || !r->key || !r->placed || !r->service || !r->sent || !r->heap)
        return 0;
    for (size_t k = 0; k < pairs; k++)
        r->backlog_head[k] = -1;
    for (size_t k = 0; k < servers; k++) {
        r->lines[k].room = 16;
        if (!(r->lines[k].item = malloc(16 * sizeof(int64_t))))
            return 0;
    }
    if (r->limited)
        limiter_start(r);
    return 1;
}

int run_all(run *r)
{
    int64_t coming = 0, answered = 0;
    double now = 0.0;
    if (!prepare(r))
        return 0;
    while (answered < r->n && !r->out_of_memory) {
        r->events += 1;
        if (r->events % EVENTS_BETWEEN_PAUSES == 0 && r->pause(r))
            return 0;
        if (coming < r->n && (!r->pending || r->arrival[coming] <= r->heap[0].time)) {
            arrive(r, coming, r->arrival[coming]);
            coming += 1;
            continue;
        }
        event e = pop(r);
        now = e.time;
        switch (e.kind) {
        case REACH:
            r->in_flight[r->placed[e.what]] -= 1;
            if (r->busy[r->placed[e.what]] < r->slots)
                begin(r, r->placed[e.what], now);
            break;
        case DONE:
            done(r, e.what, now);
            break;
        case ANSWER:
            answer(r, e.what, e.value, now);
            answered += e.what < r->n;
            break;
        case WAKE:
            limiter_wake(r, e.what / r->servers * r->servers + (int64_t)e.value, now);
            push(r, now, RETRY, e.what, 0.0);
            break;
        default: /* an event of its own: all that wake now, wake before it */
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
    free(r->buckets);
    free(r->known);
    free(r->turn);
    free(r->backlog_head);
    free(r->backlog_tail);
    free(r->next);
    free(r->lines);
    free(r->busy);
    free(r->in_flight);
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
