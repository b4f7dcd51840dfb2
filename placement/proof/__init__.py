"""Independent checks of certificates in exact arithmetic."""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
