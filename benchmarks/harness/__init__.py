"""The harness that the studies share: cells, processes, result rows, tables, machine."""
