"""Plans that stay good after the loss of sites or domains."""

from placement.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
