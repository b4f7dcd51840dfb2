"""Votes of sites: given by site, or as a layout for the voters of each plan."""
