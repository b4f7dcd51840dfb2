"""Languages of configurations as text: SQL and YAML, quoted and taken apart."""
