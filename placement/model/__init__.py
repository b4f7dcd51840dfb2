"""The model of a placement problem: operations, instances, demand, configurations, constraints."""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
