"""Build the optional compiled kernels; everything else is in pyproject.toml.

They are those of the exact engine (two), of the enumeration for quorum stores, of the search over
sets for operations with waits, of simulated replica selection, and the sums of the checker. The
extensions use the limited API of CPython 3.11, so one wheel per platform serves every later
version. They are optional: where no C compiler is found the package installs without them. Then
enumeration and checker run on NumPy, the simulation in Python (same results, slower), and the
questions of the engine go to other methods.

The environment variable REPLICA_PLACEMENT_KERNELS decides otherwise: ``required`` makes a missing
or failing compiler an error, so that a release has no wheel that lacks its kernels unnoticed;
``none`` leaves them out, which gives a wheel for any platform (py3-none-any).
"""

import os
import sys

from setuptools import Extension, setup

KERNELS = os.environ.get("REPLICA_PLACEMENT_KERNELS", "optional")
if KERNELS not in ("optional", "required", "none"):
    sys.exit(f"REPLICA_PLACEMENT_KERNELS={KERNELS!r}: expected optional, required or none")

SOURCES = [
    "client_loops",
    "closest_assignment",
    "context",
    "incumbent",
    "inner_minimum",
    "lagrangean_bound",
    "leader_costs",
    "leader_tree",
    "python/module",
    "python/read_families",
    "root_bounds",
    "shared_bounds",
    "site_families",
    "tree_node",
    "waits/ball_cases",
    "waits/interval_waits",
    "waits/case_search",
    "waits/wait_cases",
]
SCENARIOS = [
    "client_loops",
    "python/read_families",
    "scenarios/binding",
    "scenarios/late",
    "scenarios/losses",
    "scenarios/threshold_bound",
    "scenarios/threshold_tree",
    "site_families",
]
BUFFERS = "formulations/csrc/buffers.c"
BUFFER_HEADERS = ["formulations/csrc/buffers.h", "formulations/csrc/owned_memory.h"]
# Python's own flags make integers wrap around, which keeps GCC from vectorising loops over int
# indices (the kernel is half as fast then). Nothing here overflows: random bits are unsigned.
# Hidden names cannot be taken for those of the C library, as a function `open_tree` once was.
# A function that no header declares must end the build: linked, the kernel would not load, and
# slower code would answer in its place without a word.
FLAGS = (
    []
    if sys.platform == "win32"
    else [
        "-O3",
        "-fno-math-errno",
        "-fno-wrapv",
        "-ffp-contract=off",
        "-fvisibility=hidden",
        "-Werror=implicit-function-declaration",
    ]
)


def kernel(name: str, sources: list[str], **more: list[str]) -> Extension:
    """Return a compiled module, with what all of them have."""
    return Extension(
        name, sources, extra_compile_args=FLAGS, py_limited_api=True,
        optional=KERNELS == "optional", **more,
    )  # fmt: skip


kernels = [
    kernel(
        "formulations.exact._kernel",
        [BUFFERS, *(f"formulations/exact/csrc/{name}.c" for name in SOURCES)],
        depends=[
            f"formulations/exact/csrc/{name}.h"
            for name in (
                "context",
                "event_stream",
                "kernel",
                "python/read_families",
                "site_families",
                "tuning",
                "waits/greedy_choice",
                "waits/wait_data",
            )
        ]
        + BUFFER_HEADERS,
        include_dirs=[
            "formulations/csrc",
            "formulations/exact/csrc",
            "formulations/exact/csrc/python",
        ],
        extra_link_args=[] if sys.platform == "win32" else ["-pthread"],
    ),
    kernel(
        "formulations.exact._scenarios",
        [BUFFERS, *(f"formulations/exact/csrc/{name}.c" for name in SCENARIOS)],
        depends=[
            f"formulations/exact/csrc/{name}.h"
            for name in (
                "context",
                "event_stream",
                "kernel",
                "tuning",
                "python/read_families",
                "scenarios/late",
                "scenarios/losses",
                "scenarios/scenario",
                "site_families",
            )
        ]
        + BUFFER_HEADERS,
        include_dirs=[
            "formulations/csrc",
            "formulations/exact/csrc",
            "formulations/exact/csrc/python",
            "formulations/exact/csrc/scenarios",
        ],
    ),
    kernel(
        "formulations.quorumstore._kernel",
        [
            BUFFERS,
            *(
                f"formulations/quorumstore/csrc/{name}.c"
                for name in ("module", "set_search", "prefix_tree", "screening", "exact_figures")
            ),
        ],
        depends=["formulations/quorumstore/csrc/quorum.h", *BUFFER_HEADERS],
        include_dirs=["formulations/csrc"],
    ),
    kernel(
        "formulations.waits._kernel",
        [BUFFERS, "formulations/waits/csrc/sets.c"],
        depends=BUFFER_HEADERS,
        include_dirs=["formulations/csrc"],
    ),
    kernel(
        "heuristics.online.selection._kernel",
        ["heuristics/online/selection/csrc/selection.c"],
    ),
    kernel(
        "placement.proof._pair_sums",
        ["placement/proof/csrc/pair_sums.c"],
    ),
    kernel(
        "placement.tail._error_function",
        ["placement/tail/csrc/error_function.c"],
    ),
]

setup(
    ext_modules=[] if KERNELS == "none" else kernels,
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
