#include "context_capsule.h"
#include <time.h>

context *context_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, NAME);
}

/* Called by the kernel between evaluations: signals pending, or the deadline passed? */
static int pause_now(void *pointer)
{
    context *x = pointer;
    struct timespec now;
    int raised;
    PyEval_RestoreThread((PyThreadState *)x->control.thread);
    raised = PyErr_CheckSignals() != 0;
    x->control.thread = PyEval_SaveThread();
    if (raised) {
        x->control.raised = 1;
        return 1;
    }
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec > x->control.deadline;
}

void begin_call(context *x, double seconds)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    x->control.deadline = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec + seconds;
    x->control.pause = pause_now;
    x->control.paused = x->control.raised = 0;
    x->control.thread = PyEval_SaveThread();
}

/* 0 when a signal handler raised or memory ran out (the exception is set). */
int end_call(context *x)
{
    PyEval_RestoreThread((PyThreadState *)x->control.thread);
    if (x->control.raised)
        return 0;
    if (x->control.out_of_memory || x->proof.events.failed) {
        PyErr_NoMemory();
        return 0;
    }
    return 1;
}
