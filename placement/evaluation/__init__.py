"""Cost of a configuration: the score (Eq. 1), objectives, voters, breakdowns, losses."""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
