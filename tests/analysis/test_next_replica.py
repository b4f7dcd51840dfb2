"""The next replica, a scaled demand and lost sites, by hand and as the pages show them."""

import itertools
import math
import re
import shlex
from pathlib import Path

import pytest

import placement
from placement.analysis.next_replica import LIFTED, counted, next_replicas
from placement.errors import InputError
from placement.io import save_instance
from placement.testing.small_worlds import optimum, random_instance


def priced(seed):
    return random_instance(seed, clients=5, prices=True)


@pytest.mark.parametrize("seed", range(6))
def test_every_row_is_the_best_of_its_sites(seed):
    instance = priced(seed)
    problem = placement.Problem(instance, replicas=3, voters=2)
    plan = placement.solve(problem, "most-writes" if seed % 2 else "exact")
    table = next_replicas(plan)
    operations = problem.demand.operations
    now = plan.mean_latency
    added = {row.site for row in table.itertuples() if row.change == "add"}
    assert added == set(instance.sites) - set(plan.replicas)
    assert {row.site for row in table.itertuples() if row.change == "drop"} == set(plan.replicas)
    for row in table.itertuples():
        if row.change == "present":
            assert (row.leader, row.replica_sites) == (plan.leader, plan.replicas)
            assert row.gain == 0
            continue
        held = set(plan.replicas)
        asked = {
            "roles": plan.replicas, "add": (*plan.replicas, row.site),
            "drop": tuple(held - {row.site}), "best": 3, "best with one more": 4,
        }[row.change]  # fmt: skip
        assert row.status == "optimal"
        assert math.isclose(
            row.mean_latency, optimum(problem.replace(replicas=asked)) / operations, abs_tol=1e-9
        )
        assert math.isclose(row.gain, now - row.mean_latency, abs_tol=1e-9)
        cost = sum(
            instance.prices.storage[s] + 2.0 * instance.prices.transfer[
                instance.sites.index(row.leader), s]
            for s in map(instance.sites.index, row.replica_sites)
        )  # fmt: skip
        assert math.isclose(row.cost_change, cost - plan.cost, abs_tol=1e-9)
    for _, rows in itertools.groupby(table.itertuples(), key=lambda row: row.change):
        gains = [row.gain for row in rows]
        assert gains == sorted(gains, reverse=True)


def test_the_constraints_of_the_plan_hold_for_every_row():
    instance = priced(11)
    first, second = instance.sites[:2]
    problem = placement.Problem(
        instance, replicas=3, voters=3, pinned=[first], forbidden=[second], budget=1e6
    )
    table = next_replicas(placement.solve(problem, "exhaustive"))
    assert second not in set(table[table.change == "add"].site)
    assert first not in set(table[table.change == "drop"].site)
    assert "drop" not in set(table.change)  # two replicas have no place for three voters


def test_a_replica_at_a_lost_site_is_gone():
    instance = priced(3)
    plan = placement.solve(placement.Problem(instance, replicas=4, voters=2))
    lost = plan.replicas[0]
    table = next_replicas(plan, placement.without_sites(instance, [lost]))
    assert set(table.change) == {"roles", "add", "drop", "best", "best with one more"}
    assert lost not in {site for row in table.replica_sites for site in row}
    assert table.gain.isna().all()
    other = next(site for site in instance.sites if site not in plan.replicas)
    table = next_replicas(plan, placement.without_sites(instance, [other]))
    now = table[table.change == "present"].iloc[0]
    assert math.isclose(now.mean_latency, plan.mean_latency)


@pytest.mark.parametrize("seed", range(8))
def test_without_sites_is_to_forbid_them(seed):
    instance = priced(seed)
    gone = [instance.sites[1], instance.sites[4]]
    rest = placement.without_sites(instance, gone)
    assert set(rest.sites) == set(instance.sites) - set(gone)
    assert rest.clients == instance.clients
    for more in ({}, {"cost_weight": 3.0}):
        one = placement.solve(placement.Problem(rest, replicas=3, voters=2, **more))
        other = placement.solve(
            placement.Problem(instance, replicas=3, voters=2, forbidden=gone, **more)
        )
        assert math.isclose(one.objective, other.objective, rel_tol=1e-12)
        assert (one.leader, one.replicas) == (other.leader, other.replicas)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda i: placement.scale_demand(i, {"nobody": 2}), "clients"),
        (lambda i: placement.scale_demand(i, {i.clients[0]: -1}), "factors"),
        (lambda i: placement.scale_demand(i, {i.clients[0]: math.nan}), "factors"),
        (lambda i: placement.without_sites(i, ["nowhere"]), "sites"),
        (lambda i: placement.without_sites(i, i.sites), "sites"),
        (lambda i: next_replicas(placement.Plan.infeasible(
            placement.Problem(i, replicas=3, voters=2), method="x", reasons=())), "plan"),
    ],
)  # fmt: skip
def test_bad_input_names_the_field(call, field):
    with pytest.raises(InputError) as error:
        call(priced(1))
    assert field in str(error.value)


def test_the_command(command, tmp_path):
    instance = priced(4)
    save_instance(instance, tmp_path / "mine")
    folder, plan = tmp_path / "mine", tmp_path / "plan.json"
    assert command("solve", folder, "--replicas", 3, "--voters", 2, "-o", plan).code == 0
    text = command("next", folder, "--from", plan)
    assert text.code == 0
    assert "as it is" in text.out
    assert "cost USD" in text.out
    rows = command("next", folder, "--from", plan, "--json").document["rows"]
    assert rows[0]["change"] == "present"
    client = instance.clients[0]
    grown = command(
        "next", folder, "--from", plan, "--scale-demand", f"{client}=9", "--json"
    ).document
    assert grown["rows"][0]["mean_latency"] != rows[0]["mean_latency"]
    for options, words in (
        (("--scale-demand", "x"), "--scale-demand"),
        (("--scale-demand", "nobody=2"), "nobody"),
        (("--scale-demand", f"{client}=2", "--scale-demand", f"{client}=3"), "twice"),
        (("--without", "nowhere"), "--without"),
    ):
        bad = command("next", folder, "--from", plan, *options)
        assert bad.code == 1
        assert words in bad.err


