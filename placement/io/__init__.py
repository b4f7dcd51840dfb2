"""Files in and out: instances as folders, plans as JSON, RTT tables of many kinds, pandas."""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
