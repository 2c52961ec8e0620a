"""The worker of examples/python, without a health service.

With HOLD_GIL no other thread of Python's runs while a call sleeps.
"""

import ctypes
import os
import runpy
import sys
import time

from grpc_health.v1 import health_pb2_grpc

here = os.path.dirname(os.path.abspath(__file__))
example = os.path.join(here, "..", "..", "..", "..", "examples", "python")
health_pb2_grpc.add_HealthServicer_to_server = lambda *_: None
if os.environ.get("HOLD_GIL"):
    c = ctypes.PyDLL(None)
    time.sleep = lambda seconds: c.usleep(int(seconds * 1e6))
sys.path.insert(0, example)
runpy.run_path(os.path.join(example, "worker.py"), run_name="__main__")
