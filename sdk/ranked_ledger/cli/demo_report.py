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
        self, plain: Sequence[Hit], retired: Hit, detail: DecisionDetail, successor: Hit | None
    ) -> None:
        """What words alone would have answered, and what the ledger knows about it."""
        rows = []
        for place, hit in enumerate(plain, 1):
            mark = ("  superseded; its text does not say so", "yellow") if hit is retired else ""
            rows.append(Text.assemble(f"{place}. ", one_line(hit.summary or hit.content), mark))
        self._console.print()
        self.text("Without the ledger, by words alone", "bold")
        self.show(Group(*rows))
        self._console.print()
        self.text("What the ledger knows", "bold")
        self.show(_chain(detail))
        if successor is None:
            self.text("Ranked recall leaves it out.")
        else:
            self.text(f"Ranked recall leaves it out; what replaced it is number {successor.rank} above.")


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
