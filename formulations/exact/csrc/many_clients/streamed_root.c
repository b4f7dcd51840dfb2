/* Bounds of a root by sweeps over the rows of the clients.
 *
 * With many clients and few sites, time and memory go not into arithmetic but into copies of the matrix (client, site). So
 * nothing is copied here: a sweep reads each row of RTTs once, takes the last subgradient step of its client and adds to
 * the reduced costs of all sites. Beside the RTTs there are a few numbers per client.
 *
 * Clients are added up in blocks of STREAM_BLOCK, and the blocks in order, by any thread: sums, and so all that
 * follows, are the same for any number of threads, and rounding errors grow with the length of a block and the number of
 * blocks, not with the number of clients.
 *
 * The bound is the same as in lagrangean_bound.c, and its inner problem and the fixing of sites are the same code: both
 * work on the reduced costs alone, in a context of the same problem without any clients. */
#include "streamed_root.h"

#include "client_groups.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "sweep_threads.h"

/* Sweep: its inputs, and its sums by block. */
typedef struct {
    const client_stream *clients;
    const client_groups *groups;       /* instead of the clients */
    void (*block)(void *, size_t);     /* adds up one block of either */
    int count, threads;                /* clients or groups */
    double cells;
    int sites, certain_count;
    int certain[MOST_STREAMED_SITES], selected[MOST_STREAMED_SITES], selected_count;
    double relay[MOST_STREAMED_SITES]; /* d(site, leader) */
    double *u, *direction, step, largest;
    double *sums;                      /* per block: reduced costs by site, served, norm */
} sweep;

void relay_to_leader(const context *x, int leader, double *relay)
{
    for (int j = 0; j < x->p.sites; j++)
        relay[j] = leader < 0 || j == leader ? 0.0 : x->p.relay_rtt[(size_t)j * x->p.sites + leader];
}

/* Cost of a client at its nearest certain site: nearest by RTT, then by site. */
static double certain_cost(const sweep *s, const double *d, double near, double weight)
{
    int best = -1;
    for (int i = 0; i < s->certain_count; i++)
        if (best < 0 || d[s->certain[i]] < d[best])
            best = s->certain[i];
    return best < 0 ? BIG : near * d[best] + weight * s->relay[best];
}

/* sum[j] += min(0, near d[j] + weight relay[j] - u) */
VECTORISED void add_reduced_costs(const double *d, const double *relay, double near, double weight, double u, int sites,
                                  double *sum)
{
    for (int j = 0; j < sites; j++) {
        double t = near * d[j] + weight * relay[j] - u;
        sum[j] += t < 0.0 ? t : 0.0;
    }
}

/* The multiplier of client c after its step, before it is clipped, and in *norm its part of the norm. Its subgradient is 1 less
 * `cover`, the selected sites that serve it at the multiplier before the step. */
static double step_multiplier(const sweep *s, size_t c, double cover, double weight, double most, double *norm)
{
    double u = s->u[c], g = 1.0 - cover, scale = weight / s->largest;
    scale = scale > LEAST_SCALE ? scale : LEAST_SCALE;
    g = g > 0.0 && u >= most ? 0.0 : g;
    *norm += scale * g * g;
    if (s->step > 0.0) {
        double turned = g + PLAIN_MOMENTUM * s->direction[c];
        s->direction[c] = turned;
        u += s->step * scale * turned;
    }
    return u;
}

/* The clients of one block: step, then sums. */
static void sweep_block(void *task, size_t block)
{
    const sweep *s = task;
    const client_stream *clients = s->clients;
    double sum[MOST_STREAMED_SITES] = {0}, served = 0.0, norm = 0.0;
    size_t first = block * STREAM_BLOCK, last = first + STREAM_BLOCK, all = (size_t)clients->clients;
    for (size_t c = first; c < last && c < all; c++) {
        const double *d = clients->rtt + (size_t)(clients->row ? clients->row[c] : (long long)c) * (size_t)s->sites;
        double near = clients->near_weight[c], weight = clients->relay_weight[c], u = s->u[c];
        double most = certain_cost(s, d, near, weight);
        if (s->direction) {
            double cover = 0.0;
            for (int i = 0; i < s->selected_count; i++) {
                int j = s->selected[i];
                cover += near * d[j] + weight * s->relay[j] < u ? 1.0 : 0.0;
            }
            u = step_multiplier(s, c, cover, near + weight, most, &norm);
        }
        u = u < 0.0 ? 0.0 : u;
        u = u < most ? u : most;
        s->u[c] = u;
        served += u;
        add_reduced_costs(d, s->relay, near, weight, u, s->sites, sum);
    }
    double *out = s->sums + block * ((size_t)s->sites + 2);
    memcpy(out, sum, (size_t)s->sites * sizeof(double));
    out[s->sites] = served;
    out[s->sites + 1] = norm;
}

