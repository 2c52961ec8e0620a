// The service on Transport.GRPC of NestJS, which is @grpc/grpc-js. Port 50052, or PORT.
import 'reflect-metadata';
import { fileURLToPath } from 'node:url';
import { ReflectionService } from '@grpc/reflection';
import { NestFactory } from '@nestjs/core';
import { GrpcOptions, Transport } from '@nestjs/microservices';
import { HealthImplementation } from 'grpc-health-check';
import { where } from './address.js';
import { ExampleModule } from './example.controller.js';

const { host, port } = where(50052);
const app = await NestFactory.createMicroservice<GrpcOptions>(ExampleModule, {
  logger: ['error', 'warn'],
  transport: Transport.GRPC,
  options: {
    url: `${host}:${port}`,
    package: 'example.v1',
    protoPath: fileURLToPath(new URL('../proto/example/v1/example.proto', import.meta.url)),
    gracefulShutdown: true,
    onLoadPackageDefinition: (definition, server) => {
      new HealthImplementation({ '': 'SERVING', 'example.v1.ExampleService': 'SERVING' }).addToServer(server);
      new ReflectionService(definition).addToServer(server);
    },
  },
});
app.enableShutdownHooks();
await app.listen();
