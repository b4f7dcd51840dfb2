"""Methods: their registry, their options, and `solve`.

The names that a method of another distribution needs can be imported from here.
"""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
