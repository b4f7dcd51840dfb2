/* The complementary error function of many numbers: the library of C has it, NumPy has not, and SciPy takes longer
   to load than distributions of 200 sites to make. Limited API (abi3, CPython 3.11 and later). */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>

PyDoc_STRVAR(erfc_doc, "erfc(values): replace float64 numbers by their complementary error functions");

static PyObject *replace_by_erfc(PyObject *self, PyObject *source)
{
    Py_buffer view;
    (void)self;
    if (PyObject_GetBuffer(source, &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE | PyBUF_FORMAT))
        return NULL;
    const int doubles = view.itemsize == sizeof(double) && view.format && view.format[0] == 'd' && !view.format[1];
    double *values = view.buf;
    const Py_ssize_t count = doubles ? view.len / view.itemsize : 0;
    for (Py_ssize_t k = 0; k < count; k++)
        values[k] = erfc(values[k]);
    PyBuffer_Release(&view);
    if (!doubles)
        return PyErr_Format(PyExc_ValueError, "not an array of float64");
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"erfc", replace_by_erfc, METH_O, erfc_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_error_function", "The complementary error function.", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__error_function(void);
PyMODINIT_FUNC PyInit__error_function(void) { return PyModule_Create(&module); }
