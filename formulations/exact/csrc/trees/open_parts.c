/* Open parts of the trees of all leaders: a list, from which search_order.c takes the next one.
 *
 * A part is a state (which sites hold a replica, which do not), the bound that is proven for it, and multipliers to
 * start from. The tree on the stack is of one part. What of it is put off goes back to the list: a node whose bound has
 * reached what the search wants now, or the whole stack. In the record of the proof stands, in its place, the number of the
 * part (proof_record.c), and its own events come later. A leader begins as one part, with his own number. */
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

leader_tree *tree_of(const context *x, int leader)
{
    return &x->open.tree[memory_row(x, leader)];
}

/* The tree of the leader under work. */
leader_tree *current_tree(const context *x)
{
    return tree_of(x, x->view.leader);
}

int open_parts_prepare(context *x)
{
    x->open.tree = calloc((size_t)x->p.sites + 1, sizeof(leader_tree));
    return x->open.tree != NULL;
}

static void drop_part(context *x, int at)
{
    open_part *part = &x->open.part[at];
    x->open.kept -= part->bytes;
    free(part->u);
    free(part->state);
    *part = x->open.part[--x->open.count];
}

static void free_beta_list(beta_list *b)
{
    free(b->start);
    free(b->site);
    free(b->value);
    memset(b, 0, sizeof *b);
}

static void forget_tree(leader_tree *t)
{
    free_pseudo_costs(&t->pseudo);
    free(t->root_u);
    free_beta_list(&t->beta);
    free_transfers(&t->transfers);
    memset(t, 0, sizeof *t);
    t->closed = BIG;
}

/* Forget all trees and all parts. */
void forget_open_parts(context *x)
{
    while (x->open.count)
        drop_part(x, x->open.count - 1);
    for (int i = 0; i <= x->p.sites && x->open.tree; i++)
        forget_tree(&x->open.tree[i]);
    x->open.pattern = NULL;
    x->open.next_number = x->p.sites;
    x->tree.depth = 0;
}

void open_parts_free(context *x)
{
    forget_open_parts(x);
    free(x->open.part);
    free(x->open.tree);
}

/* Multipliers in half the memory: any numbers give valid bounds. */
static float *shortened(context *x, const double *u)
{
    float *kept = malloc((size_t)x->p.clients * sizeof(float) + 8);
    if (!kept)
        x->control.out_of_memory = 1;
    for (int c = 0; c < x->p.clients && kept; c++)
        kept[c] = (float)u[c];
    return kept;
}

/* Put a part on the list; `state` NULL: the start state of its leader. */
static void add_part(context *x, int leader, int number, double bound, const unsigned char *state, const double *u)
{
    open_parts *o = &x->open;
    size_t sites = (size_t)x->p.sites;
    if (o->count == o->capacity) {
        int grown = o->capacity ? 2 * o->capacity : 64;
        open_part *part = realloc(o->part, (size_t)grown * sizeof *part);
        if (!part) {
            x->control.out_of_memory = 1;
            return;
        }
        o->part = part;
        o->capacity = grown;
    }
    open_part *part = &o->part[o->count];
    memset(part, 0, sizeof *part);
    part->leader = leader;
    part->number = number;
    part->bound = bound;
    if (!(part->u = shortened(x, u)))
        return;
    if (state && !(part->state = malloc(sites))) {
        free(part->u);
        x->control.out_of_memory = 1;
        return;
    }
    if (state)
        memcpy(part->state, state, sites);
    part->bytes = (double)x->p.clients * sizeof(float) + (double)sites;
    o->kept += part->bytes;
    o->count++;
}

/* Open the trees of some leaders, in place of all others: their multipliers (clients each) and bounds known so far. */
void open_trees(context *x, const int *leader, const double *u, const double *bound, int count)
{
    forget_open_parts(x);
    begin_order(x);
    for (int i = 0; i < count && !x->control.out_of_memory; i++)
        add_part(x, leader[i], leader[i], bound[i], NULL, u + (size_t)i * (size_t)x->p.clients);
}

/* Put a node of the stack on the list; it must be the top one, or those above must be on the list already. */
static void put_off(context *x, const tree_node *f)
{
    int before = x->open.count;
    if (x->proof.recording)
        record_event(x, PART, x->open.next_number);
    add_part(x, x->view.leader, x->open.next_number++, f->bound, f->state, f->u);
    if (x->open.count > before)
        x->open.part[before].own_beta = f->own_record;
}

