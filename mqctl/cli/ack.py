"""mqctl ack, retry, dead: settle receipts from a pipe or the command line."""

from typing import TYPE_CHECKING, Annotated

import typer

from mqctl.cli import inputs
from mqctl.cli.context import Context
from mqctl.cli.options import command, switch
from mqctl.cli.records import OutputForm, show
from mqctl.core.errors import BadData, BadUsage, MqError, Partial

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mqctl.core.receipts import Receipt
    from mqctl.engine.receipts import Order

_SETTLED = frozenset({"stored", "duplicate", "delayed"})
_LINE_MAX = 100_000_000
_CHUNK = 200
Receipts = Annotated[
    list[str] | None,
    typer.Argument(
        help="Receipts; - reads them, or objects with a receipt, from standard input.",
        metavar="[RECEIPT|-]...",
        show_default=False,
    ),
]
Reason = Annotated[str, switch("--reason", help="Why, for people.", metavar="TEXT")]


def register(app: typer.Typer) -> None:
    """Add the commands."""

    @command(app, "ack")
    def ack(
        context: Context, receipts: Receipts = None, output: OutputForm = None
    ) -> None:
        """Acknowledge messages by their receipts.

        Exit 0 when all are done or were already; 3 when some are lost or not found.

        Example: mqctl consume orders -g g -e --ack manual -o ndjson | mqctl ack -
        """
        from mqctl.core.handler import Outcome
        from mqctl.engine.receipts import Order

        _settle(context, receipts, Order(Outcome.SUCCESS), output)

    @command(app, "retry")
    def retry(
        context: Context,
        receipts: Receipts = None,
        delay: Annotated[
            str | None,
            switch("--delay", help="When to try again.", metavar="DUR"),
        ] = None,
        reason: Reason = "",
        output: OutputForm = None,
    ) -> None:
        """Schedule messages again by their receipts.

        A message whose last attempt this was becomes a dead letter.

        Example: mqctl consume orders -g g -n 1 --ack manual -o ndjson | mqctl retry -
        """
        from mqctl.core.handler import Outcome
        from mqctl.core.units import duration_ms
        from mqctl.engine.receipts import Order

        wait = None if delay is None else duration_ms(delay)
        order = Order(Outcome.RETRY, delay_ms=wait, reason=reason)
        _settle(context, receipts, order, output)

    @command(app, "dead")
    def dead(
        context: Context,
        receipts: Receipts = None,
        reason: Reason = "",
        output: OutputForm = None,
    ) -> None:
        """Make messages dead letters by their receipts.

        Example: mqctl consume orders -g g -n 1 --ack manual -o ndjson | mqctl dead -
        """
        from mqctl.core.handler import Outcome
        from mqctl.engine.receipts import Order

        _settle(context, receipts, Order(Outcome.DEAD, reason=reason), output)


def _settle(
    context: Context,
    given: list[str] | None,
    order: "Order",
    output: OutputForm,
) -> None:
    from mqctl.core.receipts import format_receipt
    from mqctl.engine.receipts import Settler

    if not given:
        raise BadUsage("no receipts given", hint="mqctl ack - reads them from a pipe")
    settler = Settler(context.session())
    counts = {"done": 0, "already": 0, "lost": 0, "not_found": 0}
    bad: MqError | None = None
    batches = _batches(given)
    while bad is None:
        try:
            batch = next(batches, None)
        except BadData as error:
            bad = error
            break
        if batch is None:
            break
        results = settler.settle(batch, order)
        for result in results:
            counts[result] += 1
        if output is not None:
            records: list[dict[str, object]] = [
                {"receipt": format_receipt(receipt), "result": result}
                for receipt, result in zip(batch, results, strict=True)
            ]
            show(context, records, output)
    account = ", ".join(
        f"{n} {word.replace('_', ' ')}" for word, n in counts.items() if n
    )
    if bad is not None:
        bad.message = f"{bad.message}; before it: {account or 'nothing settled'}"
        raise bad
    if counts["lost"] or counts["not_found"]:
        raise Partial(f"not all receipts could be settled: {account}")
    context.note(account or "no receipts came: nothing settled")


def _batches(given: list[str]) -> "Iterator[list[Receipt]]":
    from mqctl.core.receipts import parse_receipt

    for text in given:
        if text != "-":
            yield [parse_receipt(text)]
            continue
        line = 0
        for block in inputs.Records(0, b"\n", _LINE_MAX):
            held: list[Receipt] = []
            try:
                for raw in block:
                    line += 1
                    receipt = _receipt(raw, line)
                    held += [] if receipt is None else [receipt]
            except BadData:
                yield held
                raise
            for i in range(0, len(held), _CHUNK):
                yield held[i : i + _CHUNK]


def _receipt(raw: bytes, line: int) -> "Receipt | None":
    from mqctl.core.receipts import parse_receipt

    text = raw.strip()
    if not text:
        return None
    if not text.startswith(b"{"):
        try:
            return parse_receipt(text.decode("utf-8", "replace"))
        except BadData as error:
            raise BadData(f"line {line}: {error.message}", line=line) from None
    import orjson

    try:
        found = orjson.loads(text)
    except ValueError as error:
        raise BadData(f"line {line} is not JSON: {error}", line=line) from None
    if "status" in found and found["status"] not in _SETTLED:
        return None
    receipt = found.get("receipt")
    if not isinstance(receipt, str):
        raise BadData(f"line {line} has no receipt", line=line)
    return parse_receipt(receipt)
