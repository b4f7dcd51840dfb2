"""The page of the explorer: controls, map and panels, which the script fills with answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources

from placement.databases.system import available
from placement.explore.jobs import Explorer, operation_shares
from placement.explore.question import DEFAULT_SPREAD
from placement.model.instance import Instance
from placement.report.charts.markup import Child, Markup, json_script, tag
from placement.report.map.svg_map import map_legend, map_view, reads_switch, svg_map
from placement.report.page import html_document, report_script, style_sheet

_SCRIPTS = ("explore.js", "panels.js")
"""Modules of the page; the first imports the second."""

_MEASURES = (
    "mean", "p99", "p99(writes)", "mean(reads)", "mean(writes)", "slowest client",
    "mean after the loss of any site", "within 100 ms", "replicas",
)  # fmt: skip
"""Measures that the field proposes."""


def page_files(explorer: Explorer) -> dict[str, tuple[str, str]]:
    """Return name -> (content, media type) of the files of the page; "" is the page itself."""
    here = resources.files("placement.explore")
    style = (here / "explore.css").read_text(encoding="utf-8")
    scripts = {name: (here / name).read_text(encoding="utf-8") for name in _SCRIPTS}
    return {
        "": (_document(explorer), "text/html"),
        "style.css": (style_sheet() + style, "text/css"),
        **{name: (script, "text/javascript") for name, script in scripts.items()},
        "script.js": (report_script(), "text/javascript"),
    }


def _document(explorer: Explorer) -> str:
    instance = explorer.instance
    title = f"Explore {instance.name}"
    head = [
        Markup('<link rel="stylesheet" href="style.css"><link rel="icon" href="data:,">'),
        Markup('<script src="script.js" defer></script>'),
        Markup('<script src="explore.js" type="module"></script>'),
    ]
    rtt = instance.client_rtt if instance.client_rtt.ndim == 2 else instance.client_rtt[0]
    nearest = rtt.argmin(axis=1)
    regions: dict[str, list[int]] = {}  # the clients that are nearest to a site of a domain
    for level, labels in instance.domains.items():
        if 2 <= len({label for label in labels if label}) <= 12:
            for client, site in enumerate(nearest):
                if labels[site] is not None:
                    regions.setdefault(f"{level} {labels[site]}", []).append(client)
    body = [
        tag("a", {"class": "skip", "href": "#answer"}, "Skip to the answer"),
        tag(
            "header",
            None,
            tag("h1", None, tag("bdi", None, title)),
            tag("p", {"class": "tools"}, _button("undo", "Undo", disabled=""),
                _button("open", "Open a file", title="a question.toml, or a table of demand"),
                _button("get-question", "Save the question"),
                _input("load", "file", accept=".toml,.csv,.tsv", hidden="",
                       **{"aria-label": "Question or demand"}),
                _button("link", "Copy link"), _button("reset", "Start again"),
                _button("theme", "Dark or light")),
        ),
        tag("main", {"class": "explore"}, _answer(explorer), _controls(instance),
            _panels(instance)),
        json_script("data", {
            "name": instance.name,
            "sites": list(instance.sites),
            "clients": list(instance.clients),
            "intervals": list(instance.intervals),
            "regions": regions,
            "shares": operation_shares(instance),
            "prices": instance.prices is not None,
            "spread": DEFAULT_SPREAD,
            "start": explorer.start,
        }),
    ]  # fmt: skip
    return html_document(title, head, body)


def _button(identifier: str, words: str, **more: str) -> Markup:
    return tag("button", {"type": "button", "id": identifier, **more}, words)


def _field(identifier: str, words: str, control: Markup, note: str = "") -> Markup:
    """Return a labelled control."""
    return tag(
        "p",
        {"class": "field", "id": f"{identifier}-field"},
        tag("label", {"for": identifier}, words),
        control,
        tag("small", None, note) if note else None,
    )


def _input(identifier: str, kind: str, key: str = "", **more: str) -> Markup:
    """Return an input; `key` is that of the question which it holds."""
    held = {"data-key": key} if key else {}
    return tag("input", {"type": kind, "id": identifier, **held, **more})


def _select(identifier: str, options: Sequence[tuple[str, str]], key: str = "") -> Markup:
    return tag(
        "select",
        {"id": identifier, "data-key": key or None},
        [tag("option", {"value": value}, words) for value, words in options],
    )


def _group(title: str, *content: Child) -> Markup:
    return tag("fieldset", None, tag("legend", None, title), *content)


def _controls(instance: Instance) -> Markup:
    most = str(len(instance.sites))
    levels = [(level, f"any one {level}") for level in instance.levels]
    known = [*_MEASURES, *(["cost"] if instance.prices is not None else [])]
    weight = None
    if instance.prices is not None:
        weight = _input("weight", "number", "cost_weight", min="0", step="any",
                        placeholder="0")  # fmt: skip
    question = _group(
        "Question",
        _field("replicas", "Replicas", _input("replicas", "number", "replicas",
               min="1", max=most, required="")),
        _field("voters", "Voters", _input("voters", "number", "voters", min="1",
               max=most, required="")),
        _field("quorum", "Quorum", _input("quorum", "number", "quorum", min="1", max=most,
               placeholder="majority")),
        _field("survive", "Survive", _select("survive", [("", "no rule"), *levels],
               "survive")),
        _field("minimise", "Minimise", _input("minimise", "text", placeholder="mean",
               list="measures")),
        tag("datalist", {"id": "measures"}, [tag("option", {"value": name}) for name in known]),
        tag("p", {"class": "head", "id": "limits-head"}, "Limits on measures"),
        tag("ul", {"id": "limits", "class": "rows", "aria-labelledby": "limits-head"}),
        _button("add-limit", "Add a limit"),
        _field("spread", "Spread of RTTs", _input("spread", "number", "spread", min="0", max="3",
               step="0.05", required=""), "standard deviation, relative to the RTT"),
        weight and _field("weight", "Weight of cost", weight, "ms·operations per unit of money"),
    )  # fmt: skip
    moves = _group(
        "Moves",
        tag("p", {"id": "present", "class": "note"}),
        _button("runs", "The shown plan runs today"),
        tag("small", None, "a replica or a vote that moves is two changes; another leader is one"),
    )  # fmt: skip
    mix = _group(
        "Operation mix",
        [
            _field(f"mix-{k}", operation.name, _input(f"mix-{k}", "range", min="0", max="100",
                   step="0.5", **{"data-operation": operation.name}))
            for k, operation in enumerate(instance.operations)
        ],
        _button("mix-reset", "Mix of the instance"),
    )  # fmt: skip
    demand = _group(
        "Demand",
        _field("demand-of", "Client or region", tag("select", {"id": "demand-of"})),
        _field("factor", "Factor", _input("factor", "range", min="0", max="5", step="0.1")),
        tag("p", {"id": "table-of-demand", "class": "note"}),
        tag("ul", {"id": "factors", "class": "chips"}),
        _field("interval", "Hour of day", _input("interval", "range", min="0",
               max=str(len(instance.intervals)), step="1"))
        if len(instance.intervals) > 1 else None,
    )  # fmt: skip
    groups = (question, moves, mix, demand)
    return tag("form", {"id": "controls", "aria-label": "Question"}, groups)


_SITE_RULES = (
    ("pin", "must hold a replica", "r"),
    ("pin_voter", "must vote", "v"),
    ("leader", "must lead", "l"),
    ("forbid", "forbidden", "f"),
    ("lost", "lost", "x"),
)
"""Rule of a site, its words, and its key on the map."""


def _answer(explorer: Explorer) -> Markup:
    view = map_view(explorer.instance, None, explorer.ground)
    caption = f"Map of {len(explorer.instance.sites)} sites and {len(view.clients)} clients"
    rules = [
        tag("button", {"type": "button", "data-rule": rule, "aria-pressed": "false",
                       "aria-keyshortcuts": key, "title": f"on the map: {key}"}, words)
        for rule, words, key in _SITE_RULES
    ]  # fmt: skip
    return tag(
        "div",
        {"id": "answer", "tabindex": "-1"},
        tag("p", {"class": "line"},
            tag("span", {"class": "badge", "id": "status", "role": "status"}, "asking"),
            tag("span", {"id": "took", "class": "made"})),
        tag("p", {"id": "difference", "aria-live": "polite"}),
        tag("p", {"id": "problem", "role": "alert"}),
        tag("div", {"id": "facts"}),
        tag(
            "div",
            {"class": "site-bar", "role": "toolbar", "aria-label": "Rules of a site"},
            tag("label", {"for": "site"}, "Site"),
            _select("site", [("", "choose here or on the map")]),
            rules,
            _button("add", "Add a site", **{"aria-pressed": "false"}),
            _input("where", "text", placeholder="click the map, or type: 48.9, 2.4", hidden="",
                   **{"aria-label": "Latitude and longitude of the new site"}),
        ),
        tag("div", {"class": "map-box"}, svg_map(view, caption=caption)),
        tag("p", {"class": "story", "id": "story", "aria-live": "polite"}),
        tag("details", {"class": "legend-box"}, tag("summary", None, "Legend"), map_legend()),
        reads_switch(),
    )  # fmt: skip


def _panels(instance: Instance) -> Markup:
    """Return the panels below the map; the script fills them."""
    exports = [("", "choose"), *((name, name) for name in available())]
    first = (
        _panel("replicas-panel", "Replicas", tag("div", {"id": "table"}), shown=True),
        _panel("why", "Reasons and next best plans", tag("div", {"id": "why-content"})),
        _panel("curve", "Curve over replicas", tag("div", {"id": "curve-content"})),
        _panel("front", "Money and latency", tag("div", {"id": "front-content"}))
        if instance.prices is not None else None,
    )  # fmt: skip
    second = (
        _panel("clients-panel", "Clients", tag("div", {"id": "clients"}), shown=True),
        _panel("out", "Export",
            tag("p", {"class": "tools"}, _button("get-plan", "plan.json"),
                _button("get-report", "HTML report")),
            _field("database", "Name of the database", _input("database", "text", value="app")),
            _field("system", "Statements for", _select("system", exports)),
            tag("ul", {"id": "notes"}),
            tag("h3", None, "Command line"), tag("pre", {"id": "command", "tabindex": "0"}),
            tag("p", {"id": "cannot", "class": "note"}),
            tag("h3", None, "Python"), tag("pre", {"id": "python", "tabindex": "0"})),
    )  # fmt: skip
    return tag("div", {"class": "panels"},
        tag("div", None, first), tag("div", None, second),
        _panel("everyone", "All clients", tag("div", {"id": "everyone-content"})),
        _panel("tray", "Compare plans", _button("keep", "Keep this plan"),
            tag("ul", {"id": "kept"}), tag("div", {"id": "comparison"})),
    )  # fmt: skip


def _panel(identifier: str, title: str, *content: Child, shown: bool = False) -> Markup:
    attributes: Mapping[str, str | None] = {"id": identifier, "open": "" if shown else None}
    return tag("details", attributes, tag("summary", None, title), *content)
