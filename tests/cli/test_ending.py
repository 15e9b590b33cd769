"""A command ends when it is done, whatever an engine has left in its process."""

import subprocess
import sys
import time

import pytest

from worldmove.cli.termination import END_S

LEFT = {
    "a thread that does not end": "threading.Thread(target=time.sleep, args=(1e6,)).start()",
    "work for the end that does not return": "atexit.register(time.sleep, 1e6)",
    "nothing": "pass",
}


@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize(("command", "status"), [(["--version"], 0), (["inspect", "/nothing/there"], 2)])
def test_a_command_ends_with_its_status_though_something_is_left(left: str, command: list[str], status: int) -> None:
    script = f"import atexit, threading, time; {LEFT[left]}\nfrom worldmove.cli.main import main; main({command!r})"
    begun = time.monotonic()
    ran = subprocess.run((sys.executable, "-c", script), capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == status
    assert ran.stdout if status == 0 else ran.stderr
    assert time.monotonic() - begun < 30 * END_S
