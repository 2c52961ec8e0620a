# frozen_string_literal: true

# The worker of examples/ruby that keeps a record of each Io call. The first
# argument is the folder of the records. Times are of the machine's monotonic
# clock, so that they can be compared with those of callers.

require 'json'

RECORDS = File.open(File.join(ARGV.fetch(0), ENV.fetch('CABRANK_WORKER')), 'a')
RECORDS.sync = true

# Timed goes before the handler.
module Timed
  def io(request, call)
    began = now
    super
  ensure
    record = { call: Integer(call.metadata.fetch('x-call', '-1')), worker: ENV.fetch('CABRANK_WORKER'),
               began: began, ended: now }
    RECORDS.write("#{JSON.generate(record)}\n")
  end

  private

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end
end

# The server runs until it is told to stop, so the handler is wrapped as soon
# as it is defined.
TracePoint.new(:end) do |point|
  if point.self.is_a?(Class) && point.self.name == 'Work'
    point.self.prepend(Timed)
    point.disable
  end
end.enable

load File.join(__dir__, '../../../../examples/ruby/worker.rb')
