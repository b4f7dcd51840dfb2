/* Diversity rules that Python hands over, in the form of families of blocks. */
#include "read_families.h"

#include <stdlib.h>

int read_families(owned_memory *owned, PyObject *list, family_list *out, int sites)
{
    Py_ssize_t n = PyTuple_Size(list);
    if (n < 0)
        return 0;
    if (n > MOST_FAMILIES) {
        PyErr_Format(PyExc_ValueError, "at most %d families of rules", MOST_FAMILIES);
        return 0;
    }
    out->rules = n > 0;
    for (Py_ssize_t k = 0; k < (n > 0 ? n : 1); k++) {
        site_family *f = &out->family[k];
        PyObject *numbers = NULL;
        if (n > 0 && !PyArg_ParseTuple(PyTuple_GetItem(list, k), "iiO", &f->blocks, &f->distinct, &numbers))
            return 0;
        if (f->blocks < 0 || f->blocks > 64 * sites)
            return refused("not a number of blocks");
        size_t size = ((size_t)sites + 4 * (size_t)f->blocks) * sizeof(int);
        out->count = (int)k + 1;
        if (numbers)
            f->innermost = copy_buffer(owned, numbers, size);
        else if ((f->innermost = own(owned, size, 1)) == NULL)
            PyErr_NoMemory();
        if (!f->innermost)
            return 0;
        for (int s = 0; s < sites && !numbers; s++)
            f->innermost[s] = -1;
        if (!family_prepare(f, sites, owned))
            return refused("a family has no such block, or there is no memory");
    }
    return 1;
}
