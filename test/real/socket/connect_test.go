//go:build real || soak

package socket_test

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// script runs cabrank socket connect with lines on its standard input, and returns what
// it has printed, without ids.
func script(t *testing.T, lines string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), harness.CabrankBinary(t), append([]string{"socket", "connect"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(lines), &out, &errs
	err := cmd.Run()
	_, ended := errors.AsType[*exec.ExitError](err)
	testkit.Need(t, err == nil || ended, "%v", err)
	return regexp.MustCompile(`[0-9a-f]{8}`).ReplaceAllString(out.String(), "ID"), errs.String(), cmd.ProcessState.ExitCode()
}

// A script does all there is, each command behind the answer to the one before.
func TestConnectScript(t *testing.T) {
	_, url := startServe(t, "--test-functions")
	out, errs, code := script(t, `
# comments and empty lines are nothing

sub news
psub n*
call test.reverse 2s "a b<c"
pub news {"text": [1, 2]}
wait 1ms
unsb news
punsb n*
pub news "nobody"
send {"meta":{"type":1,"uuid":"00000000-0000-0000-0000-000000000001"},"payload":{"uri":"test.echo","args":"raw"}}
wait 200ms
disconnect
connect `+url+`
sub both
use other
connect `+url+`
pub both 7
close
use
wait 200ms
close
exit
not reached
`, url, "--protocol", "juggler.0")
	want := `connected to ` + url + `, juggler.0
> sub  ID news
< ack  ID news
> sub  ID n*
< ack  ID n*
> call ID test.reverse "a b\u003cc"
< ack  ID test.reverse
< res  ID test.reverse "c\u003cb a"
> pub  ID news {"text":[1,2]}
< evnt ID news {"text":[1,2]}
< evnt ID news (n*) {"text":[1,2]}
< ack  ID news
> unsb ID news
< ack  ID news
> unsb ID n*
< ack  ID n*
> pub  ID news "nobody"
< ack  ID news
> raw  {"meta":{"type":1,"uuid":"ID-0000-0000-0000-ID0001"},"payload":{"uri":"test.echo","args":"raw"}}
< ack  ID
< res  ID "raw"
disconnected
connected to ` + url + `, juggler.0
> sub  ID both
< ack  ID both
other: connected to ` + url + `, juggler.0
other: > pub  ID both 7
< evnt ID both 7
other: < ack  ID both
other: closed
closed
`
	// The event and the acknowledgment of a PUB come in any order.
	testkit.Want(t, sorted(out) == sorted(want) && errs == "" && code == 0, "exit code %d, %q:\n%s", code, errs, out)
}

// Under juggler.1 ids are numbers, errors have codes, and streams have several results.
func TestConnectScriptOfJuggler1(t *testing.T) {
	_, url := startServe(t, "--test-functions")
	out, errs, code := script(t, `
call test.reverse "abc"
stream test.count "2"
psub n*
pub news 1
call test.nobody
call test.delay 100ms "60000"
send {"type":"ping","id":77}
wait 200ms
`, url)
	want := `connected to ` + url + `, juggler.1
> call 1 test.reverse "abc"
< ack  1 test.reverse
< res  1 test.reverse "cba"
> call 2 test.count "2"
< ack  2 test.count
< res  2 test.count 1 ...
< res  2 test.count 2 ...
< res  2 test.count
> sub  3 n*
< ack  3 n*
> pub  4 news 1
< evnt ID news (n*) 1
< ack  4 news
> call 5 test.nobody null
< nack 5 test.nobody 404 no function of this URI
> call 6 test.delay "60000"
< ack  6 test.delay
! exp  6 test.delay
> raw  {"type":"ping","id":77}
< pong 77
`
	testkit.Want(t, sorted(out) == sorted(want) && errs == "" && code == 1, "exit code %d, %q:\n%s", code, errs, out)
}

// What has failed is shown, and makes the exit status 1; the others go on.
func TestConnectFailures(t *testing.T) {
	_, url := startServe(t, "--test-functions", "--max-name", "20")
	out, errs, code := script(t, `call test.nobody 100ms
call test.echo 7
call test.echo.with.a.name.that.is.too.long
unsb nothing
call test.echo "fine"
`, url, "--protocol", "juggler.0")
	for _, want := range []string{
		"! exp  ID test.nobody", `< res  ID test.echo error {"message":"json: cannot unmarshal`,
		"< nack ID test.echo.with.a.name.that.is.too.long 500 ", "there is no subscription to nothing", `< res  ID test.echo "fine"`,
	} {
		testkit.Want(t, strings.Contains(out, want), "no line %s", want)
	}
	testkit.Want(t, code == 1 && errs == "", "exit code %d, %q:\n%s", code, errs, out)
}

// Lines and command lines that are wrong end with one line and 2, a server that is not
// there with 1.
func TestConnectMistakes(t *testing.T) {
	_, url := startServe(t)
	for lines, want := range map[string]string{
		"help\nhello":       `line 2: "hello" is no command; help lists them`,
		"call":              "line 1: call: want call URI [TIMEOUT] [JSON]",
		"call f abc":        `line 1: call: abc is no JSON; a text has quotes: "abc"`,
		`pub c {"a":`:       `line 1: pub: {"a": is no JSON`,
		"call f -1s":        "line 1: call: the timeout must be above 0",
		"wait some time":    `line 1: wait: "some time" is no time; want one such as 500ms or 1m`,
		"sub c\nclose\nsub": "line 3: sub: want sub CHANNEL",
	} {
		if _, errs, code := script(t, lines, url); code != 2 || errs != "cabrank: "+want+"\n" {
			t.Errorf("%q: exit code %d: %s", lines, code, errs)
		}
	}
	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{"ws://" + testkit.FreeAddress(t) + "/ws", 1, "connection refused"},
		{url + "/elsewhere", 1, "404 Not Found"},
		{"localhost:9000", 1, `"localhost:9000": want ws://HOST:PORT/PATH, or wss`},
		{url + " --header name", 2, `--header "name": want NAME:VALUE`},
		{url + " --protocol juggler.2", 2, `--protocol "juggler.2": juggler.1 and juggler.0 are possible`},
		{url + " --timeout 0s", 2, "--timeout must be above 0"},
		{url + " --cacert /nothing", 2, "--cacert: open /nothing: no such file or directory"},
	} {
		ends(t, nil, tc.code, tc.want, append([]string{"connect"}, strings.Fields(tc.args)...)...)
	}
	if out, _, code := script(t, "call f"); code != 1 || out != "call: there is no connection; connect URL opens one\n" {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// A signal ends it, also while it waits for a line or for messages.
func TestConnectEndsBySignal(t *testing.T) {
	_, url := startServe(t)
	for _, lines := range []string{"", "sub c\nwait\n"} {
		cmd := exec.CommandContext(t.Context(), harness.CabrankBinary(t), "socket", "connect", url)
		out := &testkit.Buffer{}
		cmd.Stdout, cmd.Stderr = out, out
		stdin, err := cmd.StdinPipe()
		testkit.Must(t, err)
		t.Cleanup(func() { stdin.Close() })
		testkit.Must(t, cmd.Start())
		io.WriteString(stdin, lines)
		last := map[string]string{"": "connected"}[lines]
		testkit.Eventually(t, harness.Patience, "it to wait", func() bool {
			return strings.Contains(out.String(), cmp.Or(last, "< ack "))
		})
		cmd.Process.Signal(syscall.SIGTERM)
		err = cmd.Wait()
		testkit.Want(t, err == nil, "%q: %v:\n%s", lines, err, out)
	}
}

// sorted has the lines of a text in their order.
func sorted(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
