package config

import (
	"cmp"
	"strings"
)

// Listener is where cabrank listens.
type Listener struct {
	On     bool   // only probes and metrics may be off
	Host   string `kind:"bind"`      // empty: every interface
	Port   int    `range:"0..65535"` // 0: the system chooses
	Shared bool   // with other processes (SO_REUSEPORT); only the port of the calls may be
	Path   string `kind:"page"` // of the page; only metrics have one
}

// Addr returns the address to listen on, for net.Listen.
func (l Listener) Addr() string { return joinHostPort(l.Host, l.Port) }

const (
	off        = "off"     // the word for a listener that is not there
	sharedMark = " shared" // stands behind an address at which others may listen, too
)

// listenAt is the kind of *Listener fields.
type listenAt struct {
	legal                 string
	mayBeOff, mayBeShared bool
	path                  string // that is not written; "": there is none
}

func (k listenAt) kind() value[Listener] { return value[Listener]{k.read, k.write, k.legal} }

func (k listenAt) read(l *Listener, text string) (err error) {
	if text == off && k.mayBeOff {
		l.On = false
		return nil
	}
	l.On = true
	if k.mayBeShared {
		text, l.Shared = strings.CutSuffix(text, sharedMark)
	}
	if k.path != "" {
		l.Path = cmp.Or(l.Path, k.path)
		if at := strings.IndexByte(text, '/'); at >= 0 {
			text, l.Path = text[:at], text[at:]
		}
		if _, err := cleanPath(l.Path); err != nil {
			return err
		}
	}
	l.Host, l.Port, err = splitHostPort(text)
	return err
}

func (k listenAt) write(l Listener) string {
	switch {
	case !l.On:
		return off
	case l.Shared:
		return l.Addr() + sharedMark
	case l.Path != k.path:
		return l.Addr() + l.Path
	}
	return l.Addr()
}