/* As sweep_block, for groups, whose cells are the sites that matter to them. */
static void sweep_groups(void *task, size_t block)
{
    const sweep *s = task;
    const client_groups *groups = s->groups;
    double sum[MOST_STREAMED_SITES] = {0}, served = 0.0, norm = 0.0;
    unsigned char chosen[MOST_STREAMED_SITES] = {0};
    size_t first = block * STREAM_BLOCK, last = first + STREAM_BLOCK, all = (size_t)groups->count;
    for (int i = 0; i < s->selected_count; i++)
        chosen[s->selected[i]] = 1;
    for (size_t c = first; c < last && c < all; c++) {
        double weight = groups->relay[c], most = groups->most[c], u = s->u[c];
        size_t begin = groups->start[c], end = groups->start[c + 1];
        if (s->direction) {
            double cover = 0.0;
            for (size_t k = begin; k < end; k++)
                cover += groups->near[k] + weight * s->relay[groups->site[k]] < u ? (double)chosen[groups->site[k]] : 0.0;
            u = step_multiplier(s, c, cover, groups->weight[c], most, &norm);
        }
        u = u < 0.0 ? 0.0 : u;
        u = u < most ? u : most;
        s->u[c] = u;
        served += u;
        for (size_t k = begin; k < end; k++) {
            double t = groups->near[k] + weight * s->relay[groups->site[k]] - u;
            sum[groups->site[k]] += t < 0.0 ? t : 0.0;
        }
    }
    double *out = s->sums + block * ((size_t)s->sites + 2);
    memcpy(out, sum, (size_t)s->sites * sizeof(double));
    out[s->sites] = served;
    out[s->sites + 1] = norm;
}

static size_t count_blocks(int count)
{
    return ((size_t)count + STREAM_BLOCK - 1) / STREAM_BLOCK;
}

/* The bound at the multipliers after the step of the sweep; x->inner.rho, and in *norm that of the subgradient before. */
static double evaluate_sweep(context *x, tree_node *f, sweep *s, int all_radii, double *norm, int *count, double *error)
{
    const problem *p = &x->p;
    size_t blocks = count_blocks(s->count), width = (size_t)p->sites + 2;
    double total[MOST_STREAMED_SITES + 2] = {0};
    run_in_threads(s->block, s, blocks, s->threads);
    for (size_t b = 0; b < blocks; b++)
        for (size_t j = 0; j < width; j++)
            total[j] += s->sums[b * width + j];
    for (int i = 0; i < f->free_count; i++) {
        int site = f->free_site[i];
        x->inner.rho[i] = total[site] + (p->price ? p->price[(size_t)(x->view.leader < 0 ? 0 : x->view.leader) * p->sites + site] : 0.0);
    }
    double served = total[p->sites], slack = BIG;
    *norm = total[p->sites + 1];
    x->evaluated.served = served;
    if (all_radii && x->best.cutoff < BIG)
        slack = x->best.cutoff * (1.0 + BEYOND_CUTOFF) - served - f->constant;
    double least = inner_minimum(x, f, all_radii, slack, count);
    x->effort.work += 0.5 * s->cells + 200.0;
    x->effort.evaluations++;
    *error = 0.0;
    if (least >= BIG)
        return BIG;
    /* as bound_error, but for the length of the sums */
    double magnitude = f->constant + served + fabs(least);
    for (int i = 0; i < *count; i++)
        magnitude += 2.0 * fabs(x->inner.rho[x->inner.selected[i]]);
    double terms = STREAM_BLOCK + (double)blocks + p->sites + 24.0;
    *error = 2.0 * UNIT_ROUNDOFF * (terms * magnitude + 6.0 * (*count + 2.0) * served);
    return f->constant + served + least;
}

/* Open the node of a state of a leader (NULL: its root) and prepare sweeps from `u` over what `s` names; NULL without memory. */
static tree_node *prepare_sweeps(context *x, int leader, const unsigned char *state, double *u, sweep *s)
{
    const problem *p = &x->p;
    costs_for_leader(x, leader);
    open_root_at(x, state, 0);
    s->sums = malloc(count_blocks(s->count) * ((size_t)p->sites + 2) * sizeof(double) + 8);
    if (!s->sums)
        x->control.out_of_memory = 1;
    if (x->control.out_of_memory)
        return NULL;
    s->sites = p->sites;
    s->u = u;
    relay_to_leader(x, leader, s->relay);
    for (int j = 0; j < p->sites; j++)
        if (x->tree.stack[0].state[j] == IN)
            s->certain[s->certain_count++] = j;
    for (int c = 0; c < s->count; c++) {
        double weight = s->groups ? s->groups->weight[c] : s->clients->near_weight[c] + s->clients->relay_weight[c];
        s->largest = weight > s->largest ? weight : s->largest;
    }
    return &x->tree.stack[0];
}

static sweep over_clients(const context *x, const client_stream *clients)
{
    return (sweep){.clients = clients,
                   .block = sweep_block,
                   .count = clients->clients,
                   .threads = clients->threads,
                   .cells = (double)x->p.sites * clients->clients};
}

/* The sites of the inner problem's answer and the certain ones. */
static int copy_set(const context *x, const tree_node *f, int count, int *set)
{
    int size = f->in_count;
    memcpy(set, f->in_site, (size_t)size * sizeof(int));
    for (int i = 0; i < count; i++)
        set[size++] = f->free_site[x->inner.selected[i]];
    return size;
}

