# frozen_string_literal: true

# Calls each method of Work once and prints one JSON line per case.
# usage: ruby client.rb [HOST:PORT]

$LOAD_PATH.unshift File.join(__dir__, 'lib')
require 'google/protobuf/well_known_types'
require 'grpc'
require 'json'
require 'cabrank/example/v1/work_services_pb'

include Cabrank::Example::V1 # rubocop:disable Style/MixinUsage

def show(name, got)
  puts JSON.generate(case: name, got: got)
end

def numbers(range)
  range.map { |value| Number.new(value: value) }
end

# The status code with which the block ends.
def code
  yield
  0
rescue GRPC::BadStatus => e
  e.code
end

# Every message but the first waits for the answer to the one before.
def chat(stub, texts)
  answers = Queue.new
  messages = Enumerator.new do |out|
    texts.each_with_index do |text, i|
      answers.pop if i.positive?
      out << ChatMessage.new(text: text)
    end
  end
  stub.chat(messages).map { |message| message.text.tap { |text| answers << text } }
end

def failure(stub)
  stub.fail(FailRequest.new(code: 9, message: 'sold out: café ☕', reason: 'SOLD_OUT'))
rescue GRPC::BadStatus => e
  detail = e.to_rpc_status.details.first.unpack(FailDetail)
  { code: e.code, message: e.details.dup.force_encoding('UTF-8'), reason: detail.reason }
end

def metadata(stub)
  sent = { 'x-head' => %w[one two], 'x-tail-bin' => [0, 1, 254, 255].pack('C*') }
  request = MetaRequest.new(headers: ['x-head'], trailers: ['x-tail-bin'])
  call = stub.meta(request, metadata: sent, return_op: true)
  call.execute
  { header: Array(call.metadata['x-head']).join(', '),
    trailer: call.trailing_metadata['x-tail-bin'].unpack1('H*') }
end

# Leaves in the middle of a stream of 20 s.
def cancel(stub)
  call = stub.count(CountRequest.new(to: 1000, pause_millis: 20), return_op: true)
  code { call.execute.each { call.cancel } }
end

stub = Work::Stub.new(ARGV.fetch(0, 'localhost:8080'), :this_channel_is_insecure)

show 'cpu', stub.cpu(CpuRequest.new(n: 20)).value
show 'io', stub.io(IoRequest.new(millis: 10)).millis
show 'count', stub.count(CountRequest.new(to: 5)).map(&:value)
show 'count nothing', stub.count(CountRequest.new(to: 0)).map(&:value)
show 'sum', stub.sum(numbers(1..10)).value
show 'sum nothing', stub.sum([]).value
show 'chat', chat(stub, %w[one zwei 三])
show 'fail', failure(stub)
show 'meta', metadata(stub)
show 'deadline', code { stub.io(IoRequest.new(millis: 1000), deadline: Time.now + 0.1) }
show 'cancel', cancel(stub)
