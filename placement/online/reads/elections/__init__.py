"""Reads of a Raft group while its leaders change: simulated message by message, and checked."""

from placement.online.reads.elections.election_runs import ElectionRun, ElectionSettings, ReadPath
from placement.online.reads.elections.election_simulator import simulate_elections

__all__ = ["ElectionRun", "ElectionSettings", "ReadPath", "simulate_elections"]
