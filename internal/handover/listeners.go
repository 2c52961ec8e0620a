package handover

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Names of the listeners, as in FileDescriptorName= of a socket unit and in messages to
// a successor.
const (
	Traffic = "grpc"
	Probes  = "probes"
	Metrics = "metrics"
	Control = "control"
	Push    = "push"
)

// Listeners opens the listeners of a process, and knows all that it has opened.
//
// Life: made by Inherit (the zero value has no inherited listeners), Open for each
// listener, then Rest. The code that accepts on a listener closes it.
// Concurrency: all methods may be called from any goroutine.
type Listeners struct {
	mu    sync.Mutex
	given []*socket // inherited, and not opened yet
	open  []*socket
}

// socket is a listener with its origin.
type socket struct {
	name     string
	asked    string // address that was asked for when it was bound; empty from a service manager
	manager  bool   // a service manager has made it
	listener net.Listener
}

// Origin is where a listener comes from.
type Origin uint8

const (
	// Bound is a listener that this process has made.
	Bound Origin = iota
	// Received is a listener that a predecessor has made and handed over.
	Received
	// Activated is a listener that a service manager has made, even if it came through a
	// predecessor. Cabrank must not remove its path.
	Activated
)

// String returns the origin in words, for the log.
func (o Origin) String() string {
	switch o {
	case Received:
		return "predecessor"
	case Activated:
		return "service manager"
	default:
		return "bound"
	}
}

// Open returns the listener with a name: an inherited one, or the result of bind.
//
// A socket of a service manager is chosen by its name, whatever its address, or by its
// address if the name is not one of cabrank's; a socket of the predecessor by its name if
// the configuration still asks for its address. Errors: those of bind.
func (l *Listeners) Open(name, network, asked string, bind func() (net.Listener, error)) (net.Listener, Origin, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range l.given {
		if s.meant(name, network, asked) {
			l.given = slices.Delete(l.given, i, i+1)
			s.name, s.asked = name, asked
			l.open = append(l.open, s)
			return s.listener, s.origin(), nil
		}
	}
	listener, err := bind()
	if err != nil {
		return nil, Bound, err
	}
	l.open = append(l.open, &socket{name: name, asked: asked, listener: listener})
	return listener, Bound, nil
}

func (s *socket) origin() Origin {
	if s.manager {
		return Activated
	}
	return Received
}

// meant reports whether a socket is the one to open.
func (s *socket) meant(name, network, asked string) bool {
	if s.listener.Addr().Network() != network {
		return false
	}
	switch {
	case !s.manager:
		return s.name == name && (s.asked == asked || SameAddress(s.listener.Addr(), asked))
	case ours(s.name):
		return s.name == name
	default:
		return !anyPort(asked) && SameAddress(s.listener.Addr(), asked)
	}
}

// ours reports whether a name is that of one of cabrank's listeners.
func ours(name string) bool {
	return slices.Contains([]string{Traffic, Probes, Metrics, Control, Push}, name)
}

// Rest closes the inherited listeners that were not opened, and describes each: "metrics
// on 127.0.0.1:9394". The configuration does not ask for those of the predecessor any
// more. Those of a service manager are a mistake, because connections would wait there
// for ever: the error has one line for each.
func (l *Listeners) Rest() (dropped []string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.given {
		addr := s.listener.Addr()
		_ = s.listener.Close() // it was never used
		if s.manager {
			err = errors.Join(err, fmt.Errorf("the socket %q on %s that the service manager has passed is none of cabrank's: name it by FileDescriptorName= (%s, %s, %s, %s or %s) or give that address to one of them",
				s.name, addr, Traffic, Probes, Metrics, Control, Push))
			continue
		}
		dropped = append(dropped, s.name+" on "+addr.String())
	}
	l.given = nil
	return dropped, err
}

// give adds an inherited socket; it closes file, also after an error.
func (l *Listeners) give(s *socket, file *os.File) error {
	listener, err := listenerOf(file)
	if err != nil {
		return fmt.Errorf("socket %q: %w", s.name, err)
	}
	s.listener = listener
	l.mu.Lock()
	defer l.mu.Unlock()
	l.given = append(l.given, s)
	return nil
}

// listenerOf makes a listener of a file and closes the file.
func listenerOf(file *os.File) (net.Listener, error) {
	defer file.Close() // FileListener has made a copy
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, err
	}
	listening := 0
	controlErr := raw.Control(func(fd uintptr) {
		listening, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	})
	if err = errors.Join(controlErr, err); err != nil {
		return nil, fmt.Errorf("%s is no socket: %w", file.Name(), err)
	}
	if listening == 0 {
		return nil, fmt.Errorf("%s is a socket that does not listen (Accept=yes is not possible)", file.Name())
	}
	return net.FileListener(file)
}

// notes describes the open listeners for the successor, with a copy of each
// descriptor. The copies belong to the caller.
func (l *Listeners) notes() (notes []socketNote, descriptors []int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.open {
		fd, err := copyOf(s.listener)
		if errors.Is(err, net.ErrClosed) {
			continue // its door was closed meanwhile
		}
		if err != nil {
			closeDescriptors(descriptors)
			return nil, nil, fmt.Errorf("listener %s: %w", s.name, err)
		}
		notes = append(notes, socketNote{Name: s.name, Asked: s.asked, Manager: s.manager})
		descriptors = append(descriptors, fd)
	}
	if len(notes) > maxSockets {
		closeDescriptors(descriptors)
		return nil, nil, fmt.Errorf("%d listeners are open, at most %d can be handed over", len(notes), maxSockets)
	}
	return notes, descriptors, nil
}

// copyOf duplicates the descriptor of a listener. File does that, too, but its Fd would
// set both copies to blocking.
func copyOf(listener net.Listener) (int, error) {
	conn, hasDescriptor := listener.(syscall.Conn)
	if !hasDescriptor {
		return 0, fmt.Errorf("it has no descriptor (%T)", listener)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	duplicate := -1
	controlErr := raw.Control(func(fd uintptr) {
		duplicate, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0)
	})
	return duplicate, errors.Join(controlErr, os.NewSyscallError("fcntl", err))
}

func closeDescriptors(descriptors []int) {
	for _, fd := range descriptors {
		_ = unix.Close(fd)
	}
}
