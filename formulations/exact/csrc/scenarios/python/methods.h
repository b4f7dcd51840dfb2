/* The functions of the module, by kind of question. */
#ifndef EXACT_METHODS_H
#define EXACT_METHODS_H

#include "buffers.h"

extern PyMethodDef losses_methods[]; /* bind_losses.c */
extern PyMethodDef late_methods[];   /* bind_late.c */

#endif
