"""The two loops that sum the rounded costs of a certificate."""

import pytest

from placement.proof import start_bounds
from placement.proof.costs import detours, rounded_costs
from placement.proof.costs.cheap_pairs import compiled_sums


@pytest.fixture(params=["compiled", "numpy"], scope="module")
def loops(request):
    """Sum by the compiled loops, and by NumPy as where no compiler was at hand."""
    if request.param == "compiled":
        if compiled_sums() is None:
            pytest.skip("no compiled loops here")
        yield request.param
        return
    with pytest.MonkeyPatch.context() as patch:
        for module in (rounded_costs, start_bounds, detours):
            patch.setattr(module, "compiled_sums", lambda: None)
        yield request.param
