/* The trees of the leaders: branching, depth-first search under one leader, open parts of all, and their order. */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
static void begin_order(context *x);
static double tree_bound(const context *x);

/* ---- The choice of the site to branch on: the one whose decision has raised, and may raise, both bounds most.
 *
 * Pseudo-costs (Benichou et al. 1971) remember by how much a decision "replica at j" or "none at j"
 * raised the bound in this tree; the last fixing by reduced cost says what "none at j"
 * gives at least. Only the size of the tree depends on any of it. */

static void free_pseudo_costs(pseudo_costs *p)
{
    release(&p->owned);
    memset(p, 0, sizeof *p);
}

/* Begin to learn in the tree of the leader under work, from nothing. */
static void reset_pseudo_costs(context *x)
{
    pseudo_costs *p = &current_tree(x)->pseudo;
    free_pseudo_costs(p);
    for (int side = IN; side <= OUT; side++) {
        p->gain[side] = own(&p->owned, (size_t)x->p.sites, sizeof(double));
        p->tries[side] = own(&p->owned, (size_t)x->p.sites, sizeof(double));
    }
    x->control.out_of_memory |= p->owned.failed;
}

/* Note what the decision that made a node has raised the bound by, now that it is `value`. */
static void learn_pseudo_cost(context *x, tree_node *f, double value)
{
    int site = f->branched_site, side = f->branched_side;
    if (site < 0)
        return;
    double gained = (value < x->best.cutoff ? value : x->best.cutoff) - f->parent_bound;
    if (gained < 0.0)
        gained = 0.0;
    pseudo_costs *p = &current_tree(x)->pseudo;
    p->gain[side][site] += gained;
    p->tries[side][site] += 1.0;
    p->gain_sum[side] += gained;
    p->tries_sum[side] += 1.0;
    f->branched_site = -1;
}

/* The expected gain of one side, the mean over all sites as a prior. */
static double expected(const pseudo_costs *p, int side, int site)
{
    double mean = p->tries_sum[side] > 0.0 ? p->gain_sum[side] / p->tries_sum[side] : 0.0;
    return (p->gain[side][site] + PRIOR * mean) / (p->tries[side][site] + PRIOR);
}

static double between(double least, double value, double most)
{
    return value < least ? least : value > most ? most : value;
}

/* Flag the free sites, by position, that one family of a role still needs beside the sites that are in. */
static void flag_needed(const context *x, const tree_node *f, const site_family *family, const unsigned char *may,
                        int most, unsigned char *needed)
{
    int *count = x->scratch.family_counts;
    begin_count(family, count);
    for (int i = 0; i < f->in_count; i++)
        if (may[f->in_site[i]])
            take_site(family, count, f->in_site[i], 0, most);
    if (still_needed(family, count, 0) <= 0)
        return;
    for (int i = 0; i < f->free_count; i++)
        if (may[f->free_site[i]] && take_needed_site(family, count, f->free_site[i], 0, most)) {
            count_site(family, count, f->free_site[i], -1);
            needed[i] = 1;
        }
}

/* Flag the free sites, by position, that lower the number of sites which the minimums of the rules still need. */
static const unsigned char *find_needed(const context *x, const tree_node *f)
{
    const problem *p = &x->p;
    unsigned char *needed = (unsigned char *)x->scratch.sites;
    memset(needed, 0, (size_t)f->free_count + 1);
    for (int k = 0; k < p->replica_families.count && p->replica_families.rules; k++)
        flag_needed(x, f, &p->replica_families.family[k], p->may_hold, p->replicas_max, needed);
    for (int k = 0; k < p->voter_families.count && p->voter_families.rules; k++)
        flag_needed(x, f, &p->voter_families.family[k], p->may_vote, p->voters, needed);
    return needed;
}

/* Position of the free site to branch on; the bound of the node is `value`.
 *
 * Sites that a minimum still needs come first. A bound takes such a site at hardly any cost: clients need not use it. Once it
 * is in, they must, where it is the nearest; so the bound rises there, and not where other sites are decided. */
