"""Generator of the tables of docs/COMPATIBILITY.md that say what was compared with Pulsar, and what differs.

Run `python -m tests.tools.generate_comparisons`; a test verifies that the document is up to date. The sources are the
data of the comparisons: the recorded answers and known differences of tests/endpoints, the commands of the theme admin,
and the scenarios of tests/differences.
"""

import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Final

from pulsarbox.server.http.admin_endpoints import Endpoint, endpoints
from tests.differences.__main__ import THEMES, chosen, module_of
from tests.differences.themes.management import admin
from tests.endpoints import facts
from tests.endpoints.known import TABLE, is_about
from tests.endpoints.steps import Step, groups

DOCUMENT: Final = Path(__file__).parents[2] / "docs" / "COMPATIBILITY.md"
END: Final = "<!-- end -->\n"
AREAS: Final = (
    ("topics", r"/admin/v2/(\{domain\}|non-persistent)/.*"),
    ("namespaces", r"/admin/v2/namespaces/.*"),
    ("tenants", r"/admin/v2/tenants.*"),
    ("schemas", r"/admin/v2/schemas/.*"),
    ("transactions", r"/admin/v3/transactions/.*"),
    ("brokers", r"/admin/v2/(brokers|broker-stats).*"),
    ("resource groups", r"/admin/v2/resourcegroups.*"),
    ("clusters", r"/admin/v2/clusters.*"),
    ("bookies, resource quotas, metadata", r"/admin/v2/(bookies|resource-quotas|metadata).*"),
    ("functions, sources, sinks, workers", r"/admin/v[23]/(functions|sources?|sinks?|worker|worker-stats)(/.*)?"),
    ("packages", r"/admin/v3/packages/.*"),
)
"""Areas of the Admin API, with their paths."""
CLIENTS: Final = (
    ("protocol", r"\.wire\(|coordinator\("),
    ("Python", r"\.client\(|differences\.clients"),
    ("Go", r"tests\.tools\.go"),
    ("HTTP", r"asked\(|broker\.admin\("),
    ("`pulsar-admin`", r"said\("),
)
"""Clients of a scenario, with what their use looks like in its theme."""
_COMMAND: Final = re.compile(r'"f?([a-z-]+) ([a-z][a-zA-Z-]+)[ "]')
_GROUPS: Final = ("tenants", "namespaces", "topics", "brokers", "clusters", "schemas", "transactions", "resourcegroups")


def area_of(row: Endpoint) -> str:
    """Return the area of an endpoint. Raises StopIteration for an endpoint of none."""
    return next(name for name, path in AREAS if re.fullmatch(path, row.path))


def endpoint_table() -> str:
    """Return the number of endpoints, compared endpoints and known differences of each area."""
    recorded = facts.read()
    steps = [step for group in groups() if group.name in recorded for step in group.steps]
    compared = {step.full_name for step in steps}
    lines = ["| Area | endpoints | supported | compared | requests | equal in all states |", f"|{'---|' * 6}"]
    for area, _ in AREAS:
        rows = [row for row in endpoints() if area_of(row) == area]
        names = {f"{row.method} {row.path}" for row in rows if row.served} & compared
        asked = [step for step in steps if step.full_name in names]
        differing = {step.full_name for step in asked if _may_differ(step)}
        lines.append(
            f"| {area} | {len(rows)} | {sum(row.served for row in rows)} | {len(names)} | {len(asked)} "
            f"| {len(names - differing)} |"
        )
    return "\n".join(lines) + "\n"


def _may_differ(step: Step) -> bool:
    """Return whether a row of the known differences is about the request, apart from rows about all endpoints."""
    return any(is_about(row, step) for row in TABLE if row.requests != ".*")


def difference_table() -> str:
    """Return the known differences of supported endpoints."""
    served = [step for group in groups() for step in group.steps if step.endpoint.served]
    known = [row for row in TABLE if any(is_about(row, step) for step in served)]
    rows = dict.fromkeys((row.what, row.of_pulsar, row.of_box, row.why) for row in known)
    lines = ["| Subject | Apache Pulsar | pulsarbox | reason |", "|---|---|---|---|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def command_table() -> str:
    """Return the commands of pulsar-admin that were compared, by group."""
    found = sorted(set(_COMMAND.findall(Path(admin.__file__).read_text("utf-8"))))
    rows = [(group, name) for group, name in found if group in _GROUPS and name != "nonsense"]
    lines = ["| `pulsar-admin` | compared commands |", "|---|---|"]
    for group, members in groupby(rows, lambda each: each[0]):
        lines.append(f"| `{group}` | {', '.join(f'`{name}`' for _, name in members)} |")
    return "\n".join(lines) + "\n"


def feature_table() -> str:
    """Return the features that were compared: the themes, their number of scenarios, and their clients."""
    scenarios = [each.theme for each in chosen([])]
    lines = ["| Theme | compared | scenarios | clients |", "|---|---|---|---|"]
    for theme in THEMES:
        module = module_of(theme)
        source = Path(module.__file__ or "").read_text("utf-8")
        clients = [name for name, pattern in CLIENTS if re.search(pattern, source)]
        what = (module.__doc__ or "").partition("\n\n")[0].replace("\n", " ").strip().removesuffix(".")
        lines.append(f"| `{theme}` | {what} | {scenarios.count(theme)} | {', '.join(clients)} |")
    return "\n".join(lines) + "\n"


SECTIONS: Final = (
    ("tests/data/admin-endpoint-answers.tsv", endpoint_table),
    ("tests/endpoints/known.py", difference_table),
    ("tests/differences/themes/management/admin.py", command_table),
    ("tests/differences/themes", feature_table),
)
"""Sources and their tables, in the order of the document."""


def generate(text: str) -> str:
    """Return the document with updated tables."""
    for source, table in SECTIONS:
        mark = f"<!-- from {source} by tests/tools/generate_comparisons.py -->\n"
        before, found, rest = text.partition(mark)
        assert found, f"{DOCUMENT} lacks the marker of {source}"
        text = before + mark + table() + END + rest.partition(END)[2]
    return text


def unsorted(rows: Iterable[Endpoint]) -> list[Endpoint]:
    """Return the endpoints of no area."""
    return [row for row in rows if not any(re.fullmatch(path, row.path) for _, path in AREAS)]


if __name__ == "__main__":
    DOCUMENT.write_text(generate(DOCUMENT.read_text("utf-8")), "utf-8")
