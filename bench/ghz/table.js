// Prints what a report of ghz says in one line: node table.js REPORT.json [MESSAGES].
// With the number of messages of a stream it says how many came in a second.
const { readFileSync } = require('node:fs');

const [file, messages] = process.argv.slice(2);
const report = JSON.parse(readFileSync(file, 'utf8'));
const ms = (ns) => (ns / 1e6).toFixed(2).padStart(8);
// A report has those that it has: which they are is for their name to say, not for their place.
const at = (p) => ms(report.latencyDistribution?.find(({ percentage }) => percentage === p)?.latency ?? NaN);
const failed = report.count - (report.statusCodeDistribution.OK ?? 0);
console.log('Server (ms)            Avg      P50      P90      P95      P99      Max');
console.log(report.name.padEnd(18) + ms(report.average) + [50, 90, 95, 99].map((p) => ' ' + at(p)).join('') + ' ' + ms(report.slowest));
console.log(`${report.count} calls, ${((100 * failed) / report.count).toFixed(2)} % errors, ${Math.round(report.rps)} in a second`
  + (messages ? `, ${Math.round(report.rps * messages)} messages` : ''));
