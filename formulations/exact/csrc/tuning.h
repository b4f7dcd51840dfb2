/* Tuning constants of the compiled kernel, in one table. None of them matters for correctness: they decide how long a
 * search takes, and which of several equally good plans it meets first.
 *
 * Measured on the questions of `python -m benchmarks run exact.speed` (27 to 1,000 sites, modelled and measured networks,
 * p-medians), for scenarios of `python -m benchmarks run contingency.losses` and `python -m benchmarks run tail`. Constants on
 * which correctness or the format of a certificate depends are in context.h. The Python constants are in ../tuning.py. */
#ifndef EXACT_TUNING_H
#define EXACT_TUNING_H

/* Subgradient steps on u (lagrangean_bound.c), all groups. */
#define PLAIN_MOMENTUM 0.7        /* share of the last direction that is kept */
#define PLAIN_PATIENCE 6          /* steps without gain before the step shrinks; at least 1/20 of all steps */
#define PLAIN_SHRINK 0.6          /* factor by which the step shrinks */
#define PLAIN_STEP_ROOT 1.0       /* first step at a root, as a share of (target - bound) / norm */
#define PLAIN_STEP 0.9            /* the same below a root */
#define HEAVY_FROM 5e5            /* sites x clients, 1,000 and 1,740 sites of exact.scale, from which the heaviest clients ... */
#define HEAVY_SHARE 0.98          /* ... who have this share of the demand get steps of their own ... */
#define HEAVY_MOST 0.6            /* ... where they are no more than this share of all */
#define HEAVY_STEPS 10            /* steps from which a root begins with those on the heavy clients; 1/4 as many on all follow */
#define LIGHT_SITES 0.05          /* share of the sites that are free down to which the other clients are apart in a tree */
#define LISTED_SITES 0.12         /* share of the free sites, those of least rho, that steps on heavy clients follow ... */
#define LISTED_STEPS 20           /* ... between two evaluations of all sites */
#define WORK_BETWEEN_PAUSES 1e7   /* work between two checks of the clock and Ctrl-C: about 10 ms */

/* Subgradient steps on (u, beta) (closest_assignment.c): mixes with strong reads, 100 x 200 and 200 x 400. */
#define TIGHT_STEP 0.2            /* first step; there are many multipliers and few of them are active */
#define TIGHT_PATIENCE 20         /* steps without gain before the step shrinks */
#define TIGHT_SHRINK 0.6          /* factor by which the step shrinks */
#define TIGHT_MOMENTUM 0.95       /* share of the last direction that is kept */
#define TIGHT_SELDOM 0.01         /* sites that the steps select less often get no new beta */

/* Transfers of cost between clients (closest_assignment.c): 490 sites. */
#define TRANSFER_CLIENTS 1000     /* clients up to which all pairs of them are tried */
#define TRANSFER_NODES 50         /* nodes of a tree with steps on (u, beta) after which it begins again, with transfers */
#define TRANSFER_PAYS 0.5         /* share of the gap left that they have to close: else none is kept or looked for again */
#define TRANSFER_STEPS 600        /* most steps ... */
#define TRANSFER_WARM_STEPS 300   /* ... and most steps from the transfers of another leader */
#define TRANSFER_REVIEW 100       /* steps between two looks at what they gain ... */
#define TRANSFER_WORTH 0.12       /* ... and the share of the gap that they must have closed since the last, else they end */
#define TRANSFER_EVERY 20         /* steps between two looks for violated rows */
#define TRANSFER_NEW 0.7          /* weight of the last of them in the mean answer */
#define TRANSFER_VIOLATION 0.1    /* violation from which a row is made */
#define TRANSFER_STEP 0.5         /* first step */
#define TRANSFER_GAIN 0.01        /* share of the gap that a step has to close to be a gain */
#define TRANSFER_PATIENCE 40      /* steps without gain before the step shrinks */
#define TRANSFER_SHRINK 0.8       /* factor by which the step shrinks */
#define TRANSFER_MOMENTUM 0.9     /* share of the last direction that is kept */
#define TRANSFER_ROWS 16384       /* most rows */
#define TRANSFER_LISTED 0.02      /* least mean share of a site in the answers of a client that counts */

/* Tree of one leader (leader_tree.c), all groups. */
#define ROOT_STEPS 120            /* steps on u at a root */
#define NODE_STEPS 7              /* the same below a root */
#define LARGE_FROM 1e5            /* sites x clients from which a question is large: 490 sites, against 200 x 400; detours (tree_node.c)
                                   are counted below: least CPU with them against without, together, 48 sites 0.83, 100 x 200
                                   0.38, 200 x 400 1.00 (of its rows oltp 9/5 1.28, ledger 9/5 0.53, logging 9/5 0.56) */
#define TIGHT_NODES 300           /* nodes after which a tree begins again, with steps on (u, beta) ... */
#define TIGHT_NODES_FEW 20000     /* ... with few replicas: 27 to 42 sites under rules, 100 x 200, 200 x 400 ... */
#define FEW_REPLICAS 9            /* ... which are so many at most */
#define TIGHT_NODES_LARGE 1000    /* ... of a large question, whose tree forgets then what it has learned of decisions */
#define TIGHT_ROOT_STEPS 200      /* steps on (u, beta) at a root */
#define TIGHT_NODE_STEPS 10       /* the same below a root */
#define TIGHT_DEPTH 1             /* depth down to which every new node improves beta ... */
#define TIGHT_EVERY 120           /* ... and nodes after which it is improved below */
#define LARGE 20000               /* free sites x clients above which a root gets twice the steps on (u, beta) */
#define ENUMERATE_PER_SITE 6.0    /* completions per free site up to which a leaf is enumerated ... */
#define FEW 12.0                  /* ... and how many are few enough to enumerate before any bound */
#define ROOT_SWAPS 40             /* swaps of the descent from what a root's multipliers select */

