"""``docs/cli.md`` has the verbs and the keys that there are; run as a program, this writes them."""

import re
from pathlib import Path

from placement.cli.dispatch import SHOWN
from placement.question import GROUPS, options_table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "cli.md"


def tables() -> dict[str, str]:
    """Return the text between each pair of marks."""
    verbs = ["| | verb | what it does | example |", "|---|---|---|---|"]
    for group, members in SHOWN.items():
        for verb, (line, example) in members.items():
            verbs.append(f"| {group} | `{verb}` | {line} | `placement {example}` |")
    keys = [f"### {group}\n\n{options_table(group)}" for group in GROUPS]
    return {"verbs": "\n".join(verbs) + "\n", "options": "\n".join(keys)}


def written() -> str:
    text = PAGE.read_text(encoding="utf-8")
    for mark, table in tables().items():
        between = re.compile(rf"(<!-- {mark} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = between.sub(lambda found, table=table: found[1] + table + found[2], text)
    return text


def test_the_page_of_the_command_line_is_that_of_the_schema() -> None:
    assert PAGE.read_text(encoding="utf-8") == written()


if __name__ == "__main__":
    PAGE.write_text(written(), encoding="utf-8")
