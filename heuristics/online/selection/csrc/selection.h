/* Run of one policy: the event loop of placement/online/selection/simulator.py and the policies
   beside it, computing the same numbers in the same order of operations. Read the Python first. */
#ifndef SELECTION_H
#define SELECTION_H

#include <stdint.h>

enum { POLICY_ORA, POLICY_ORAF, POLICY_ECT, POLICY_ECTF, POLICY_C3, POLICY_LOR, POLICY_RR,
       POLICY_RAND, POLICY_TWO, POLICY_LRT, POLICY_NEAR, POLICY_DS, POLICIES };

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
    const double *arrival, *work, *shadow_work, *means, *mix;
    const double *delay; /* clients × servers, one way */
    const int64_t *client, *group;
    const int64_t *table; /* groups × replication: servers of each group */
    /* kinds of generators; closed loop where `generators` is not all 0 */
    const int64_t *generators;
    const double *joins, *share;
    const unsigned char *shadowed;
    const signed char *shuffle;
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
int64_t operation_of(const run *r, int64_t number);
double delay_of(const run *r, int64_t client, int64_t server);

void policy_rank(run *r, int64_t read, double now);
/* `told`: 0 for what clients do not see, updates; only ECTF books them. */
void policy_sent(run *r, int64_t number, int64_t read, int64_t server, double now, int told);
void policy_answered(run *r, int64_t pair, double response, double service, double queue,
                     double now);

int snitch_start(run *r); /* 0: out of memory */
void snitch_rank(run *r, int64_t read, double now);
void snitch_answered(run *r, int64_t pair, double response, double now);
void snitch_free(run *r);

void limiter_start(run *r);
int limiter_take(run *r, int64_t pair, double now);
void limiter_debit(run *r, int64_t pair);
double limiter_wait(const run *r, int64_t pair, double now);
void limiter_wake(run *r, int64_t pair, double now);
void limiter_answered(run *r, int64_t pair, double now);

#endif
