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

// Names of the listeners, as they are given in FileDescriptorName= of a socket
// unit and told to a successor.
const (
	Traffic = "grpc"
	Probes  = "probes"
	Metrics = "metrics"
	Control = "control"
	Push    = "push"
)

// Listeners opens the listeners of a process, and knows all that it has opened.
//
// Life: made by Inherit (the zero value has nothing to give), Open for each
// listener, then Rest. The listeners are closed by those who accept on them.
// Concurrency: all methods may be called from any goroutine.
type Listeners struct {
	mu    sync.Mutex
	given []*socket // by others, and not asked for yet
	open  []*socket
}

// socket is a listener with what is known about it.
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
	// Received is one that the predecessor has handed over, and had made.
	Received
	// Activated is one that a service manager has made, also if it came through
	// a predecessor. Its path is not cabrank's to remove.
	Activated
)

// String returns who has made the listener, for the log.
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

// Open returns the listener with a name: one that was given, or what bind makes.
//
// A socket of a service manager is meant by its name whatever its address, or
// by the address if its name says nothing; one of the predecessor by its name
// if the configuration still asks for that address. Errors: those of bind.
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

// meant reports whether a socket is the one that is to be opened.
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

// ours reports whether a name is one that a listener is opened by.
func ours(name string) bool {
	return slices.Contains([]string{Traffic, Probes, Metrics, Control, Push}, name)
}

// Rest closes what was given and not opened, and describes each: "metrics on
// 127.0.0.1:9394". From the predecessor that is what the configuration does not
// ask for any more. From a service manager it is a mistake, because connections
// would wait there for ever, and an error with one line for each.
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

// give takes in a socket; it closes file, also with an error.
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
			continue // a part that was switched off meanwhile
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

// copyOf duplicates the descriptor of a listener. File would do that, too, but
// its Fd would set the socket to blocking for both copies.
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
