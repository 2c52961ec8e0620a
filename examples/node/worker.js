'use strict';

// A worker on grpc-js: CABRANK_ADDR is its address. One thread serves all
// calls, so `io` overlaps with others and `cpu` does not.

const { Readable, pipeline } = require('node:stream');
const { setTimeout: sleep } = require('node:timers/promises');
const grpc = require('@grpc/grpc-js');
const { HealthImplementation } = require('grpc-health-check');
const { Work, FailDetail, Status } = require('./work');

const worker = process.env.CABRANK_WORKER || 'node';
let executions = 0;

const fib = (n) => (n < 2 ? n : fib(n - 1) + fib(n - 2));

function cpu(call, callback) {
  callback(null, { value: fib(Math.min(call.request.n, 40)), worker });
}

async function io(call, callback) {
  const millis = Math.min(call.request.millis, 60_000);
  await sleep(millis);
  callback(null, { millis, worker });
}

async function* numbers({ to, pauseMillis }) {
  for (let value = 1; value <= to; value++) {
    if (value > 1 && pauseMillis > 0) await sleep(pauseMillis);
    yield { value };
  }
}

// pipeline writes no faster than the caller reads and stops when it leaves.
function count(call) {
  pipeline(Readable.from(numbers(call.request)), call, () => {});
}

function sum(call, callback) {
  let value = 0;
  call.on('data', (number) => { value += number.value; });
  call.on('end', () => callback(null, { value }));
}

function chat(call) {
  call.on('data', ({ text }) => call.write({ text: `re: ${text}` }));
  call.on('end', () => call.end());
}

function fail(call, callback) {
  const { code, message, reason } = call.request;
  const detail = {
    type_url: 'type.googleapis.com/cabrank.example.v1.FailDetail',
    value: FailDetail.serialize({ reason }),
  };
  const metadata = new grpc.Metadata();
  metadata.set('grpc-status-details-bin', Status.serialize({ code, message, details: [detail] }));
  metadata.set('x-executions', String(++executions));
  callback({ code, details: message, metadata });
}

function pick(metadata, keys) {
  const picked = new grpc.Metadata();
  for (const key of keys) {
    for (const value of metadata.get(key)) picked.add(key, value);
  }
  return picked;
}

function meta(call, callback) {
  call.sendMetadata(pick(call.metadata, call.request.headers));
  callback(null, {}, pick(call.metadata, call.request.trailers));
}

const server = new grpc.Server();
server.addService(Work.service, { cpu, io, count, sum, chat, fail, meta });
new HealthImplementation({ '': 'SERVING' }).addToServer(server);
server.bindAsync(
  process.env.CABRANK_ADDR || '127.0.0.1:50051',
  grpc.ServerCredentials.createInsecure(),
  (error) => { if (error) throw error; },
);
for (const signal of ['SIGTERM', 'SIGINT']) {
  process.on(signal, () => server.tryShutdown(() => process.exit(0)));
}