static int choose_branching_site(const context *x, const tree_node *f, double value)
{
    double best = -1.0, gap = x->best.cutoff < BIG ? x->best.cutoff - value : 1.0;
    const pseudo_costs *p = &current_tree(x)->pseudo;
    const unsigned char *needed = find_needed(x, f);
    int chosen = 0;
    for (int i = 0; i < f->free_count; i++) {
        int s = f->free_site[i];
        double up = between(FLOOR * gap, expected(p, IN, s), gap);
        double least = between(0.0, x->evaluated.forced[OUT][s] - value, gap);
        double down = 0.5 * (between(0.0, expected(p, OUT, s), gap) + least);
        double score = up * (down + EVEN * gap) * (SELDOM + f->frequency[s]) * (needed[i] ? NEEDED : 1.0);
        if (score > best) {
            best = score;
            chosen = i;
        }
    }
    return chosen;
}

/* ---- Open parts of the trees of all leaders: a list, from which the order of the search takes the next one.
 *
 * A part is a state (which sites hold a replica, which do not), the bound that is proven for it, and multipliers to
 * start from. The tree on the stack is of one part. What of it is put off goes back to the list: a node whose bound has
 * reached what the search wants now, or the whole stack. In the record of the proof stands, in its place, the number of the
 * part (context.c), and its own events come later. A leader begins as one part, with his own number. */

leader_tree *tree_of(const context *x, int leader)
{
    return &x->open.tree[memory_row(x, leader)];
}

/* The tree of the leader under work. */
leader_tree *current_tree(const context *x)
{
    return tree_of(x, x->view.leader);
}

void open_parts_prepare(context *x)
{
    x->open.tree = own(&x->owned, (size_t)x->p.sites + 1, sizeof(leader_tree));
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
    release(&b->owned);
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
static void forget_open_parts(context *x)
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
    record_event(x, PART, x->open.next_number);
    add_part(x, x->view.leader, x->open.next_number++, f->bound, f->state, f->u);
    if (x->open.count > before)
        x->open.part[before].own_beta = f->own_record;
}

/* Put the node on top off. */
static void put_off_node(context *x)
{
    put_off(x, &x->tree.stack[x->tree.depth - 1]);
    x->tree.depth--;
}

/* Put the whole stack off. */
static void put_off_stack(context *x)
{
    while (x->tree.depth > 0)
        put_off_node(x);
}

/* Close the parts that the cutoff has come down to. A part below a root stays when the proof is recorded: its events are
 * still to come, while a root without any is closed by the multipliers that it was opened with. */
static void close_parts(context *x)
{
    for (int i = x->open.count - 1; i >= 0; i--) {
        const open_part *part = &x->open.part[i];
        leader_tree *t = tree_of(x, part->leader);
        if (part->bound < x->best.cutoff || (x->proof.on && (part->state || t->begun)))
            continue;
        t->closed = part->bound < t->closed ? part->bound : t->closed;
        drop_part(x, i);
    }
}

