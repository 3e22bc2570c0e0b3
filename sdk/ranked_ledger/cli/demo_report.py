"""How the demo shows what it finds."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.text import Text

from ranked_ledger import DecisionDetail, Hit, Recall
from ranked_ledger.cli import tables
from ranked_ledger.cli.demo_questions import Question
from ranked_ledger.cli.output import one_line


class Report:
    """Prints as the demo goes on."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def step(self, text: str, seconds: float | None = None) -> None:
        took = "" if seconds is None else f"  ({seconds:.1f} s)"
        self._console.print(Text.assemble(("  ✓ ", "green"), one_line(text), (took, "dim")))

    def head(self, text: str) -> None:
        self._console.print()
        self._console.print(Rule(Text(text, style="bold"), align="left", style="dim", characters="─"))

    def text(self, text: str, style: str = "") -> None:
        self._console.print(Padding(Text(text, style=style), (0, 2), expand=False))

    def show(self, what: RenderableType) -> None:
        self._console.print(Padding(what, (0, 2), expand=False))

    def question(self, number: int, question: Question, recall: Recall, milliseconds: float) -> None:
        self.head(f"Question {number}: {' '.join(question.ask.split())}")
        if question.why:
            self.text(question.why, "dim")
        if not recall.hits:
            self.text(recall.hint or "Nothing matches.")
            return
        self.hits(recall, milliseconds)

    def hits(self, recall: Recall, milliseconds: float) -> None:
        """A ranked table with every component, and how long the answer took."""
        self.show(tables.hit_table(recall, ids=False))
        self.text(f"answered in {milliseconds:.0f} ms, the trace included", "dim")

    def without_ledger(
        self, plain: Sequence[Hit], chains: Sequence[DecisionDetail], recall: Recall, place: int | None
    ) -> None:
        """What words alone would have answered first, and what the ledger answers instead."""
        retired = plain[0]
        rows: list[RenderableType] = []
        for number, hit in enumerate(plain[:3], 1):
            state = tables.state(hit.lifecycle_status)
            rows.append(Text.assemble(f"{number}. ", one_line(hit.summary or hit.content), "  ", state))
        self._console.print()
        self.text("The same question without the ledger, by words alone, the retired ones included:", "bold")
        self.show(Group(*rows))
        self.text(
            "An agent that reads the first line follows a decision that no longer holds. The ledger knows:"
        )
        for detail in chains:
            self.show(_chain(detail))
        first = one_line(recall[0].summary or recall[0].content) if recall.hits else Text("nothing")
        where = "" if place is None else f" (its successor is number {place})"
        said = Text.assemble(
            "Ranked recall leaves “",
            one_line(retired.summary or retired.content),
            "” out; first: “",
            first,
            f"”{where}.",
        )
        self.show(said)


def _chain(detail: DecisionDetail) -> RenderableType:
    lines = []
    for place, link in enumerate(detail.chain):
        arrow = "  " if place == 0 else "→ "
        step = "" if link.step_index is None else f"  step {link.step_index}"
        lines.append(
            Text.assemble(
                arrow, one_line(link.summary), (step, "dim"), "  ", tables.state(link.lifecycle_status or "")
            )
        )
    reason = next((one.reason for one in reversed(detail.history) if one.reason), None)
    if reason:
        lines.append(Text(f"  reason: {' '.join(reason.split())}", style="dim"))
    return Group(*lines)
