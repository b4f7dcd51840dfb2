"""Build the optional compiled kernels; everything else is in pyproject.toml.

They are those of the exact engine, of the enumeration for quorum stores, and of simulated replica
selection. The extensions use the limited API of CPython 3.11, so one wheel per platform serves
every later version. They are optional: where no C compiler is found the package installs without
them, and engine and enumeration run on NumPy, the simulation in Python (same results, slower).
"""

import sys

from setuptools import Extension, setup

SOURCES = [
    "module",
    "buffers",
    "binding",
    "looks",
    "context",
    "frame",
    "vector",
    "bound",
    "inner",
    "voters",
    "descent",
    "branch",
    "tighten",
    "sparse",
    "tree",
    "leaders",
    "glance",
    "recall",
    "span",
    "sizes",
]
# Python's own flags make integers wrap around, which keeps GCC from vectorising loops over int
# indices (the kernel is half as fast then). Nothing here overflows: random bits are unsigned.
FLAGS = (
    [] if sys.platform == "win32" else ["-O3", "-fno-math-errno", "-fno-wrapv", "-ffp-contract=off"]
)

setup(
    ext_modules=[
        Extension(
            "formulations.exact._kernel",
            sources=[f"formulations/exact/csrc/{name}.c" for name in SOURCES],
            depends=[
                f"formulations/exact/csrc/{name}.h" for name in ("kernel", "buffers", "binding")
            ],
            extra_compile_args=FLAGS,
            py_limited_api=True,
            optional=True,
        ),
        Extension(
            "formulations.quorumstore._kernel",
            sources=[
                f"formulations/quorumstore/csrc/{name}.c"
                for name in ("module", "search", "tree", "screen", "sets")
            ],
            depends=["formulations/quorumstore/csrc/quorum.h"],
            extra_compile_args=FLAGS,
            py_limited_api=True,
            optional=True,
        ),
        Extension(
            "heuristics.online.selection._kernel",
            sources=[
                f"heuristics/online/selection/csrc/{name}.c"
                for name in ("module", "run", "limiter", "policies")
            ],
            depends=["heuristics/online/selection/csrc/selection.h"],
            extra_compile_args=FLAGS,
            py_limited_api=True,
            optional=True,
        ),
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
