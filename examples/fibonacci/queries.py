"""What the HTTP front is asked, and what it answers: no sockets, no calls."""

import collections
import dataclasses
import json
import random
import threading
import urllib.parse

import fibonacci_pb2 as pb
from service import LONGEST_NAME, MOST_N

MOST_ITERATIONS = 100_000
# Numbers of 4,180 digits: with more of them an answer would have over 40 MB.
MOST_SHOWN = 10_000
# After so many failures without an answer between them the rest is not tried.
MOST_FAILURES = 20
DONE = {"sergeant job done?": "Yes lieutenant!"}
PATHS = "/fibonacci/random, /fibonacci, /increment, /metrics, /healthz"

# HTTP's word for the code of the calls that failed; 502 for all others.
STATUS = {"INVALID_ARGUMENT": 400, "UNAVAILABLE": 503, "RESOURCE_EXHAUSTED": 503, "DEADLINE_EXCEEDED": 504}


class Bad(Exception):
    """A request that is answered with a status and one line."""

    def __init__(self, status, line):
        super().__init__(line)
        self.status = status


@dataclasses.dataclass
class Answer:
    status: int
    body: bytes
    kind: str = "text/plain; charset=utf-8"
    headers: dict = dataclasses.field(default_factory=dict)


def refusal(bad):
    headers = {"Allow": "GET, HEAD"} if bad.status == 405 else {}
    return Answer(bad.status, f"{bad}\n".encode(), headers=headers)


@dataclasses.dataclass
class Batch:
    """The gRPC calls of one HTTP request."""

    method: str
    requests: list
    one: bool = False  # the answer is an object, not a list of them
    shown: bool = True


class Query:
    """The parameters of a URL. A name may have a second spelling."""

    def __init__(self, text, known):
        self._values = {}
        for name, value in urllib.parse.parse_qsl(text, keep_blank_values=True):
            if name not in known:
                raise Bad(400, f"unknown parameter {name!r}; there are {', '.join(known)}")
            self._values[name] = value

    def text(self, *names, default):
        return next((self._values[name] for name in names if name in self._values), default)

    def number(self, *names, default, least, most):
        value = self.text(*names, default=str(default))
        if not value.isascii() or not value.isdigit() or len(value) > 10 or not least <= int(value) <= most:
            raise Bad(400, f"{names[0]} must be a whole number from {least} to {most}, not {value[:40]!r}")
        return int(value)


def random_numbers(text):
    query = Query(text, ["iterations", "fibo_start", "fibo_end", "output", "seed"])
    shown = query.text("output", default="true") == "true"
    iterations = query.number("iterations", default=1, least=0, most=MOST_ITERATIONS)
    if shown and iterations > MOST_SHOWN:
        raise Bad(400, f"iterations must not be above {MOST_SHOWN} unless output=false")
    start = query.number("fibo_start", default=1, least=0, most=MOST_N)
    end = query.number("fibo_end", default=10, least=0, most=MOST_N)
    if start > end:
        raise Bad(400, f"fibo_start must not be above fibo_end: {start} is above {end}")
    # The same seed asks for the same numbers, so that two ways can be compared.
    draw = random.Random(query.text("seed", default=None))
    return Batch("Fibonacci", [pb.FibonacciRequest(n=draw.randint(start, end)) for _ in range(iterations)], shown=shown)


def one_number(text):
    n = Query(text, ["n"]).number("n", default=1, least=0, most=MOST_N)
    return Batch("Fibonacci", [pb.FibonacciRequest(n=n)], one=True)


def increment(text, name):
    query = Query(text, ["iterations", "iteration", "pod_name", "name"])
    iterations = query.number("iterations", "iteration", default=1, least=0, most=MOST_ITERATIONS)
    name = query.text("pod_name", "name", default=name)
    if not 0 < len(name) <= LONGEST_NAME:
        raise Bad(400, f"pod_name must have 1 to {LONGEST_NAME} characters")
    return Batch("Increment", [pb.IncrementRequest(name=name)] * iterations)


def parse(verb, path, query, name):
    """Reads a request into a Batch; name is whom /increment counts for by default."""
    if verb not in ("GET", "HEAD"):
        raise Bad(405, f"{verb} is not possible here, only GET")
    if path == "/fibonacci/random":
        return random_numbers(query)
    if path == "/fibonacci":
        return one_number(query)
    if path == "/increment":
        return increment(query, name)
    raise Bad(404, f"nothing is at {path[:80]!r}; there are {PATHS}")


class Tally:
    """What became of the calls of a batch; any thread may tell."""

    def __init__(self, batch):
        self._batch = batch
        self._left = iter(enumerate(batch.requests))
        self._replies = {}  # by the number of the call, if they are shown
        self._served = collections.Counter()
        self._failed = collections.Counter()
        self._first = ""
        self._row = 0
        self._stopped = False
        self._lock = threading.Lock()

    def next(self):
        """The next call to make, as its number and request, or None."""
        with self._lock:
            return None if self._stopped or self._row >= MOST_FAILURES else next(self._left, None)

    def stop(self):
        with self._lock:
            self._stopped = True

    def answered(self, number, reply):
        with self._lock:
            self._row = 0
            self._served[reply.server_name] += 1
            if self._batch.shown:
                self._replies[number] = reply

    def failed(self, code, details):
        with self._lock:
            self._row += 1
            self._failed[code] += 1
            self._first = self._first or details

    def answer(self):
        told = {"X-Calls-By-Server": words(self._served), "X-Calls-Failed": words(self._failed)}
        headers = {name: value for name, value in told.items() if value}
        due = len(self._batch.requests)
        made = self._served.total() + self._failed.total()
        if made < due or self._failed:
            return self._failure(due, made, headers)
        body = json.dumps(self._content(), sort_keys=True, separators=(",", ":")).encode() + b"\n"
        return Answer(200, body, "application/json", headers)

    def _failure(self, due, made, headers):
        lines = []
        if self._failed:
            first = " ".join(self._first.split())[:200]
            lines.append(f"{self._failed.total()} of {due} calls failed ({words(self._failed)}), the first with: {first}")
        if made < due:
            lines.append(f"{due - made} of {due} calls were not made")
        code = self._failed.most_common(1)[0][0] if self._failed else "UNAVAILABLE"
        return Answer(STATUS.get(code, 502), f"{'; '.join(lines)}\n".encode(), headers=headers)

    def _content(self):
        if not self._batch.shown:
            return DONE
        items = [self._item(number, request) for number, request in enumerate(self._batch.requests)]
        if not self._batch.one:
            return items
        del items[0]["n"]
        return items[0]

    def _item(self, number, request):
        reply = self._replies[number]
        if self._batch.method == "Increment":
            return {"response": reply.number, "server": reply.server_name}
        return {"n": request.n, "server": reply.server_name, "value": reply.value}


def words(counter):
    """Counts as the text of a header. Servers say their names: not all fit there."""
    named = ((name if name.isascii() and name.isprintable() else "?", count) for name, count in counter.most_common(100))
    return ", ".join(f"{name}={count}" for name, count in sorted(named))
