"""Answers that stand: what the product answered before it was rebuilt, and what it must answer now.

Four files of lines of JSON, each line a name and its answer: ``library.jsonl`` (questions of the
instance library), ``nodes.jsonl`` (nodes of the exact search), ``verbs.jsonl`` (documents that
commands print) and ``tables.jsonl`` (digests of the committed results). The texts of the exporters
stand in ``tests/databases/golden``. :mod:`tests.golden.__main__` checks, renews and retires lines.
"""
