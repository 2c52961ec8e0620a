'use strict';

// What worker and client share: the service, read from its .proto file, and
// google.rpc.Status, which grpc-js leaves to the application.

const path = require('node:path');
const grpc = require('@grpc/grpc-js');
const protoLoader = require('@grpc/proto-loader');

const definition = protoLoader.loadSync('cabrank/example/v1/work.proto', {
  includeDirs: [path.join(__dirname, '../../proto')],
  defaults: true,
});

const { Status } = protoLoader.fromJSON({
  nested: {
    Any: { fields: { type_url: { type: 'string', id: 1 }, value: { type: 'bytes', id: 2 } } },
    Status: {
      fields: {
        code: { type: 'int32', id: 1 },
        message: { type: 'string', id: 2 },
        details: { rule: 'repeated', type: 'Any', id: 3 },
      },
    },
  },
});

module.exports = {
  Work: grpc.loadPackageDefinition(definition).cabrank.example.v1.Work,
  FailDetail: definition['cabrank.example.v1.FailDetail'],
  Status,
};
