package push

import (
	"context"
	"encoding/json"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/push/pushpb"
	"github.com/cabrank/cabrank/internal/socket"
)

// callsOfOne bounds the calls of a connection at a time.
const callsOfOne = 16

func newGRPC(sockets Sockets, gate *gate) *grpc.Server {
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(mostBytes), grpc.MaxConcurrentStreams(callsOfOne), grpc.MaxHeaderListSize(mostHeaderBytes),
		grpc.ConnectionTimeout(headerTime), grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTime}),
		grpc.UnaryInterceptor(gate.intercept),
	)
	pushpb.RegisterPushServer(server, &calls{sockets: sockets})
	return server
}

// intercept lets calls in that bring the token, so many at once.
func (g *gate) intercept(ctx context.Context, in any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	authorization := ""
	if values := metadata.ValueFromIncomingContext(ctx, "authorization"); len(values) == 1 {
		authorization = values[0]
	}
	if !g.opens(authorization) {
		return nil, status.Error(codes.Unauthenticated, noToken)
	}
	if !g.enter(ctx) {
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	defer g.leave()
	return handle(ctx, in)
}

// calls are the requests over gRPC.
type calls struct {
	pushpb.UnimplementedPushServer

	sockets Sockets
}

// Publish implements pushpb.PushServer.
func (c *calls) Publish(ctx context.Context, in *pushpb.PublishRequest) (*pushpb.PublishReply, error) {
	id, err := publish(ctx, c.sockets, &request{Channel: &in.Channel, Args: argsOf(in.GetArgs())})
	return &pushpb.PublishReply{Id: id}, statusOf(err)
}

// Broadcast implements pushpb.PushServer.
func (c *calls) Broadcast(ctx context.Context, in *pushpb.BroadcastRequest) (*pushpb.BroadcastReply, error) {
	id, err := command(ctx, c.sockets, socket.Broadcast, &request{
		User: in.GetUser(), Connection: in.GetConnection(), Everyone: in.GetEveryone(),
		Channel: &in.Channel, Args: argsOf(in.GetArgs()),
	})
	return &pushpb.BroadcastReply{Id: id}, statusOf(err)
}

// Disconnect implements pushpb.PushServer.
func (c *calls) Disconnect(ctx context.Context, in *pushpb.DisconnectRequest) (*pushpb.DisconnectReply, error) {
	_, err := command(ctx, c.sockets, socket.Disconnect, &request{
		User: in.GetUser(), Connection: in.GetConnection(), Code: int(in.GetCode()), Reason: in.GetReason(),
	})
	return &pushpb.DisconnectReply{}, statusOf(err)
}

// Unsubscribe implements pushpb.PushServer.
func (c *calls) Unsubscribe(ctx context.Context, in *pushpb.UnsubscribeRequest) (*pushpb.UnsubscribeReply, error) {
	_, err := command(ctx, c.sockets, socket.Unsubscribe, &request{
		User: in.GetUser(), Connection: in.GetConnection(), Channel: &in.Channel, Pattern: in.GetPattern(),
	})
	return &pushpb.UnsubscribeReply{}, statusOf(err)
}

func argsOf(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

func statusOf(err error) error {
	if err == nil {
		return nil
	}
	text, bad := told(err)
	if bad {
		return status.Error(codes.InvalidArgument, text)
	}
	return status.Error(codes.Unavailable, text)
}