def test_a_plan_of_a_changed_instance_carries_it(command, tmp_path):
    save_instance(priced(4), tmp_path / "mine")
    plan = tmp_path / "plan.json"
    gone = priced(4).sites[0]
    outcome = command("solve", tmp_path / "mine", "--replicas", 3, "--voters", 2,
                  "--without", gone, "-o", plan)  # fmt: skip
    assert outcome.code == 0
    assert gone not in placement.io.load_plan(plan).problem.instance.sites
    assert command("check", plan).code == 0


def test_rules_of_the_plan_hold_until_they_are_lifted(command, tmp_path):
    """A pinned plan has nothing to gain, and the output says why."""
    save_instance(priced(4), tmp_path / "mine")
    folder, plan = tmp_path / "mine", tmp_path / "plan.json"
    best = placement.solve(placement.Problem(priced(4), replicas=2, voters=1))
    worse = [site for site in priced(4).sites if site not in best.replicas][:2]
    pinned = ("--pin", ",".join(worse), "--leader", worse[0])
    assert command("solve", folder, "--replicas", 2, "--voters", 1, *pinned, "-o", plan).code == 0
    asked = ("next", folder, "--from", plan, "--moves")
    held = command(*asked)
    assert f"pinned: {worse[0]}, {worse[1]}" in held.out
    assert [row["changes"] for row in command(*asked, "--json").document["rows"]] == [0]
    for lifted in ("pins,leader", "all"):
        rows = command(*asked, "--lift", lifted, "--json").document["rows"]
        assert rows[-1]["mean_latency"] == pytest.approx(best.mean_latency)
        assert rows[-1]["gain"] > 0
    dear = command(*asked, "--lift", "all", "--move-price", "1e6", "--json").document["rows"]
    assert [row["gain"] for row in dear] == [0]
    assert "no such rule" in command(*asked, "--lift", "pin").err
    assert "--moves as well" in command(*asked[:-1], "--move-price", 3).err
    for name in LIFTED:
        assert f"{name}," in " ".join(command("next", "--help").out.split())


def test_sites_by_name_say_what_runs_and_not_that_they_must_stay():
    instance = priced(4)
    best = placement.solve(placement.Problem(instance, replicas=2, voters=2))
    names = [site for site in instance.sites if site not in best.replicas][:2]
    named = placement.Problem(instance, replicas=names, voters=names)
    plan = placement.solve(named)
    table = next_replicas(plan)
    assert table[table["change"] == "best"]["mean_latency"].iloc[0] == best.mean_latency
    assert counted(named).rules.replicas_max == 2
    assert (table["change"] == "add").sum() == len(instance.sites) - 2


def test_a_row_without_a_plan_has_no_leader(command, tmp_path):
    """Without the only site of its region the plan does not survive the loss of one."""
    instance = priced(4)
    regions = ("a", "b", *("c" for _ in instance.sites[2:]))
    save_instance(instance.replace(domains={"region": regions}), tmp_path / "world")
    plan = tmp_path / "plan.json"
    asked = ("--replicas", 4, "--voters", 3, "--survive", "region", "-o", plan)
    assert command("solve", tmp_path / "world", *asked).code == 0
    shown = command("next", tmp_path / "world", "--from", plan).out
    lines = [line for line in shown.splitlines() if "infeasi" in line]
    assert lines
    assert all(line.split()[-1] == "–" for line in lines)


DOCS = Path(__file__).resolve().parents[2] / "docs"


def commands(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(r"^    placement (.+world27.+)$", text, flags=re.MULTILINE), text


def without_seconds(table):
    """Rows of a table as words; the second to last number column, seconds, differs by run."""
    return [re.sub(r"\d+\.\d{2,3}(?=\s+\S[^.]*$)", "s", line).split() for line in table if line]


def test_the_tables_are_what_is_printed(command):
    shown, text = commands("compare-and-sweep.md")
    assert [line.split()[0] for line in shown] == ["compare", "compare"]
    for line in shown:
        outcome = command(*shlex.split(line))
        assert outcome.code == 0
        after = text.split(line, 1)[1].lstrip("\n").split("\n\n", 1)[0]
        rows = [line[4:] for line in after.splitlines()]
        printed = outcome.out.splitlines()
        start = next(i for i, line in enumerate(printed) if line.split()[:1] == rows[0].split()[:1])
        assert without_seconds(rows) == without_seconds(printed[start : start + len(rows)])


def test_the_conflict_is_what_is_printed(command):
    shown, text = commands("infeasible.md")
    outcome = command(*shlex.split(shown[0]))
    assert outcome.code == 2
    first = text.split("\n> ", 1)[1].split("\n\n", 1)[0]
    quoted = first.replace("\n> ", " ")
    assert quoted in " ".join(outcome.out.split())


def test_the_proof_is_what_is_printed(command, tmp_path):
    (_, line), text = commands("infeasible.md")
    solve, file = line.split(" > ")
    (tmp_path / file).write_text(command(*shlex.split(solve)).out)
    outcome = command("check", tmp_path / file)
    assert outcome.code == 0
    after = text.split(f"    placement check {file}\n", 1)[1].split("\n\n", 2)[1]
    assert [line[4:] for line in after.splitlines()] == outcome.out.splitlines()
