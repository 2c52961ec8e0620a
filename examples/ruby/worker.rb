# frozen_string_literal: true

# A worker on GRPC::RpcServer, the server that gruf runs on too.
# Cabrank gives the address in CABRANK_ADDR and the threads in RAILS_MAX_THREADS.

$LOAD_PATH.unshift File.join(__dir__, 'lib')
require 'grpc'
require 'grpc/health/checker'
require 'google/protobuf/well_known_types'
require 'google/rpc/status_pb'
require 'cabrank/example/v1/work_services_pb'

$stdout.sync = true # shows at once what is printed: Cabrank reads it through a pipe

# Work shows each kind of call once.
class Work < Cabrank::Example::V1::Work::Service
  include Cabrank::Example::V1

  def initialize
    super
    @worker = ENV.fetch('CABRANK_WORKER', 'ruby')
    @executions = 0
    @mutex = Mutex.new
  end

  def cpu(request, _call)
    CpuReply.new(value: fib([request.n, 40].min), worker: @worker)
  end

  def io(request, _call)
    millis = [request.millis, 60_000].min
    sleep millis / 1000.0
    IoReply.new(millis: millis, worker: @worker)
  end

  # A server stream is anything that has `each`.
  def count(request, _call)
    (1..request.to).lazy.map do |value|
      sleep request.pause_millis / 1000.0 if value > 1
      Number.new(value: value)
    end
  end

  def sum(call)
    Number.new(value: call.each_remote_read.sum(&:value))
  end

  def chat(messages, _call)
    messages.lazy.map { |message| ChatMessage.new(text: "re: #{message.text}") }
  end

  def fail(request, _call)
    executions = @mutex.synchronize { @executions += 1 }
    detail = Google::Protobuf::Any.pack(FailDetail.new(reason: request.reason))
    status = Google::Rpc::Status.new(code: request.code, message: request.message, details: [detail])
    raise GRPC::BadStatus.new(request.code, request.message,
                              'grpc-status-details-bin' => status.to_proto,
                              'x-executions' => executions.to_s)
  end

  def meta(request, call)
    call.send_initial_metadata(call.metadata.slice(*request.headers))
    call.output_metadata.update(call.metadata.slice(*request.trailers))
    MetaReply.new
  end

  private

  def fib(n)
    n < 2 ? n : fib(n - 1) + fib(n - 2)
  end
end

health = Grpc::Health::Checker.new
health.add_status('', Grpc::Health::V1::HealthCheckResponse::ServingStatus::SERVING)

server = GRPC::RpcServer.new(
  pool_size: Integer(ENV.fetch('RAILS_MAX_THREADS', '5')),
  # A second worker on the same address must fail, not share it.
  server_args: { 'grpc.so_reuseport' => 0 }
)
server.add_http2_port(ENV.fetch('CABRANK_ADDR', '127.0.0.1:50051'), :this_port_is_insecure)
server.handle(Work.new)
server.handle(health)
server.run_till_terminated_or_interrupted(%w[INT TERM])
