// What both scripts have: the servers, one after the other, and the table at the end.
// Variables: CONNECT_PORT (50051), GRPC_PORT (50052), SCENARIO (all, grpc-connect or
// grpc-standard), MESSAGE_COUNT (5), RESULTS (folder of the results, ".").

/** @typedef {{ key: string, title: string, address: string }} Server */

/** @returns {Server[]} those that are wanted */
export function servers() {
  const all = [
    { key: 'grpcConnect', scenario: 'grpc-connect', title: 'gRPC (ConnectRPC)', address: `localhost:${__ENV.CONNECT_PORT || 50051}` },
    { key: 'grpcStandard', scenario: 'grpc-standard', title: 'gRPC (Standard)', address: `localhost:${__ENV.GRPC_PORT || 50052}` },
  ];
  const wanted = __ENV.SCENARIO || 'all';
  const found = all.filter(({ scenario }) => wanted === 'all' || wanted === scenario);
  if (found.length === 0) throw new Error(`SCENARIO is ${wanted}: want all, grpc-connect or grpc-standard`);
  return found;
}

/**
 * inTurn gives each server the same stages, behind those of the one before.
 * @param {Server[]} among
 * @param {{ duration: string, target: number }[]} stages
 * @param {number} callers of the warm-up, 10 s
 */
export function inTurn(among, stages, callers) {
  const seconds = stages.reduce((sum, { duration }) => sum + parseInt(duration, 10), 0);
  const each = 10 + seconds + 10;
  /** @type {Record<string, import('k6/options').Scenario>} */
  const scenarios = {};
  among.forEach(({ key, address }, n) => {
    const common = { exec: 'call', env: { KEY: key, ADDRESS: address }, gracefulStop: '5s' };
    scenarios[`${key}_warmup`] = { ...common, executor: 'constant-vus', vus: callers, duration: '10s', startTime: `${n * each}s`, tags: { phase: 'warmup' } };
    scenarios[key] = { ...common, executor: 'ramping-vus', startVUs: callers, stages, startTime: `${n * each + 10}s`, gracefulRampDown: '5s' };
  });
  return scenarios;
}

/**
 * report writes the results as JSON and as a table, in the form of the suite.
 * @param {string} name of the files
 * @param {Server[]} among
 * @param {any} data of handleSummary
 * @param {string} time metric behind the key of a server
 * @param {string} errors metric behind it
 */
export function report(name, among, data, time, errors) {
  const stamp = new Date().toISOString().replace(/[:.]/g, '-');
  const rule = '-'.repeat(70);
  /** @type {Record<string, any>} */
  const metrics = {};
  const rows = [];
  const rates = [];
  for (const { key, title } of among) {
    const v = (data.metrics[`${key}_${time}`] || { values: {} }).values;
    const rate = (data.metrics[`${key}_${errors}`] || { values: { rate: 0 } }).values.rate;
    metrics[key] = { latency: { avg: v.avg, min: v.min, med: v.med, max: v.max, p90: v['p(90)'], p95: v['p(95)'], p99: v['p(99)'], count: v.count }, errorRate: rate };
    const cells = [v.avg, v.med, v['p(90)'], v['p(95)'], v['p(99)'], v.max];
    rows.push(title.padEnd(18) + cells.map((x) => ' ' + (x === undefined ? '-' : x.toFixed(2)).padEnd(8)).join(''));
    rates.push(`  ${title.padEnd(18)}: ${(100 * rate).toFixed(2)}%`);
  }
  const text = ['Latency (ms), each server alone:', rule, 'Implementation     Avg      P50      P90      P95      P99      Max', rule, ...rows, rule, '', 'Error rates:', ...rates, ''].join('\n');
  const iterations = (data.metrics.iterations || { values: { count: 0 } }).values.count;
  const json = { timestamp: new Date().toISOString(), scenario: __ENV.SCENARIO || 'all', testMode: 'sequential', servers: Object.fromEntries(among.map(({ key, address }) => [key, address])), metrics, iterations };
  const folder = __ENV.RESULTS || '.';
  return { stdout: text, [`${folder}/${name}-${stamp}.json`]: JSON.stringify(json, null, 2), [`${folder}/summary-${stamp}.txt`]: text };
}
