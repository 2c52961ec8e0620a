//go:build real || soak

package socket_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/client"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

func dialClient(t *testing.T, url string, o client.Options) *client.Client {
	t.Helper()
	c, err := client.Dial(t.Context(), url, o)
	testkit.Must(t, err)
	t.Cleanup(c.Close)
	return c
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
			testkit.Must(t, err)
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
			got, err := client.Call[string](t.Context(), c, "test.reverse", "abc")
			testkit.Want(t, err == nil && got == "cba", "got %q, %v", got, err)
			testkit.Must(t, c.Publish(t.Context(), "c", "back"))
			e, err := s.Next(t.Context())
			testkit.Want(t, err == nil && e.Resumed && string(e.Args) == `"back"`, "got %+v, %v", e, err)
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
	path := harness.WriteFile(t, "secret", secret)
	_, url := startServe(t, "--test-functions", "--auth-secret", path)
	claims := fmt.Sprintf(`{"sub":"7","exp":%d,"call":["test.*"],"publish":["user.*"],"channels":["user.7"]}`, time.Now().Add(time.Hour).Unix())
	for _, protocol := range []string{client.Juggler1, client.Juggler0} {
		unasked := make(chan client.Event, 1)
		c := dialClient(t, url, client.Options{
			Protocols: []string{protocol}, Unasked: func(e client.Event) { unasked <- e },
			Token: func(context.Context) (string, error) { return token(secret, claims), nil },
		})
		got, err := client.Call[string](t.Context(), c, "test.echo", "me")
		testkit.Want(t, err == nil && got == "me", "%s: got %q, %v", protocol, got, err)
		_, err = c.Subscribe(t.Context(), "secrets")
		no, ok := errors.AsType[*client.RefusedError](err)
		testkit.Want(t, ok && no.Code == 403, "%s: got %v", protocol, err)
		err = c.Publish(t.Context(), "user.7", "hello")
		testkit.Want(t, err == nil, "%s: %v", protocol, err)
		e := testkit.Take(t, unasked, harness.Patience, "%s: no event", protocol)
		testkit.Want(t, e.Channel == "user.7" && string(e.Args) == `"hello"`, "%s: got %+v", protocol, e)
	}
	forged := token("another", claims)
	_, err := client.Dial(t.Context(), url, client.Options{Token: func(context.Context) (string, error) { return forged, nil }})
	testkit.Want(t, err != nil && strings.Contains(err.Error(), "401 Unauthorized"), "got %v", err)
	if out, errs, code := script(t, `call test.reverse "abc"`, url, "--token", token(secret, claims)); code != 0 || !strings.Contains(out, `"cba"`) {
		t.Errorf("exit code %d: %s%s", code, errs, out)
	}
	out, errs, code := script(t, `call test.reverse "abc"`, url+"?token="+token(secret, claims))
	testkit.Want(t, code == 0 && strings.Contains(out, `"cba"`) && !strings.Contains(out, "token"), "exit code %d: %s%s", code, errs, out)
	ends(t, nil, 1, "the server wants a token", "connect", url)
}
