package exchange

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// within bounds how long a frame may take that has to come.
const within = 20 * time.Second

// Options of a server, by the names of the files: call_cap, read_limit, write_limit,
// close_uri, origins, allow_empty_subprotocol.
type Options map[string]string

// Int returns a number, 0 if it is not set.
func (o Options) Int(name string) int {
	n, _ := strconv.Atoi(o[name])
	return n
}

// Words returns a list that is separated by commas. A minus is an empty word.
func (o Options) Words(name string) (words []string) {
	for word := range strings.SplitSeq(o[name], ",") {
		switch {
		case word == "-":
			words = append(words, "")
		case word != "":
			words = append(words, word)
		}
	}
	return words
}

// Target is what a case runs against.
type Target struct {
	// Kind is "old" or "new": which marked lines count.
	Kind string
	// Start starts a server with callees of test.echo, test.reverse, test.delay and
	// test.nothing, which end with the test. It returns its URL, and how the broker
	// is broken; nil if it cannot be, and cases with that are skipped.
	Start func(t *testing.T, options Options) (url string, breakBroker func())
}

// Run runs one case as a subtest.
func Run(t *testing.T, c Case, target Target) {
	t.Helper()
	t.Run(strings.TrimSuffix(c.File, ".txt")+"/"+strings.ReplaceAll(c.Name, " ", "_"), func(t *testing.T) {
		r := &runner{t: t, target: target, vars: vars{}, options: Options{}, sockets: map[int]*socket{}}
		defer r.close()
		for i := 0; i < len(c.steps); {
			i += r.do(c.steps[i:])
		}
	})
}

type runner struct {
	t       *testing.T
	target  Target
	vars    vars
	options Options
	url     string
	broken  func()
	sockets map[int]*socket
}

// socket is one connection of a client, with what has come in.
type socket struct {
	ws    *websocket.Conn
	end   string      // of every frame of text
	in    chan string // frames; "pong TEXT"; "closed CODE TEXT" is the last
	ended chan struct{}
}

func (r *runner) close() {
	for _, s := range r.sockets {
		s.ws.Close()
		<-s.ended
	}
}

// do runs the first of these steps, or a group of steps in any order, and returns how
// many it has run.
func (r *runner) do(steps []step) int {
	s := steps[0]
	if s.only != "" && s.only != r.target.Kind {
		return 1
	}
	if r.isLoose(s) {
		n := 1
		for n < len(steps) && r.isLoose(steps[n]) && steps[n].socket == s.socket {
			n++
		}
		r.wantAll(steps[:n])
		return n
	}
	switch s.verb {
	case "server":
		for word := range strings.FieldsSeq(s.rest) {
			name, value, _ := strings.Cut(word, "=")
			r.options[name] = value
		}
	case "dial":
		r.dial(s)
	case "join":
		r.dial(s)
		r.next(s)
	case "break":
		if r.broken == nil {
			r.t.Skip("the broker of this server cannot be broken")
		}
		r.broken()
	case "quiet":
		r.wantQuiet(s)
	case ">", ">bin", "ping", "close":
		r.send(s)
	case "closed":
		r.want(s, "closed "+s.rest)
	case "<bin":
		r.want(s, "bin "+s.rest)
	default:
		r.want(s, s.rest+r.socket(s).end)
	}
	return 1
}

// isLoose is true for frames whose order does not count with this server.
func (r *runner) isLoose(s step) bool {
	return s.verb == "*<" || s.verb == "~<" && r.target.Kind == "old"
}

func (r *runner) socket(s step) *socket {
	socket := r.sockets[s.socket]
	if socket == nil {
		r.t.Fatalf("%s: socket %d is not open", s.line, s.socket)
	}
	return socket
}

func (r *runner) send(s step) {
	ws, err := r.socket(s).ws, error(nil)
	switch s.verb {
	case ">":
		err = ws.WriteMessage(websocket.TextMessage, []byte(r.vars.fill(s.rest)))
	case ">bin":
		content, _ := hex.DecodeString(s.rest)
		err = ws.WriteMessage(websocket.BinaryMessage, content)
	case "ping":
		err = ws.WriteControl(websocket.PingMessage, []byte(s.rest), time.Now().Add(within))
		defer r.want(s, "pong "+s.rest)
	case "close":
		code, text, _ := strings.Cut(s.rest, " ")
		number, _ := strconv.Atoi(code)
		err = ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(number, text), time.Now().Add(within))
	}
	if err != nil {
		r.t.Fatalf("%s: %v", s.line, err)
	}
}

