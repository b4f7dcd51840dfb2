#include "binding.h"

#include <time.h>

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int pause_call(void *pointer)
{
    call_limit *limit = pointer;
    PyEval_RestoreThread(limit->thread);
    limit->raised = limit->raised || PyErr_CheckSignals() != 0;
    limit->thread = PyEval_SaveThread();
    return limit->raised || now() > limit->deadline;
}

void begin_call(call_limit *limit, double seconds)
{
    limit->deadline = now() + seconds;
    limit->raised = 0;
    limit->thread = PyEval_SaveThread();
}

int end_call(call_limit *limit)
{
    PyEval_RestoreThread(limit->thread);
    return !limit->raised;
}

int *read_ranks(PyObject *orders, int clients, int sites, size_t padded)
{
    int *order = copy_buffer(orders, (size_t)clients * (size_t)sites * sizeof(int));
    int *rank = order ? calloc((size_t)sites * padded + 1, sizeof(int)) : NULL;
    if (order && !rank)
        PyErr_NoMemory();
    for (int c = 0; rank && c < clients; c++)
        for (int k = 0; k < sites; k++) {
            int site = order[(size_t)c * (size_t)sites + (size_t)k];
            if (site < 0 || site >= sites) {
                PyErr_SetString(PyExc_ValueError, "no such site in the order of a client");
                free(rank);
                rank = NULL;
                break;
            }
            rank[(size_t)site * padded + (size_t)c] = k;
        }
    free(order);
    return rank;
}
