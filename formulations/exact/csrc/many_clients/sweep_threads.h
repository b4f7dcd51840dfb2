/* The blocks of a sweep shared out among threads; one thread where the system has none of POSIX. */
#ifndef EXACT_SWEEP_THREADS_H
#define EXACT_SWEEP_THREADS_H

#include <stddef.h>

/* Call work(task, block) once for every block below `blocks`, in any order, by at most `threads` threads. */
void run_in_threads(void (*work)(void *, size_t), void *task, size_t blocks, int threads);

#endif