// next returns what comes in next.
func (r *runner) next(s step) string {
	r.t.Helper()
	select {
	case got := <-r.socket(s).in:
		return got
	case <-time.After(within):
		r.t.Fatalf("%s: nothing came within %v", s.line, within)
		return ""
	}
}

func (r *runner) want(s step, expected string) {
	r.t.Helper()
	if got := r.next(s); !r.vars.pattern(expected).MatchString(got) {
		r.t.Fatalf("%s\n got %q\nwant %q", s.line, got, r.vars.fill(expected))
	}
}

func (r *runner) wantAll(steps []step) {
	r.t.Helper()
	left := slices.Clone(steps)
	for len(left) > 0 {
		got := r.next(left[0])
		i := slices.IndexFunc(left, func(s step) bool { return r.vars.pattern(s.rest + r.socket(s).end).MatchString(got) })
		if i < 0 {
			r.t.Fatalf("got %q, want in any order:\n%v", got, left)
		}
		left = slices.Delete(left, i, i+1)
	}
}

func (r *runner) wantQuiet(s step) {
	r.t.Helper()
	wait, err := time.ParseDuration(s.rest)
	if err != nil {
		r.t.Fatalf("%s: %v", s.line, err)
	}
	select {
	case got := <-r.socket(s).in:
		r.t.Fatalf("%s: got %q", s.line, got)
	case <-time.After(wait):
	}
}

// dial runs "dial key=value... -> STATUS PROTOCOL". Keys: proto, a list, "-" for none
// and juggler.0 by default; origin, in which $host is the server's; allow, the header
// with the allowed messages, in which _ is a blank; query; deflate=1.
func (r *runner) dial(s step) {
	r.t.Helper()
	if r.url == "" {
		r.url, r.broken = r.target.Start(r.t, r.options)
	}
	given, expected, _ := strings.Cut(s.rest, "->")
	target, err := url.Parse(r.url)
	if err != nil {
		r.t.Fatal(err)
	}
	dialer, header := websocket.Dialer{Subprotocols: []string{"juggler.0"}}, http.Header{}
	for word := range strings.FieldsSeq(given) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "proto":
			dialer.Subprotocols = slices.DeleteFunc(strings.Split(value, ","), func(s string) bool { return s == "-" })
		case "origin":
			header.Set("Origin", strings.ReplaceAll(value, "$host", target.Host))
		case "allow":
			header.Set("Juggler-Allowed-Messages", strings.ReplaceAll(value, "_", " "))
		case "query":
			target.RawQuery = value
		case "deflate":
			dialer.EnableCompression = true
		default:
			r.t.Fatalf("%s: no key %q", s.line, name)
		}
	}
	ws, response, err := dialer.Dial(target.String(), header)
	if got := outcome(response, err); expected != "" && got != strings.TrimSpace(expected) {
		r.t.Fatalf("%s: got %q", s.line, got)
	}
	if err == nil {
		r.sockets[s.socket] = listen(ws)
	}
}

// outcome is the status, the protocol that was agreed, and the extensions, if any.
func outcome(response *http.Response, err error) string {
	if response == nil {
		return fmt.Sprint(err)
	}
	response.Body.Close()
	got := []string{strconv.Itoa(response.StatusCode)}
	for _, name := range []string{"Sec-Websocket-Protocol", "Sec-Websocket-Extensions"} {
		if value := response.Header.Get(name); value != "" {
			got = append(got, value)
		}
	}
	return strings.Join(got, " ")
}

// listen reads until the socket ends. A close frame is not answered: whoever closes
// first says why.
func listen(ws *websocket.Conn) *socket {
	s := &socket{ws: ws, end: "\n", in: make(chan string, 1000), ended: make(chan struct{})}
	if strings.HasPrefix(ws.Subprotocol(), "juggler.1") {
		s.end = ""
	}
	ws.SetPongHandler(func(text string) error {
		s.in <- "pong " + text
		return nil
	})
	go func() {
		defer close(s.ended)
		for {
			kind, content, err := ws.ReadMessage()
			switch {
			case err != nil:
				s.in <- "closed " + ending(err)
				return
			case kind == websocket.BinaryMessage:
				s.in <- "bin " + hex.EncodeToString(content)
			default:
				s.in <- string(content)
			}
		}
	}()
	return s
}

func ending(err error) string {
	if e, ok := errors.AsType[*websocket.CloseError](err); ok && e.Code != websocket.CloseAbnormalClosure {
		return strings.TrimSpace(strconv.Itoa(e.Code) + " " + e.Text)
	}
	return "1006" // no close frame has come
}

// Marked reports whether a case has lines for one kind of server only.
func (c Case) Marked() bool {
	return slices.ContainsFunc(c.steps, func(s step) bool { return s.only != "" })
}
