package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/client"
	"github.com/cabrank/cabrank/internal/cli"
)

const (
	// longestLine is the most bytes of a command.
	longestLine = 1 << 20
	// mostNames is how many names of functions and channels completion knows.
	mostNames = 1000
	// mostLines is how many connections there are at a time.
	mostLines = 100
)

// socketShell does commands over connections, one of which is in use.
//
// Life: newSocketShell, connect and do in any order, closeAll.
// Concurrency: all by one goroutine, but what the clients say to it.
type socketShell struct {
	options client.Options
	out     *shellOutput
	beside  bool            // calls do not wait for their result
	names   map[string]bool // that were used, for completion

	*shellLine                       // in use
	lines      map[string]*shellLine // by name, "" is the first one's
}

// shellLine is a connection, or the place for one.
type shellLine struct {
	mark   string         // before what is shown of it
	client *client.Client // nil while there is none
	conn   net.Conn       // what is below it
	drops  atomic.Bool    // it ends by drop
	subs   map[string]*client.Subscription
	calls  sync.WaitGroup // those beside
}

var (
	// errExit is the end that somebody wants.
	errExit = errors.New("exit")
	// errRequests is of a script some of whose requests have failed, which was shown.
	errRequests = cli.Told(cli.Failed, errors.New("requests have failed"))
)

// mistakeError is a line that is wrong.
type mistakeError string

func (e mistakeError) Error() string { return string(e) }

func newSocketShell(o client.Options, out io.Writer, times bool) *socketShell {
	s := &socketShell{options: o, out: newShellOutput(out, times), names: map[string]bool{}, lines: map[string]*shellLine{}}
	s.options.QueueBytes = 1 // events are shown, not kept
	s.take("")
	return s
}

// take has the commands that follow go over the connection with a name.
func (s *socketShell) take(name string) {
	if s.shellLine = s.lines[name]; s.shellLine == nil {
		s.shellLine = &shellLine{subs: map[string]*client.Subscription{}}
		if name != "" {
			s.mark = name + ": "
		}
		s.lines[name] = s.shellLine
	}
}

// connect opens the connection, in the place of another one.
func (s *socketShell) connect(ctx context.Context, url string) error {
	s.close()
	l, options := s.shellLine, s.options
	options.Trace = func(m client.Message) { s.out.message(l.mark, m) }
	options.DialContext = func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		conn, err = new(net.Dialer).DialContext(ctx, network, address)
		l.conn = conn
		return conn, err
	}
	c, err := client.Dial(ctx, url, options)
	if err != nil {
		return err
	}
	l.client = c
	l.drops.Store(false)
	shown, _, _ := strings.Cut(url, "?") // a query may have a token in it
	s.out.line(l.mark + "connected to " + shown + ", " + c.Protocol())
	go func() { // ends with the client, in close
		<-c.Done()
		switch why := c.Err(); {
		case l.drops.Load(), errors.Is(why, client.ErrClosed):
		default:
			s.out.line(l.mark + "disconnected: " + why.Error())
		}
	}()
	return nil
}

// closeAll ends all connections.
func (s *socketShell) closeAll() {
	for name := range s.lines {
		s.take(name)
		s.close()
	}
}

// close ends the connection in use, if there is one.
func (s *socketShell) close() {
	if s.client != nil {
		s.client.Close()
	}
	s.calls.Wait()
	s.client = nil
	clear(s.subs)
}

// script does the lines of a text.
//
// Errors: of the first line that is wrong; errRequests.
func (s *socketShell) script(ctx context.Context, from io.Reader) error {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, longestLine)
	read := func() (string, error) {
		if lines.Scan() {
			return lines.Text(), nil
		}
		return "", cmp.Or(lines.Err(), io.EOF)
	}
	failed := false
	for number := 1; ctx.Err() == nil; number++ {
		line, err := nextLine(ctx, read)
		if errors.Is(err, bufio.ErrTooLong) {
			return cli.UsageError(fmt.Errorf("line %d: more than %d bytes", number, longestLine))
		}
		if err != nil {
			break // of the text, or by a signal
		}
		err = s.do(ctx, line)
		if wrong, isMistake := errors.AsType[mistakeError](err); isMistake {
			return cli.UsageError(fmt.Errorf("line %d: %w", number, wrong))
		}
		if errors.Is(err, errExit) {
			break
		}
		if err != nil && ctx.Err() == nil {
			failed = true
			if !isShown(err) {
				s.out.line(err.Error())
			}
		}
	}
	for _, l := range s.lines {
		failed = failed || l.client != nil && l.client.Err() != nil // it was lost
	}
	if failed {
		return errRequests
	}
	return nil
}

