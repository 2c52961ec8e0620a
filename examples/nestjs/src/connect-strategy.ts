import { createServer, Http2Server, ServerHttp2Session } from 'node:http2';
import { create, DescMessage, DescMethod, DescService, Message, ScalarType } from '@bufbuild/protobuf';
import { Code, ConnectError, ConnectRouter, HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { CustomTransportStrategy, MessageHandler, Server } from '@nestjs/microservices';
import { from, fromEvent, lastValueFrom, Observable, takeUntil } from 'rxjs';
import { describe, health } from './connect-services.js';
import { eachOf } from './each-of.js';

const longs = new Set([ScalarType.INT64, ScalarType.UINT64, ScalarType.SINT64, ScalarType.FIXED64, ScalarType.SFIXED64]);

export interface ConnectOptions {
  host: string;
  port: number;
  services: DescService[];
}

// ConnectStrategy serves the handlers of @GrpcMethod and @GrpcStreamMethod by connectNodeAdapter.
export class ConnectStrategy extends Server implements CustomTransportStrategy {
  private http?: Http2Server;
  private readonly sessions = new Set<ServerHttp2Session>();

  constructor(private readonly options: ConnectOptions) {
    super();
  }

  // listen comes when all handlers are known.
  listen(callback: (error?: unknown) => void) {
    this.http = createServer(connectNodeAdapter({ routes: (router) => this.route(router) }));
    this.http.on('session', (session) => {
      this.sessions.add(session);
      session.once('close', () => this.sessions.delete(session));
    });
    this.http.once('error', callback);
    this.http.listen(this.options, () => callback());
  }

  // close ends when the streams that run have ended.
  async close() {
    const closed = new Promise((resolve) => this.http?.close(resolve));
    this.sessions.forEach((session) => session.close());
    await closed;
  }

  on(): never { throw new Error('there are no events'); }

  unwrap<T>(): T { return this.http as T; }

  private route(router: ConnectRouter) {
    health(router, this.options.services);
    describe(router, this.options.services);
    for (const service of this.options.services) {
      const implementation: Record<string, unknown> = {};
      for (const method of service.methods) {
        const handler = this.handlerOf(service, method);
        if (handler) implementation[method.localName] = this.serve(method, handler);
      }
      router.service(service, implementation as Partial<ServiceImpl<DescService>>);
    }
  }

  // handlerOf finds a handler by the pattern that the decorators of gRPC make.
  private handlerOf(service: DescService, method: DescMethod): MessageHandler | undefined {
    const streams = method.methodKind === 'client_streaming' || method.methodKind === 'bidi_streaming';
    const streaming = streams ? 'rx_stream' : 'no_stream';
    const by = (name: string) => this.messageHandlers.get(this.normalizePattern({ service: name, rpc: method.name, streaming }));
    return by(service.name) ?? by(service.typeName);
  }

  private serve(method: DescMethod, handler: MessageHandler) {
    const answers = async (request: unknown, context: HandlerContext): Promise<Observable<unknown>> => {
      const left = fromEvent(context.signal, 'abort'); // the caller has, or its deadline is over
      const data = Symbol.asyncIterator in Object(request) ? from(request as AsyncIterable<unknown>) : request;
      return this.transformToObservable(await handler(data, context)).pipe(takeUntil(left)) as Observable<unknown>;
    };
    if (method.methodKind === 'unary' || method.methodKind === 'client_streaming') {
      return async (request: unknown, context: HandlerContext) => {
        try {
          return asMessage(method.output, await lastValueFrom(await answers(request, context)));
        } catch (error) {
          throw asConnect(error);
        }
      };
    }
    return async function* (request: unknown, context: HandlerContext) {
      try {
        for await (const value of eachOf(await answers(request, context))) yield asMessage(method.output, value);
      } catch (error) {
        throw asConnect(error);
      }
    };
  }
}

// asMessage takes numbers where a message has 64 bits, as Transport.GRPC does.
function asMessage(schema: DescMessage, value: unknown): Message {
  const fields = { ...(value as Record<string, unknown>) };
  for (const { fieldKind, localName, scalar } of schema.fields) {
    const given = fields[localName];
    if (fieldKind === 'scalar' && longs.has(scalar) && typeof given === 'number') fields[localName] = BigInt(given);
  }
  return create(schema, fields);
}

// asConnect gives what a handler has thrown the code that it has in gRPC: the numbers are the same.
function asConnect(error: unknown): ConnectError {
  if (error instanceof ConnectError) return error;
  const { code, message } = Object(error) as { code?: Code; message?: string };
  return new ConnectError(message ?? String(error), code ?? Code.Unknown);
}
