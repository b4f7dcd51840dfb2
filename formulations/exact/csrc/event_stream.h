/* The events of a certificate as a list of numbers, which grows as long as it is on. */
#ifndef EXACT_EVENT_STREAM_H
#define EXACT_EVENT_STREAM_H

#include <stddef.h>
#include <stdlib.h>

typedef struct {
    int on, failed;            /* failed: no memory, or longer than `most` */
    double *data;
    size_t length, capacity, most;
} event_stream;

static inline void append_number(event_stream *s, double value)
{
    if (!s->on || s->failed)
        return;
    if (s->length == s->capacity) {
        size_t grown = s->capacity ? 2 * s->capacity : 4096;
        double *data = grown > s->most ? NULL : realloc(s->data, grown * sizeof(double));
        if (!data) {
            s->failed = 1;
            return;
        }
        s->data = data;
        s->capacity = grown;
    }
    s->data[s->length++] = value;
}

#endif