/* Order of the parts (leader_tree.c), 500 x 500 and PlanetLab's 490 sites. */
#define BURST_NODES 50            /* nodes that a leader gets before the others had the steps of their roots */
#define PUT_OFF_FROM 5e8          /* work from which parts are put off; a shorter search is soon proven anyway ... */
#define PUT_OFF_FROM_LARGE 2e8    /* ... the same for a large question */
#define GAP_SHRINK 0.7            /* factor by which the gap shrinks within which parts are put off */
#define GAP_STOP 0.01             /* gap that all parts reach before any of them goes on; below it few parts are worth a restart ... */
#define FEW_PARTS 64              /* ... and how many these are */
#define MOST_KEPT 1e8             /* bytes of parts that are kept, whatever the gap */
#define LEAST_GAP 1e-6            /* relative: a part closer to the cutoff is closed at once */

/* Branching (leader_tree.c), 48 sites and more. */
#define PRIOR 2.0                 /* decisions that the mean over all sites counts for */
#define FLOOR 0.01                /* least gain of the side IN, as a share of the gap */
#define EVEN 0.1                  /* share of the gap added to the side OUT, whose gains are small and alike */
#define SELDOM 0.4                /* weight of a site that the steps never select, against 1 + SELDOM */
#define NEEDED 10.0               /* weight of a site that a minimum of the rules still needs (exact.rules: 27 to 42 sites) */

/* The next number of replicas (root_bounds.c), sizes. */
#define DESCENTS 1                /* leaders with a descent: as many as the root bounds of a problem have */

/* Single evaluations for many leaders (root_bounds.c), 200 x 400 and more. */
#define BLOCK_CLIENTS 1024        /* clients whose weights and multipliers stay in the nearest caches */
#define LEADERS_PER_PASS 16       /* leaders that are bounded in one pass over the RTTs */

/* Waits of leaders by cases (waits/case_search.c), world27, aws and azure with leases. */
#define BARRED_ROOT_STEPS 10      /* steps on u at a root where a wait is for all replicas ... */
#define FAR_STEPS 8               /* ... then those that may rule out sites far from the leader ... */
#define BARRED_STEPS 20           /* ... and those after each round of fixing */
#define SORTED_RUN 12             /* sites up to which insertion sorts sooner than merging */

/* Waits of several intervals (waits/interval_waits.c), exact.rules. */
#define INTERVAL_NODES 200        /* nodes of the search for sites near the leader, after which floors of the waits do */
#define INTERVAL_SHORT 30         /* nodes up to which each step on the multipliers has such a search ... */
#define INTERVAL_GAIN 0.05        /* ... and the share of the gap that it may close at least */

/* Sparse nodes (tree_node.c), 100 x 200 and more. */
#define SPARSE_FROM 20000.0       /* free sites x clients below which dense nodes are as quick */
#define SPARSE_SHARE 0.2          /* share of these cells from which sparse nodes are quicker */
#define SPARSE_NODES 200          /* nodes from which a tree with light clients apart has sparse nodes */

/* Threshold search (scenarios/threshold_tree.c, threshold_bound.c): losses and percentiles. */
#define THRESHOLD_FIRST_STEPS 120       /* steps on the multipliers at a root */
#define THRESHOLD_LATER_STEPS 10        /* the same below a root */
#define THRESHOLD_PATIENCE 5            /* steps without progress before the steps shrink */
#define THRESHOLD_SHRINK 0.6            /* factor by which the step shrinks */
#define THRESHOLD_LEAST_STEP 0.05       /* no steps below it */
#define THRESHOLD_WEIGHT_RATE 0.4       /* rate of the exponentiated gradient on the weights */
#define THRESHOLD_OVERSHOOT 1e-4        /* the steps aim at this share of the thresholds above the closing value */
#define THRESHOLD_NEW_SHARE 0.25        /* weight of the scenarios that have just come in force */
#define THRESHOLD_LEAST_WEIGHT 1e-3     /* scenarios below it are left out, unless a selection reaches their threshold */
#define THRESHOLD_FEW_SETS 20           /* sets of a part that are evaluated rather than bounded */
#define THRESHOLD_FEW_STEPS 3           /* multiplier steps before so few sets are evaluated */
#define THRESHOLD_NO_GAIN 1e-12         /* gain of a selected site that no bound tells apart from the others */
#define THRESHOLD_FIT_EFFORT 2e6        /* work for the voters of a part ... */
#define THRESHOLD_ROOT_FIT_EFFORT 2e8   /* ... and at a root: 0.1 s */
#define FIRST_PLAN_SWAPS 50             /* most swaps from what a root selects ... */
#define LIMIT_EXCESS 100.0              /* ... and the weight there of what exceeds limits */
#define LIVE_SHARE 0.75                 /* share of live clients from which gathering them does not pay */

/* Losses (scenarios/losses.h): losses of countries at 50 and 100 sites. */
#define LARGE_LOSS 8                    /* sites of a loss that counts before it is hit; 4 and 12 are about as good */

/* Late operations (scenarios/late.c): percentiles. */
#define LATE_FIRST_STEP 2.0             /* first step: steps just beyond the multipliers of a node leave fewer nodes open */
#define LATE_SET_EFFORT 2e8             /* work for the voters of a complete set: 0.1 s */

#endif
