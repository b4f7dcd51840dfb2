"""``placement online``: decisions at run time for sites that are chosen already."""
