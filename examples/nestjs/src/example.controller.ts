import { status } from '@grpc/grpc-js';
import { Controller, Module } from '@nestjs/common';
import { GrpcMethod, GrpcStreamMethod, RpcException } from '@nestjs/microservices';
import { map, Observable, range, tap, toArray } from 'rxjs';

interface Hello { name: string }
interface Request { data: string; count: number }
interface Response { data: string; index: number }

// mostMessages bounds a stream: what a caller asks for waits in memory until it is read.
const mostMessages = 10_000;

function refuse(what: string): never {
  throw new RpcException({ code: status.INVALID_ARGUMENT, message: `${what}: at most ${mostMessages}` });
}

// The one service, whichever transport serves it.
@Controller()
export class ExampleController {
  @GrpcMethod('ExampleService', 'SayHello')
  sayHello({ name }: Hello) {
    return { message: `Hello, ${name}!`, timestamp: Date.now() };
  }

  @GrpcMethod('ExampleService', 'ServerStream')
  serverStream({ data, count }: Request): Observable<Response> {
    const n = count || 5;
    if (n < 0 || n > mostMessages) refuse('count');
    return range(0, n).pipe(map((index) => ({ data: `${data} (chunk ${index + 1} of ${n})`, index })));
  }

  @GrpcStreamMethod('ExampleService', 'ClientStream')
  clientStream(messages: Observable<Request>): Observable<Response> {
    return bounded(messages).pipe(
      map(({ data }) => data),
      toArray(),
      map((all) => ({ data: `Aggregated ${all.length} items: ${all.join(', ')}`, index: all.length })),
    );
  }

  @GrpcStreamMethod('ExampleService', 'BidiStream')
  bidiStream(messages: Observable<Request>): Observable<Response> {
    return messages.pipe(map(({ data }, index) => ({ data: `Echo: ${data}`, index })));
  }
}

function bounded<T>(messages: Observable<T>): Observable<T> {
  return messages.pipe(tap({ next: (() => { let n = 0; return () => { if (++n > mostMessages) refuse('messages'); }; })() }));
}

@Module({ controllers: [ExampleController] })
export class ExampleModule {}
