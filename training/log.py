"""What happened when: printed as it comes, kept as JSON."""

import json
import time
from dataclasses import dataclass, field

Value = float | list[float]


@dataclass(slots=True)
class Log:
    """Lines with the seconds since it began."""

    began: float = field(default_factory=time.monotonic)
    lines: list[dict[str, Value | str]] = field(default_factory=list)

    def say(self, event: str, **values: Value) -> None:
        line: dict[str, Value | str] = {"s": round(time.monotonic() - self.began, 1), "event": event, **values}
        self.lines.append(line)
        print(json.dumps(line), flush=True)
