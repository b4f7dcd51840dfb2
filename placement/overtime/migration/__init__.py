"""Staged migration of leaders: how the latency changes while groups of leaders move in steps."""

from __future__ import annotations

from placement.overtime.migration.simulate import LeaderMigration, migrate

__all__ = ["LeaderMigration", "migrate"]
