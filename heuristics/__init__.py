"""Fast methods: one module per algorithm of the literature, and ours."""
