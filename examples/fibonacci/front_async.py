"""The HTTP front on asyncio: each request has up to WORKERS calls under way."""

import asyncio
import signal
import socket
import time

import grpc
import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

import fibonacci_pb2_grpc
import settings
from channels import Channels
from queries import Answer, Bad, Tally, parse, refusal
from telemetry import FrontMetrics

# Connections of callers at a time; the next one gets 503.
MOST_REQUESTS = 100


class Front:
    def __init__(self, told):
        self._told = told
        self._channels = Channels(told, lambda target, options: grpc.aio.insecure_channel(target, options=options))
        self._metrics = FrontMetrics(told.mode)

    async def answer(self, verb, path, query):
        if path == "/healthz":
            return Answer(200, b"ok\n")
        if path == "/metrics":
            return Answer(200, generate_latest(), CONTENT_TYPE_LATEST)
        try:
            batch = parse(verb, path, query, self._told.name)
        except Bad as bad:
            return refusal(bad)
        tally = Tally(batch)
        async with self._channels.for_request_async() as channel, asyncio.TaskGroup() as tasks:
            method = getattr(fibonacci_pb2_grpc.FibonacciServiceStub(channel), batch.method)
            for _ in range(min(self._told.workers, len(batch.requests))):
                tasks.create_task(self._work(method, batch.method, tally))
        return tally.answer()

    async def _work(self, method, name, tally):
        while call := tally.next():
            begun = time.perf_counter()
            try:
                reply = await method(call[1], timeout=self._told.call_timeout)
            except grpc.aio.AioRpcError as error:
                tally.failed(error.code().name, error.details() or "")
                self._metrics.count(name, "", error.code().name, time.perf_counter() - begun)
            else:
                tally.answered(call[0], reply)
                self._metrics.count(name, reply.server_name, "OK", time.perf_counter() - begun)

    async def __call__(self, scope, receive, send):
        """The front as an ASGI application."""
        answer = await self.answer(scope["method"], scope["path"], scope["query_string"].decode("latin-1"))
        headers = {"Content-Type": answer.kind, "Content-Length": str(len(answer.body)), **answer.headers}
        await send({
            "type": "http.response.start",
            "status": answer.status,
            "headers": [(name.lower().encode(), value.encode("latin-1", "replace")) for name, value in headers.items()],
        })
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else answer.body})

    async def close(self):
        await self._channels.close_async()


async def serve(told, listener):
    front = Front(told)
    server = uvicorn.Server(uvicorn.Config(
        front, loop="asyncio", http="h11", ws="none", lifespan="off",
        interface="asgi3", log_level="error", access_log=False,
        limit_concurrency=MOST_REQUESTS, timeout_graceful_shutdown=told.grace,
    ))
    print(f"http://{told.host}:{told.port} calls {told.target}", flush=True)
    await server.serve(sockets=[listener])
    await front.close()


def main():
    # uvicorn stops by these signals, then sends itself the same one again.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    told = settings.Front(workers=100)
    try:
        listener = socket.create_server((told.host, told.port), backlog=128)
    except OSError as error:
        settings.refuse_port(told, error)
    asyncio.run(serve(told, listener))


if __name__ == "__main__":
    main()
