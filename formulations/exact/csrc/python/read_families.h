/* Diversity rules that Python hands over, in the form of families of blocks. */
#ifndef READ_FAMILIES_H
#define READ_FAMILIES_H

#include "buffers.h"
#include "site_families.h"

/* Families from a tuple of (blocks, distinct, numbers): innermost block by site; parent, least, most, spread by block.
 * 0 with the exception set. */
int read_families(owned_memory *owned, PyObject *list, family_list *out, int sites);

#endif
