"""Operations with waits, and witnesses: parts of the method ``exact``, and the method ``sets``.

exact    waits in the engine, the question of each choice of sites for witnesses, and an enumeration
sets     the method ``sets``: parts, limits, the plan (csrc/sets.c enumerates)
"""
