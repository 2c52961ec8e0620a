// The Echo service on connect-node, by Connect, gRPC and gRPC-Web over HTTP/2: at
// 127.0.0.1:PORT. One thread serves all calls.
import { createServer } from 'node:http2';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { describe, health } from '../../nestjs/dist/connect-services.js';
import { Echo } from './echo_pb.js';
import { numbers, port, use } from './use.mjs';

const echo = {
  say({ text, cpuMs }) {
    use(cpuMs);
    return { text, number: 1 };
  },
  async *repeat({ text, cpuMs, count }) {
    for await (const number of numbers(count)) {
      use(cpuMs);
      yield { text, number };
    }
  },
};

function routes(router) {
  router.service(Echo, echo);
  health(router, [Echo]);
  describe(router, [Echo]);
}

const server = createServer(connectNodeAdapter({ routes }));
const sessions = new Set();
server.on('session', (session) => {
  sessions.add(session);
  session.once('close', () => sessions.delete(session));
});
server.listen({ host: '127.0.0.1', port });
for (const signal of ['SIGTERM', 'SIGINT']) {
  // A session that is closed serves the calls that it has.
  process.once(signal, () => { server.close(); sessions.forEach((session) => session.close()); });
}
