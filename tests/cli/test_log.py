"""A line of a server's log costs its event loop little, whatever failed."""

from worldmove.cli.log import lines


def rendered(error: BaseException) -> str:
    line = {"event": "task_failed", "task": "look", "exc_info": error}
    for process in lines(colors=False):
        line = process(None, "error", line)  # type: ignore[assignment]
    return str(line)


def test_a_traceback_is_where_it_failed_and_why_and_no_values_of_what_failed() -> None:
    def fail(depth: int, table: dict[str, list[int]]) -> None:
        if depth:
            fail(depth - 1, table)
        raise ValueError("it failed")

    try:
        fail(12, {f"secret-{number}": list(range(100)) for number in range(1000)})
    except ValueError as error:
        said = rendered(error)
    assert "task_failed" in said
    assert "ValueError: it failed" in said
    assert "test_log.py" in said
    assert "secret-7" not in said
    assert len(said) < 4000
