//go:build real || soak

package socket_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/client"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/redisd"
	"github.com/cabrank/cabrank/test/oldjuggler"
	"github.com/cabrank/cabrank/test/real/harness"
)

func dialClient(t *testing.T, url string, o client.Options) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// The client gets along with each kind of server: ours with functions of its own, ours
// over Redis, and the old one.
func TestClientOnEachServer(t *testing.T) {
	for name, start := range map[string]func(*testing.T) string{
		"memory": func(t *testing.T) string {
			t.Helper()
			_, url := startServe(t, "--test-functions")
			return url
		},
		"redis": func(t *testing.T) string {
			t.Helper()
			redis := redisd.Start(t)
			startOldCallee(t, redis)
			_, url := startServe(t, "--redis", "unix://"+redis.Socket)
			return url
		},
		"old": func(t *testing.T) string {
			t.Helper()
			redis := redisd.Start(t)
			startOldCallee(t, redis)
			return startOld(t, redis, oldjuggler.Options{CloseURI: "close"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.CheckLeaks(t)
			url := start(t)
			protocols := map[string]string{"juggler.1": client.Juggler1, "juggler.0": client.Juggler0}
			if name == "old" {
				protocols["juggler.1"] = client.Juggler0 // it has no other one
			}
			for first, want := range protocols {
				c := dialClient(t, url, client.Options{Protocols: slices.Compact([]string{first, client.Juggler0})})
				clientCalls(t, c)
				clientEvents(t, c, name == "old")
				if c.Protocol() != want || c.Stats().Connections != 1 {
					t.Errorf("protocol %q, %+v", c.Protocol(), c.Stats())
				}
			}
		})
	}
}

// clientCalls makes calls that end in each way, and many at a time.
func clientCalls(t *testing.T, c *client.Client) {
	t.Helper()
	_, err := client.Call[string](t.Context(), c, "test.delay", "soon")
	if _, failed := errors.AsType[*client.FunctionError](err); !failed {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = c.Call(ctx, "test.delay", "900")
	if expired, ok := errors.AsType[*client.ExpiredError](err); !ok || !expired.Taken {
		t.Errorf("got %v", err)
	}
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			for j := range 20 {
				text := fmt.Sprintf("%d<%d>", i, j)
				if got, err := client.Call[string](t.Context(), c, "test.echo", text); err != nil || got != text {
					t.Errorf("got %q, %v", got, err)
					return
				}
			}
		})
	}
	all.Wait()
}

// clientEvents publishes to itself, by channel and by pattern. An old server may send
// events in any order.
func clientEvents(t *testing.T, c *client.Client, anyOrder bool) {
	t.Helper()
	channel, err := c.Subscribe(t.Context(), "a.b")
	if err != nil {
		t.Fatal(err)
	}
	pattern, err := c.SubscribePattern(t.Context(), "a.*")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := c.Post(t.Context(), "a.b", i); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []*client.Subscription{channel, pattern} {
		seen := map[int]bool{}
		for i, err := range client.Values[int](t.Context(), s) {
			if err != nil || seen[i] || !anyOrder && i != len(seen) {
				t.Fatalf("got %d, %v, behind %d others", i, err, len(seen))
			}
			if seen[i] = true; len(seen) == 100 {
				s.Close()
			}
		}
	}
	if err := c.Publish(t.Context(), "a.b", nil); err != nil {
		t.Error(err)
	}
	if n := c.Stats(); n.Events != 200 {
		t.Errorf("%+v", n)
	}
}

