package service

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/handover"
)

// openDoor takes callers from now on: before a worker is ready they wait.
func (s *service) openDoor() error {
	listen := s.cfg.Listen
	bind := door.Listen
	if listen.Shared {
		bind = door.ListenShared
	}
	on, origin, err := s.listen(handover.Traffic, "listen", listen.Addr(), bind)
	if err != nil {
		return err
	}
	s.door = on.Addr()
	s.addresses = []admin.Listener{{Kind: "calls", Address: s.door.String()}}
	if err := s.othersUpstream(s.cfg); err != nil {
		return err
	}
	if tcp, isTCP := on.(*net.TCPListener); isTCP && listen.Shared && origin != handover.Activated {
		on = door.Shared{TCPListener: tcp}
	}
	go s.watch(s.relay.Serve, on) // ends with the listener
	return nil
}

// listen opens a listener by its name: one that was given, or what bind makes of the
// address that a key has. The log says where it is.
func (s *service) listen(name, key, address string, bind func(address, flag string) (net.Listener, error)) (net.Listener, handover.Origin, error) {
	flag, msg := "--"+key, name+" listening"
	switch name {
	case handover.Push:
		flag = key // it is a flag of cabrank socket serve only
	case handover.Traffic:
		msg = "listening"
	}
	on, origin, err := s.inherited.Listeners.Open(name, "tcp", address, func() (net.Listener, error) {
		return bind(address, flag)
	})
	if err != nil {
		return nil, origin, err
	}
	s.tellListener(msg, on, origin)
	if origin == handover.Activated { // what it listens on is the service manager's affair
		s.tellIdleAddress(key, address, on)
	} else {
		tellMissed(s.log, flag, address, on)
	}
	return on, origin, nil
}

// tellIdleAddress warns of an address that someone has written and that does not count,
// because a service manager has opened another one.
func (s *service) tellIdleAddress(key, address string, on net.Listener) {
	if handover.SameAddress(on.Addr(), address) {
		return
	}
	if origin, written := s.cfg.Written(key); written {
		s.log.Warn("configuration", "warning", fmt.Sprintf("%s: %s has no effect: the service manager has opened %s in place of %s", origin, key, on.Addr(), address))
	}
}

// othersUpstream is an error if calls are to be passed on to the port that they come in by.
func (s *service) othersUpstream(cfg *config.Config) error {
	if s.door == nil {
		return nil
	}
	return cli.UsageError(cfg.UpstreamItself(s.door.String(), localAddresses()))
}

// localAddresses are those of this machine, none if it does not tell.
func localAddresses() (local []netip.Addr) {
	addresses, _ := net.InterfaceAddrs()
	for _, address := range addresses {
		if prefix, err := netip.ParsePrefix(address.String()); err == nil {
			local = append(local, prefix.Addr().Unmap())
		}
	}
	return local
}

func (s *service) tellListener(msg string, on net.Listener, origin handover.Origin) {
	told := []any{"addr", on.Addr().String()}
	if origin != handover.Bound {
		told = append(told, "from", origin.String())
	}
	s.log.Info(msg, told...) //nolint:sloglint // callers have constants
}

// tellMissed warns of a name that has more addresses than are listened on.
func tellMissed(log *slog.Logger, flag, address string, on net.Listener) {
	if missed := door.Missed(address, on); len(missed) > 0 {
		log.Warn("nobody listens on the other addresses of this name; name an address, or none for all interfaces",
			"flag", flag, "name", address, "addr", on.Addr().String(), "missed", strings.Join(missed, " "))
	}
}

// listenControl opens the control socket, of the path that the configuration
// names, or named by the port of the traffic.
func (s *service) listenControl() (*admin.ControlListener, error) {
	_, port, _ := net.SplitHostPort(s.door.String()) // what listens has a port
	asked := s.cfg.Control
	if asked == "auto" {
		asked += ":" + port // another port is another socket
	}
	on, origin, err := s.inherited.Listeners.Open(handover.Control, "unix", asked, func() (net.Listener, error) {
		return s.bindControl(port)
	})
	if err != nil {
		return nil, err
	}
	given, isUnix := on.(*net.UnixListener)
	if !isUnix {
		s.tellListener("control listening", on, origin)
		bound, _ := on.(*admin.ControlListener) // nothing else is made
		return bound, nil
	}
	control, err := admin.InheritControl(given)
	if errors.Is(err, fs.ErrNotExist) && origin == handover.Received {
		return s.listenControl() // whoever has removed the file removed nothing else: it is made anew
	}
	s.tellListener("control listening", on, origin)
	if err == nil && origin == handover.Activated {
		control.Release() // its path belongs to the service manager
	}
	return control, err
}

func (s *service) bindControl(port string) (net.Listener, error) {
	if s.cfg.Control != "auto" {
		return admin.ListenControl(s.cfg.Control)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("port of %s: %w", s.door, err)
	}
	return admin.ListenControlAuto(admin.ControlFolders()[0], number)
}

// dropRest says what has become of listeners that were given and are not used.
func (s *service) dropRest() error {
	dropped, err := s.inherited.Listeners.Rest()
	for _, listener := range dropped {
		s.log.Warn("listener closed, the configuration does not ask for it any more", "listener", listener)
	}
	return cli.UsageError(err)
}
