// The service on a transport of its own: Connect, gRPC and gRPC-Web at one port, over HTTP/2.
// Port 50051, or PORT.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { CustomStrategy } from '@nestjs/microservices';
import { where } from './address.js';
import { ConnectStrategy } from './connect-strategy.js';
import { ExampleModule } from './example.controller.js';
import { ExampleService } from './gen/example/v1/example_pb.js';

const app = await NestFactory.createMicroservice<CustomStrategy>(ExampleModule, {
  logger: ['error', 'warn'],
  strategy: new ConnectStrategy({ ...where(50051), services: [ExampleService] }),
});
app.enableShutdownHooks();
await app.listen();
