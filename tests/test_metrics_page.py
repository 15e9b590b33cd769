"""A whole server with the small engine: the example client plays it, and what it shows then is what docs say."""

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.nursed import Nursed
from worldmove.serve.server import inhabited
from worldmove.serve.server_config import ServerConfig
from worldmove.worker.config import WorkerConfig

ROOT = Path(__file__).parents[1]
CONFIG = ServerConfig(port=0, worker=WorkerConfig(engine="reference:tiny", log_level="warning"))
MOVES = 2

Families = dict[str, Metric]


def documented() -> dict[str, frozenset[str]]:
    """Each name of the page's table, with its labels."""
    found = {}
    for line in (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8").splitlines():
        cells = line.split("|")
        if len(cells) == 6 and (names := re.findall(r"`(\w+)`", cells[1])):
            found.update(dict.fromkeys(names, frozenset(re.findall(r"`(\w+)`", cells[3]))))
    return found


def ours(family: Metric) -> bool:
    """Whether a family is no mere remark when another began."""
    return not family.name.endswith("_created")


@pytest.fixture(scope="module")
def played(nursed: Nursed) -> tuple[int, str, Families, list[dict[str, Any]]]:
    """The example client's exit status and output, the metrics after it, and the moves of the server."""

    async def main() -> tuple[int, str, Families, list[dict[str, Any]]]:
        async with inhabited(CONFIG, lambda _: None) as house:
            client = await asyncio.create_subprocess_exec(
                sys.executable,
                str(ROOT / "examples" / "play.py"),
                "--server",
                house.url,
                "--moves",
                str(MOVES),
                stdout=asyncio.subprocess.PIPE,
            )
            async with asyncio.timeout(60):
                said, _ = await client.communicate()
            async with httpx.AsyncClient(base_url=house.url, trust_env=False) as http:
                text, moves = (await http.get("/metrics")).text, (await http.get("/api/moves")).json()["moves"]
        families = {family.name: family for family in text_string_to_metric_families(text) if ours(family)}
        return client.returncode or 0, said.decode(), families, moves

    return nursed.serve(main())


def shown(families: Families) -> dict[str, frozenset[str]]:
    """Each family by the name that is asked for, with the labels of its samples."""
    found = {}
    for family in families.values():
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = [label for sample in family.samples for label in sample.labels if label != "le"]
        found[name] = frozenset(labels)
    return found


@pytest.mark.slow
def test_the_example_client_sees_every_frame_once_in_order_and_every_move_committed(played: Any) -> None:
    status, said, _, moves = played
    assert status == 0, said
    assert said.count("Moved. ") == MOVES
    assert "every digest verified" in said
    assert [move["outcome"] for move in moves] == ["committed"] * MOVES


@pytest.mark.slow
def test_the_page_has_every_family_that_a_server_shows_and_no_other(played: Any) -> None:
    assert sorted(shown(played[2])) == sorted(documented())


@pytest.mark.slow
def test_the_page_has_the_labels_of_every_family(played: Any) -> None:
    said = documented()
    assert {name: labels for name, labels in shown(played[2]).items() if labels and labels != said[name]} == {}


@pytest.mark.slow
def test_what_is_counted_is_what_happened(played: Any) -> None:
    _, said, families, moves = played

    def total(name: str, **labels: str) -> float:
        samples = [sample for sample in families[name].samples if labels.items() <= sample.labels.items()]
        return float(sum(sample.value for sample in samples if sample.name in (name, f"{name}_total", f"{name}_count")))

    assert total("worldmove_moves", outcome="committed", reason="done") == MOVES
    assert total("worldmove_pause_seconds") == total("worldmove_move_seconds", outcome="committed") == MOVES
    assert total("worldmove_moved_bytes") == sum(move["num_bytes"] for move in moves)
    assert total("worldmove_admission_verdicts", reason="admitted") == MOVES
    assert total("worldmove_ledger_operations", operation="CommitAttempt", answer="Yours") == MOVES
    assert total("worldmove_ledger_seconds", operation="OpenAttempt") == MOVES
    assert total("worldmove_checks", equal="false") == 0
    assert total("worldmove_worker_up") == 2
    assert total("worldmove_slots", state="free") == 6
    blocks = re.search(r"of (\d+) blocks", said)
    assert blocks
    assert total("worldmove_blocks_shown") >= int(blocks[1])


def test_every_name_in_the_page_follows_the_conventions() -> None:
    for name in documented():
        if name.startswith("worldmove_"):
            assert not re.search(r"_(ms|s|mb|kb|count|sum|bucket)$", name), name
