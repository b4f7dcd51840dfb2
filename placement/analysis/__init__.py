"""Questions about several plans: comparison, sweep, sensitivity, next best plans."""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
