"""Native entries straight into wire form: the hot path of producing.

Byte for byte what `native.entry_fields` and one XADD would give, from prefabricated
parts. A test holds the two equal.
"""

from mqctl.codecs import entry, java, native
from mqctl.core import headers as h
from mqctl.core.clock import rfc3339
from mqctl.core.keys import KeySpace

_PLACE = f'"{h.PAYLOAD_SIZE}":"%d","{h.PAYLOAD_STORAGE}":"inline"'.encode()
_BASE64 = f',"{h.PAYLOAD_ENCODING}":"base64"'.encode()
_TAIL = b"\r\n$7\r\nheaders\r\n$%d\r\n%b\r\n"
_KEY = b"$3\r\nkey\r\n$%d\r\n%b\r\n"
_TAILS_KNOWN = 10_000
_NO_HEADERS: dict[str, str] = {}


def _bulk(value: bytes) -> bytes:
    return b"$%d\r\n%b\r\n" % (len(value), value)


class EntryPacker:
    """Packs XADD commands for one topic. `max_len` 0 = no length bound on write."""

    def __init__(
        self, keys: KeySpace, topic: str, *, max_len: int = 0, exact: bool = True
    ) -> None:
        self._keys = keys
        self._topic = topic
        self._bound = (
            [b"MAXLEN", b"=" if exact else b"~", b"%d" % max_len] if max_len else []
        )
        self._moment = -1
        self._parts: dict[tuple[int, int, bool], tuple[bytes, bytes]] = {}
        self._headers = _NO_HEADERS
        self._form = _header_form(_NO_HEADERS)
        self._tails: dict[int, bytes] = {}

    def at(self, moment_ms: int) -> None:
        """Set the timestamp of the entries packed from now on."""
        if moment_ms != self._moment:
            self._moment = moment_ms
            self._parts.clear()

    def pack(
        self,
        partition: int,
        payload: bytes,
        key: bytes | None,
        headers: dict[str, str],
        max_retries: int,
    ) -> bytes:
        """Return the packed XADD of an inline entry."""
        return b"".join(self.pieces(partition, payload, key, headers, max_retries))

    def pieces(
        self,
        partition: int,
        payload: bytes,
        key: bytes | None,
        headers: dict[str, str],
        max_retries: int,
    ) -> tuple[bytes, ...]:
        """Return the same in pieces, for joining a whole batch at once.

        Fastest while one headers object is used for message after message.
        """
        known = self._parts.get((partition, max_retries, key is None))
        if known is None:
            known = self._prefabricate(partition, max_retries, keyless=key is None)
        encoded = False
        if not payload.isascii():
            payload, encoded = native.payload_text(payload)
        tail = self._tail(headers, payload, encoded=encoded)
        front, middle = known
        length = b"%d\r\n" % len(payload)
        if key is None:
            return front, length, payload, middle, tail
        return front, length, payload, middle, tail, _KEY % (len(key), key)

    def _tail(self, headers: dict[str, str], text: bytes, *, encoded: bool) -> bytes:
        if headers is not self._headers:
            self._headers = headers
            self._form = _header_form(headers)
            self._tails.clear()
        size = len(text) if encoded else java.json_size(text)
        known = ~size if encoded else size
        tail = self._tails.get(known)
        if tail is None:
            if len(self._tails) >= _TAILS_KNOWN:
                self._tails.clear()
            end = _BASE64 + b"}" if encoded else b"}"
            json = self._form % size + end
            tail = self._tails[known] = _TAIL % (len(json), json)
        return tail

    def _prefabricate(
        self, partition: int, max_retries: int, *, keyless: bool
    ) -> tuple[bytes, bytes]:
        stream = self._keys.partition(self._topic, partition).encode()
        front = [b"XADD", stream, *self._bound, b"*", b"payload"]
        middle = [
            b"timestamp",
            rfc3339(self._moment).encode(),
            b"retryCount",
            b"0",
            b"maxRetries",
            b"%d" % max_retries,
            b"topic",
            self._topic.encode(),
            b"partitionId",
            b"%d" % partition,
        ]
        words = len(front) + 1 + len(middle) + (0 if keyless else 2) + 2
        made = (
            b"*%d\r\n" % words + b"".join(map(_bulk, front)) + b"$",
            b"\r\n" + b"".join(map(_bulk, middle))[:-2],
        )
        self._parts[(partition, max_retries, keyless)] = made
        return made


def _header_form(headers: dict[str, str]) -> bytes:
    """Return the headers' JSON, left open, with a place for the payload's size."""
    own = {k: v for k, v in headers.items() if k not in _STORAGE}
    if not own:
        return b"{" + _PLACE
    text = entry.headers_json(own).replace(b"%", b"%%")
    return text[:-1] + b"," + _PLACE


_STORAGE = (h.PAYLOAD_REF, h.PAYLOAD_STORAGE, h.PAYLOAD_SIZE, h.PAYLOAD_ENCODING)
