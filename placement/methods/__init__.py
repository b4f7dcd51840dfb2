"""Methods: their registry, their options, and `solve`.

The names that a method of another distribution needs can be imported from here.
"""

from typing import TYPE_CHECKING

from placement.support.lazy import lazy_names

if TYPE_CHECKING:
    from placement.methods.options import Options as Options
    from placement.methods.options import Progress as Progress
    from placement.methods.options import Setting as Setting
    from placement.methods.registry import Method as Method
    from placement.methods.registry import available as available
    from placement.methods.registry import explained as explained
    from placement.methods.registry import load_method as load_method
    from placement.methods.registry import run as run
    from placement.methods.registry import solve as solve
    from placement.methods.registry import up_to_tier as up_to_tier

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "placement.methods.options": ("Options", "Progress", "Setting"),
        "placement.methods.registry": (
            "Method",
            "available",
            "explained",
            "load_method",
            "run",
            "solve",
            "up_to_tier",
        ),
    },
)
