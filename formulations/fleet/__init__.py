"""Plans of fleets with a proven gap, by column generation over the exact search."""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