/* Put the node on top off. */
void put_off_node(context *x)
{
    put_off(x, &x->tree.stack[x->tree.depth - 1]);
    x->tree.depth--;
}

/* Put the whole stack off. */
void put_off_stack(context *x)
{
    while (x->tree.depth > 0)
        put_off_node(x);
}

/* Close the parts that the cutoff has come down to. A part below a root stays when the proof is recorded: its events are
 * still to come, while a root without any is closed by the multipliers that it was opened with. */
void close_parts(context *x)
{
    for (int i = x->open.count - 1; i >= 0; i--) {
        const open_part *part = &x->open.part[i];
        leader_tree *t = tree_of(x, part->leader);
        if (part->bound < x->best.cutoff || (x->proof.recording && (part->state || t->begun)))
            continue;
        t->closed = part->bound < t->closed ? part->bound : t->closed;
        drop_part(x, i);
    }
}

/* Make the multipliers beta of the leader's root those of a dense node below it. */
static void adopt_beta(context *x, tree_node *f, const beta_list *kept)
{
    size_t padded = (size_t)x->p.padded, cells = (size_t)x->p.sites * padded;
    if (!f->own_beta && !(f->own_beta = malloc(cells * sizeof(double) + 8))) {
        x->control.out_of_memory = 1;
        return;
    }
    memset(f->own_beta, 0, cells * sizeof(double));
    for (int c = 0; c < x->p.clients; c++)
        for (int i = kept->start[c]; i < kept->start[c + 1]; i++)
            f->own_beta[(size_t)kept->site[i] * padded + (size_t)c] = kept->value[i];
    f->beta = f->own_beta;
    node_rebuild_columns(x, f);
}

/* Put the state of a part on the stack, with the beta of its root: as a sparse node where that pays, at once. */
static void open_part_node(context *x, const open_part *part, const beta_list *beta)
{
    const float *u = part->u;
    tree_node *f = &x->tree.stack[0];
    open_root_at(x, part->state, 1);
    if (x->control.out_of_memory)
        return;
    if (!make_sparse_from_state(x, f, beta)) {
        open_root_at(x, part->state, 0);
        if (beta->start && !x->control.out_of_memory)
            adopt_beta(x, f, beta);
    }
    const double *most = f->sparse ? f->max_multiplier : f->fixed_cost; /* beta has raised what u may be */
    for (int c = 0; c < x->p.clients; c++)
        f->u[c] = u[c] < most[c] ? u[c] : most[c];
    f->root = 0;
    f->bound = part->bound;
    f->tightened = x->tree.nodes;
    if (part->own_beta && x->proof.recording) {
        if (f->sparse)
            record_sparse_beta(x, f);
        else if (f->beta)
            record_beta(x, f->beta);
        else
            record_event(x, BETA, 0.0);
    }
}

/* Take a part from the list to the stack, which must be empty. */
void take_part(context *x, int at)
{
    open_part part = x->open.part[at];
    leader_tree *t = tree_of(x, part.leader);
    tree_node *f = &x->tree.stack[0];
    x->open.part[at].u = NULL;
    x->open.part[at].state = NULL;
    drop_part(x, at);
    costs_of_tree(x, part.leader);
    if (!t->begun)
        reset_pseudo_costs(x);
    if (x->proof.recording)
        record_event(x, EVENTS_OF, part.number);
    if (part.state)
        open_part_node(x, &part, &t->beta);
    else {
        double *u = x->scratch.u;
        for (int c = 0; c < x->p.clients; c++)
            u[c] = part.u[c];
        open_root(x, u, 0);
        f->bound = part.bound;
        f->tightened = x->tree.nodes;
    }
    t->begun = 1;
    x->tree.closed = t->closed;
    x->effort.work += (f->sparse ? f->in_count : f->free_count + f->in_count) * (double)x->p.padded + 200.0;
    free(part.u);
    free(part.state);
}

