package config

import "strings"

// Listener is where cabrank listens.
type Listener struct {
	On     bool   // only probes and metrics may be off
	Host   string // empty: every interface
	Port   int    // 0: the system chooses
	Shared bool   // with other processes (SO_REUSEPORT); only the port of the calls may be
	Path   string // of the page; only metrics have one
}

// Addr returns the address to listen on, for net.Listen.
func (l Listener) Addr() string { return joinHostPort(l.Host, l.Port) }

const (
	off        = "off"     // the word for a listener that is not there
	sharedMark = " shared" // stands behind an address at which others may listen, too
)

// listenAt is the kind of *Listener fields.
type listenAt struct {
	mayBeOff, mayBeShared bool
	path                  string // that is not written; "": there is none
}

func (k listenAt) set(field any, text string) error {
	l := field.(*Listener)
	if text == off && k.mayBeOff {
		l.On = false
		return nil
	}
	address, shared := strings.CutSuffix(text, sharedMark)
	if !k.mayBeShared {
		address, shared = text, false
	}
	path := l.Path
	if path == "" {
		path = k.path
	}
	if at := strings.IndexByte(address, '/'); at >= 0 && k.path != "" {
		address, path = address[:at], address[at:]
	}
	host, port, err := splitHostPort(address)
	if err == nil && path != "" {
		_, err = cleanPath(path)
	}
	if err != nil {
		return err
	}
	*l = Listener{true, host, port, shared, path}
	return nil
}

func (k listenAt) show(field any) string {
	switch l := field.(*Listener); {
	case !l.On:
		return off
	case l.Shared:
		return l.Addr() + sharedMark
	case l.Path != k.path:
		return l.Addr() + l.Path
	default:
		return l.Addr()
	}
}

func (k listenAt) allowed() string {
	text := "HOST:PORT, port 0 to 65535"
	if k.path != "" {
		text = "HOST:PORT or HOST:PORT/PATH, port 0 to 65535"
	}
	if k.mayBeOff {
		text += ", or off"
	}
	if k.mayBeShared {
		text += "; with the word shared behind it others may listen there, too"
	}
	return text
}
