"""The p-median problem, where no leader matters: descents, linear relaxation and its tree."""
