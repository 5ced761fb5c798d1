"""The Python API: what the command line does, as objects.

    from mqctl import Outcome, connect

    with connect() as mq:
        mq.producer().send("orders", {"id": 1}, key="customer-7")

A `Client` belongs to one thread; each running subscription has a thread and a
connection of its own.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from threading import Thread
from types import TracebackType
from typing import Any, Self

import orjson

from mqctl.core.errors import BadUsage, MqError, NotFound
from mqctl.core.filters import Filter
from mqctl.core.handler import Outcome, Result
from mqctl.core.headers import is_transport
from mqctl.core.keys import CONTROL, STREAM, KeySpace
from mqctl.core.message import Delivery, Outgoing
from mqctl.core.meter import Listener, Meter
from mqctl.core.names import check_name, check_topic
from mqctl.core.options import ConsumerOptions, Summary
from mqctl.core.units import duration_ms
from mqctl.engine import consumer as engine_consumer
from mqctl.engine import metering
from mqctl.engine import producer as engine_producer
from mqctl.engine.session import Session
from mqctl.engine.special import Later, Special
from mqctl.store.url import Endpoint, Tls, parse_url

Payload = str | bytes | None | bool | float | Mapping[str, Any] | Sequence[Any]
Handler = Callable[[Delivery], Outcome | Result | None]
OnSuccess = Callable[[Delivery], None]
OnDead = Callable[[Delivery | None, bytes, str], None]
Sent = engine_producer.Sent


def connect(
    url: str = "local",
    *,
    password: str | None = None,
    tls: Tls | None = None,
    key_prefix: str = CONTROL,
    stream_key_prefix: str = STREAM,
    metrics: Listener | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> "Client":
    """Open a connection; `url` as for `--url`.

    `metrics(name, value, tags)` gets every count, timing in seconds and gauge, from
    any thread; `note(line)` what the command line would say on stderr. Raises
    Unreachable, AuthFailed, BadUsage and the like.
    """
    keys = KeySpace(key_prefix, stream_key_prefix)
    endpoint = parse_url(url, password=password, tls=tls)
    session = Session.open(endpoint, keys=keys, started=note)
    return Client(session, endpoint, Meter(metrics), note)


class Client:
    """A connection. Consumers have their own, and are closed by themselves."""

    def __init__(
        self,
        session: Session,
        endpoint: Endpoint,
        meter: Meter,
        note: Callable[[str], None],
    ) -> None:
        self.session = session
        self.meter = meter
        self._endpoint = endpoint
        self._note = note

    def producer(self, **options: Any) -> "Producer":  # noqa: ANN401
        """Return a producer; options as of `produce`, with `_` for `-`."""
        return Producer(self.session, self.meter, _producer_options(options))

    def consumer(self, **options: Any) -> "Consumer":  # noqa: ANN401
        """Return a consumer without subscriptions; options as of `consume`.

        Durations are milliseconds or text such as "5m".
        """

        def another() -> Session:
            return Session.open(
                self._endpoint, keys=self.session.keys, started=self._note
            )

        return Consumer(another, self.meter, self._note, _consumer_options(options))

    def close(self) -> None:
        """Close the connection."""
        self.session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


# -- producing ----------------------------------------------------------------


class Producer:
    """Stores messages; everything `send` returns is stored, or it raises.

    Text is stored verbatim, None as an empty payload, bytes as they are, anything
    else as JSON. What cannot be stored raises TypeError or BadUsage before anything
    of the call is sent.
    """

    def __init__(
        self, session: Session, meter: Meter, options: engine_producer.ProducerOptions
    ) -> None:
        self._session = session
        self._meter = meter
        self._options = options
        self._producers: dict[str, engine_producer.Producer] = {}
        self._sent: list[Sent] = []

    def send(
        self,
        topic: str,
        payload: Payload,
        *,
        key: str | bytes | None = None,
        headers: Mapping[str, str] | None = None,
        partition: int | None = None,
        max_retries: int | None = None,
        dedupe_key: str | None = None,
        delay: str | int | None = None,
    ) -> Sent:
        """Store one message and wait for its id; `delay` in ms or as "30s".

        Raises UnknownOutcome when the reply was lost: it may or may not be stored.
        """
        message = outgoing(payload, key, headers, partition, max_retries)
        later = None if delay is None else Later(delay_ms=milliseconds(delay))
        special = Special(dedupe=dedupe_key, later=later)
        return self._run(topic, [(message, special)])[0]

    def send_many(
        self, topic: str, messages: Iterable[Payload | Outgoing]
    ) -> list[Sent]:
        """Store many, pipelined, in their order; all are checked before one is sent.

        Raises the cause when not all could be stored; `tally(topic)` then has the
        account: what is stored, not stored, unknown.
        """
        checked = [
            m if isinstance(m, Outgoing) else outgoing(m, None, None, None, None)
            for m in messages
        ]
        numbered = [replace(m, line=n) for n, m in enumerate(checked, 1)]
        return self._run(topic, [(m, Special()) for m in numbered])

    def tally(self, topic: str) -> engine_producer.Tally:
        """Return the account of everything sent to a topic."""
        return self._producer(topic).tally

    def _run(self, topic: str, messages: list[tuple[Outgoing, Special]]) -> list[Sent]:
        producer = self._producer(topic)
        self._sent.clear()
        try:
            for message, special in messages:
                producer.send(message, special)
            producer.drain()
        except MqError:
            del self._producers[topic]
            raise
        sent = list(self._sent)
        for one in sent:
            if one.status == "stored":
                metering.count_produced(self._meter, topic, one.partition, 1)
        return sent

    def _producer(self, topic: str) -> engine_producer.Producer:
        found = self._producers.get(topic)
        if found is None:
            found = self._producers[topic] = engine_producer.Producer(
                self._session,
                check_topic(topic),
                self._options,
                report=self._sent.extend,
            )
        return found

    def close(self) -> None:
        """Forget the topics; everything sent is stored already."""
        self._producers.clear()


def outgoing(
    payload: Payload,
    key: str | bytes | None,
    headers: Mapping[Any, Any] | None,
    partition: int | None,
    max_retries: int | None,
) -> Outgoing:
    """Return a checked message; TypeError or BadUsage for what cannot be stored."""
    for name, value in (headers or {}).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"header {name!r} must be text, not {type(value).__name__}")
        if is_transport(name):
            raise BadUsage(f"header {name} is reserved: it belongs to the queue")
        _encoded(f"header {name!a}", name)
        _encoded(f"header {name!a}", value)
    if key is not None and not isinstance(key, (str, bytes)):
        raise TypeError(f"a key is text or bytes, not {type(key).__name__}")
    raw = _encoded("the key", key) if isinstance(key, str) else key
    return Outgoing(
        encoded_payload(payload), raw, dict(headers or {}), partition, max_retries
    )


def encoded_payload(payload: Payload) -> bytes:
    """Return the payload's bytes; TypeError for what has no JSON form."""
    if payload is None:
        return b""
    if isinstance(payload, (bytes, bytearray, memoryview)):
        return bytes(payload)
    if isinstance(payload, str):
        return _encoded("the payload", payload)
    _refuse_nan(payload)
    try:
        return orjson.dumps(payload)
    except TypeError as error:
        raise TypeError(f"the payload has no JSON form: {error}") from None