/* Subgradient steps at the node `f`, which prepare_sweeps has opened; see improve_streamed. */
static double take_steps(context *x, tree_node *f, sweep *s, double *u, int iterations, int *set, int *size)
{
    size_t bytes = (size_t)s->count * sizeof(double);
    double best = -BIG, lambda = PLAIN_STEP_ROOT, norm, error;
    int stall = 0, count, patience = iterations / 20 > PLAIN_PATIENCE ? iterations / 20 : PLAIN_PATIENCE;
    double *tried = malloc(bytes + 8), *direction = calloc(bytes + 8, 1);
    *size = 0;
    if (!f || !tried || !direction) {
        x->control.out_of_memory = 1;
        iterations = 0;
    } else
        memcpy(tried, u, bytes);
    s->u = tried;
    for (int it = 0; it < iterations; it++) {
        double value = evaluate_sweep(x, f, s, 0, &norm, &count, &error);
        if (value - error > best) {
            if (value - error > best + 1e-4 * fabs(best))
                stall = 0;
            best = value - error;
            memcpy(u, tried, bytes);
            *size = value < BIG ? copy_set(x, f, count, set) : 0;
        } else
            stall++;
        if (best >= x->best.cutoff || value >= BIG || it + 1 == iterations || must_pause(x))
            break;
        for (int i = 0; i < f->free_count; i++)
            f->frequency[f->free_site[i]] *= 0.9;
        s->selected_count = count;
        for (int i = 0; i < count; i++) {
            s->selected[i] = f->free_site[x->inner.selected[i]];
            f->frequency[s->selected[i]] += 0.1;
        }
        if (!s->direction) { /* the length of the first step takes the norm of its own direction */
            s->direction = direction;
            evaluate_sweep(x, f, s, 0, &norm, &count, &error);
        }
        if (norm == 0.0)
            break;
        double target = x->best.cutoff < BIG ? x->best.cutoff : 2.0 * fabs(value) + 1.0;
        target += 0.05 * (target - best);
        if (stall >= patience) {
            stall = 0;
            lambda *= PLAIN_SHRINK;
            memcpy(tried, u, bytes);
        }
        s->step = lambda * (target - value) / norm;
    }
    free(tried);
    free(direction);
    s->u = u;
    s->direction = NULL;
    return best > -BIG ? best : 0.0;
}

double improve_streamed(context *x, const client_stream *clients, int leader, double *u, int iterations, int *set, int *size)
{
    sweep s = over_clients(x, clients);
    tree_node *f = prepare_sweeps(x, leader, NULL, u, &s);
    double best = take_steps(x, f, &s, u, iterations, set, size);
    x->tree.depth = 0;
    free(s.sums);
    return best;
}

/* Fix sites at the multipliers of `s`; see fix_streamed. */
static double fix_sites(context *x, tree_node *f, sweep *s, unsigned char *states, double *closed, int *open)
{
    double norm, error, value;
    int count;
    value = evaluate_sweep(x, f, s, 1, &norm, &count, &error);
    *open = value - error < x->best.cutoff && fix_by_reduced_cost(x, f, x->evaluated.served + f->constant, error) >= 0;
    *closed = x->tree.closed;
    memcpy(states, f->state, (size_t)x->p.sites);
    return value - error;
}

double fix_streamed(context *x, const client_stream *clients, int leader, double *u, unsigned char *states, double *closed,
                    int *open)
{
    sweep s = over_clients(x, clients);
    double value = 0.0;
    tree_node *f = prepare_sweeps(x, leader, NULL, u, &s);
    *open = 1;
    *closed = BIG;
    if (f)
        value = fix_sites(x, f, &s, states, closed, open);
    x->tree.depth = 0;
    free(s.sums);
    return value;
}

double bound_groups(context *x, client_groups *groups, int leader, int steps, int threads, group_node *node)
{
    sweep s = {.groups = groups,
               .block = sweep_groups,
               .count = groups->count,
               .threads = threads,
               .cells = 2.0 * (double)groups->start[groups->count] + 4.0 * groups->count};
    tree_node *f = prepare_sweeps(x, leader, node->state, groups->u, &s);
    double bound = take_steps(x, f, &s, groups->u, steps, node->set, &node->size);
    node->open = 1;
    node->closed = BIG;
    node->branching_site = -1;
    if (f && !current_tree(x)->pseudo.gain[IN]) /* the first node under this leader */
        reset_pseudo_costs(x);
    if (f && !x->control.out_of_memory && bound < x->best.cutoff) {
        f->branched_site = node->branched_site;
        f->branched_side = node->branched_side;
        f->parent_bound = node->parent_bound;
        learn_pseudo_cost(x, f, bound);
        bound = fix_sites(x, f, &s, node->state, &node->closed, &node->open);
        if (node->open && f->free_count > 0)
            node->branching_site = f->free_site[choose_branching_site(x, f, bound)];
    }
    x->tree.depth = 0;
    free(s.sums);
    return bound;
}
