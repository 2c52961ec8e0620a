'use strict';

// Calls each method of Work once and prints one JSON line per case.
// usage: node client.js [HOST:PORT]

const { once } = require('node:events');
const { promisify } = require('node:util');
const grpc = require('@grpc/grpc-js');
const { Work, FailDetail, Status } = require('./work');

const client = new Work(process.argv[2] || 'localhost:8080', grpc.credentials.createInsecure());
const unary = (method) => promisify(client[method]).bind(client);

function show(name, got) {
  console.log(JSON.stringify({ case: name, got }));
}

async function count(request) {
  const values = [];
  for await (const number of client.count(request)) values.push(number.value);
  return values;
}

function sum(values) {
  return new Promise((resolve, reject) => {
    const call = client.sum((error, number) => (error ? reject(error) : resolve(number.value)));
    for (const value of values) call.write({ value });
    call.end();
  });
}

// Every message but the first waits for the answer to the one before.
async function chat(texts) {
  const call = client.chat();
  const answers = [];
  for (const text of texts) {
    call.write({ text });
    const [answer] = await once(call, 'data');
    answers.push(answer.text);
  }
  call.end();
  await once(call, 'end');
  return answers;
}

async function failure() {
  try {
    await unary('fail')({ code: 9, message: 'sold out: café ☕', reason: 'SOLD_OUT' });
  } catch (error) {
    const status = Status.deserialize(error.metadata.get('grpc-status-details-bin')[0]);
    const { reason } = FailDetail.deserialize(status.details[0].value);
    return { code: error.code, message: error.details, reason };
  }
}

function metadata() {
  const sent = new grpc.Metadata();
  sent.add('x-head', 'one');
  sent.add('x-head', 'two');
  sent.add('x-tail-bin', Buffer.from([0x00, 0x01, 0xfe, 0xff]));
  const got = {};
  return new Promise((resolve, reject) => {
    const request = { headers: ['x-head'], trailers: ['x-tail-bin'] };
    const call = client.meta(request, sent, (error) => { if (error) reject(error); });
    call.on('metadata', (head) => { got.header = head.get('x-head').join(', '); });
    call.on('status', (status) => {
      got.trailer = status.metadata.get('x-tail-bin')[0].toString('hex');
      resolve(got);
    });
  });
}

async function deadline() {
  try {
    await unary('io')({ millis: 1000 }, { deadline: Date.now() + 100 });
  } catch (error) {
    return error.code;
  }
}

// Leaves in the middle of a stream of 20 s.
async function cancel() {
  const call = client.count({ to: 1000, pauseMillis: 20 });
  try {
    for await (const _ of call) call.cancel();
  } catch (error) {
    return error.code;
  }
}

async function main() {
  show('cpu', (await unary('cpu')({ n: 20 })).value);
  show('io', (await unary('io')({ millis: 10 })).millis);
  show('count', await count({ to: 5 }));
  show('count nothing', await count({ to: 0 }));
  show('sum', await sum([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]));
  show('sum nothing', await sum([]));
  show('chat', await chat(['one', 'zwei', '三']));
  show('fail', await failure());
  show('meta', await metadata());
  show('deadline', await deadline());
  show('cancel', await cancel());
  client.close();
}

main();
