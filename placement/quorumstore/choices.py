"""Checks that an option is one of a closed set."""

from __future__ import annotations

from enum import Enum

from placement.errors import InputError

__all__ = ["check_member"]


def check_member(value: object, kind: type[Enum], field: str) -> None:
    """Refuse anything but a member of `kind`, strings included: typos must not pass silently."""
    if not isinstance(value, kind):
        names = ", ".join(f"{kind.__name__}.{member.name}" for member in kind)
        raise InputError("unknown choice", field=field, value=value, expected=names)
