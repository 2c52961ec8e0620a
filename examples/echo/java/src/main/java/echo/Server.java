// The Echo service on grpc-java: at 127.0.0.1:PORT.
package echo;

import echo.v1.EchoReply;
import echo.v1.EchoRequest;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.ServerServiceDefinition;
import io.grpc.ServiceDescriptor;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.protobuf.ProtoFileDescriptorSupplier;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.protobuf.services.HealthStatusManager;
import io.grpc.protobuf.services.ProtoReflectionServiceV1;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.ServerCallStreamObserver;
import io.grpc.stub.StreamObserver;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.net.InetSocketAddress;
import java.util.concurrent.TimeUnit;

public final class Server {
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

  // What the plugin of grpc-java would generate: this one needs protoc alone.
  private static ServerServiceDefinition echo() {
    var say = method("Say", MethodType.UNARY);
    var repeat = method("Repeat", MethodType.SERVER_STREAMING);
    ProtoFileDescriptorSupplier file = () -> EchoRequest.getDescriptor().getFile();
    var service = ServiceDescriptor.newBuilder("echo.v1.Echo")
        .setSchemaDescriptor(file).addMethod(say).addMethod(repeat).build();
    return ServerServiceDefinition.builder(service)
        .addMethod(say, ServerCalls.asyncUnaryCall(Server::say))
        .addMethod(repeat, ServerCalls.asyncServerStreamingCall(Server::repeat))
        .build();
  }

  private static MethodDescriptor<EchoRequest, EchoReply> method(String name, MethodType type) {
    return MethodDescriptor.<EchoRequest, EchoReply>newBuilder()
        .setType(type)
        .setFullMethodName("echo.v1.Echo/" + name)
        .setRequestMarshaller(ProtoUtils.marshaller(EchoRequest.getDefaultInstance()))
        .setResponseMarshaller(ProtoUtils.marshaller(EchoReply.getDefaultInstance()))
        .build();
  }

  private static void say(EchoRequest request, StreamObserver<EchoReply> answers) {
    answers.onNext(answer(request, 1));
    answers.onCompleted();
  }

  // The stream goes on when the caller has taken what was sent, and ends if he leaves.
  private static void repeat(EchoRequest request, StreamObserver<EchoReply> to) {
    var answers = (ServerCallStreamObserver<EchoReply>) to;
    int count = between(request.getCount(), 10_000);
    var next = new int[] {1};
    answers.setOnReadyHandler(() -> {
      while (answers.isReady() && next[0] <= count) {
        answers.onNext(answer(request, next[0]++));
      }
      if (next[0] == count + 1) {
        next[0]++;
        answers.onCompleted();
      }
    });
  }

  private static EchoReply answer(EchoRequest request, int number) {
    use(between(request.getCpuMs(), 1000));
    return EchoReply.newBuilder().setText(request.getText()).setNumber(number).build();
  }

  // Numbers without a sign are those with one to Java: 2^31 and more are below 0.
  private static int between(int number, int most) {
    return number < 0 ? most : Math.min(number, most);
  }

  // The clock is that of the thread: on a busy machine it takes longer.
  private static void use(int millis) {
    long upTo = THREADS.getCurrentThreadCpuTime() + TimeUnit.MILLISECONDS.toNanos(millis);
    while (THREADS.getCurrentThreadCpuTime() < upTo) {
      Thread.onSpinWait();
    }
  }

  public static void main(String[] args) throws Exception {
    int port = Integer.parseInt(System.getenv().getOrDefault("PORT", "50051"));
    var server = NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", port))
        .addService(echo())
        .addService(new HealthStatusManager().getHealthService())
        .addService(ProtoReflectionServiceV1.newInstance())
        .build()
        .start();
    // The process ends when this has: calls that run are served. Its status is 0, and not the
    // 143 of a virtual machine that was told to end.
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      try {
        server.shutdown().awaitTermination(30, TimeUnit.SECONDS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      Runtime.getRuntime().halt(0);
    }));
    server.awaitTermination();
  }
}
