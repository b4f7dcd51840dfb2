"""Feeds: RTTs and demand as tools, dashboards and clouds write them."""
