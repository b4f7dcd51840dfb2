"""Staged migration of leaders: how the latency changes while groups of leaders move in steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.support.lazy import lazy_names

if TYPE_CHECKING:
    from placement.overtime.migration.simulate import LeaderMigration, migrate

__all__ = ["LeaderMigration", "migrate"]

__getattr__, __dir__ = lazy_names(
    __name__, {"placement.overtime.migration.simulate": ("LeaderMigration", "migrate")}
)
