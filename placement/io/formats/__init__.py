"""File formats: JSON and TOML documents, CSV and Parquet tables, whole-file writes."""