def _encoded(what: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BadUsage(f"{what} holds a lone surrogate: it is no valid text") from None


def _refuse_nan(value: object) -> None:
    """NaN and infinity are no JSON: orjson would write null."""
    if isinstance(value, float) and not math.isfinite(value):
        raise TypeError(f"the payload holds {value}, which has no JSON form")
    if isinstance(value, Mapping):
        for item in value.values():
            _refuse_nan(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _refuse_nan(item)


# -- consuming ----------------------------------------------------------------


class _Function:
    """A Python function as a handler; what it raises is a retry."""

    def __init__(self, function: Handler, on_success: OnSuccess | None) -> None:
        self._function = function
        self._on_success = on_success

    def __call__(self, delivery: Delivery) -> Result:
        answer = self._function(delivery)
        if isinstance(answer, Result):
            result = answer
        else:
            result = Result(Outcome.SUCCESS if answer is None else answer)
        if result.outcome is Outcome.SUCCESS and self._on_success is not None:
            self._on_success(delivery)
        return result

    def drain(self) -> None:
        """Nothing runs but threads, which end by themselves."""

    def kill(self) -> None:
        """Threads cannot be killed; their messages stay pending."""


@dataclass(slots=True)
class _Subscription:
    """A topic and a group with a handler, and the thread that runs it."""

    topic: str
    options: ConsumerOptions
    handler: Handler
    on_success: OnSuccess | None
    on_dead: OnDead | None
    worker: engine_consumer.Consumer | None = None
    thread: Thread | None = None
    error: MqError | None = None


class Consumer:
    """Runs subscriptions, each in a thread and on a connection of its own.

    Handlers are called in threads, one message of a partition at a time. They return
    an Outcome or a Result; None is SUCCESS, an exception a RETRY.
    """

    def __init__(
        self,
        session: Callable[[], Session],
        meter: Meter,
        note: Callable[[str], None],
        options: Mapping[str, Any],
    ) -> None:
        self._session = session
        self._meter = meter
        self._note = note
        self._options = options
        self._subscriptions: list[_Subscription] = []
        self._started = False
        self._paused = False
        self.closed = False

    def subscribe(
        self,
        topic: str,
        handler: Handler,
        group: str = "default-group",
        *,
        batch: int | None = None,
        poll: str | int | None = None,
        shard: tuple[int, int] | None = None,
        where: Filter | None = None,
        on_success: OnSuccess | None = None,
        on_dead: OnDead | None = None,
    ) -> None:
        """Have `handler` called for the messages of a topic, as a member of a group.

        Another group on the same topic is another subscription; the same pair twice
        is BadUsage. `shard` is (remainder, modulo). `on_success(delivery)` is called
        when the handler has succeeded, `on_dead(delivery, body, error)` when a dead
        letter was written, with None for what could not be decoded.
        """
        if self.closed:
            raise BadUsage("the consumer is closed")
        if self._find(topic, group):
            raise BadUsage(f"topic {topic} has a subscription of group {group} already")
        given = dict(self._options)
        if batch is not None:
            given["batch"] = batch
        if poll is not None:
            given["poll_ms"] = milliseconds(poll)
        options = ConsumerOptions(
            topics=(check_topic(topic),),
            group=check_name("group", group),
            shard=shard,
            where=where or Filter(),
            **given,
        )
        subscription = _Subscription(topic, options, handler, on_success, on_dead)
        self._subscriptions.append(subscription)
        if self._started:
            self._start(subscription)

    def _find(self, topic: str, group: str | None = None) -> list[_Subscription]:
        return [
            s
            for s in self._subscriptions
            if s.topic == topic and group in {None, s.options.group}
        ]

    def unsubscribe(self, topic: str, group: str | None = None) -> None:
        """End the subscriptions of a topic, of one group or all; waits until drained.

        NotFound when there is none.
        """
        found = self._find(topic, group)
        if not found:
            raise NotFound(f"no subscription of topic {topic}", topic=topic)
        self._subscriptions = [s for s in self._subscriptions if s not in found]
        _end(found)

    def start(self) -> None:
        """Start all subscriptions; returns at once. Once started it stays so."""
        self._started = True
        for subscription in self._subscriptions:
            if subscription.thread is None:
                self._start(subscription)

    def _start(self, subscription: _Subscription) -> None:
        worker = engine_consumer.Consumer(
            self._session(),
            subscription.options,
            handler=_Function(subscription.handler, subscription.on_success),
            note=self._note,
            meter=self._meter,
            on_dead=subscription.on_dead,
        )
        if self._paused:
            worker.pause()

        def run() -> None:
            try:
                worker.run()
            except MqError as error:
                subscription.error = error
                self._note(error.message)
            finally:
                worker.close()

        subscription.worker = worker
        subscription.thread = Thread(target=run, name=f"consume-{subscription.topic}")
        subscription.thread.start()

    def run(self) -> Summary:
        """Start, and wait until all subscriptions have ended; return the sums.

        Raises what ended one of them too early.
        """
        self.start()
        for subscription in self._subscriptions:
            if subscription.thread is not None:
                subscription.thread.join()
        for subscription in self._subscriptions:
            if subscription.error is not None:
                raise subscription.error
        return self.summary

    @property
    def summary(self) -> Summary:
        """Return what all subscriptions have done so far, together."""
        total = Summary()
        for subscription in self._subscriptions:
            if subscription.worker is None:
                continue
            for field in fields(Summary):
                value = getattr(subscription.worker.summary, field.name)
                if value is not None:
                    before = getattr(total, field.name) or 0
                    setattr(total, field.name, before + value)
        return total

    def stop(self, drain: str | int | None = None) -> None:
        """Stop fetching, finish or give back what is in hand, release the leases.

        Waits for it; `drain` bounds the wait for handlers (default: drain_timeout).
        """
        _end(self._subscriptions, None if drain is None else milliseconds(drain))

    def close(self) -> None:
        """Stop, and accept no more subscriptions."""
        self.stop()
        self.closed = True

    def pause(self) -> None:
        """Fetch and start nothing more until `resume`; leases are kept."""
        self._paused = True
        for subscription in self._subscriptions:
            if subscription.worker is not None:
                subscription.worker.pause()

    def resume(self) -> None:
        """Go on after `pause`."""
        self._paused = False
        for subscription in self._subscriptions:
            if subscription.worker is not None:
                subscription.worker.resume()

    def reassign(self, topic: str, modulo: int, remainder: int) -> bool:
        """Take only the partitions with index mod `modulo` = `remainder` from now on.

        What falls outside stops after the message in hand, its lease released at
        once. False when the topic has no subscription.
        """
        found = self._find(topic)
        for subscription in found:
            subscription.options = replace(
                subscription.options, shard=(remainder, modulo), partitions=()
            )
            if subscription.worker is not None:
                subscription.worker.reassign(subscription.options.selection)
        return bool(found)

    @property
    def paused(self) -> bool:
        """Tell whether it pauses."""
        return self._paused

    @property
    def in_flight(self) -> int:
        """Return how many handlers run."""
        workers = (s.worker for s in self._subscriptions)
        return sum(w.in_flight for w in workers if w is not None)

    @property
    def running(self) -> bool:
        """Tell whether a subscription runs."""
        threads = (s.thread for s in self._subscriptions)
        return any(t is not None and t.is_alive() for t in threads)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _end(subscriptions: list[_Subscription], drain_ms: int | None = None) -> None:
    for subscription in subscriptions:
        if subscription.worker is not None:
            subscription.worker.stop(drain_ms=drain_ms)
    for subscription in subscriptions:
        if subscription.thread is not None:
            subscription.thread.join()


# -- options ------------------------------------------------------------------


def milliseconds(value: str | int) -> int:
    """Return milliseconds of a number of them, or of text such as "5m"."""
    return duration_ms(value) if isinstance(value, str) else value


def _producer_options(given: Mapping[str, Any]) -> engine_producer.ProducerOptions:
    known = {f.name for f in fields(engine_producer.ProducerOptions)}
    return engine_producer.ProducerOptions(**_by_name(given, known))


def _consumer_options(given: Mapping[str, Any]) -> dict[str, Any]:
    known = {f.name for f in fields(ConsumerOptions)}
    return _by_name(given, known - {"topics", "group", "shard", "where"})


def _by_name(given: Mapping[str, Any], known: set[str]) -> dict[str, Any]:
    """Return options by field name; `lease_ttl="15s"` becomes `lease_ttl_ms=15000`."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        if f"{name}_ms" in known:
            found[f"{name}_ms"] = milliseconds(value)
        elif name in known:
            found[name] = value
        else:
            raise TypeError(f"unknown option: {name}")
    return found