// isShown reports whether a message has shown an error already.
func isShown(err error) bool {
	_, refused := errors.AsType[*client.RefusedError](err)
	_, failed := errors.AsType[*client.FunctionError](err)
	expired, isExpired := errors.AsType[*client.ExpiredError](err)
	return refused || failed || isExpired && expired.Request == "call" && expired.Cause == nil
}

// do does one line.
//
// Errors: mistakeError; errExit; what has become of a request.
func (s *socketShell) do(ctx context.Context, line string) error {
	line = strings.TrimSpace(line)
	if line == "" || strings.HasPrefix(line, "#") {
		return nil
	}
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	for _, c := range shellCommands() {
		if c.name != word {
			continue
		}
		switch {
		case c.needs && rest == "":
			return mistakeError(fmt.Sprintf("%s: want %s", c.name, c.usage))
		case !c.anyTime && (s.client == nil || s.client.Err() != nil):
			return errors.New(c.name + ": there is no connection; connect URL opens one")
		}
		return c.do(s, ctx, rest)
	}
	return mistakeError(fmt.Sprintf("%.40q is no command; help lists them", word))
}

// shellCommand is what a line can begin with.
type shellCommand struct {
	name, usage, help string
	needs             bool // it has to be followed by something
	anyTime           bool // it needs no connection
	do                func(s *socketShell, ctx context.Context, rest string) error
}

func shellCommands() []shellCommand {
	return []shellCommand{
		{"connect", "connect URL", "open a connection, in the place of the one that is there", true, true, (*socketShell).connect},
		{"use", "use [NAME]", "have what follows go over a connection of that name, beside the others; without one: the first", false, true, (*socketShell).use},
		{"call", "call URI [TIMEOUT] [JSON]", `call a function: call test.reverse 2s "abc"`, true, false, (*socketShell).call},
		{"stream", "stream URI [TIMEOUT] [JSON]", `call a function that has several results: stream test.count "3"`, true, false, (*socketShell).stream},
		{"pub", "pub CHANNEL [JSON]", `publish an event: pub news {"text": "hello"}`, true, false, (*socketShell).pub},
		{"sub", "sub CHANNEL", "subscribe to a channel", true, false, subscribe("sub ", (*client.Client).Subscribe)},
		{"psub", "psub PATTERN", "subscribe to all channels that a pattern matches: psub news.*", true, false, subscribe("psub ", (*client.Client).SubscribePattern)},
		{"unsb", "unsb CHANNEL", "end a subscription", true, false, unsubscribe("sub ")},
		{"punsb", "punsb PATTERN", "end a subscription by pattern", true, false, unsubscribe("psub ")},
		{"send", "send TEXT", "send a text as it is", true, false, (*socketShell).send},
		{"wait", "wait [DURATION]", "in a script: wait, without one until the connection ends", false, false, (*socketShell).wait},
		{"close", "close", "end the connection with a close frame", false, false, (*socketShell).hangUp},
		{"disconnect", "disconnect", "drop the connection without one", false, false, (*socketShell).drop},
		{"help", "help", "list the commands", false, true, (*socketShell).help},
		{"exit", "exit", "end the connection and leave", false, true, func(*socketShell, context.Context, string) error { return errExit }},
	}
}

func (s *socketShell) help(context.Context, string) error {
	for _, c := range shellCommands() {
		s.out.line(fmt.Sprintf("%-28s %s", c.usage, c.help))
	}
	return nil
}

func (s *socketShell) use(_ context.Context, name string) error {
	switch _, known := s.lines[name]; {
	case strings.ContainsAny(name, " \t"):
		return mistakeError(fmt.Sprintf("use: %.40q is no name; want a word", name))
	case !known && len(s.lines) >= mostLines:
		return fmt.Errorf("use: there are %d connections already", mostLines)
	}
	s.take(name)
	if name != "" {
		s.know(name)
	}
	return nil
}

func (s *socketShell) call(ctx context.Context, rest string) error {
	c := s.client
	return s.calling(ctx, "call", rest, func(ctx context.Context, uri string, args json.RawMessage) error {
		_, err := c.Call(ctx, uri, args)
		return err
	})
}

func (s *socketShell) stream(ctx context.Context, rest string) error {
	c := s.client
	return s.calling(ctx, "stream", rest, func(ctx context.Context, uri string, args json.RawMessage) (err error) {
		for _, err = range c.Stream(ctx, uri, args) { //nolint:revive // each was shown
		}
		return err
	})
}

