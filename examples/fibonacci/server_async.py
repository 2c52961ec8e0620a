"""The Fibonacci service on asyncio: one thread, on which every call is computed."""

import asyncio
import signal

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

import fibonacci_pb2_grpc
import settings
from server import MOST_CALLS, NAMES, OPTIONS, listen
from service import Refused, Service
from telemetry import ServerMetrics


class Servicer(fibonacci_pb2_grpc.FibonacciServiceServicer):
    def __init__(self, service, metrics):
        self._service = service
        self._metrics = metrics

    async def Increment(self, request, context):
        return await self._answer("Increment", self._service.increment, request, context)

    async def Fibonacci(self, request, context):
        return await self._answer("Fibonacci", self._service.fibonacci, request, context)

    async def _answer(self, method, answer, request, context):
        try:
            with self._metrics.call(method):
                return answer(request)
        except Refused as refused:
            await context.abort(refused.code, str(refused))


async def take_the_rest(metrics):
    """Calls that asyncio has not taken yet would be cancelled: they come first.

    A second is enough unless new ones keep coming.
    """
    for _ in range(20):
        before = metrics.begun
        await asyncio.sleep(0.05)
        if metrics.begun == before:
            return


async def main():
    told = settings.Server()
    server = grpc.aio.server(options=OPTIONS, maximum_concurrent_rpcs=MOST_CALLS)
    metrics = ServerMetrics(told.name, told.mode)
    fibonacci_pb2_grpc.add_FibonacciServiceServicer_to_server(Servicer(Service(told.name), metrics), server)
    checks = health.aio.HealthServicer()
    for name in ("", NAMES[0]):
        await checks.set(name, health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(checks, server)
    reflection.enable_server_reflection(NAMES, server)
    listen(server, told)

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await server.start()
    print(f"{told.name} serves {told.address} on asyncio", flush=True)
    await stop.wait()
    await checks.enter_graceful_shutdown()
    await take_the_rest(metrics)
    await server.stop(grace=told.grace)


if __name__ == "__main__":
    asyncio.run(main())
