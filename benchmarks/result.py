"""One measured figure and what it should be."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(slots=True, frozen=True, kw_only=True)
class Result:
    """A row of the table; a target is the most it may be, or the least if `at_least`."""

    what: str
    value: float
    unit: str
    target: float | None = None
    at_least: bool = False
    note: str = ""

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value >= self.target if self.at_least else self.value <= self.target

    def as_row(self) -> tuple[str, str, str, str]:
        target = (
            ""
            if self.target is None
            else f"{'≥' if self.at_least else '≤'} {self._text(self.target)}"
        )
        verdict = {None: "", True: "ok", False: "MISSED"}[self.met]
        return (
            self.what,
            self._text(self.value),
            target,
            " ".join(filter(None, [verdict, self.note])),
        )

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "met": self.met}

    def _text(self, value: float) -> str:
        number = f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.3g}"
        return f"{number} {self.unit}"
