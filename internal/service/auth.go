package service

import (
	"github.com/cabrank/cabrank/internal/auth"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/relay"
)

// bearers asks calls for their token (relay.Auth).
type bearers struct{ *auth.Verifier }

// Verify implements relay.Auth.
func (b bearers) Verify(authorization string) (relay.Pass, error) {
	id, err := b.Verifier.Verify(auth.Bearer(authorization))
	if err != nil {
		return relay.Pass{}, err
	}
	return relay.Pass{User: id.User, Until: id.Expires, May: id.MayCall}, nil
}

// openAuth reads the keys of tokens, if anybody is asked for one: sockets, or all.
func (s *service) openAuth(options *relay.Options) (err error) {
	asked := s.cfg.Auth
	if !asked.AllDoors() && len(s.cfg.Socket.Paths) == 0 {
		return nil
	}
	if s.verifier, err = OpenAuth(asked, s.log); err != nil {
		return err
	}
	if asked.AllDoors() {
		options.Auth = bearers{s.verifier}
	}
	return nil
}

// readKeys reads them again, at a reload.
func (s *service) readKeys(cfg *config.Config) error {
	if s.verifier == nil {
		return nil
	}
	return ReadKeys(s.verifier, cfg.Auth, s.log)
}
