# frozen_string_literal: true

# The worker of examples/ruby whose Io asks a server at BACKEND and passes on
# what that says if it fails: GRPC::RpcServer makes the error of a nested call the
# answer of the handler. The first argument is the folder of the records; millis is
# the number of the call.

ENV['GRPC_ENABLE_FORK_SUPPORT'] = '0'
RECORDS = File.open(File.join(ARGV.fetch(0), ENV.fetch('CABRANK_WORKER')), 'a')
RECORDS.sync = true

# Nested goes before the handler.
module Nested
  def io(request, _call)
    RECORDS.write("#{request.millis}\n")
    backend.cpu(Cabrank::Example::V1::CpuRequest.new(n: 15))
    Cabrank::Example::V1::IoReply.new(millis: request.millis, worker: @worker)
  end

  private

  def backend
    @mutex.synchronize do
      @backend ||= Cabrank::Example::V1::Work::Stub.new(ENV.fetch('BACKEND'), :this_channel_is_insecure)
    end
  end
end

# The server runs until it is told to stop, so the handler is wrapped as soon
# as it is defined.
TracePoint.new(:end) do |point|
  if point.self.is_a?(Class) && point.self.name == 'Work'
    point.self.prepend(Nested)
    point.disable
  end
end.enable

load File.join(__dir__, '../../../../examples/ruby/worker.rb')
