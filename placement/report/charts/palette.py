"""Colours with one meaning each, on the page and in the figures.

Okabe and Ito's palette, which people with any of the common colour deficiencies can tell apart
(https://jfly.uni-koeln.de/color/); each role has a different shape as well, so that no meaning
hangs on colour alone.
"""

from __future__ import annotations

from types import MappingProxyType

ROLES = MappingProxyType(
    {
        "leader": "#c2410c",
        "voter": "#0067a5",
        "replica": "#00795b",
        "site": "#8a8f98",
        "client": "#b8860b",
        "plan": "#0067a5",
        "naive": "#c2410c",
        "average": "#8a5a83",
        "normal": "#0067a5",
        "lost": "#c2410c",
    }
)
"""Role -> colour on a light ground, at least 4.5:1 against white (sites and clients: 3:1)."""

ROLES_DARK = MappingProxyType(
    {
        "leader": "#ff9a62",
        "voter": "#6cb8f0",
        "replica": "#4fd0a5",
        "site": "#8a93a3",
        "client": "#e0b84c",
        "plan": "#6cb8f0",
        "naive": "#ff9a62",
        "average": "#d7a3cf",
        "normal": "#6cb8f0",
        "lost": "#ff9a62",
    }
)
"""Colours of these roles on a dark ground."""

LATENCY = ("#f2d48f", "#e3b04b", "#c98a1b", "#9c640c", "#6b4208")
"""Five steps from quick to slow, one hue, darker is slower."""

LATENCY_DARK = ("#5e4a1f", "#8a6a22", "#b98d2c", "#e0b84c", "#fbe6ae")
"""Five steps on a dark ground, lighter is slower."""

METHODS = (
    "#0067a5",
    "#c2410c",
    "#00795b",
    "#8a5a83",
    "#b8860b",
    "#3d8fbf",
    "#d1586d",
    "#5b6770",
    "#7a9a01",
    "#4b4fa5",
)
"""Series of a chart, in their order; lines differ by dash and mark as well."""
