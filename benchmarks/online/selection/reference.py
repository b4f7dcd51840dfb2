"""Reference values for replica selection, by an independent implementation (10 or 5 seeds).

They were measured apart from this project, with another program, for the same setting: 600,000
reads, 50 servers of 4 slots, 150 clients, utilisation 0.7. GRID: integer-millisecond arrivals,
reads of the first 2000 ms dropped; {T: {policy: {statistic: (mean over seeds, deviation)}}}.
"""

from __future__ import annotations

__all__ = ["GRID", "ORIGINAL", "POISSON", "SETTINGS"]

_STATISTICS = ("mean", "p50", "p95", "p99", "p999")
_GRID = """
10 ECTF 3.6 0.0 2.9 0.0 9.1 0.1 13.6 0.1 21.8 0.2
10 ORA 4.6 0.0 3.5 0.0 12.3 0.2 19.7 0.3 29.8 0.6
10 C3 10.8 0.1 8.6 0.1 28.6 0.3 39.4 0.5 52.4 1.1
10 LOR 12.9 0.2 10.2 0.2 34.2 0.5 47.0 1.1 63.3 2.5
10 RR 19.3 0.6 13.6 0.4 57.1 2.5 86.5 5.3 121.7 12.9
50 ECTF 4.6 0.2 2.9 0.1 14.7 1.0 23.0 1.2 32.8 2.6
50 ORA 5.2 0.3 3.2 0.1 16.6 1.1 28.5 1.9 45.5 3.5
50 C3 15.9 0.6 7.0 0.4 55.2 1.7 78.1 2.5 103.4 4.2
50 LOR 20.8 0.8 12.6 0.7 68.5 2.2 96.0 3.4 125.8 5.5
50 RR 42.0 3.0 26.1 1.9 137.8 10.1 218.4 37.0 317.2 57.9
100 ECTF 6.0 0.5 3.1 0.2 22.9 2.4 37.2 4.1 55.5 8.1
100 ORA 6.6 0.5 3.3 0.2 24.7 2.5 45.2 5.1 76.0 10.3
100 C3 19.3 1.0 5.9 0.4 75.5 3.3 109.8 5.5 149.5 11.2
100 LOR 28.7 1.3 12.7 1.2 103.4 3.7 144.8 6.0 192.6 10.4
100 RR 77.2 6.2 46.4 3.3 258.6 20.6 417.0 101.9 551.1 144.9
200 ECTF 8.0 1.5 3.1 0.3 35.1 7.2 60.1 10.6 91.8 23.2
200 ORA 8.6 1.5 3.3 0.3 36.5 7.2 71.1 13.5 122.0 27.7
200 C3 20.8 2.4 5.0 0.6 92.2 8.9 141.7 16.6 206.8 30.0
200 LOR 37.4 2.6 10.3 2.2 144.5 8.1 203.9 13.9 276.9 29.7
200 RR 138.2 8.9 81.2 7.1 467.2 35.9 773.4 189.0 1023.7 280.2
300 ECTF 10.1 2.9 3.1 0.3 48.6 14.5 86.2 23.7 119.5 31.8
300 ORA 10.7 2.9 3.3 0.3 49.8 14.3 100.7 28.8 162.2 51.4
300 C3 21.9 4.0 4.6 0.6 105.8 16.2 172.6 31.9 253.4 54.5
300 LOR 43.8 4.7 9.7 2.5 176.9 16.1 263.0 30.9 345.1 46.4
300 RR 189.6 13.8 112.8 11.5 643.8 57.5 1061.0 240.3 1345.5 277.0
500 ECTF 13.2 3.7 2.9 0.2 73.8 23.0 126.9 24.4 174.0 35.3
500 ORA 14.0 3.9 3.2 0.3 75.8 23.9 145.0 34.8 248.8 58.2
500 C3 24.0 4.6 4.1 0.4 128.0 24.9 219.6 35.8 345.4 59.1
500 LOR 50.9 6.1 8.7 1.8 220.8 28.2 338.8 40.4 467.2 59.2
500 RR 270.3 19.3 160.4 22.1 927.6 77.0 1487.9 190.0 1949.8 401.8
"""


def _grid() -> dict[int, dict[str, dict[str, tuple[float, float]]]]:
    table: dict[int, dict[str, dict[str, tuple[float, float]]]] = {}
    for line in _GRID.split("\n"):
        if line:
            epoch, policy, *numbers = line.split()
            pairs = list(zip(map(float, numbers[::2]), map(float, numbers[1::2]), strict=True))
            table.setdefault(int(epoch), {})[policy] = dict(zip(_STATISTICS, pairs, strict=True))
    return table


GRID = _grid()

POISSON: dict[int, dict[str, tuple[float, float | None]]] = {
    epoch: {
        "C3/ORA p99": (values[0], values[1]),
        "LOR/C3 p99": (values[2], values[3]),
        "LOR/C3 mean": (values[4], None),
    }
    for epoch, values in {
        10: (2.05, 0.04, 1.18, 0.02, 1.18),
        50: (2.84, 0.16, 1.23, 0.01, 1.29),
        100: (2.51, 0.17, 1.29, 0.02, 1.45),
        200: (2.08, 0.17, 1.37, 0.03, 1.71),
        300: (1.82, 0.20, 1.43, 0.04, 1.88),
        500: (1.57, 0.12, 1.45, 0.07, 1.99),
    }.items()
}
"""Exponential arrivals, nothing dropped: paired ratios over 10 seeds, mean and deviation."""

SETTINGS: dict[tuple[int, float, int], tuple[float, float, float, float]] = {
    (150, 0.45, 10): (12.9, 20.2, 20.7, 21.6),
    (150, 0.45, 100): (13.1, 33.5, 43.3, 70.9),
    (150, 0.45, 500): (13.1, 28.1, 61.7, 242.7),
    (300, 0.7, 10): (19.6, 45.3, 55.3, 90.2),
    (300, 0.7, 100): (46.2, 145.4, 182.8, 417.9),
    (300, 0.7, 500): (128.3, 266.3, 419.6, 1540.8),
    (300, 0.45, 10): (12.9, 20.8, 21.1, 21.7),
    (300, 0.45, 100): (13.1, 43.3, 52.3, 72.3),
    (300, 0.45, 500): (13.1, 47.3, 86.4, 233.6),
}
"""(clients, utilisation, T) -> p99 of ORA, C3, LOR, RR; 5 seeds."""

ORIGINAL: dict[tuple[int, str], tuple[float, float]] = {
    (10, "ORA"): (4.6, 19.3),
    (10, "C3"): (10.8, 39.5),
    (10, "LOR"): (12.9, 48.0),
    (10, "RR"): (19.0, 90.2),
    (100, "ORA"): (6.4, 41.5),
    (100, "C3"): (19.3, 110.0),
    (100, "LOR"): (26.7, 137.1),
    (100, "RR"): (58.7, 309.3),
    (500, "ORA"): (24.2, 211.4),
    (500, "C3"): (32.9, 330.8),
    (500, "LOR"): (43.6, 333.0),
    (500, "RR"): (260.1, 1422.9),
}
"""(T, policy) -> mean and p99 of one run of the authors' own simulator (absim, commit c5d5488)."""
