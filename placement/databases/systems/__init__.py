"""The systems that come with the package, a module each, and the texts that they share."""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
