"""How the demo shows what it finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from ranked_ledger import DecisionDetail, Hit, Recall
from ranked_ledger.cli import tables
from ranked_ledger.cli.demo_questions import Question
from ranked_ledger.cli.importing_report import short_key
from ranked_ledger.cli.output import one_line


class Report:
    """Prints as the demo goes on. `keys` names the records, `ADR-0007`, by their memory."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._compared = False
        self.keys: Mapping[UUID, str] = {}

    def step(self, text: str, seconds: float | None = None) -> None:
        took = "" if seconds is None else f"  ({seconds:.1f} s)"
        self._console.print(Text.assemble(("  ✓ ", "green"), one_line(text), (took, "dim")))

    def head(self, text: str) -> None:
        self._console.print()
        self._console.print(Rule(Text(text, style="bold"), align="left", style="dim", characters="─"))

    def text(self, text: str, style: str = "") -> None:
        self.show(Text(text, style=style))

    def show(self, what: RenderableType) -> None:
        self._console.print(Padding(what, (0, 0, 0, 2), expand=False))

    def question(self, number: int, question: Question, recall: Recall, milliseconds: float) -> None:
        self.head(f"Question {number}: {' '.join(question.ask.split())}")
        self.hits(recall, question.why, milliseconds)

    def hits(self, recall: Recall, why: str, milliseconds: float) -> None:
        """Why it is asked, how long the answer took, and a ranked table with every component."""
        self.text("; ".join(filter(None, (why, f"answered in {milliseconds:.0f} ms, trace included"))), "dim")
        if not recall.hits:
            self.text(recall.hint or "Nothing matches.")
            return
        shown = tables.table(
            ("#", "number"), "record", ("step", "number"), ("decision", "long"),
            *((name, "number") for name in ("rel.", "imp.", "rec.", "dep.", "sum.", "score")),
        )  # fmt: skip
        for hit in recall:
            shown.add_row(
                str(hit.rank),
                short_key(self._key(hit.memory_id)),
                Text(str(hit.step_index), style="dim"),
                one_line(hit.summary or hit.content),
                f"{hit.relevance:.2f}" if hit.relevance else "-",
                f"{hit.importance:.2f}",
                f"{hit.recency:.2f}",
                f"{hit.dependency_boost:.2f}",
                f"{hit.summary_match or 0:.2f}",
                Text(f"{hit.score:.3f}", style="bold"),
            )
        self.show(shown)

    def without_ledger(
        self, plain: Sequence[Hit], retired: Hit, detail: DecisionDetail, successor: Hit | None
    ) -> None:
        """What words alone would have answered, and what the ledger knows about it; once is enough."""
        if self._compared:
            return
        self._compared = True
        rows = Table.grid(padding=(0, 1))
        for place, hit in enumerate(plain, 1):
            rows.add_row(
                str(place),
                short_key(self._key(hit.memory_id)),
                one_line(hit.summary or hit.content),
                f"{hit.text_relevance or 0:.3f}",
                tables.state(hit.lifecycle_status) if hit is retired else "",
            )
        self._console.print()
        self.text("Without the ledger: by words alone, in the texts as stored", "bold")
        self.show(rows)
        self.text("What the ledger knows", "bold")
        self.show(self._chain(detail))
        left_out = f"Ranked recall leaves {self._key(retired.memory_id)} out"
        if successor is None:
            self.text(f"{left_out}.")
        else:
            self.text(f"{left_out}; {self._key(successor.memory_id)} is number {successor.rank} above.")

    def _chain(self, detail: DecisionDetail) -> Text:
        links = [
            Text.assemble(
                one_line(self._key(link.memory_id)), " ", tables.state(link.lifecycle_status or "forgotten")
            )
            # by step; what holds goes last, however old it is
            for link in sorted(detail.chain, key=lambda one: one.lifecycle_status == "active")
        ]
        return Text(" → ").join(links)

    def _key(self, memory_id: UUID) -> str:
        return self.keys.get(memory_id, "another")
