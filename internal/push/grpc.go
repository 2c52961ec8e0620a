package push

import (
	"context"
	"encoding/json"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/cabrank/cabrank/internal/push/pushpb"
	"github.com/cabrank/cabrank/internal/socket"
)

const (
	// callsOfOne bounds the calls of a connection at a time.
	callsOfOne = 16
	// mostCalls bounds those of all connections, those that wait for a turn included.
	mostCalls = 512
	// window bounds what is held of a call whose message is not read yet.
	window = 64 << 10
)

func newGRPC(sockets Sockets, gate *gate) *grpc.Server {
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(mostBytes), grpc.MaxConcurrentStreams(callsOfOne), grpc.MaxHeaderListSize(mostHeaderBytes),
		grpc.StaticStreamWindowSize(window), grpc.StaticConnWindowSize(callsOfOne*window),
		grpc.ConnectionTimeout(headerTime), grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTime}),
		grpc.InTapHandle(gate.tap),
	)
	desc := pushpb.Push_ServiceDesc
	desc.Methods = nil
	for _, method := range pushpb.Push_ServiceDesc.Methods {
		desc.Streams = append(desc.Streams, gate.inTurn(method))
	}
	server.RegisterService(&desc, &calls{sockets: sockets})
	return server
}

// tap lets calls in that bring the token, before anything of their message is held. It
// runs where a connection is read.
func (g *gate) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	of := connOf(ctx)
	authorization := ""
	if values := info.Header.Get("authorization"); len(values) == 1 {
		authorization = values[0]
	}
	if !g.opens(authorization) {
		of.bad()
		return ctx, status.Error(codes.Unauthenticated, noToken)
	}
	of.good()
	if g.calls.Add(1) > mostCalls {
		g.calls.Add(-1)
		of.done()
		return ctx, status.Error(codes.ResourceExhausted, "too many requests at a time")
	}
	bounded, cancel := context.WithTimeout(ctx, 2*requestTime)
	context.AfterFunc(ctx, func() { // when its stream has gone
		cancel()
		g.calls.Add(-1)
		of.done()
	})
	return bounded, nil
}

// connOf returns the connection of a call: all are ours.
func connOf(ctx context.Context) *conn {
	from, _ := peer.FromContext(ctx)
	at, _ := from.Addr.(remote)
	return at.conn
}

// inTurn is a method as a stream of one message each way, which is read when it has its turn.
func (g *gate) inTurn(method grpc.MethodDesc) grpc.StreamDesc {
	handle := func(server any, stream grpc.ServerStream) error {
		ctx := stream.Context()
		if !g.enter(ctx) {
			return status.FromContextError(ctx.Err()).Err()
		}
		defer g.leave()
		reply, err := method.Handler(server, ctx, stream.RecvMsg, nil)
		if err != nil {
			return err
		}
		return stream.SendMsg(reply)
	}
	return grpc.StreamDesc{StreamName: method.MethodName, Handler: handle}
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
