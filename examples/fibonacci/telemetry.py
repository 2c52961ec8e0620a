"""Prometheus metrics of the servers and of the fronts."""

import asyncio
import contextlib
import time

from prometheus_client import Counter, Gauge, Histogram

from service import Refused

METHODS = ("Fibonacci", "Increment")
# How calls end that are worth a graph. Others count from their first one on.
CODES = ("OK", "INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "UNKNOWN")
FAILURES = ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "DEADLINE_EXCEEDED")

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


def code_of(error):
    """The code with which a call ended that raised an error."""
    if isinstance(error, Refused):
        return error.code.name
    return "CANCELLED" if isinstance(error, asyncio.CancelledError) else "UNKNOWN"


class ServerMetrics:
    """grpc_requests_total counts calls when they begin, the others when they end.

    All are there from the start: a server that gets no call shows a zero. Otherwise the spread
    over the servers would leave it out, and a rate would miss the first of a kind.
    """

    def __init__(self, name, mode):
        labels = ["method", "server_name", "mode"]
        self._values = (name, mode)
        self._begun = Counter("grpc_requests_total", "Calls that have begun.", labels)
        self._ended = Counter("grpc_responses_total", "Calls that have ended, by their code.", [*labels, "code"])
        self._seconds = Histogram("grpc_request_duration_seconds", "Time in the handler.", labels, buckets=BUCKETS)
        self.begun = 0  # exact where one thread runs the handlers
        self._running = Gauge("grpc_requests_in_flight", "Calls in the handler.", ["server_name", "mode"])
        self._running.labels(*self._values)
        for method in METHODS:
            self._begun.labels(method, *self._values)
            self._seconds.labels(method, *self._values)
            for code in CODES:
                self._ended.labels(method, *self._values, code)

    @contextlib.contextmanager
    def call(self, method):
        running = self._running.labels(*self._values)
        running.inc()
        self._begun.labels(method, *self._values).inc()
        self.begun += 1
        begun, code = time.perf_counter(), "OK"
        try:
            yield
        except BaseException as error:
            code = code_of(error)
            raise
        finally:
            running.dec()
            self._seconds.labels(method, *self._values).observe(time.perf_counter() - begun)
            self._ended.labels(method, *self._values, code).inc()


class FrontMetrics:
    """Calls as their caller sees them; server_name is empty where none answered."""

    def __init__(self, mode):
        self._mode = mode
        self._calls = Counter(
            "grpc_client_calls_total", "Calls that have ended, by their code.",
            ["method", "server_name", "mode", "code"],
        )
        self._seconds = Histogram(
            "grpc_client_call_duration_seconds", "Time of a call, failed or not.",
            ["method", "mode"], buckets=BUCKETS,
        )
        for method in METHODS:
            self._seconds.labels(method, mode)
            for code in FAILURES:
                self._calls.labels(method, "", mode, code)

    def count(self, method, server, code, seconds):
        self._calls.labels(method, server, self._mode, code).inc()
        self._seconds.labels(method, self._mode).observe(seconds)
