/* Families of nested blocks of sites with bounds: the diversity rules, see placement/model/site_families.py. */
#ifndef SITE_FAMILIES_H
#define SITE_FAMILIES_H

#include "owned_memory.h"

#define MOST_FAMILIES 16      /* families per role; more are refused */

typedef struct {
    int blocks;
    int distinct;              /* least number of `spread` blocks with a chosen site */
    int *innermost;            /* site -> smallest block that holds it, -1: none. Behind it, in one allocation: */
    int *parent, *least, *most, *spread; /* by block; a parent comes after its blocks, -1: none */
    int *start;                /* the count of no sites */
    int possible;              /* 1: no block needs more sites than it may hold */
} site_family;

typedef struct {
    int count;                 /* >= 1: without rules one family of no blocks */
    int rules;                 /* 1: some rule binds */
    site_family family[MOST_FAMILIES];
} family_list;

/* A count of chosen sites is an array of count_length numbers. */
int count_length(const site_family *f);
void begin_count(const site_family *f, int *count);
int still_needed(const site_family *f, const int *count, int least);
int count_site(const site_family *f, int *count, int site, int by);
int take_site(const site_family *f, int *count, int site, int least, int most);
int site_fits(const site_family *f, const int *count, int site, int least, int most);
int take_needed_site(const site_family *f, int *count, int site, int least, int most);
int count_all(const site_family *f, int *count, const int *sites, int number, int least, int most);
int sites_fit(const family_list *list, const int *sites, int number, int most, int *scratch);
int sites_obey(const family_list *list, const int *sites, int number, int *scratch);
int longest_count(const family_list *list);
int family_prepare(site_family *f, int sites, owned_memory *owned);

#endif
