/* One run of one policy: the event loop of placement/online/selection/simulator.py and the policies
   beside it, computing the same numbers in the same order of operations. Read the Python first. */
#ifndef SELECTION_H
#define SELECTION_H

#include <stdint.h>

enum { POLICY_ORA, POLICY_ORAF, POLICY_ECT, POLICY_ECTF, POLICY_C3, POLICY_LOR, POLICY_RR,
       POLICY_RAND, POLICY_TWO, POLICY_LRT, POLICIES };

typedef struct {
    double window, decrease, growth, step, hysteresis, floor, rate, tokens, capacity, saddle,
        smoothing;
    int mint; /* wake == "absim" */
} limiter_rules;

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

/* Reads sent to a server and not yet started: a circular buffer. */
typedef struct {
    int64_t *item;
    int64_t head, count, room; /* room is a power of two */
} line;

/* What a policy knows about a pair of client and server. */
typedef struct {
    double queue, service, network, last;
    int64_t outstanding;
    int heard;
} knowledge;

typedef struct run {
    /* the sample path, owned by the caller */
    int64_t n, clients, servers, slots, replication, epochs;
    double delay, period;
    const double *arrival, *work, *shadow_work, *means;
    const int64_t *client, *group;
    const unsigned char *shadowed;
    const signed char *shuffle;
    /* the policy */
    int policy, random_ties, limited;
    double exponent, weight, alpha;
    limiter_rules rules;
    /* what comes out, owned by the caller */
    double *latency, *start;
    int64_t *server;
    double end;
    int64_t tries, refused, events;
    /* state */
    bucket *buckets;
    knowledge *known;
    int64_t *turn;
    int64_t *backlog_head, *backlog_tail, *next;
    line *lines;
    int64_t *busy, *in_flight;
    double *ends;      /* servers × slots: ends of the reads in service */
    double *free_at;   /* servers × slots: books of ECTF */
    double *scratch;   /* slots */
    int64_t *order;    /* replication */
    double *key;       /* replication */
    int32_t *placed;
    double *service, *sent;
    event *heap;
    int64_t pending, room;
    uint64_t sequence;
    int out_of_memory;
    /* called every EVENTS_BETWEEN_PAUSES events; not 0: stop */
    int (*pause)(struct run *r);
    void *thread; /* of the binding */
    int raised;
} run;

int run_all(run *r); /* 0: out of memory, or stopped by `pause` */
void run_free(run *r);

double work_of(const run *r, int64_t number);
double mean_at(const run *r, int64_t server, double time);
int64_t server_of(const run *r, int64_t group, int64_t place);

void policy_rank(run *r, int64_t read, double now);
void policy_sent(run *r, int64_t number, int64_t read, int64_t server, double now);
void policy_answered(run *r, int64_t pair, double response, double service, double queue);

void limiter_start(run *r);
int limiter_take(run *r, int64_t pair, double now);
void limiter_debit(run *r, int64_t pair);
double limiter_wait(const run *r, int64_t pair, double now);
void limiter_wake(run *r, int64_t pair, double now);
void limiter_answered(run *r, int64_t pair, double now);

#endif
