"""Feeds: RTTs and demand in the formats of monitoring systems, tools and clouds.

:mod:`placement.io.feeds.registry` finds the formats (entry points of the group ``placement.feeds``)
and recognises the format of a file by its content.
"""
