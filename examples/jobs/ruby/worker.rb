# frozen_string_literal: true

# demo.Jobs on GRPC::RpcServer, the server that gruf runs on too: a call computes
# fib(20) and sleeps for 30 ms, twice. What it needs is the gem grpc, of any version.
#
#   CABRANK_ADDR      address to listen on (127.0.0.1:50051)
#   RAILS_MAX_THREADS threads (5)
#   JOBS_BACKLOG      calls that may wait for a thread (0: they are refused)
#   CABRANK_WORKER    name that answers carry in the trailer x-worker,
#   POD_NAME          behind this one

begin
  require 'grpc'
  require 'grpc/health/checker'
  require 'google/protobuf/descriptor_pb'
rescue LoadError => e
  abort "worker.rb: #{e.message}; run `gem install grpc`, or on Debian `sudo apt-get install ruby-grpc`"
end

$stdout.sync = true # shows at once what is printed

# The messages and the service of jobs.proto, without generated code: that would need
# one version of protobuf.
module Demo
  def self.message(name, fields)
    described = fields.map.with_index(1) do |(field, type), number|
      Google::Protobuf::FieldDescriptorProto.new(
        name: field.to_s, number: number, type: type, label: :LABEL_OPTIONAL, json_name: field.to_s
      )
    end
    Google::Protobuf::DescriptorProto.new(name: name, field: described)
  end

  pool = Google::Protobuf::DescriptorPool.generated_pool
  pool.add_serialized_file(
    Google::Protobuf::FileDescriptorProto.new(
      name: 'jobs.proto', package: 'demo', syntax: 'proto3',
      message_type: [message('GetJobReq', { id: :TYPE_UINT64 }),
                     message('GetJobResp', { id: :TYPE_UINT64, name: :TYPE_STRING })]
    ).to_proto
  )
  GetJobReq = pool.lookup('demo.GetJobReq').msgclass
  GetJobResp = pool.lookup('demo.GetJobResp').msgclass

  WORKER = ENV.values_at('POD_NAME', 'CABRANK_WORKER').compact.join('/')

  # Jobs is what a call does.
  class Jobs
    include GRPC::GenericService

    self.marshal_class_method = :encode
    self.unmarshal_class_method = :decode
    self.service_name = 'demo.Jobs'
    rpc :GetJob, GetJobReq, GetJobResp

    def get_job(_request, call)
      2.times do
        fib(20)
        sleep 0.03
      end
      call.output_metadata['x-worker'] = WORKER unless WORKER.empty?
      GetJobResp.new(id: 101, name: 'job 101')
    end

    private

    def fib(n)
      n < 2 ? n : fib(n - 1) + fib(n - 2)
    end
  end
end

# Backlog has calls wait, first come, first served, until one of a few threads is free.
# The gem refuses a call for which it has no thread. So the pool gets a thread for each
# call that may wait, too, and this lets only so many of them work.
class Backlog < GRPC::ServerInterceptor
  def initialize(threads)
    super()
    @free = Queue.new
    threads.times { @free << true }
  end

  def request_response(**)
    @free.pop
    begin
      yield
    ensure
      @free << true
    end
  end
end

threads = Integer(ENV.fetch('RAILS_MAX_THREADS', '5'))
waiting = Integer(ENV.fetch('JOBS_BACKLOG', '0'))

health = Grpc::Health::Checker.new
health.add_status('', Grpc::Health::V1::HealthCheckResponse::ServingStatus::SERVING)

server = GRPC::RpcServer.new(
  pool_size: threads + waiting,
  interceptors: waiting.positive? ? [Backlog.new(threads)] : [],
  # A second worker on the same address must fail, not share it.
  server_args: { 'grpc.so_reuseport' => 0 }
)
server.add_http2_port(ENV.fetch('CABRANK_ADDR', '127.0.0.1:50051'), :this_port_is_insecure)
server.handle(Demo::Jobs.new)
server.handle(health)
server.run_till_terminated_or_interrupted(%w[INT TERM])
