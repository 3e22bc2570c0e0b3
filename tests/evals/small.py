"""A dataset that is read in a minute: two streams of one workspace, one of another, and questions before and after."""

from __future__ import annotations

from ranked_ledger.evals.cases import Dataset, Lifecycle, Link, Question, Record

CART = "shop/cart"
MAIL = "shop/mail"
FARM = "farm"


def record(stream: str, key: str, step: int, title: str, content: str = "", **more: object) -> Record:
    return Record(stream, key, step, title, f"{title}\n\n{content}".strip(), **more)  # type: ignore[arg-type]


def question(name: str, stream: str, step: int, ask: str, gold: str, *, must_not: str = "") -> Question:
    kind = "superseded" if must_not else "early_answer"
    return Question(name, stream, ask, frozenset(gold.split()), frozenset(must_not.split()), step, kind)


def _marked(lifecycle: Lifecycle) -> Record:
    return record(
        CART, f"C-{lifecycle}", 6, f"Vouchers that were {lifecycle}", "Coupons by post.", lifecycle=lifecycle
    )


RECORDS = {
    CART: [
        record(CART, "C1", 1, "Prices are kept in cents", "Floats rounded wrongly in the tax report."),
        record(
            CART, "C2", 2, "Carts are kept in Redis", "Sessions last a day.",
            lifecycle="superseded", superseded_at_step=5, superseded_by=("C5",), importance=0.9,
        ),
        record(CART, "C3", 3, "Checkout locks the cart", links=(Link("depends_on", "C2"), Link("depends_on", "C1"))),
        record(
            CART, "C5", 5, "Carts are kept in Postgres", "Redis lost carts at a restart.",
            lifecycle="superseded", superseded_at_step=9, superseded_by=("C9",), rationale="Two stores, one too many.",
        ),
        _marked("stale"), _marked("rejected"), _marked("disputed"),
        record(CART, "C8", 8, "Cart totals are computed on the server", links=(Link("depends_on", "C5"),)),
        record(CART, "C9", 9, "Carts are kept in a table by customer", "Postgres sessions ended too early."),
    ],
    MAIL: [
        record(MAIL, "M1", 1, "Mail is sent by a queue", links=(Link("depends_on", "M4"),)),
        record(MAIL, "M4", 4, "The mail queue is kept in Redis", "Carts are elsewhere.", links=(Link("depends_on", "M1"),)),
        record(MAIL, "M7", 7, "Receipts are mailed in the customer's language"),
    ],
    FARM: [
        record(FARM, "F1", 1, "Carts are pulled by oxen", "Redis is a river here."),
        record(FARM, "F2", 2, "Oxen rest on Sundays"),
    ],
}  # fmt: skip

QUESTIONS = [
    question("before", CART, 4, "where are carts kept", "C2"),
    question("between", CART, 8, "where are carts kept", "C5", must_not="C2"),
    question("after", CART, 9, "where are carts kept", "C9", must_not="C2 C5"),
    question("unknown words", CART, 9, "zymurgy quokka", "C1"),
    question("mail", MAIL, 7, "in what language do receipts go out?", "M7"),
    question("oxen", FARM, 2, "who pulls carts?", "F1"),
]


def small() -> Dataset:
    return Dataset.of("small", RECORDS, QUESTIONS, workspaces={CART: "shop", MAIL: "shop"})
