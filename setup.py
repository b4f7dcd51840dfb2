"""Build the optional compiled kernel of the exact engine; everything else is in pyproject.toml.

The extension uses the limited API of CPython 3.11, so one wheel per platform serves every later
version. It is optional: where no C compiler is found the package installs without it and the engine
runs on NumPy (same optimum, slower).
"""

import sys

from setuptools import Extension, setup

SOURCES = [
    "module",
    "context",
    "frame",
    "vector",
    "bound",
    "inner",
    "voters",
    "descent",
    "tighten",
    "tree",
]
FLAGS = [] if sys.platform == "win32" else ["-O3", "-fno-math-errno", "-ffp-contract=off"]

setup(
    ext_modules=[
        Extension(
            "formulations.exact._kernel",
            sources=[f"formulations/exact/csrc/{name}.c" for name in SOURCES],
            depends=["formulations/exact/csrc/kernel.h"],
            extra_compile_args=FLAGS,
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
