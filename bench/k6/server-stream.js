// ServerStream by k6: as unary.js. A stream is over when its last message has come.
import { sleep } from 'k6';
import exec from 'k6/execution';
import { Client, Stream } from 'k6/net/grpc';
import { Counter, Rate, Trend } from 'k6/metrics';
import { inTurn, report, servers } from './servers.js';

const among = servers();
const messages = parseInt(__ENV.MESSAGE_COUNT || '5', 10);
const client = new Client();
client.load(['../../examples/nestjs/proto'], 'example/v1/example.proto');

const duration = Object.fromEntries(among.map(({ key }) => [key, new Trend(`${key}_stream_duration`, true)]));
const received = Object.fromEntries(among.map(({ key }) => [key, new Counter(`${key}_messages_received`)]));
const errors = Object.fromEntries(among.map(({ key }) => [key, new Rate(`${key}_errors`)]));

export const options = {
  scenarios: inTurn(among, [
    { duration: '15s', target: 25 },
    { duration: '40s', target: 25 },
    { duration: '15s', target: 50 },
    { duration: '15s', target: 0 },
  ], 5),
  summaryTrendStats: ['avg', 'min', 'med', 'max', 'p(90)', 'p(95)', 'p(99)', 'count'],
  thresholds: Object.fromEntries(among.flatMap(({ key }) => [
    [`${key}_errors`, ['rate<0.01']],
    [`${key}_stream_duration`, ['p(95)<500', 'p(99)<1000']],
  ])),
};

let connected = '';

export async function call() {
  const { KEY, ADDRESS } = __ENV;
  if (connected !== ADDRESS) {
    client.connect(ADDRESS, { plaintext: true });
    connected = ADDRESS;
  }
  const counts = exec.scenario.name === KEY; // not of the warm-up
  const began = Date.now();
  let came = 0;
  let failed = false;
  await new Promise((resolve) => {
    const stream = new Stream(client, 'example.v1.ExampleService/ServerStream', undefined);
    stream.on('data', () => { came++; });
    stream.on('error', () => { failed = true; resolve(undefined); });
    stream.on('end', () => resolve(undefined));
    stream.write({ data: 'benchmark', count: messages });
    stream.end();
  });
  if (counts) {
    duration[KEY].add(Date.now() - began);
    received[KEY].add(came);
    errors[KEY].add(failed || came !== messages);
  }
  sleep(0.01);
}

/** @param {any} data */
export function handleSummary(data) {
  return report('server-stream', among, data, 'stream_duration', 'errors');
}
