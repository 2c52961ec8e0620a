package relay

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"

	"github.com/cabrank/cabrank/internal/testkit"
)

// R13: every ending is in each form what docs/callers.md says, where whoever searches for a
// message finds it, and has a token of its own. No message names an address of ours.
func TestEndings(t *testing.T) {
	page, err := os.ReadFile("../../docs/callers.md")
	testkit.Must(t, err)
	answers, tokens := newAnswers(), map[string]ending{}
	for why := endedQueueFull; why < endings; why++ {
		a := &answers[why]
		other, taken := tokens[a.token]
		testkit.Want(t, !taken && a.token != "", "endings %d and %d share the token %q", why, other, a.token)
		tokens[a.token] = why
		row := "| " + a.code.String() + " (" + strconv.Itoa(a.status) + ") | `" + a.message + "` |\n"
		testkit.Want(t, strings.Contains(string(page), row), "docs/callers.md has no row that ends in %s", row)
		wantBlock(t, a.trailers, "grpc-status", strconv.Itoa(int(a.code)), "grpc-message", a.message)
		plain := []string{":status", strconv.Itoa(a.status), "content-type", "text/plain; charset=utf-8", "content-length", strconv.Itoa(len(a.message) + 1)}
		if a.status == 401 {
			plain = append(plain, "www-authenticate", "Bearer") // RFC 9110 11.6.1
		}
		wantBlock(t, a.http, plain...)
		testkit.Want(t, string(a.body) == a.message+"\n", "body: got %q", a.body)
		testkit.Want(t, !strings.ContainsAny(a.message, "/@[]") && !strings.Contains(a.message, "127."),
			"%q looks as if it named an address", a.message)
	}
}

func wantBlock(t *testing.T, block []byte, kv ...string) {
	t.Helper()
	fields, err := hpack.NewDecoder(0, nil).DecodeFull(block)
	testkit.Need(t, err == nil, "decode: %v", err)
	var got []string
	for _, f := range fields {
		got = append(got, f.Name, f.Value)
	}
	testkit.Want(t, strings.Join(got, "|") == strings.Join(kv, "|"), "got %q, want %q", got, kv)
}
