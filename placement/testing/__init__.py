"""The public conformance suite: what any method must do to be called one.

    from placement.testing import check_method

    def test_my_method():
        check_method("my-method")

or, one test per check::

    @pytest.mark.parametrize("check", placement.testing.CHECKS, ids=lambda check: check.__name__)
    def test_my_method(check):
        check(placement.methods.registry.load_method("my-method"), seed=0)

The method gets small test networks of every kind (ties, one site, asymmetric RTTs, zero demand,
pins, nested and crossing failure domains, flexible quorums, ranges, budgets, decay, RTTs that
vary). Its answers are compared with all configurations. A method may refuse a test network, with a
reason; it may not answer it wrongly.

``check_question`` holds one call on a question of your own against all configurations, with any
limit or start.
"""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
