"""Systems that decide at run time: what they share, and one package per system.

``selection`` chooses the replica that serves a read, ``reads`` leader or majority, ``dynamic`` the
sites of extra copies. Each has a frozen problem and a simulator whose randomness is drawn
beforehand. Policies live in ``heuristics.online``, proofs in ``formulations.online``.
"""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
