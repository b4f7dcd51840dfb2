"""Dynamic replication by votes: copies of hot objects move to where they are read.

Matri, Pérez, Costan, Bougé, Antoniu, "Keeping up with storage: decentralized, write-enabled
dynamic geo-replication", Future Generation Computer Systems 86 (2018).
"""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
