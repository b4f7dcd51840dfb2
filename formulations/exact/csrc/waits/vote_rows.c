/* Rows of a wait that counts votes: which of them are of use, and the shortest radius at which a complete set meets one.
 *
 * Its sites fall into classes of as many votes. A row asks for so many sites of each class within the radius, and of all
 * classes but the last for so many at any distance (placement/evaluation/waits/vote_cases.py). */
#include "kernel.h"

enum { MOST_COMPARED = 512 };

/* The class of a site by its bits of a scope, or `classes` when it has none. */
static int class_of(unsigned scope, int classes)
{
    for (int k = 0; k < classes; k++)
        if (scope >> k & 1)
            return k;
    return classes;
}

/* Voters beside the leader, a site of the class `own`, that a row asks for. */
static int voters_asked(const leader_wait *wait, int own, int row)
{
    const int *least = wait->least + row * wait->blocks;
    int asked = 0, all = wait->blocks - wait->classes;
    for (int k = 0; k < wait->classes; k++) {
        int near = least[k] - (k == own), any = k < all ? least[wait->classes + k] - (k == own) : 0;
        int more = near > any ? near : any;
        asked += more > 0 ? more : 0;
    }
    return asked;
}

/* Note the rows that are of use under a leader of each class. Those that ask for more than another one everywhere, where the
 * leader is there, are not, and neither are those that leave no room for it among the voters. */
static void find_useful_rows(leader_wait *wait, int classes, int voters)
{
    for (int own = 0; own <= classes; own++)
        for (int row = 0; row < wait->sizes; row++) {
            int useful = voters_asked(wait, own, row) < voters;
            for (int other = 0; other < wait->sizes && wait->sizes <= MOST_COMPARED && useful; other++) {
                int less = other != row, same = 1;
                for (int b = 0; b < wait->blocks && less; b++) {
                    int held = own < classes && (b == own || b == own + classes);
                    int one = wait->least[other * wait->blocks + b] - held, two = wait->least[row * wait->blocks + b] - held;
                    less = one <= two || one <= 0;
                    same &= one == two || (one <= 0 && two <= 0);
                }
                useful = !less || (same && row < other); /* of equal rows the first one */
            }
            wait->useful[own * wait->sizes + row] = (char)useful;
        }
}

/* The number of classes of a wait that counts votes: its blocks are those of the classes within the radius, then those of all
 * classes but the last at any distance, or of none. 0: it does not. */
static int classes_of_wait(const problem *p, const leader_wait *wait)
{
    int classes = 0;
    while (classes < wait->blocks && wait->near >> classes & 1)
        classes++;
    int all = wait->blocks - classes; /* blocks at any distance */
    if (wait->blocks < 2 || classes == 0 || (all != 0 && all != classes - 1) || wait->near >> classes)
        return 0;
    if (wait->of_voters != (1u << wait->blocks) - 1)
        return 0;
    size_t cells = (size_t)p->sites * (size_t)p->sites;
    for (size_t cell = 0; cell < cells; cell++) {
        unsigned bits = wait->scope[cell] & ~(unsigned)FORBIDDEN;
        int k = class_of(bits, classes);
        unsigned expected = k == classes ? 0 : 1u << k | (k < all ? 1u << (classes + k) : 0);
        if (bits != expected)
            return 0;
    }
    return classes;
}

/* Note which waits count votes of several classes, and whether the only wait does. */
void find_vote_rows(problem *p)
{
    wait_cases *cases = &p->cases;
    for (int w = 0; w < cases->count; w++) {
        leader_wait *wait = &cases->wait[w];
        wait->classes = classes_of_wait(p, wait);
        for (unsigned bits = 0; bits < 2 * FORBIDDEN; bits++)
            wait->class_of_bits[bits] = (unsigned char)class_of(bits, wait->classes);
        if (wait->classes)
            find_useful_rows(wait, wait->classes, p->voters);
    }
    int alone = cases->count == 1 && cases->nested && p->replicas_max <= MOST_VOTERS;
    cases->classes = alone ? cases->wait[0].classes : 0;
}

/* The rows of use under a leader, by row, of a wait that counts votes. */
const char *useful_rows(const context *x, const leader_wait *wait, int leader)
{
    unsigned scope = wait->scope[(size_t)leader * (size_t)x->p.sites + (size_t)leader];
    return wait->useful + wait->class_of_bits[scope] * wait->sizes;
}

/* The first radius of a leader at which a complete set of at most MOST_VOTERS replicas meets a row: the nearest replicas of
 * each class decide. The number after the last one: no radius does. */
int radius_of_votes(const context *x, const leader_wait *wait, int leader, const int *replicas, int count)
{
    double nearest[MOST_BLOCKS + 1][MOST_VOTERS], barred = 0.0, shortest = BIG;
    int held[MOST_BLOCKS + 1] = {0}, classes = wait->classes, all = wait->blocks - classes;
    const unsigned char *scope = wait->scope + (size_t)leader * (size_t)x->p.sites;
    const char *useful = useful_rows(x, wait, leader);
    for (int i = 0; i < count; i++) {
        int k = wait->class_of_bits[scope[replicas[i]]], at = held[k]++;
        double d = distance_of(x, leader, replicas[i]);
        if (d > barred && scope[replicas[i]] & FORBIDDEN)
            barred = d;
        for (; at > 0 && nearest[k][at - 1] > d; at--)
            nearest[k][at] = nearest[k][at - 1];
        nearest[k][at] = d;
    }
    for (int row = 0; row < wait->sizes; row++) {
        const int *least = wait->least + row * wait->blocks;
        double length = barred;
        int met = useful[row];
        for (int k = 0; k < classes && met; k++) {
            met = least[k] <= held[k] && (k >= all || least[classes + k] <= held[k]);
            if (met && least[k] > 0 && nearest[k][least[k] - 1] > length)
                length = nearest[k][least[k] - 1];
        }
        if (met && length < shortest)
            shortest = length;
    }
    int low = wait->start[leader], high = wait->start[leader + 1];
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (wait->radius[middle] < shortest)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