// calling reads what follows call and stream, and makes the call.
func (s *socketShell) calling(ctx context.Context, command, rest string, made func(context.Context, string, json.RawMessage) error) error {
	uri, rest, _ := strings.Cut(rest, " ")
	rest = strings.TrimSpace(rest)
	timeout := s.options.CallTimeout
	word, behind, _ := strings.Cut(rest, " ")
	if d, err := time.ParseDuration(word); err == nil && !json.Valid([]byte(word)) {
		if d <= 0 {
			return mistakeError(command + ": the timeout must be above 0")
		}
		timeout, rest = d, strings.TrimSpace(behind)
	}
	args, err := shellArgs(command, rest)
	if err != nil {
		return err
	}
	s.know(uri)
	call := func() error {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return made(ctx, uri, args)
	}
	if !s.beside {
		return call()
	}
	s.calls.Go(func() { // ends by its timeout, or with the client
		if err := call(); err != nil && !isShown(err) && !errors.Is(err, client.ErrClosed) {
			s.out.line(err.Error())
		}
	})
	return nil
}

func (s *socketShell) pub(ctx context.Context, rest string) error {
	channel, rest, _ := strings.Cut(rest, " ")
	args, err := shellArgs("pub", strings.TrimSpace(rest))
	if err != nil {
		return err
	}
	s.know(channel)
	return s.client.Publish(ctx, channel, args)
}

// shellArgs reads JSON; nothing is null.
func shellArgs(command, text string) (json.RawMessage, error) {
	switch {
	case text == "":
		return json.RawMessage("null"), nil
	case json.Valid([]byte(text)):
		return json.RawMessage(text), nil
	case !strings.ContainsAny(text, `"{[`):
		return nil, mistakeError(fmt.Sprintf(`%s: %.60s is no JSON; a text has quotes: "%.60s"`, command, text, text))
	}
	return nil, mistakeError(fmt.Sprintf("%s: %.60s is no JSON", command, text))
}

// subscribing is how the client subscribes to a channel, or by a pattern.
type subscribing = func(*client.Client, context.Context, string) (*client.Subscription, error)

// subscribe does commands that subscribe. Those of one kind have each name once.
func subscribe(kind string, by subscribing) func(*socketShell, context.Context, string) error {
	return func(s *socketShell, ctx context.Context, name string) error {
		if s.subs[kind+name] != nil {
			return errors.New("there is a subscription to " + name)
		}
		sub, err := by(s.client, ctx, name)
		if err == nil {
			s.subs[kind+name] = sub
			s.know(name)
		}
		return err
	}
}

func unsubscribe(kind string) func(*socketShell, context.Context, string) error {
	return func(s *socketShell, ctx context.Context, name string) error {
		sub := s.subs[kind+name]
		if sub == nil {
			return errors.New("there is no subscription to " + name)
		}
		delete(s.subs, kind+name)
		return sub.Unsubscribe(ctx)
	}
}

func (s *socketShell) send(ctx context.Context, text string) error { return s.client.Send(ctx, text) }

func (s *socketShell) wait(ctx context.Context, rest string) error {
	if s.beside {
		return errors.New("wait is for scripts: here all is shown as it comes")
	}
	var over <-chan time.Time
	if rest != "" {
		d, err := time.ParseDuration(rest)
		if err != nil || d < 0 {
			return mistakeError(fmt.Sprintf("wait: %.40q is no time; want one such as 500ms or 1m", rest))
		}
		timer := time.NewTimer(d)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
	case <-ctx.Done():
	case <-s.client.Done():
	}
	return nil
}

func (s *socketShell) hangUp(context.Context, string) error {
	s.close()
	s.out.line(s.mark + "closed")
	return nil
}

func (s *socketShell) drop(context.Context, string) error {
	s.drops.Store(true)
	s.conn.Close()
	<-s.client.Done()
	s.close()
	s.out.line(s.mark + "disconnected")
	return nil
}

// know keeps a name for completion.
func (s *socketShell) know(name string) {
	if len(s.names) < mostNames {
		s.names[name] = true
	}
}

// complete completes the word before pos: a command, or behind it a name that was used.
// Of several it takes what they have in common.
func (s *socketShell) complete(line string, pos int) (completed string, at int, ok bool) {
	from := strings.LastIndex(line[:pos], " ") + 1
	var words []string
	if strings.TrimSpace(line[:from]) == "" {
		for _, c := range shellCommands() {
			words = append(words, c.name)
		}
	} else {
		words = slices.Sorted(maps.Keys(s.names))
	}
	typed := line[from:pos]
	common, found := "", 0
	for _, word := range words {
		if !strings.HasPrefix(word, typed) {
			continue
		}
		if found++; found == 1 {
			common = word
		}
		for !strings.HasPrefix(word, common) {
			common = common[:len(common)-1]
		}
	}
	if found == 0 {
		return "", 0, false
	}
	if found == 1 {
		common += " "
	}
	return line[:from] + common + line[pos:], from + len(common), true
}
