#!/bin/bash
# xarray 2026.9.0 and zarr 3.1.6: in a store of Zarr's format 2 the fill value is for xarray the mark of a missing value too, and
# it is 0 unless one asks for another. All zeros that were stored come back as NaN. A matrix of RTTs loses its diagonal,
# so no site reaches itself, means leave the zeros out, and whole numbers become floats.
#
# Guess before the run: xarray reads the values that zarr stored, in both formats, whole numbers as whole numbers.
# Seen: of three sites the format 3 has 0 on the diagonal and a mean of 10; the format 2 has NaN and a mean of 15. zarr itself
# reads 0 in both.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check xarray==2026.9.0 zarr==3.1.6 numpy==2.4.6
cat > ask.py <<'PY'
import sys

import numpy as np
import xarray
import zarr

rtt = np.array([[0, 10, 20], [10, 0, 15], [20, 15, 0]])
found = []
for form in (2, 3):
    group = zarr.open_group(f"rtts.{form}", mode="w", zarr_format=form)
    array = group.create_array("rtt", data=rtt, dimension_names=["from", "to"] if form == 3 else None)
    if form == 2:  # where xarray keeps the names of the dimensions in this format
        array.attrs["_ARRAY_DIMENSIONS"] = ["from", "to"]
    read = xarray.open_zarr(f"rtts.{form}", consolidated=False)["rtt"]
    found.append((bool((array[:] == rtt).all()), np.diag(read.values).tolist(), str(read.dtype), float(read.mean())))
    kept, *seen = found[-1]
    print(f"xarray {xarray.__version__}, zarr {zarr.__version__}, format {form}: zarr right {kept}, by xarray", *seen)
(two_kept, hidden, kind, mean), three = found
lost = two_kept and np.isnan(hidden).all() and (kind, mean) == ("float64", 15.0)
sys.exit(0 if lost and three == (True, [0, 0, 0], "int64", 10.0) else "the behaviour has changed")
PY
env/bin/python ask.py
