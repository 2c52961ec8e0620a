"""The worker of examples/python, without a health service."""

import os
import runpy
import sys

from grpc_health.v1 import health_pb2_grpc

here = os.path.dirname(os.path.abspath(__file__))
example = os.path.join(here, "..", "..", "..", "..", "examples", "python")
health_pb2_grpc.add_HealthServicer_to_server = lambda *_: None
sys.path.insert(0, example)
runpy.run_path(os.path.join(example, "worker.py"), run_name="__main__")
