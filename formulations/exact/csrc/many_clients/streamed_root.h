/* Roots of problems with many clients and few sites, bounded by sweeps over the RTTs where Python keeps them. */
#ifndef EXACT_STREAMED_ROOT_H
#define EXACT_STREAMED_ROOT_H

#include "kernel.h"

#define MOST_STREAMED_SITES 64 /* sums that a thread keeps on its stack; MOST_STREAMED_SITES of kernel.py is the same number */

/* The clients, which the context itself does not hold: it is that of the same problem without any. */
typedef struct {
    const double *rtt;      /* a row of all sites per client */
    const long long *row;   /* row of each active client; NULL: they are all active */
    const double *near_weight, *relay_weight; /* A and B of the active clients */
    int clients;            /* active ones */
    int threads;            /* most threads; the answer does not depend on it */
} client_stream;

/* RTTs from each site to the leader, 0 where none matters. */
void relay_to_leader(const context *x, int leader, double *relay);

/* Subgradient steps from `u`, as improve_bound takes them; `u` becomes the best multipliers, whose bound is returned. The
 * sites that the last evaluation selects go to `set`, those certain from the start among them. */
double improve_streamed(context *x, const client_stream *clients, int leader, double *u, int iterations, int *set, int *size);

/* Fix sites at the multipliers `u`, as fix_by_reduced_cost does; states[s] becomes FREE, IN or OUT. Returns the bound at `u`,
 * and in *closed the least bound at which something was fixed. `*open` is 0 when nothing is left under the leader. */
double fix_streamed(context *x, const client_stream *clients, int leader, double *u, unsigned char *states, double *closed,
                    int *open);

#endif
