# frozen_string_literal: true

# The worker of examples/ruby that enters every start and end of a call in a
# ledger, whose path is the first argument. A call keeps its slot for as long as
# its request says. What the entries look like: chaos_ledger_test.go.

LEDGER = File.open(ARGV.fetch(0), 'a')
LEDGER.sync = true

def enter(ledger, kind, what)
  nanoseconds = Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)
  ledger.syswrite("#{kind} #{Process.pid} #{nanoseconds} #{what}\n")
end

# Kept goes before the handlers.
module Kept
  def io(request, call)
    around(call) do
      sleep request.millis / 1000.0
      Cabrank::Example::V1::IoReply.new(millis: request.millis, worker: @worker)
    end
  end

  def cpu(request, call)
    around(call) do
      sleep request.n / 1000.0
      Cabrank::Example::V1::CpuReply.new(value: request.n, worker: @worker)
    end
  end

  def count(request, call)
    stream(call) do |out|
      (1..request.to).each do |value|
        sleep request.pause_millis / 1000.0
        out << Cabrank::Example::V1::Number.new(value: value)
      end
    end
  end

  def chat(messages, call)
    stream(call) do |out|
      messages.each { |message| out << Cabrank::Example::V1::ChatMessage.new(text: message.text) }
    end
  end

  private

  def around(call)
    id = call.metadata['x-call-id']
    return yield unless id

    enter(LEDGER, 'start', id)
    yield.tap { enter(LEDGER, 'end', id) }
  end

  # A stream begins with its handler and ends when all messages are taken.
  def stream(call)
    id = call.metadata['x-call-id']
    enter(LEDGER, 'start', id)
    Enumerator.new do |out|
      yield out
    ensure
      enter(LEDGER, 'end', id)
    end
  end
end

# The server runs until it is told to stop, so the handlers are wrapped as soon
# as they are defined.
TracePoint.new(:end) do |point|
  if point.self.is_a?(Class) && point.self.name == 'Work'
    point.self.prepend(Kept)
    point.disable
  end
end.enable

enter(File.open("#{ARGV.fetch(0)}.boots", 'a'), 'boot', ENV.fetch('CABRANK_WORKER'))
load File.join(__dir__, '../../../../examples/ruby/worker.rb')
