"""Plans that stay good after the loss of sites or domains.

Three sites by hand: the instance of :mod:`placement.evaluation.losses`, with replicas and voters at
A, B and C. The sums of ten writes in ms, for each leader:

======  ======  =========  =========  =========
leader  normal  without A  without B  without C
======  ======  =========  =========  =========
A          480        950       1080        480
B          550        950       1080        550
C         1450       1450       1650        480
======  ======  =========  =========  =========

After the loss of the leader the best surviving voter leads. The goals choose as follows.

- ``worst``: A and B both have 1080 as their largest sum. A has the smaller normal one, so A leads.
- ``bounded``, at most 110 ms per write: A and B keep the limit; A is better in normal operation.
- ``weighted`` with p = 0.1 for each loss: A has 0.7 · 480 + 0.1 · (950 + 1080 + 480) = 587.

>>> import placement
>>> from placement import Contingency, Instance, Operation, Problem
>>> rtt = [[0, 30, 90], [30, 0, 70], [90, 70, 0]]
>>> write = Operation("write", direct=1, quorum=1)
>>> names = ["A", "B", "C"]
>>> three = Instance(names, names, rtt, rtt, operations=[write], counts=[[6], [3], [1]])
>>> goals = [
...     Contingency(),
...     Contingency(goal="bounded", limit=110.0),
...     Contingency(goal="weighted", probability=0.1),
... ]
>>> for goal in goals:
...     plan = placement.solve(Problem(three, replicas=3, voters=3, objective=goal))
...     print(goal.goal, plan.leader, round(plan.objective, 6), plan.status.value)
worst A 1080.0 optimal
bounded A 480.0 optimal
weighted A 587.0 optimal
"""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