// A server that stops and comes back, in the middle of calls: those that were under way
// say so, the others go on, and subscriptions are made again.
func TestClientSurvivesARestart(t *testing.T) {
	testkit.CheckLeaks(t)
	for name, signal := range map[string]syscall.Signal{"stop": syscall.SIGTERM, "kill": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			server, url := startServe(t, "--test-functions")
			address := strings.TrimSuffix(strings.TrimPrefix(url, "ws://"), "/ws")
			c := dialClient(t, url, client.Options{ReconnectMax: time.Second})
			s, err := c.Subscribe(t.Context(), "c")
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := c.Call(t.Context(), "test.delay", "1000")
				ended <- err
			}()
			testkit.Eventually(t, harness.Patience, "it to be taken", func() bool { return c.Stats().Acks == 2 })
			server.Signal(signal)
			err = <-ended
			lost, ok := errors.AsType[*client.DisconnectedError](err)
			if name == "stop" && err != nil || name == "kill" && (!ok || !lost.Sent) {
				t.Errorf("the call: %v", err)
			}
			server.ExitCode(harness.Patience)
			startServe(t, "--test-functions", "--listen", address)
			if got, err := client.Call[string](t.Context(), c, "test.reverse", "abc"); err != nil || got != "cba" {
				t.Errorf("got %q, %v", got, err)
			}
			if err := c.Publish(t.Context(), "c", "back"); err != nil {
				t.Fatal(err)
			}
			if e, err := s.Next(t.Context()); err != nil || !e.Resumed || string(e.Args) != `"back"` {
				t.Errorf("got %+v, %v", e, err)
			}
		})
	}
}

// token makes a JSON Web Token, as an application would.
func token(secret, claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode([]byte(claims))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}

// With a token the client may do what it says, and gets what the server has subscribed it
// to; on the command line, too.
func TestClientWithAToken(t *testing.T) {
	testkit.CheckLeaks(t)
	secret := strings.Repeat("secret", 6)
	path := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	_, url := startServe(t, "--test-functions", "--auth-secret", path)
	claims := fmt.Sprintf(`{"sub":"7","exp":%d,"call":["test.*"],"publish":["user.*"],"channels":["user.7"]}`, time.Now().Add(time.Hour).Unix())
	for _, protocol := range []string{client.Juggler1, client.Juggler0} {
		unasked := make(chan client.Event, 1)
		c := dialClient(t, url, client.Options{
			Protocols: []string{protocol}, Unasked: func(e client.Event) { unasked <- e },
			Token: func(context.Context) (string, error) { return token(secret, claims), nil },
		})
		if got, err := client.Call[string](t.Context(), c, "test.echo", "me"); err != nil || got != "me" {
			t.Errorf("%s: got %q, %v", protocol, got, err)
		}
		_, err := c.Subscribe(t.Context(), "secrets")
		if no, ok := errors.AsType[*client.RefusedError](err); !ok || no.Code != 403 {
			t.Errorf("%s: got %v", protocol, err)
		}
		if err := c.Publish(t.Context(), "user.7", "hello"); err != nil {
			t.Errorf("%s: %v", protocol, err)
		}
		select {
		case e := <-unasked:
			if e.Channel != "user.7" || string(e.Args) != `"hello"` {
				t.Errorf("%s: got %+v", protocol, e)
			}
		case <-time.After(harness.Patience):
			t.Errorf("%s: no event", protocol)
		}
	}
	forged := token("another", claims)
	_, err := client.Dial(t.Context(), url, client.Options{Token: func(context.Context) (string, error) { return forged, nil }})
	if err == nil || !strings.Contains(err.Error(), "401 Unauthorized") {
		t.Errorf("got %v", err)
	}
	if out, errs, code := script(t, `call test.reverse "abc"`, url, "--token", token(secret, claims)); code != 0 || !strings.Contains(out, `"cba"`) {
		t.Errorf("exit code %d: %s%s", code, errs, out)
	}
	out, errs, code := script(t, `call test.reverse "abc"`, url+"?token="+token(secret, claims))
	if code != 0 || !strings.Contains(out, `"cba"`) || strings.Contains(out, "token") {
		t.Errorf("exit code %d: %s%s", code, errs, out)
	}
	if _, errs, code := script(t, "", url); code != 1 || !strings.Contains(errs, "the server wants a token") || strings.Count(errs, "\n") != 1 {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
