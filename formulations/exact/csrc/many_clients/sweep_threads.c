#include "sweep_threads.h"

#include "tuning.h"

#if defined(_WIN32)

void run_in_threads(void (*work)(void *, size_t), void *task, size_t blocks, int threads)
{
    (void)threads;
    for (size_t b = 0; b < blocks; b++)
        work(task, b);
}

#else

#include <pthread.h>

#define MOST_THREADS 64

typedef struct {
    void (*work)(void *, size_t);
    void *task;
    size_t blocks, next;
    pthread_mutex_t lock;
} queue;

static void *take_blocks(void *pointer)
{
    queue *q = pointer;
    for (;;) {
        pthread_mutex_lock(&q->lock);
        size_t first = q->next;
        q->next += THREAD_BLOCKS;
        pthread_mutex_unlock(&q->lock);
        if (first >= q->blocks)
            return NULL;
        for (size_t b = first; b < first + THREAD_BLOCKS && b < q->blocks; b++)
            q->work(q->task, b);
    }
}

void run_in_threads(void (*work)(void *, size_t), void *task, size_t blocks, int threads)
{
    pthread_t others[MOST_THREADS];
    int started = 0;
    queue q = {.work = work, .task = task, .blocks = blocks};
    if (threads > 1 && blocks >= 2 * THREAD_LEAST_BLOCKS && pthread_mutex_init(&q.lock, NULL) == 0) {
        while (started + 1 < threads && started < MOST_THREADS && (size_t)(started + 2) * THREAD_LEAST_BLOCKS <= blocks &&
               pthread_create(&others[started], NULL, take_blocks, &q) == 0)
            started++;
        take_blocks(&q); /* also when no thread could be started */
        for (int i = 0; i < started; i++)
            pthread_join(others[i], NULL);
        pthread_mutex_destroy(&q.lock);
        return;
    }
    for (size_t b = 0; b < blocks; b++)
        work(task, b);
}

#endif
