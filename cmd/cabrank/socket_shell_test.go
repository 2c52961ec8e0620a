package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/client"
	"github.com/cabrank/cabrank/internal/testkit"
)

// What a terminal would act on is shown, not done.
func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"äöü \"a\"": "äöü \"a\"", "a\x1b[2Jb": `a\u001b[2Jb`, "\u009b": `\u009b`, "a\nb\tc": `a\u000ab\u0009c`, "\u202e": `\u202e`, "\xff": "\uFFFD",
	} {
		testkit.Equal(t, plain(text), want, "%q became", text)
	}
}

// Commands are completed, and behind them the names that were used.
func TestComplete(t *testing.T) {
	s := newSocketShell(client.Options{}, &bytes.Buffer{}, false)
	s.know("test.echo")
	s.know("test.reverse")
	for line, want := range map[string]string{
		"ca": "call ", "p": "p", "pu": "pu", "x": "", "call t": "call test.", "call test.r": "call test.reverse ", "call x": "", "": "",
		"dis": "disconnect ",
	} {
		got, at, ok := s.complete(line, len(line))
		if got != want || ok && at != len(got) || ok != (want != "" || line == "") {
			t.Errorf("%q became %q, %d, %t; want %q", line, got, at, ok, want)
		}
	}
	if got, at, _ := s.complete("call test.r 2s", 11); got != "call test.reverse  2s" || at != 18 {
		t.Errorf("got %q, %d", got, at)
	}
}

// docs/juggler.md has all commands, and the help has them in columns.
func TestShellHelp(t *testing.T) {
	var out bytes.Buffer
	s := newSocketShell(client.Options{}, &out, false)
	testkit.Must(t, s.do(t.Context(), "help"))
	document := testkit.ReadFile(t, "../../docs/juggler.md")
	for _, c := range shellCommands() {
		testkit.Want(t, strings.Contains(out.String(), c.usage+" ") && strings.Contains(string(document), "`"+c.usage+"`"),
			"%s is not explained", c.usage)
	}
}

func TestMessages(t *testing.T) {
	var out bytes.Buffer
	o := newShellOutput(&out, false)
	for _, m := range []client.Message{
		{Sent: true, Kind: "sub", ID: "1", Pattern: "n*"},
		{Kind: "evnt", ID: "01234567-89ab-cdef-0123-456789abcdef", Name: "news", Pattern: "n*", Args: []byte(`{"a":1}`)},
		{Kind: "nack", ID: "2", Name: "f", Code: 404, Text: "no function"},
		{Kind: "res", ID: "3", Name: "f", Args: []byte("1"), More: true},
		{Kind: "res", ID: "3", Name: "f", Args: []byte(`{"message":"no"}`), Failed: true},
		{Kind: "exp", ID: "4", Name: "f"},
	} {
		o.message("", m)
	}
	want := `> sub  1 n*
< evnt 01234567 news (n*) {"a":1}
< nack 2 f 404 no function
< res  3 f 1 ...
< res  3 f error {"message":"no"}
! exp  4 f
`
	testkit.Want(t, out.String() == want, "got\n%s", out.String())
}
