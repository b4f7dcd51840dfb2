"""Parts of a commit protocol: its form, a protocol for each kind, shares of each client."""
