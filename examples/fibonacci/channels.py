"""How the front reaches the service."""

import contextlib
import itertools
import json


def options(told):
    """Options of a gRPC channel."""
    policy = "round_robin" if told.round_robin else "pick_first"
    return [
        ("grpc.service_config", json.dumps({"loadBalancingConfig": [{policy: {}}]})),
        # What the name's owner wants is not asked: the way to balance is ours here.
        ("grpc.service_config_disable_resolution", 1),
        ("grpc.dns_min_time_between_resolutions_ms", told.dns_seconds * 1000),
        # Else all channels of a process to the same address share a connection.
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_http_proxy", 0),
    ]


class Channels:
    """CONNECTIONS channels that HTTP requests take in turn, or one for each request.

    dial makes a channel of a target and options.
    """

    def __init__(self, told, dial):
        self._dial = lambda: dial(told.target, options(told))
        self._kept = [self._dial() for _ in range(told.connections)]
        self._turn = itertools.count()

    @contextlib.contextmanager
    def for_request(self):
        if self._kept:
            yield self._kept[next(self._turn) % len(self._kept)]
            return
        with self._dial() as channel:
            yield channel

    @contextlib.asynccontextmanager
    async def for_request_async(self):
        if self._kept:
            yield self._kept[next(self._turn) % len(self._kept)]
            return
        async with self._dial() as channel:
            yield channel

    def close(self):
        for channel in self._kept:
            channel.close()

    async def close_async(self):
        for channel in self._kept:
            await channel.close()
