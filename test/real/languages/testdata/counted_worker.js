'use strict';

// The Cpu of worker.js, counted by prom-client, with its default metrics.

const http = require('node:http');
const path = require('node:path');
const { createRequire } = require('node:module');

const need = createRequire(path.resolve('examples/node/worker.js'));
const grpc = need('@grpc/grpc-js');
const metrics = need('prom-client');
const { Work } = need('./work');

metrics.collectDefaultMetrics();
const calls = new metrics.Counter({ name: 'work_calls_total', help: 'Calls, by method.', labelNames: ['method'] });
const seconds = new metrics.Histogram({ name: 'work_seconds', help: 'How long calls take.', buckets: [0.01, 0.1, 1] });

function cpu(call, callback) {
  calls.inc({ method: 'cpu' });
  seconds.observe(0.05);
  const fib = (n) => (n < 2 ? n : fib(n - 1) + fib(n - 2));
  callback(null, { value: fib(Math.min(call.request.n, 20)), worker: process.env.CABRANK_WORKER });
}

http.createServer(async (request, response) => {
  response.setHeader('Content-Type', metrics.register.contentType);
  response.end(await metrics.register.metrics());
}).listen(Number(process.env.PROMETHEUS_EXPORTER_PORT), '127.0.0.1');

const server = new grpc.Server();
server.addService(Work.service, { cpu });
server.bindAsync(process.env.CABRANK_ADDR, grpc.ServerCredentials.createInsecure(), (error) => { if (error) throw error; });
process.on('SIGTERM', () => server.tryShutdown(() => process.exit(0)));
