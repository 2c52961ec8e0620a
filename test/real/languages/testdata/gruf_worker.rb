# frozen_string_literal: true

# Stands in for `bundle exec gruf --host HOST:PORT ...`: GRPC::RpcServer, which gruf runs
# on, with the metrics of its example application at PROMETHEUS_EXPORTER_PORT and _PATH.

root = File.expand_path('../../../..', __dir__)
$LOAD_PATH.unshift File.join(root, 'examples/ruby/lib')
require 'fileutils'
require 'socket'
require 'grpc'
require 'grpc/health/checker'
require 'cabrank/example/v1/work_services_pb'

abort "not gruf: #{ARGV}" unless ARGV[0, 2] == %w[exec gruf]
address = ARGV.fetch(ARGV.index('--host') + 1)
threads = Integer(ENV.fetch('RAILS_MAX_THREADS'))
page = { port: Integer(ENV.fetch('PROMETHEUS_EXPORTER_PORT')), path: ENV.fetch('PROMETHEUS_EXPORTER_PATH') }
warn "gruf on #{address}, #{threads} threads, metrics at #{page[:port]}#{page[:path]}"

# Each worker has a folder of its own, which is empty when it starts.
ENV['prometheus_multiproc_dir'] = File.join(ENV.fetch('METRICS_DIR'), page[:port].to_s)
FileUtils.rm_rf(ENV['prometheus_multiproc_dir'])
FileUtils.mkdir_p(ENV['prometheus_multiproc_dir'])
require 'prometheus/client'
require 'prometheus/client/formats/text'

METRICS = Prometheus::Client.registry
LABELS = { grpc_type: 'request_response', grpc_client_method: 'cpu' }.freeze
METRICS.gauge(:grpc_server_pool_workers_total, 'Threads of the pool.').set({}, threads)
REQUESTS = METRICS.counter(:grpc_server_requests_total, 'Calls, by method.')
DURATION = METRICS.histogram(:grpc_server_request_duration_seconds, 'How long calls take.', {}, [0.01, 0.1, 1])

# Work counts as gruf's interceptor does.
class Work < Cabrank::Example::V1::Work::Service
  def cpu(request, _call)
    REQUESTS.increment(LABELS)
    DURATION.observe(LABELS, 0.05)
    Cabrank::Example::V1::CpuReply.new(value: fib([request.n, 20].min), worker: ENV.fetch('CABRANK_WORKER', 'worker'))
  end

  private

  def fib(n)
    n < 2 ? n : fib(n - 1) + fib(n - 2)
  end
end

# Serves one page after the other, as Rack's small servers do.
Thread.new do
  server = TCPServer.new('127.0.0.1', page[:port])
  loop do
    client = server.accept
    if ENV['METRICS_HANG']
      warn 'never answered'
      sleep
    end
    path = client.gets.to_s.split[1]
    nil until ['', "\r\n"].include?(client.gets.to_s)
    status, body = path == page[:path] ? ['200 OK', Prometheus::Client::Formats::Text.marshal_multiprocess] : ['404 Not Found', '']
    client.write("HTTP/1.1 #{status}\r\nContent-Type: #{Prometheus::Client::Formats::Text::CONTENT_TYPE}\r\n" \
                 "Content-Length: #{body.bytesize}\r\nConnection: close\r\n\r\n#{body}")
  rescue SystemCallError => e
    warn e.message
  ensure
    client&.close
  end
end

health = Grpc::Health::Checker.new
health.add_status('', Grpc::Health::V1::HealthCheckResponse::ServingStatus::SERVING)
server = GRPC::RpcServer.new(pool_size: threads, server_args: { 'grpc.so_reuseport' => 0 })
server.add_http2_port(address, :this_port_is_insecure)
server.handle(Work.new)
server.handle(health)
server.run_till_terminated_or_interrupted(%w[INT TERM])
