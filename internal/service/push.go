package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/handover"
	"github.com/cabrank/cabrank/internal/push"
	"github.com/cabrank/cabrank/internal/socket"
)

const (
	// leastToken is the length of a token that nobody guesses, in bytes.
	leastToken = 16
	// brokerTime is how long the broker may take to subscribe to commands.
	brokerTime = 5 * time.Second
)

// takePush reads the token of the application and has sockets take its commands, if it may
// give any.
//
// Errors: one line with the key of the configuration, without the token.
func (s *service) takePush(to *socket.Server) (err error) {
	if s.cfg.Socket.Push == "off" {
		return nil
	}
	if s.pushToken, err = pushToken(s.cfg.Socket.PushToken); err != nil {
		return fmt.Errorf("socket.push_token: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), brokerTime)
	defer cancel()
	if err := to.TakeCommands(ctx); err != nil {
		return fmt.Errorf("socket.push: %w", err)
	}
	return nil
}

// pushToken reads the token; "" if none is asked for.
func pushToken(source string) (string, error) {
	if source == "" {
		return "", nil
	}
	content, err := readKey(source)
	if err != nil {
		return "", err
	}
	token := bytes.TrimSpace(content)
	if len(token) < leastToken {
		return "", errors.New("the token is shorter than 16 bytes")
	}
	return string(token), nil
}

// openPush lets the application speak to sockets, where that is wanted.
func (s *service) openPush() error {
	if s.sockets == nil || s.cfg.Socket.Push == "off" {
		return nil
	}
	on, _, err := s.listen(handover.Push, "push listening", s.cfg.Socket.Push, "socket.push", door.Listen)
	if err != nil {
		return err
	}
	s.push = push.Serve(on, s.sockets.Server, s.pushToken, s.log)
	go s.follow(s.push) // ends with the server
	return nil
}

// leavePush has who pushes come to the process that has taken over.
func (s *service) leavePush() {
	if s.push == nil || s.isPublic() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminTime)
	defer cancel()
	_ = s.push.Shutdown(ctx) // the time limit is the answer to an error
}
