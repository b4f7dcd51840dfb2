/* Python module of the threshold search: limited API (abi3, CPython 3.11 and later), buffers in, numbers out. */
#include "kernel.h"
#include "methods.h"

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_scenarios", "Compiled threshold search over scenarios.", 0, NULL, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__scenarios(void)
{
    if (!client_loops_are_right()) {
        PyErr_SetString(PyExc_ImportError, "the kernel was miscompiled");
        return NULL;
    }
    PyObject *made = PyModule_Create(&module);
    if (made && (PyModule_AddFunctions(made, losses_methods) || PyModule_AddFunctions(made, late_methods))) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}
