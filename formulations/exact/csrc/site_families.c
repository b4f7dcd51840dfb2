/* Counts of chosen sites in families of nested blocks, and what a family still needs. */
#include <stdlib.h>
#include <string.h>

#include "site_families.h"

/* Places in a count: number of sites, need of the outermost blocks, spread blocks that hold or will hold a site; behind
 * them sites, needs, and needs of the inner blocks, each by block. */
enum { SIZE, OUTERMOST, PRESENT, HELD };

int count_length(const site_family *f)
{
    return HELD + 3 * f->blocks;
}

void begin_count(const site_family *f, int *count)
{
    memcpy(count, f->start, (size_t)count_length(f) * sizeof(int));
}

/* Fewest sites that are still needed, for the blocks and for the least size. */
int still_needed(const site_family *f, const int *count, int least)
{
    int blocks = count[OUTERMOST], size = least - count[SIZE];
    if (f->distinct > count[PRESENT])
        blocks += f->distinct - count[PRESENT];
    return blocks > size ? blocks : size;
}

/* Count a site in (by = 1) or out (by = -1); 1 when no block on the way out is over-full. */
int count_site(const site_family *f, int *count, int site, int by)
{
    int *held = count + HELD, *need = held + f->blocks, *inner = need + f->blocks, change = 0, fits = 1;
    for (int b = f->innermost[site]; b >= 0; b = f->parent[b]) {
        int before = held[b] > 0 || need[b] > 0, own;
        held[b] += by;
        inner[b] += change;
        own = f->least[b] - held[b];
        if (own < inner[b])
            own = inner[b];
        change = own - need[b];
        need[b] = own;
        if (f->spread[b])
            count[PRESENT] += (held[b] > 0 || own > 0) - before;
        fits &= held[b] + own <= f->most[b];
    }
    count[OUTERMOST] += change;
    count[SIZE] += by;
    return fits;
}

/* 1 when take_site would take a site; the count stays as it is. */
int site_fits(const site_family *f, const int *count, int site, int least, int most)
{
    const int *held = count + HELD, *need = held + f->blocks, *inner = need + f->blocks;
    int change = 0, present = count[PRESENT];
    for (int b = f->innermost[site]; b >= 0; b = f->parent[b]) {
        int own = f->least[b] - held[b] - 1, within = inner[b] + change;
        if (own < within)
            own = within;
        if (held[b] + 1 + own > f->most[b])
            return 0;
        if (f->spread[b])
            present += !(held[b] > 0 || need[b] > 0); /* it holds a site then */
        change = own - need[b];
    }
    int blocks = count[OUTERMOST] + change, size = least - count[SIZE] - 1;
    if (f->distinct > present)
        blocks += f->distinct - present;
    return count[SIZE] + 1 + (blocks > size ? blocks : size) <= most;
}

/* 1 when a site fits beside what is then needed; the count includes it then. Most sites that a greedy tries do not fit. */
int take_site(const site_family *f, int *count, int site, int least, int most)
{
    if (!site_fits(f, count, site, least, most))
        return 0;
    count_site(f, count, site, 1);
    return 1;
}

/* As take_site, for a site that is of use only if it lowers the number of sites still needed. */
int take_needed_site(const site_family *f, int *count, int site, int least, int most)
{
    int before = still_needed(f, count, least);
    if (!take_site(f, count, site, least, most))
        return 0;
    if (still_needed(f, count, least) < before)
        return 1;
    count_site(f, count, site, -1);
    return 0;
}

/* Count sites that are given; 1 when the family can still be obeyed with at most `most` sites. */
int count_all(const site_family *f, int *count, const int *sites, int number, int least, int most)
{
    int fits = f->possible; /* of blocks that no site is counted in; count_site sees the others */
    for (int i = 0; i < number; i++)
        fits &= count_site(f, count, sites[i], 1);
    return fits && count[SIZE] + still_needed(f, count, least) <= most;
}

/* 1 when sites leave room for what every family needs, within `most` sites. */
int sites_fit(const family_list *list, const int *sites, int number, int most, int *scratch)
{
    for (int k = 0; k < list->count; k++) {
        begin_count(&list->family[k], scratch);
        if (!count_all(&list->family[k], scratch, sites, number, 0, most))
            return 0;
    }
    return 1;
}

/* 1 when a complete choice of sites obeys every family. */
int sites_obey(const family_list *list, const int *sites, int number, int *scratch)
{
    return !list->rules || sites_fit(list, sites, number, number, scratch);
}

int longest_count(const family_list *list)
{
    int longest = 0;
    for (int k = 0; k < list->count; k++)
        if (count_length(&list->family[k]) > longest)
            longest = count_length(&list->family[k]);
    return longest;
}

/* Check the numbers of a family and make the count of no sites; 0 when they are wrong or memory is short. */
int family_prepare(site_family *f, int sites, owned_memory *owned)
{
    f->parent = f->innermost + sites;
    f->least = f->parent + f->blocks;
    f->most = f->least + f->blocks;
    f->spread = f->most + f->blocks;
    for (int s = 0; s < sites; s++)
        if (f->innermost[s] < -1 || f->innermost[s] >= f->blocks)
            return 0;
    f->start = own(owned, (size_t)count_length(f), sizeof(int));
    f->possible = 1;
    if (!f->start)
        return 0;
    int *need = f->start + HELD + f->blocks, *inner = need + f->blocks;
    for (int b = 0; b < f->blocks; b++) {
        int p = f->parent[b];
        if (p != -1 && (p <= b || p >= f->blocks))
            return 0;
        need[b] = f->least[b] > inner[b] ? f->least[b] : inner[b];
        f->possible &= need[b] <= f->most[b];
        if (p >= 0)
            inner[p] += need[b];
        else
            f->start[OUTERMOST] += need[b];
        f->start[PRESENT] += f->spread[b] && need[b] > 0;
    }
    return 1;
}