/* Make the multipliers beta of the leader's root those of a dense node below it. */
static void adopt_beta(context *x, tree_node *f, const beta_list *kept)
{
    size_t padded = (size_t)x->p.padded, cells = (size_t)x->p.sites * padded;
    if (!f->own_beta && !(f->own_beta = own(&x->owned, cells + 1, sizeof(double)))) {
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

/* 1 where light clients are apart in the states with many free sites. */
static int has_light(context *x, const leader_tree *t)
{
    return !t->tight && heavy_prepare(x);
}

/* Put the state of a part on the stack, with the beta of its root: as a sparse node where that pays, at once. */
static void open_part_node(context *x, const open_part *part, const beta_list *beta)
{
    const float *u = part->u;
    tree_node *f = &x->tree.stack[0];
    open_root(x, NULL, 1, part->state);
    if (x->control.out_of_memory)
        return;
    int light = has_light(x, tree_of(x, part->leader));
    if (light && f->free_count <= LIGHT_SITES * x->p.sites)
        own_columns(x, f);
    else if (!light && !make_sparse_from_state(x, f, beta)) {
        open_root(x, NULL, 0, part->state);
        if (beta->start && !x->control.out_of_memory)
            adopt_beta(x, f, beta);
    }
    const double *most = f->sparse ? f->max_multiplier : f->fixed_cost; /* beta has raised what u may be */
    for (int c = 0; c < x->p.clients; c++)
        f->u[c] = u[c] < most[c] ? u[c] : most[c];
    if (light && f->shared)
        set_light(x, f);
    f->root = 0;
    f->bound = part->bound;
    f->tightened = x->tree.nodes;
    if (part->own_beta && x->proof.on)
        record_beta(x, f);
}

/* Take a part from the list to the stack, which must be empty. */
static void take_part(context *x, int at)
{
    open_part part = x->open.part[at];
    leader_tree *t = tree_of(x, part.leader);
    tree_node *f = &x->tree.stack[0];
    x->open.part[at].u = NULL;
    x->open.part[at].state = NULL;
    drop_part(x, at);
    int light = has_light(x, t);
    if (!light)
        costs_of_tree(x, part.leader);
    else if (x->view.leader != part.leader || x->view.costed_leader != part.leader || x->view.moved > 0.0)
        costs_of_fixed_sites(x, part.leader);
    if (!t->begun)
        reset_pseudo_costs(x);
    record_event(x, EVENTS_OF, part.number);
    if (part.state)
        open_part_node(x, &part, &t->beta);
    else {
        double *u = x->scratch.u;
        for (int c = 0; c < x->p.clients; c++)
            u[c] = part.u[c];
        open_root(x, u, light, NULL);
        if (light && !x->control.out_of_memory)
            set_light(x, f);
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
    kept->start = own(&kept->owned, (size_t)p->clients + 1, sizeof(int));
    kept->site = own(&kept->owned, count + 1, sizeof(int));
    kept->value = own(&kept->owned, count + 1, sizeof(double));
    if (kept->owned.failed) {
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
static void keep_root(context *x, const tree_node *f)
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
    if (x->proof.on)
        record_transfers(x, &t->transfers);
    for (int c = 0; c < x->p.clients; c++)
        x->scratch.u[c] = x->tree.stack[0].u[c];
    costs_of_tree(x, x->view.leader);
    open_root(x, x->scratch.u, 0, NULL);
}

/* Begin the present leader's tree again from the multipliers of its root, with steps on (u, beta), and the second time with
 * transfers of cost: they pay in large trees, and the size is not known before. Where transfers paid under another leader,
 * the first time is the second. The proven bound of the tree becomes the bound of the new root. The pseudo-costs stay, unless
 * the steps are many: these change the gain of a decision. */
static void begin_anew(context *x)
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
    record_event(x, EVENTS_OF, leader);
    t->tight |= x->open.pattern && x->limits.transfer_nodes > 0;
    if (x->limits.large)
        reset_pseudo_costs(x);
    open_root(x, x->scratch.u, 0, NULL);
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

/* ---- Depth-first branch and bound under one leader, resumable after a given amount of work. ---- */

/* ---- leaves that are enumerated ---- */

/* 1 when a complete set whose clients and prices cost `part` may be better than the incumbent: the score itself adds up
 * the same terms in another order. */
static int may_win(context *x, double part, const int *set, int size)
{
    if (part >= x->best.score)
        return 0;
    double wait = least_wait_of_set(x, set, size);
    return part + wait - LEAF_ROUNDING * (fabs(part) + wait) < x->best.score;
}

/* Enumerate the completions of a node, depth first over positions; the score is only computed in
 * full where the clients' part and the least wait could still win. */
static void enumerate_leaf(context *x, tree_node *f, int lo, int hi)
{
    const problem *p = &x->p;
    int n = f->free_count, depth = 0, padded = p->padded;
    int *set = x->scratch.sites, at[MAX_ENUMERATED + 2], *nearest = x->scratch.level_rank;
    double radius, prices[MAX_ENUMERATED + 2], *paid = x->scratch.level_cost;
    const double *price = prices_under(p, x->view.leader);
    memcpy(set, f->in_site, (size_t)f->in_count * sizeof(int));
    memcpy(nearest, f->fixed_rank, (size_t)padded * sizeof(int));
    for (int c = 0; c < padded; c++)
        paid[c] = c < p->clients ? BIG : 0.0;
    for (int i = 0; i < f->in_count; i++) {
        const int *rank = p->rank + (size_t)f->in_site[i] * padded;
        const double *cost = paid_costs(x) + (size_t)f->in_site[i] * padded;
        for (int c = 0; c < p->clients; c++)
            paid[c] = rank[c] == nearest[c] ? cost[c] : paid[c];
    }
    prices[0] = f->constant;
    at[0] = 0;
    if (lo <= 0)
        offer_incumbent(x, score_of(x, set, f->in_count, &radius), set, f->in_count);
    if (hi == 0)
        return;
    while (depth >= 0) {
        if (at[depth] >= n) {
            if (--depth >= 0)
                at[depth]++;
            continue;
        }
        int site = f->free_site[at[depth]], size = f->in_count + depth + 1;
        const int *rank = p->rank + (size_t)site * padded;
        const double *cost = paid_costs(x) + (size_t)site * padded;
        set[size - 1] = site;
        prices[depth + 1] = prices[depth] + (price ? price[site] : 0.0);
        if (depth + 1 >= lo) {
            double part = prices[depth + 1] + cost_with_site(rank, cost, nearest + (size_t)depth * padded,
                                                          paid + (size_t)depth * padded, padded, x->scratch.u);
            if (may_win(x, part, set, size)) {
                double score = score_of(x, set, size, &radius);
                if (score < x->best.score)
                    offer_incumbent(x, score, set, size);
            }
        }
        if (depth + 1 < hi) {
            join_site(rank, cost, nearest + (size_t)depth * padded, paid + (size_t)depth * padded, padded,
                 nearest + (size_t)(depth + 1) * padded, paid + (size_t)(depth + 1) * padded);
            at[depth + 1] = at[depth] + 1;
            depth++;
        } else
            at[depth]++;
        x->effort.work += 0.5 * padded;
    }
}

static double count_completions(int n, int lo, int hi)
{
    double total = 0.0, choose = 1.0;
    for (int k = 0; k <= hi; k++) {
        if (k >= lo)
            total += choose * (k > 0 ? k : 1);
        choose = choose * (n - k) / (k + 1.0);
        if (total > 1e12)
            break;
    }
    return total;
}

/* ---- the tree ---- */

static void push_node(context *x, const tree_node *parent, int site)
{
    tree_node *f = &x->tree.stack[x->tree.depth];
    if (!node_alloc(x, f, parent->sparse || parent->shared ? 0 : parent->free_count) || (parent->sparse && !sparse_alloc(x, f))) {
        x->control.out_of_memory = 1;
        return;
    }
    node_make_child(x, f, parent, site);
    f->tightened = x->tree.nodes;
    f->branched_site = site;
    f->branched_side = IN;
    f->parent_bound = parent->parent_bound;
    x->tree.depth++;
}

/* 1 when the tree has turned out large: TIGHT_NODES nodes, or more with few replicas, whose trees have gone through as many
 * plain nodes before beta pays. */
static int is_large(const context *x)
{
    double nodes = (double)current_tree(x)->nodes;
    if (x->p.replicas_max <= FEW_REPLICAS)
        return nodes >= (double)x->limits.tight_nodes_few;
    return nodes >= (double)x->limits.tight_nodes;
}

/* 1 when the tree is to begin again: with steps on (u, beta), then with transfers of cost; with both at once, and sooner, where
 * there are transfers that paid under another leader. */
static int begins_anew(const context *x)
{
    const leader_tree *t = current_tree(x);
    if (!x->p.relays || !t->root_u || t->transferred)
        return 0;
    if (!t->tight && is_large(x))
        return 1;
    return (t->tight || x->open.pattern) && x->limits.transfer_nodes > 0 && t->nodes >= x->limits.transfer_nodes;
}

/* Put the root of the leader under work on the stack, in place of any tree, or the node of a state below it; `shared` as in
 * node_make_root. */
void open_root(context *x, const double *u, int shared, const unsigned char *state)
{
    x->tree.depth = 0;
    x->tree.closed = BIG;
    tree_node *f = &x->tree.stack[0];
    if (!shared)
        complete_costs(x);
    if (!node_alloc(x, f, shared ? 0 : x->p.sites)) {
        x->control.out_of_memory = 1;
        return;
    }
    memset(f->u, 0, (size_t)x->p.padded * sizeof(double));
    node_make_root(x, f, x->view.leader, shared, state);
    /* not before: on the way to several certain sites a client's cost may be lower than in the end */
    for (int c = 0; u && c < x->p.clients; c++)
        f->u[c] = u[c] < f->fixed_cost[c] ? u[c] : f->fixed_cost[c];
    x->tree.depth = 1;
}

/* Record that `f->u` closes the node, with fewer digits where they suffice; return its bound. */
double record_close(context *x, tree_node *f, double bound)
{
    double error, value;
    int count;
    memset(x->scratch.u, 0, (size_t)x->p.padded * sizeof(double));
    memcpy(x->scratch.u, f->u, (size_t)x->p.clients * sizeof(double));
    if (!f->light && round_multipliers(x->scratch.u, x->p.clients)) {
        for (int c = 0; c < x->p.clients; c++) {
            double most = f->sparse ? f->max_multiplier[c] : f->fixed_cost[c];
            x->scratch.u[c] = x->scratch.u[c] < most ? x->scratch.u[c] : most;
        }
        value = evaluate_bound(x, f, x->scratch.u, 0, &count, &error) - error;
        if (value >= x->best.cutoff) {
            memcpy(f->u, x->scratch.u, (size_t)x->p.clients * sizeof(double));
            bound = value < bound ? value : bound;
        }
    }
    record_event(x, CLOSE, 0.0);
    record_vector(x, f->u);
    return bound;
}

static void close_node(context *x, double bound)
{
    tree_node *f = &x->tree.stack[x->tree.depth - 1];
    if (x->proof.on)
        bound = record_close(x, f, bound);
    if (bound < x->tree.closed)
        x->tree.closed = bound;
    x->tree.leaves++;
    x->tree.depth--;
}

/* Visit the node on top: bound it, then close it, enumerate it or branch. */
static void visit_node(context *x)
{
    tree_node *f = &x->tree.stack[x->tree.depth - 1];
    const problem *p = &x->p;
    int rounds = f->root ? 6 : 3, count, bars = f->root && p->cases.bars && x->best.cutoff < BIG;
    int iterations = bars ? BARRED_ROOT_STEPS : f->root ? ROOT_STEPS : NODE_STEPS;
    double error, base_error, value = 0.0;
    if (begins_anew(x)) {
        begin_anew(x);
        return;
    }
    x->tree.nodes++;
    current_tree(x)->nodes++;
    for (int round = 0; round < rounds; round++) {
        int lo, hi;
        sizes_left(p, f, &lo, &hi);
        double completions = hi >= lo && hi >= 0 && hi <= MAX_ENUMERATED ? count_completions(f->free_count, lo, hi) : BIG;
        int few = completions <= FEW + ENUMERATE_PER_SITE * f->free_count;
        /* where a bound is cheaper than a score, first see which sites it leaves */
        if (completions <= FEW || (few && (round > 0 || !f->sparse))) {
            if (f->light)
                complete_costs(x);
            enumerate_leaf(x, f, lo, hi);
            record_event(x, ENUMERATE, 0.0);
            x->tree.leaves++;
            x->tree.depth--;
            return;
        }
        if (f->light && f->free_count <= LIGHT_SITES * p->sites)
            own_columns(x, f);
        update_detours(x, f);
        value = improve_bound(x, f, iterations, &error);
        if (current_tree(x)->tight && value < x->best.cutoff && round == 0 && !x->control.paused &&
            (f->root || (f->is_new && f->in_count <= TIGHT_DEPTH) ||
             x->tree.nodes - f->tightened >= TIGHT_EVERY)) {
            int large = (double)f->free_count * p->padded > LARGE;
            int steps = f->root ? (large ? 2 : 1) * TIGHT_ROOT_STEPS : TIGHT_NODE_STEPS;
            f->tightened = x->tree.nodes;
            double tight = improve_closest_assignment(x, f, steps, &error);
            if (tight > value)
                value = tight;
            f->own_record |= !f->root;
        }
        learn_pseudo_cost(x, f, value);
        if (value > f->bound)
            f->bound = value < x->best.cutoff ? value : x->best.cutoff;
        if (value >= x->best.cutoff) {
            close_node(x, value);
            return;
        }
        if (x->control.paused)
            return;
        if (!f->root && value >= x->tree.enough) {
            put_off_node(x);
            return;
        }
        double base = evaluate_bound(x, f, f->u, 1, &count, &base_error);
        if (f->root && round == 0 && base < BIG) {
            /* a primal solution from the selection at the best multipliers */
            int *set = x->inner.selected + 3 * p->sites, size = selected_set(x, f, count, set);
            if (f->light)
                find_some_costs(x, f, set, size);
            swap_descent(x, set, size, ROOT_SWAPS);
            if (value >= x->best.cutoff) {
                close_node(x, value);
                return;
            }
            evaluate_bound(x, f, f->u, 1, &count, &base_error);
        }
        int fixed = fix_by_reduced_cost(x, f, x->evaluated.served + f->constant, base_error);
        if (fixed < 0) {
            close_node(x, x->best.cutoff);
            return;
        }
        if (bars && round == 0)
            fixed += fix_far_sites(x, f);
        if (fixed == 0 && !(few && round == 0))
            break;
        iterations = bars ? BARRED_STEPS : f->root ? 40 : 12;
    }
    if (f->free_count == 0) {
        /* handled by the enumeration above on the next visit */
        return;
    }
    if (f->root)
        keep_root(x, f);
    if (f->is_new && (!has_light(x, current_tree(x)) || current_tree(x)->nodes >= SPARSE_NODES))
        make_sparse(x, f);
    int i = choose_branching_site(x, f, value), site = f->free_site[i];
    node_drop_site(x, f, i, 1);
    f->state[site] = FREE;
    record_event(x, BRANCH, site);
    f->branched_site = site;
    f->parent_bound = value;
    push_node(x, f, site);
    f->branched_side = OUT;
    f->state[site] = OUT;
    f->root = f->is_new = 0;
}

/* A lower bound of the tree on the stack, closed parts included. */
static double tree_bound(const context *x)
{
    double bound = x->tree.closed;
    for (int i = 0; i < x->tree.depth; i++)
        if (x->tree.stack[i].bound < bound)
            bound = x->tree.stack[i].bound;
    return bound;
}

/* ---- The order of the search: which part of all trees comes next, and when to put a part off.
 *
 * Depth first is quick, but the last part of a tree that it visits keeps the bound of the root until then, and so does the
 * bound of the whole search. So
 *
 * - no leader gets more than BURST_NODES nodes before every open leader had the steps of its root;
 * - from PUT_OFF_FROM work on, a node whose bound reaches cutoff (1 - gap) is put off while there are parts below; when there
 *   are none left, the gap shrinks to GAP_SHRINK times, with a stop at GAP_STOP. Below GAP_STOP nothing more is put off
 *   once there are FEW_PARTS: each of them raises the bound when it is finished, and more would only cost more.
 *
 * Of the parts below, the parts of the leader under work come first, by bound: another leader has other costs everywhere.
 *
 * The bound of the search, the least of parts, stack and what was closed, then rises all the time. A part that is
 * put off is open: nothing but the cutoff ever closes. */

/* The trees have just been opened. */
static void begin_order(context *x)
{
    x->open.began = x->effort.work;
    x->open.gap = -1.0;
    x->open.puts_off = 1;
    x->open.burst = 0;
    x->open.last = -2;
}

/* Bound that every part has to reach now. */
static double wanted(const context *x)
{
    double cutoff = x->best.cutoff;
    return x->open.gap > 0.0 && cutoff < BIG ? cutoff - x->open.gap * cutoff : BIG;
}

/* Bound from which a node is put off. */
static double enough_to_put_off(const context *x)
{
    const open_parts *o = &x->open;
    return o->puts_off && o->kept < MOST_KEPT ? wanted(x) : BIG;
}

/* The part to work on: a new leader, or one of the last leader that is to come nearer to the cutoff, or any; of these that of
 * the least bound. */
static int next_part(const context *x)
{
    const open_parts *o = &x->open;
    int best = -1, rank = -1;
    for (int i = 0; i < o->count; i++) {
        const open_part *part = &o->part[i];
        int own = !part->state && !o->tree[memory_row(x, part->leader)].begun  ? 2
                  : part->leader == o->last && part->bound < wanted(x)               ? 1
                                                                                     : 0;
        if (best < 0 || own > rank || (own == rank && part->bound < o->part[best].bound)) {
            best = i;
            rank = own;
        }
    }
    return best;
}

static int has_new_leaders(const context *x)
{
    for (int i = 0; i < x->open.count; i++)
        if (!x->open.part[i].state && !x->open.tree[memory_row(x, x->open.part[i].leader)].begun)
            return 1;
    return 0;
}

/* 1 when parts are to be put off from now on. */
static int is_time_for_gaps(const context *x)
{
    double cutoff = x->best.cutoff;
    return x->open.gap < 0.0 && x->effort.work - x->open.began >= x->limits.patience && cutoff > 0.0 && cutoff < BIG;
}

/* Choose the gap for which parts are put off, so that the least bound, `least`, is below it. */
static void shrink_gap(context *x, double least)
{
    if (is_time_for_gaps(x))
        x->open.gap = least < x->best.cutoff ? 1.0 - least / x->best.cutoff : 0.0;
    while (x->open.gap > LEAST_GAP && least >= wanted(x)) {
        double next = x->open.gap * GAP_SHRINK;
        x->open.gap = x->open.gap > GAP_STOP && next < GAP_STOP ? GAP_STOP : next;
    }
    if (x->open.gap >= 0.0 && x->open.gap <= LEAST_GAP)
        x->open.gap = 0.0;
}

/* Work on the open trees; 1 when they are finished. */
int run_search(context *x, double work)
{
    double stop = x->effort.work + work;
    int crowded = has_new_leaders(x);
    while ((x->tree.depth > 0 || x->open.count > 0) && !x->control.out_of_memory && x->effort.work < stop && !must_pause(x)) {
        if (x->tree.depth > 0 && ((crowded && x->open.burst >= x->limits.burst_nodes) || is_time_for_gaps(x))) {
            current_tree(x)->closed = x->tree.closed;
            put_off_stack(x);
        }
        if (x->tree.depth == 0) {
            close_parts(x);
            if (!x->open.count)
                break;
            int at = next_part(x);
            if (x->open.part[at].leader != x->open.last || crowded)
                x->open.burst = 0;
            x->open.last = x->open.part[at].leader;
            shrink_gap(x, x->open.part[at].bound);
            take_part(x, at);
            crowded = has_new_leaders(x);
            continue;
        }
        if (x->open.gap >= 0.0 && x->open.gap < GAP_STOP && x->open.count >= FEW_PARTS)
            x->open.puts_off = 0;
        x->open.burst++;
        x->tree.enough = enough_to_put_off(x);
        visit_node(x);
        x->tree.enough = BIG;
        if (x->tree.depth == 0)
            current_tree(x)->closed = x->tree.closed;
    }
    return x->tree.depth == 0 && x->open.count == 0;
}
