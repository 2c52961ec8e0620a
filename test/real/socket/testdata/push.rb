# frozen_string_literal: true

# Publishes to sockets, by HTTP and by gRPC. usage: ruby push.rb HOST:PORT CHANNEL
require 'json'
require 'net/http'
require 'cabrank/push/v1/push_services_pb'

address, channel = ARGV
answer = Net::HTTP.post(
  URI("http://#{address}/v1/publish"), JSON.generate(channel: channel, args: { from: 'ruby', by: 'http' }),
  'Content-Type' => 'application/json', 'Authorization' => "Bearer #{ENV.fetch('CABRANK_PUSH_TOKEN', '')}"
)
abort "#{answer.code} #{answer.body}" unless answer.is_a?(Net::HTTPOK)

stub = Cabrank::Push::V1::Push::Stub.new(address, :this_channel_is_insecure)
stub.publish(
  Cabrank::Push::V1::PublishRequest.new(channel: channel, args: JSON.generate(from: 'ruby', by: 'grpc')),
  metadata: { 'authorization' => "Bearer #{ENV.fetch('CABRANK_PUSH_TOKEN', '')}" }
)
