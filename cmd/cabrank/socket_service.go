package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/door"
	running "github.com/cabrank/cabrank/internal/service"
)

const (
	// socketHandshakeTimeout bounds a handshake, and any other request: with its body,
	// which none needs, and with the client's reading of the answer. A socket has bounds
	// of its own.
	socketHandshakeTimeout = 10 * time.Second
	// socketHeaderBytes bounds its header: cookies may be long.
	socketHeaderBytes = 32 << 10
)

// page is a listener beside that of the sockets.
type page interface {
	Failed() <-chan error
	Shutdown(ctx context.Context) error
}

// socketService is a process that serves sockets alone.
//
// Life: run starts it, waits for a signal or a listener that fails, and stops it.
type socketService struct {
	flags   *socketServe
	log     *slog.Logger
	sockets *running.Sockets
	http    *http.Server
	pages   []page
	failed  chan error // a listener has
	ready   atomic.Bool
}

// run serves until a signal comes.
func (f *socketServe) run(logTo io.Writer) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, stopSignals()...)
	defer signal.Stop(signals)
	log := openLog(f.log, f.log.SlogLevel(), logTo)
	defer log.close()
	s := &socketService{flags: f, log: log.Logger, failed: make(chan error, 4)}
	if len(f.idle) > 0 {
		s.log.Warn("keys of the file have no effect here: docs/juggler.md", "keys", strings.Join(f.idle, " "))
	}
	for _, warning := range config.UnknownVariables(os.Environ()) {
		s.log.Warn("configuration", "warning", warning)
	}
	verifier, err := running.OpenAuth(f.socket.Auth, s.log)
	if err != nil {
		return log.fail(err)
	}
	s.sockets, err = running.OpenSockets(running.SocketOptions{
		Socket: f.socket, Beyond: f.beyond, WaitingBytes: f.waiting, TestFunctions: f.testFunctions, Verifier: verifier, Log: s.log,
	})
	if err != nil {
		return log.fail(err)
	}
	err = s.start()
	if err == nil {
		select {
		case why := <-signals:
			s.log.Info("stopping", "signal", why.String())
		case err = <-s.failed:
		}
	}
	stopped := s.stop(signals)
	if err != nil {
		return log.fail(err)
	}
	return stopped
}

// start opens all listeners.
func (s *socketService) start() error {
	on, err := s.listen("listening", s.flags.listen, "--listen")
	if err != nil {
		return err
	}
	s.http = &http.Server{
		Handler: s.sockets, ReadTimeout: socketHandshakeTimeout, WriteTimeout: socketHandshakeTimeout,
		MaxHeaderBytes: socketHeaderBytes, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	go s.follow(func() error { return s.http.Serve(on) }) // ends with the listener, in stop
	s.ready.Store(true)
	return s.startPages()
}

// startPages opens the metrics page and the probes, where they are wanted.
func (s *socketService) startPages() error {
	if s.flags.metrics != "off" {
		on, err := s.listen("metrics listening", s.flags.metrics, "--metrics")
		if err != nil {
			return err
		}
		page, err := admin.ServeMetrics(on, "/metrics", admin.Sources{Build: admin.Build{Version: version, Commit: commit}, Sockets: s.sockets.Sample}, s.log)
		if err != nil {
			return err
		}
		s.addPage(page)
	}
	if s.flags.probes != "off" {
		on, err := s.listen("probes listening", s.flags.probes, "--probes")
		if err != nil {
			return err
		}
		s.addPage(admin.ServeProbes(on, s, s.log))
	}
	if s.sockets.TakesPush() {
		on, err := s.listen("push listening", s.flags.socket.Push, "--push")
		if err != nil {
			return err
		}
		s.addPage(s.sockets.ServePush(on, s.log))
	}
	return nil
}

func (s *socketService) addPage(page page) {
	s.pages = append(s.pages, page)
	go s.follow(func() error { return <-page.Failed() }) // ends with the page, in stop
}

func (s *socketService) listen(what, address, flag string) (net.Listener, error) {
	on, err := door.Listen(address, flag)
	if err != nil {
		return nil, err
	}
	s.log.Info(what, "addr", on.Addr().String()) //nolint:sloglint // one of four texts
	tellMissed(s.log, flag, address, on)
	return on, nil
}

// follow reports a listener that died.
func (s *socketService) follow(serve func() error) {
	if err := serve(); err != nil && !errors.Is(err, http.ErrServerClosed) {
		s.failed <- err
	}
}

// Started implements admin.Health.
func (s *socketService) Started() bool { return true }

// Ready implements admin.Health: it is not, from the signal to stop on, and while Redis is
// away for long.
func (s *socketService) Ready() bool { return s.ready.Load() && s.sockets.Serves() }

// Alive implements admin.Health.
func (s *socketService) Alive() bool { return true }

// stop lets sockets end in their time; another signal ends it.
func (s *socketService) stop(again <-chan os.Signal) error {
	s.ready.Store(false)
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), s.flags.drain)
	defer cancel()
	hurry := make(chan struct{})
	defer close(hurry)
	go func() { // ends with stop
		for last := (echoes{began}); ; {
			select {
			case <-again:
				if !last.isEcho(time.Now()) {
					cancel()
				}
			case <-hurry:
				return
			}
		}
	}()
	if s.http != nil {
		go s.http.Shutdown(ctx) //nolint:errcheck // handshakes that are under way end by Close below
	}
	cut := s.sockets.Drain(ctx)
	if s.http != nil {
		_ = s.http.Close() // its listener is closed already, which it would say
	}
	for _, page := range s.pages {
		cancel() // a scrape that is under way is cut
		_ = page.Shutdown(ctx)
	}
	s.sockets.Close()
	if cut > 0 {
		s.log.Warn("stopped", "calls_cut", cut, "took", time.Since(began).Round(time.Millisecond))
		return cli.ErrCut
	}
	s.log.Info("stopped", "took", time.Since(began).Round(time.Millisecond))
	return nil
}
