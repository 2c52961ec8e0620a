'use strict';

// The worker of examples/node, but an Io call of a minute blocks its only thread
// for ever, without computing: what a lock or a synchronous call to something that
// never answers does.

const { createRequire } = require('node:module');
const path = require('node:path');

const example = path.join(__dirname, '../../../../examples/node/worker.js');
const grpc = createRequire(example)('@grpc/grpc-js');

const addService = grpc.Server.prototype.addService;
grpc.Server.prototype.addService = function add(service, handlers) {
  const { io } = handlers;
  if (!io) return addService.call(this, service, handlers);
  const hanging = (call, callback) => {
    if (call.request.millis >= 60_000) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    return io(call, callback);
  };
  return addService.call(this, service, { ...handlers, io: hanging });
};

require(example);
