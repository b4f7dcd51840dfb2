"""Check of certificates about losses."""
