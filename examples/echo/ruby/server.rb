# frozen_string_literal: true

# The Echo service on GRPC::RpcServer: at 127.0.0.1:PORT.

$LOAD_PATH.unshift __dir__
require 'grpc'
require 'google/protobuf/descriptor_pb'

# Keeps what generated code registers: google-protobuf 3 cannot write a description again,
# and has none of health.
FILES = {} # rubocop:disable Style/MutableConstant
Google::Protobuf::DescriptorPool.generated_pool.define_singleton_method(:add_serialized_file) do |text|
  file = Google::Protobuf::FileDescriptorProto.decode(text)
  FILES[file.name] = file
  super(text)
end
require 'grpc/health/checker'
require 'echo_services_pb'
require 'reflection_pb'

# Server does what is asked, and as often.
class Server < Echo::V1::Echo::Service
  def say(request, _call)
    use(request.cpu_ms)
    Echo::V1::EchoReply.new(text: request.text, number: 1)
  end

  # A server stream is anything that has `each`.
  def repeat(request, _call)
    (1..[request.count, 10_000].min).lazy.map do |number|
      use(request.cpu_ms)
      Echo::V1::EchoReply.new(text: request.text, number: number)
    end
  end

  private

  # The clock is that of the thread: on a busy machine it takes longer.
  def use(millis)
    up_to = used + [millis, 1000].min
    nil while used < up_to
  end

  def used
    Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :float_millisecond)
  end
end

# Reflection describes the services; the gem has none.
class Reflection
  include GRPC::GenericService
  include Grpc::Reflection::V1

  self.marshal_class_method = :encode
  self.unmarshal_class_method = :decode
  self.service_name = 'grpc.reflection.v1.ServerReflection'
  rpc :ServerReflectionInfo, stream(Grpc::Reflection::V1::ServerReflectionRequest),
      stream(Grpc::Reflection::V1::ServerReflectionResponse)

  def server_reflection_info(requests, _call)
    requests.lazy.map { |request| ServerReflectionResponse.new(original_request: request, **answer(request)) }
  end

  private

  def answer(request)
    case request.message_request
    when :list_services
      names = FILES.values.flat_map { |file| named(file, file.service) }
      { list_services_response: ListServiceResponse.new(service: names.map { |name| ServiceResponse.new(name: name) }) }
    when :file_by_filename then described(FILES[request.file_by_filename])
    when :file_containing_symbol then described(with(request.file_containing_symbol))
    else refused(GRPC::Core::StatusCodes::UNIMPLEMENTED, 'not answered here')
    end
  end

  def with(symbol)
    FILES.values.find do |file|
      [*named(file, file.message_type), *named(file, file.service)].any? { |name| symbol == name || symbol.start_with?("#{name}.") }
    end
  end

  def named(file, parts)
    parts.map { |part| "#{file.package}.#{part.name}" }
  end

  def described(file)
    return refused(GRPC::Core::StatusCodes::NOT_FOUND, 'not found') unless file

    { file_descriptor_response: FileDescriptorResponse.new(file_descriptor_proto: [file.to_proto]) }
  end

  def refused(code, text)
    { error_response: ErrorResponse.new(error_code: code, error_message: text) }
  end
end

health = Grpc::Health::Checker.new
health.add_status('', Grpc::Health::V1::HealthCheckResponse::ServingStatus::SERVING)

server = GRPC::RpcServer.new(
  pool_size: 30, # more than callers there are: it refuses what it has no thread for
  poll_period: 30, # seconds that calls have to end in when it is told to end
  # A second server on the same address must fail, not share it.
  server_args: { 'grpc.so_reuseport' => 0 }
)
server.add_http2_port("127.0.0.1:#{ENV.fetch('PORT', '50051')}", :this_port_is_insecure)
[Server.new, Reflection.new, health].each { |service| server.handle(service) }
server.run_till_terminated_or_interrupted(%w[INT TERM])
