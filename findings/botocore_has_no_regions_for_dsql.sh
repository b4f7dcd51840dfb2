#!/bin/bash
# botocore 1.44.8: get_available_regions is an empty list for services that a client can be made for in any region: Aurora
# DSQL (dsql) and DocumentDB elastic clusters. It is also an empty list for a service that does not exist. A planner that
# takes its candidate regions from it has none, or believes that the database is offered nowhere.
#
# Guess before the run: the regions of the service, as for DynamoDB, or an UnknownServiceError as create_client raises.
# Seen: [] for dsql, docdb-elastic and no-such-database; 34 regions for dynamodb. A client of dsql for us-east-1
# has an endpoint.
#
# Needs Python and pip.
set -euo pipefail
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
cd "$T"
python3 -m venv env
env/bin/pip install -q --disable-pip-version-check botocore==1.44.8
cat > ask.py <<'PY'
import sys

import botocore.session

session = botocore.session.get_session()
services = ["dynamodb", "dsql", "docdb-elastic", "no-such-database"]
known = set(session.get_available_services())
regions = {service: (service in known, len(session.get_available_regions(service))) for service in services}
client = session.create_client("dsql", "us-east-1", aws_access_key_id="none", aws_secret_access_key="none")
print("known, number of regions:", regions, "| endpoint of a client of dsql:", client.meta.endpoint_url[:12] + "…")
empty = [service for service, (_, count) in regions.items() if not count]
same = empty == services[1:] and [regions[service][0] for service in services] == [True] * 3 + [False]
sys.exit(0 if same and "dsql" in client.meta.endpoint_url and regions["dynamodb"][1] == 34 else "the behaviour has changed")
PY
env/bin/python ask.py
