// Calls every method, and prints what comes: node dist/client.js URL [connect|grpc|grpc-web].
import { ConnectError, createClient, Transport } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import { ExampleService } from './gen/example/v1/example_pb.js';

const [url = 'http://localhost:8080', protocol = 'grpc'] = process.argv.slice(2);
const transports: Record<string, () => Transport> = {
  connect: () => createConnectTransport({ baseUrl: url, httpVersion: '2' }),
  grpc: () => createGrpcTransport({ baseUrl: url }),
  'grpc-web': () => createGrpcWebTransport({ baseUrl: url, httpVersion: '2' }),
};
if (!(protocol in transports)) {
  console.error(`client: ${protocol} is not one of ${Object.keys(transports).join(', ')}`);
  process.exit(2);
}
const client = createClient(ExampleService, transports[protocol]());
const timeout = { timeoutMs: 30_000 };

async function* requests(...texts: string[]) {
  for (const data of texts) yield { data };
}

async function print(answers: AsyncIterable<{ data: string; index: number }>) {
  for await (const { data, index } of answers) console.log(`${index} ${data}`);
}

async function run() {
  console.log((await client.sayHello({ name: 'you' }, timeout)).message);
  await print(client.serverStream({ data: 'part', count: 3 }, timeout));
  const { data, index } = await client.clientStream(requests('a', 'b'), timeout);
  console.log(`${index} ${data}`);
  await print(client.bidiStream(requests('a', 'b'), timeout));
}

run().catch((error) => {
  console.error(`client: ${url} by ${protocol}: ${ConnectError.from(error).message}`);
  process.exit(1);
});
