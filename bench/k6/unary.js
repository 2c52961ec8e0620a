// SayHello by k6: k6 run bench/k6/unary.js, from the root of the repository, while the servers
// of examples/nestjs run. A connection is kept for all calls of a caller. k6's clock has
// milliseconds: bench/protocols.sh measures in microseconds.
import { check, sleep } from 'k6';
import exec from 'k6/execution';
import { Client, StatusOK } from 'k6/net/grpc';
import { Rate, Trend } from 'k6/metrics';
import { inTurn, report, servers } from './servers.js';

const among = servers();
const client = new Client();
client.load(['../../examples/nestjs/proto'], 'example/v1/example.proto');

const latency = Object.fromEntries(among.map(({ key }) => [key, new Trend(`${key}_latency`, true)]));
const errors = Object.fromEntries(among.map(({ key }) => [key, new Rate(`${key}_errors`)]));

export const options = {
  scenarios: inTurn(among, [
    { duration: '20s', target: 50 },
    { duration: '40s', target: 50 },
    { duration: '20s', target: 100 },
    { duration: '15s', target: 0 },
  ], 10),
  summaryTrendStats: ['avg', 'min', 'med', 'max', 'p(90)', 'p(95)', 'p(99)', 'count'],
  thresholds: Object.fromEntries(among.flatMap(({ key }) => [
    [`${key}_errors`, ['rate<0.01']],
    [`${key}_latency`, ['p(95)<100', 'p(99)<200']],
  ])),
};

let connected = '';

export function call() {
  const { KEY, ADDRESS } = __ENV;
  if (connected !== ADDRESS) {
    client.connect(ADDRESS, { plaintext: true });
    connected = ADDRESS;
  }
  const began = Date.now();
  const answer = client.invoke('example.v1.ExampleService/SayHello', { name: `User-${exec.vu.idInTest}-${exec.vu.iterationInScenario}` });
  const took = Date.now() - began;
  const good = check(answer, { 'it greets': (r) => r.status === StatusOK && String(Object(r.message).message).includes('Hello') });
  if (exec.scenario.name === KEY) { // not of the warm-up
    latency[KEY].add(took);
    errors[KEY].add(!good);
  }
  sleep(0.01);
}

/** @param {any} data */
export function handleSummary(data) {
  return report('unary', among, data, 'latency', 'errors');
}
