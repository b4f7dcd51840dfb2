/* Sites by ascending keys: reduced costs, and distances from a leader. */
#include <string.h>

#include "kernel.h"

/* Put `n` keys in order, those of equal keys as they came. */
static void sort_run(keyed *run, int n)
{
    for (int i = 1; i < n; i++) {
        keyed one = run[i];
        int at = i;
        for (; at > 0 && run[at - 1].key > one.key; at--)
            run[at] = run[at - 1];
        run[at] = one;
    }
}

/* Put `n` keys in order, those of equal keys as they came: short runs are sorted, and merged two by two. `room`: n more. */
void merge_runs(keyed *sorted, int n, keyed *room)
{
    keyed *from = sorted, *to = room;
    int width = SORTED_RUN;
    for (int first = 0; first < n; first += width)
        sort_run(from + first, n - first < width ? n - first : width);
    for (; width < n; width *= 2) {
        for (int first = 0; first < n; first += 2 * width) {
            int a = first, end_a = first + width < n ? first + width : n, b = end_a;
            int end_b = first + 2 * width < n ? first + 2 * width : n;
            for (int i = first; i < end_b; i++) { /* no branch on the keys */
                int left = a < end_a && (b >= end_b || from[a].key <= from[b].key);
                to[i] = from[left ? a : b];
                a += left;
                b += !left;
            }
        }
        keyed *kept = from;
        from = to;
        to = kept;
    }
    if (from != sorted)
        memcpy(sorted, from, (size_t)n * sizeof(keyed));
}

/* All positions by ascending key (ties: earlier position). Most keys are zero: those of sites that serve no client. `room`: n
 * more. */
void sort_positions(const double *key, int n, keyed *sorted, keyed *room)
{
    int below = 0, zero = 0, above = 0;
    for (int i = 0; i < n; i++) {
        below += key[i] < 0.0;
        zero += key[i] == 0.0;
    }
    int next_zero = below, next_above = below + zero;
    for (int i = 0, next = 0; i < n; i++)
        sorted[key[i] < 0.0 ? next++ : key[i] == 0.0 ? next_zero++ : next_above++] = (keyed){key[i], i};
    above = n - below - zero;
    merge_runs(sorted, below, room);
    merge_runs(sorted + below + zero, above, room);
}
