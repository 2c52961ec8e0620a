// The Echo service on grpc-js: at 127.0.0.1:PORT. One thread serves all calls.
import { Readable, pipeline } from 'node:stream';
import { fileURLToPath } from 'node:url';
import grpc from '@grpc/grpc-js';
import protoLoader from '@grpc/proto-loader';
import { ReflectionService } from '@grpc/reflection';
import { HealthImplementation } from 'grpc-health-check';
import { numbers, port, use } from './use.mjs';

const file = fileURLToPath(new URL('../echo.proto', import.meta.url));
// Reflection needs the names of fields as they are in the file.
const definition = protoLoader.loadSync(file, { defaults: true, keepCase: true });

function say({ request: { text, cpu_ms } }, callback) {
  use(cpu_ms);
  callback(null, { text, number: 1 });
}

async function* answers({ text, cpu_ms, count }) {
  for await (const number of numbers(count)) {
    use(cpu_ms);
    yield { text, number };
  }
}

// pipeline writes no faster than the caller reads and stops when it leaves.
function repeat(call) {
  pipeline(Readable.from(answers(call.request)), call, () => {});
}

const server = new grpc.Server();
server.addService(grpc.loadPackageDefinition(definition).echo.v1.Echo.service, { say, repeat });
new HealthImplementation({ '': 'SERVING' }).addToServer(server);
new ReflectionService(definition).addToServer(server);
server.bindAsync(`127.0.0.1:${port}`, grpc.ServerCredentials.createInsecure(), (error) => { if (error) throw error; });
for (const signal of ['SIGTERM', 'SIGINT']) {
  process.once(signal, () => server.tryShutdown(() => process.exit(0)));
}
