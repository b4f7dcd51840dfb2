#!/bin/bash
# fastparquet 2026.9.0 writes a column of time differences as the type TIME of Parquet, which is a time of day. pyarrow 26.0.1
# reads it as such, and whole days are gone without a word: a replica that lags by 25 hours lags by one.
#
# Guess before the run: pyarrow reads a duration of the same length, or a number.
# Seen: 10 ms, 25 h and 49 h are 00:00:00.010, 01:00 and 01:00; fastparquet reads its own file right.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check fastparquet==2026.9.0 pyarrow==26.0.1 pandas==3.1.1
cat > ask.py <<'PY'
import sys
from datetime import time, timedelta
from importlib.metadata import version

import fastparquet
import pandas as pd
import pyarrow.parquet

lags = [timedelta(milliseconds=10), timedelta(hours=25), timedelta(hours=49)]
fastparquet.write("lags.parquet", pd.DataFrame({"lag": pd.to_timedelta(lags)}))
own = fastparquet.ParquetFile("lags.parquet").to_pandas()["lag"].tolist()
column = pyarrow.parquet.read_table("lags.parquet")["lag"]
read = column.to_pylist()
print(f"fastparquet {version('fastparquet')}:", *own)
print(f"pyarrow {version('pyarrow')}, {column.type}:", *read)
same = own == lags and read == [time(0, 0, 0, 10000), time(1), time(1)]
sys.exit(0 if same else "the behaviour has changed")
PY
env/bin/python ask.py
