package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/push"
)

const (
	// leastToken is the length of a token that nobody guesses, in bytes.
	leastToken = 16
	// brokerTime is how long the broker may take to subscribe to commands.
	brokerTime = 5 * time.Second
)

// openPush has the application speak to sockets, if it may.
//
// Errors: one line with the key of the configuration, without the token.
func (s *Sockets) openPush(c config.Socket) error {
	if c.Push == "off" {
		return nil
	}
	token, err := pushToken(c.PushToken)
	if err != nil {
		return fmt.Errorf("socket.push_token: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), brokerTime)
	defer cancel()
	if err := s.server.TakeCommands(ctx); err != nil {
		return fmt.Errorf("socket.push: %w", err)
	}
	s.pushed, s.token = true, token
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

// TakesPush reports whether the application may speak to sockets.
func (s *Sockets) TakesPush() bool { return s.pushed }

// ServePush answers requests of the application on a listener, if TakesPush.
func (s *Sockets) ServePush(on net.Listener, log *slog.Logger) *push.Server {
	return push.Serve(on, s.server, s.token, log)
}
