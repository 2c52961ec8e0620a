// Writes the results of the scenario protocols in the form of the suite that it is after:
// node protocols.js FOLDER TIME MODE MESSAGES. Exit status 1: a threshold does not hold.
const { readFileSync, writeFileSync } = require('node:fs');
const { join } = require('node:path');

const [folder, time, mode, messages] = process.argv.slice(2);
const run = JSON.parse(readFileSync(join(folder, 'run.json'), 'utf8'));

// The suite's names for two of the ways; the others have those of their arms.
const keys = { 'connect gRPC': 'grpcConnect', 'standard gRPC': 'grpcStandard' };
const rows = [
  { load: 'unary by stages', file: 'unary', title: 'Unary', p95: 0.1, p99: 0.2 },
  { load: 'server streams', file: 'server-stream', title: 'Server streams', p95: 0.5, p99: 1, each: Number(messages) },
];
const lines = [];
const missed = [];
const us = (seconds) => (seconds === undefined ? '-' : String(Math.round(seconds * 1e6))).padEnd(8);

for (const { load, file, title, p95, p99, each } of rows) {
  const metrics = {};
  const rates = [];
  let iterations = 0;
  lines.push(`${title}, each implementation alone (µs)`, '-'.repeat(80), `${'Implementation'.padEnd(26)}${['Avg', 'P50', 'P90', 'P95', 'P99', 'Max'].map((c) => c.padEnd(8)).join(' ')}`, '-'.repeat(80));
  for (const { name } of run.arms) {
    const block = run.blocks.find((b) => b.arm === name && b.load === load);
    if (!block) continue;
    const f = block.figures;
    const calls = Object.values(block.workers ?? {}).reduce((sum, n) => sum + n, 0);
    iterations += calls;
    metrics[keys[name] ?? name] = {
      latency: { avg: f.mean, med: f.p50, max: f.max, p90: f.p90, p95: f.p95, p99: f.p99, count: calls }, errorRate: f.errors ?? 0,
    };
    lines.push(name.padEnd(26) + [f.mean, f.p50, f.p90, f.p95, f.p99, f.max].map(us).join(' '));
    const first = f.first_p50 === undefined ? '' : `, first message p50 ${us(f.first_p50).trim()} µs, p99 ${us(f.first_p99).trim()} µs`;
    rates.push(`  ${name.padEnd(26)}: ${(100 * (f.errors ?? 0)).toFixed(2)}%, ${Math.round(f.rate ?? 0)} in a second${each ? `, ${Math.round((f.rate ?? 0) * each)} messages${first}` : ''}`);
    if (name.includes('cabrank')) continue;
    if (f.errors >= 0.01) missed.push(`${name}, ${load}: ${(100 * f.errors).toFixed(1)} % errors`);
    if (f.p95 >= p95) missed.push(`${name}, ${load}: p95 ${f.p95} s`);
    if (f.p99 >= p99) missed.push(`${name}, ${load}: p99 ${f.p99} s`);
  }
  lines.push('-'.repeat(80), '', 'Error rates, and calls:', ...rates, '');
  const result = { timestamp: run.began, scenario: mode, testMode: 'sequential', unit: 'seconds', metrics, iterations };
  writeFileSync(join(folder, `${file}-${time}.json`), JSON.stringify(result, null, 2) + '\n');
}
for (const line of missed) lines.push(`threshold: ${line}`);
const text = lines.join('\n') + '\n';
writeFileSync(join(folder, `summary-${time}.txt`), text);
process.stdout.write(text);
process.exitCode = missed.length > 0 ? 1 : 0;
