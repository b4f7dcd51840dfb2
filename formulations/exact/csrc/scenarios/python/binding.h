/* What the bindings of all kinds of questions share: limits of a call, rules and ranks. */
#ifndef EXACT_BINDING_H
#define EXACT_BINDING_H

#include "buffers.h"
#include "read_families.h"
#include "scenario.h"

/* Of one call, during which the GIL is released. */
typedef struct {
    double deadline;
    PyThreadState *thread;
    int raised;                /* 1: a signal handler, or a function of the caller, raised an exception */
} call_limit;

void begin_call(call_limit *limit, double seconds);
/* 0 with the exception set when there is one. */
int end_call(call_limit *limit);
/* scenario_tree.pause, for a call_limit: 1 when the time is up or a signal handler raised. */
int pause_call(void *limit);

/* Ranks by site and client from sites in the order of each client; NULL with the exception set. */
int *read_ranks(PyObject *orders, int clients, int sites, size_t padded);

#endif
