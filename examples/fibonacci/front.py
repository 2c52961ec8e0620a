"""The HTTP front on threads: each request makes its calls with WORKERS threads."""

import signal
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

import fibonacci_pb2_grpc
import settings
from channels import Channels
from queries import Answer, Bad, Tally, parse, refusal
from telemetry import FrontMetrics

# Requests at a time, each with its threads; the next one gets 503.
MOST_REQUESTS = 100


class Front:
    def __init__(self, told):
        self._told = told
        self._channels = Channels(told, lambda target, options: grpc.insecure_channel(target, options=options))
        self._metrics = FrontMetrics(told.mode)
        self._over = threading.Event()

    def answer(self, verb, url):
        parts = urllib.parse.urlsplit(url)
        if parts.path == "/healthz":
            return Answer(200, b"ok\n")
        if parts.path == "/metrics":
            return Answer(200, generate_latest(), CONTENT_TYPE_LATEST)
        try:
            batch = parse(verb, parts.path, parts.query, self._told.name)
        except Bad as bad:
            return refusal(bad)
        tally = Tally(batch)
        threads = min(self._told.workers, max(1, len(batch.requests)))
        with self._channels.for_request() as channel, ThreadPoolExecutor(threads) as pool:
            method = getattr(fibonacci_pb2_grpc.FibonacciServiceStub(channel), batch.method)
            for done in [pool.submit(self._work, method, batch.method, tally) for _ in range(threads)]:
                done.result()
        return tally.answer()

    def _work(self, method, name, tally):
        while (call := tally.next()) and not self._over.is_set():
            begun = time.perf_counter()
            try:
                reply = method(call[1], timeout=self._told.call_timeout)
            except grpc.RpcError as error:
                tally.failed(error.code().name, error.details() or "")
                self._metrics.count(name, "", error.code().name, time.perf_counter() - begun)
            else:
                tally.answered(call[0], reply)
                self._metrics.count(name, reply.server_name, "OK", time.perf_counter() - begun)

    def cut(self):
        """Ends the requests under way with what they have."""
        self._over.set()

    def close(self):
        self._channels.close()


class Handler(BaseHTTPRequestHandler):
    timeout = 10  # of a client that sends nothing
    error_content_type = "text/plain; charset=utf-8"
    error_message_format = "%(message)s\n"

    def answer(self):
        answer = self.server.front.answer(self.command, self.path)
        self.send_response(answer.status)
        headers = {"Content-Type": answer.kind, "Content-Length": str(len(answer.body)), **answer.headers}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = answer

    def log_message(self, *_):
        """Metrics tell; a line for each request would cost more than the request."""


class HTTPServer(ThreadingHTTPServer):
    daemon_threads = False  # server_close waits for the requests under way
    request_queue_size = 128

    def __init__(self, address, front):
        self.front = front
        self._room = threading.BoundedSemaphore(MOST_REQUESTS)
        super().__init__(address, Handler)

    def process_request(self, request, client_address):
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
            return
        request.sendall(b"HTTP/1.0 503 Service Unavailable\r\nContent-Type: text/plain\r\n\r\ntoo many requests at a time\n")
        self.shutdown_request(request)

    def process_request_thread(self, request, client_address):
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()


def main():
    told = settings.Front(workers=1)
    front = Front(told)
    try:
        server = HTTPServer((told.host, told.port), front)
    except OSError as error:
        settings.refuse_port(told, error)

    def stop(*_):
        limit = threading.Timer(told.grace, front.cut)
        limit.daemon = True
        limit.start()
        # It waits for serve_forever, which this handler has interrupted.
        threading.Thread(target=server.shutdown).start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    print(f"http://{told.host}:{told.port} calls {told.target}", flush=True)
    server.serve_forever(poll_interval=0.1)
    server.server_close()
    front.close()


if __name__ == "__main__":
    main()