static void keep_beta(context *x, const double *beta, beta_list *kept)
{
    const problem *p = &x->p;
    size_t padded = (size_t)p->padded, sites = (size_t)p->sites, count = 0;
    for (size_t i = 0; i < sites * padded; i++)
        count += beta[i] > 0.0;
    free_beta_list(kept);
    kept->start = malloc(((size_t)p->clients + 1) * sizeof(int));
    kept->site = malloc(count * sizeof(int) + 8);
    kept->value = malloc(count * sizeof(double) + 8);
    if (!kept->start || !kept->site || !kept->value) {
        free_beta_list(kept);
        x->control.out_of_memory = 1;
        return;
    }
    int at = 0;
    for (int c = 0; c < p->clients; c++) {
        kept->start[c] = at;
        for (size_t t = 0; t < sites; t++) {
            int j = p->by_client[(size_t)c * sites + t];
            double value = beta[(size_t)j * padded + (size_t)c];
            if (value > 0.0) {
                kept->site[at] = j;
                kept->value[at++] = value;
            }
        }
    }
    kept->start[p->clients] = at;
}

/* Keep what the root of the tree under work leaves for its parts, when it is branched on. */
void keep_root(context *x, const tree_node *f)
{
    leader_tree *t = current_tree(x);
    if (!t->root_u && !(t->root_u = shortened(x, f->u)))
        return;
    for (int c = 0; c < x->p.clients; c++)
        t->root_u[c] = (float)f->u[c];
    if (f->beta)
        keep_beta(x, f->beta, &t->beta);
}

/* Lower bounds of everything under leaders whose trees were opened, closed parts included. */
void leader_bounds(const context *x, const int *leader, double *bound, int count)
{
    double *least = x->scratch.by_site, apart = BIG; /* apart: of leader -1 */
    for (int s = 0; s < x->p.sites; s++)
        least[s] = BIG;
    for (int i = 0; i < x->open.count; i++) {
        const open_part *part = &x->open.part[i];
        double *of = part->leader < 0 ? &apart : &least[part->leader];
        *of = part->bound < *of ? part->bound : *of;
    }
    for (int i = 0; i < count; i++) {
        double parts = leader[i] < 0 ? apart : least[leader[i]];
        int here = x->tree.depth > 0 && x->view.leader == leader[i];
        double own = here ? tree_bound(x) : tree_of(x, leader[i])->closed;
        bound[i] = own < parts ? own : parts;
    }
}

/* Open the root on the stack again with the best transfers that are found for it. */
static void begin_with_transfers(context *x, leader_tree *t, double proven)
{
    find_transfers(x, &x->tree.stack[0], proven, &t->transfers);
    if (t->transfers.count == 0 || x->control.out_of_memory)
        return;
    if (x->proof.recording)
        record_transfers(x, &t->transfers);
    for (int c = 0; c < x->p.clients; c++)
        x->scratch.u[c] = x->tree.stack[0].u[c];
    costs_of_tree(x, x->view.leader);
    open_root(x, x->scratch.u, 0);
}

/* Begin the present leader's tree again from the multipliers of its root, with steps on (u, beta), and the second time with
 * transfers of cost: they pay in large trees, and the size is not known before. Where transfers paid under another leader,
 * the first time is the second. The proven bound of the tree becomes the bound of the new root. The pseudo-costs stay, unless
 * the steps are many: these change the gain of a decision. */
void begin_anew(context *x)
{
    int leader = x->view.leader;
    leader_tree *t = current_tree(x);
    double proven;
    leader_bounds(x, &leader, &proven, 1);
    for (int i = x->open.count - 1; i >= 0; i--)
        if (x->open.part[i].leader == leader)
            drop_part(x, i);
    for (int c = 0; c < x->p.clients; c++)
        x->scratch.u[c] = t->root_u[c];
    if (x->proof.recording)
        record_event(x, EVENTS_OF, leader);
    t->tight |= x->open.pattern && x->limits.transfer_nodes > 0;
    if (x->limits.large)
        reset_pseudo_costs(x);
    open_root(x, x->scratch.u, 0);
    if (t->tight && leader >= 0 && !x->control.out_of_memory)
        begin_with_transfers(x, t, proven);
    if (x->control.out_of_memory)
        return;
    x->tree.stack[0].bound = proven < x->best.cutoff ? proven : x->best.cutoff;
    x->tree.stack[0].tightened = x->tree.nodes;
    t->closed = BIG;
    t->nodes = 0;
    t->transferred = t->tight;
    t->tight = 1;
}

