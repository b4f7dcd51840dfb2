"""The verbs ``deployment`` and ``export`` of the command line."""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
