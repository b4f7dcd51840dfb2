/* Rate control: placement/online/selection/rate_limiter.py. */
#include <math.h>

#include "selection.h"

#define ALMOST (1.0 - 1e-9)

void limiter_start(run *r)
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

int limiter_take(run *r, int64_t pair, double now)
{
    bucket *b = &r->buckets[pair];
    double tokens = due(r, b, now);
    if (tokens < ALMOST)
        return 0;
    b->tokens = tokens - 1.0;
    b->granted = now;
    return 1;
}

void limiter_debit(run *r, int64_t pair)
{
    bucket *b = &r->buckets[pair];
    double left = b->tokens - 1.0;
    b->tokens = left > 0.0 ? left : 0.0;
}

double limiter_wait(const run *r, int64_t pair, double now)
{
    const bucket *b = &r->buckets[pair];
    double missing = 1.0 - due(r, b, now);
    if (missing < 0.0)
        missing = 0.0;
    return missing * r->rules.window / b->rate;
}

void limiter_wake(run *r, int64_t pair, double now)
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

void limiter_answered(run *r, int64_t pair, double now)
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
