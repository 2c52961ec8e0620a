// What gRPC servers have beside their own services: health, and reflection.
import { once } from 'node:events';
import { create, DescFile, DescService, MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError, ConnectRouter } from '@connectrpc/connect';
import { ServerReflection, ServerReflectionRequest, ServerReflectionResponseSchema } from './gen/grpc/reflection/v1/reflection_pb.js';
import { Health, HealthCheckResponse_ServingStatus as Status } from './gen/health/v1/health_pb.js';

type Answer = MessageInitShape<typeof ServerReflectionResponseSchema>['messageResponse'];

// health says that every service serves: a process that does not answer is no good.
export function health(router: ConnectRouter, services: DescService[]) {
  const names = new Set(['', ...services.map(({ typeName }) => typeName)]);
  router.service(Health, {
    check({ service }) {
      if (!names.has(service)) throw new ConnectError('unknown service', Code.NotFound);
      return { status: Status.SERVING };
    },
    async *watch({ service }, { signal }) {
      yield { status: names.has(service) ? Status.SERVING : Status.SERVICE_UNKNOWN };
      if (!signal.aborted) await once(signal, 'abort');
    },
  });
}

// describe answers questions by reflection.
export function describe(router: ConnectRouter, services: DescService[]) {
  const all = [...services, Health, ServerReflection];
  const files = new Map<string, DescFile>();
  const add = (file: DescFile) => {
    files.set(`${file.name}.proto`, file);
    file.dependencies.forEach(add);
  };
  all.forEach(({ file }) => add(file));
  const withSymbol = (symbol: string) => [...files.values()].find((file) =>
    [...file.services, ...file.messages, ...file.enums].some(({ typeName }) => symbol === typeName || symbol.startsWith(`${typeName}.`)));
  const answer = ({ messageRequest }: ServerReflectionRequest): Answer => {
    switch (messageRequest.case) {
      case 'listServices':
        return { case: 'listServicesResponse', value: { service: all.map(({ typeName }) => ({ name: typeName })) } };
      case 'fileByFilename':
        return described(files.get(messageRequest.value));
      case 'fileContainingSymbol':
        return described(withSymbol(messageRequest.value));
      default:
        return { case: 'errorResponse', value: { errorCode: Code.Unimplemented, errorMessage: 'not answered here' } };
    }
  };
  router.service(ServerReflection, {
    async *serverReflectionInfo(requests) {
      for await (const request of requests) {
        yield create(ServerReflectionResponseSchema, { originalRequest: request, messageResponse: answer(request) });
      }
    },
  });
}

function described(file: DescFile | undefined): Answer {
  return file
    ? { case: 'fileDescriptorResponse', value: { fileDescriptorProto: [toBinary(FileDescriptorProtoSchema, file.proto)] } }
    : { case: 'errorResponse', value: { errorCode: Code.NotFound, errorMessage: 'not found' } };
}
