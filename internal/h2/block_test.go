package h2

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2/hpack"

	"github.com/cabrank/cabrank/internal/testkit"
)

// pairs reads name and value in turn.
func pairs(s ...string) []hpack.HeaderField {
	fields := make([]hpack.HeaderField, 0, len(s)/2)
	for i := 0; i < len(s); i += 2 {
		fields = append(fields, hpack.HeaderField{Name: s[i], Value: s[i+1]})
	}
	return fields
}

// get is a request with these fields behind the usual ones.
func get(s ...string) []hpack.HeaderField {
	return append(pairs(":method", "GET", ":scheme", "http", ":path", "/"), pairs(s...)...)
}

// answer is a response with these fields behind its status.
func answer(s ...string) []hpack.HeaderField {
	return append(pairs(":status", "200"), pairs(s...)...)
}

var messageRules = []struct {
	name   string
	kind   Kind
	fields []hpack.HeaderField
	want   MalformedError
}{
	{"request", RequestBlock, get(), 0},
	{"request with authority", RequestBlock, get(":authority", "x"), 0},
	{"request of any order", RequestBlock, pairs(":path", "/", ":authority", "", ":method", "GET", ":scheme", "x"), 0},
	{"request with te", RequestBlock, get("te", "trailers"), 0},
	{"request with obs-text", RequestBlock, get("x", "caf\xe9"), 0},
	{"request with inner spaces", RequestBlock, get("x", "a \t b"), 0},
	{"request with every token character", RequestBlock, get("!#$%&'*+-.^_`|~09az", ""), 0},
	{"CONNECT", RequestBlock, pairs(":method", "CONNECT", ":authority", "x:1"), 0},
	{"host alone", RequestBlock, get("host", "a b"), 0},
	{"host as :authority", RequestBlock, get(":authority", "x:1", "host", "x:1"), 0},
	{"host in another case", RequestBlock, get(":authority", "X.test", "host", "x.TEST"), 0},
	{"host without the port of http", RequestBlock, get(":authority", "x:80", "host", "x"), 0},
	{"host with an empty port", RequestBlock, get(":authority", "x", "host", "x:"), 0},
	{"host of CONNECT", RequestBlock, pairs(":method", "CONNECT", ":authority", "x:443", "host", "X"), 0},
	{"host beside an empty :authority", RequestBlock, get(":authority", "", "host", "x"), 0},
	{"host in trailers", TrailerBlock, pairs("host", "x", "host", "y"), 0},
	{"response", ResponseBlock, answer("content-type", "x"), 0},
	{"interim response", ResponseBlock, pairs(":status", "103"), 0},
	{"trailers", TrailerBlock, pairs("grpc-status", "0"), 0},
	{"empty trailers", TrailerBlock, nil, 0},
	{"message with a space at its end", TrailerBlock, pairs("grpc-message", "bad: "), 0},
	{"response value with a space in front", ResponseBlock, answer("x", " a"), 0},

	{"host that differs (8.3.1)", RequestBlock, get(":authority", "x", "host", "y"), MalformedHost},
	{"host that is longer", RequestBlock, get(":authority", "x", "host", "xy"), MalformedHost},
	{"host of another port", RequestBlock, get(":authority", "x:80", "host", "x:443"), MalformedHost},
	{"host of a port that is not usual", RequestBlock, get(":authority", "x", "host", "x:8080"), MalformedHost},
	{"empty host", RequestBlock, get(":authority", "x", "host", ""), MalformedHost},
	{"host that folds to it", RequestBlock, get(":authority", "s", "host", "\u017f"), MalformedHost},
	{"host of CONNECT that differs", RequestBlock, pairs(":method", "CONNECT", ":authority", "x:1", "host", "y:1"), MalformedHost},
	{"host with two ports", RequestBlock, get(":authority", "x:80", "host", "x:80:80"), MalformedHost},
	{"two hosts", RequestBlock, get("host", "x", "host", "x"), MalformedHost},
	{"no name (8.2.1)", RequestBlock, get("", "x"), MalformedNameEmpty},
	{"upper case (8.2.1)", RequestBlock, get("X-a", "x"), MalformedNameUppercase},
	{"space in a name", RequestBlock, get("a b", "x"), MalformedNameChar},
	{"colon in a name", RequestBlock, get("a:b", "x"), MalformedNameChar},
	{"DEL in a name", RequestBlock, get("a\x7f", "x"), MalformedNameChar},
	{"obs-text in a name", TrailerBlock, pairs("\xe9", "x"), MalformedNameChar},
	{"NUL in a value", RequestBlock, get("x", "a\x00b"), MalformedValueChar},
	{"CR in a value", ResponseBlock, answer("x", "\r"), MalformedValueChar},
	{"LF in a value", TrailerBlock, pairs("x", "a\nb"), MalformedValueChar},
	{"LF in :path", RequestBlock, pairs(":method", "GET", ":scheme", "x", ":path", "/\n"), MalformedValueChar},
	{"space in front of a value", RequestBlock, get("x", " a"), MalformedValueSpace},
	{"tab behind a value", RequestBlock, get("x", "a\t"), MalformedValueSpace},
	{"a space for a value", RequestBlock, get("x", " "), MalformedValueSpace},

	{"connection (8.2.2)", RequestBlock, get("connection", "close"), MalformedConnectionField},
	{"proxy-connection", RequestBlock, get("proxy-connection", "x"), MalformedConnectionField},
	{"keep-alive", ResponseBlock, answer("keep-alive", "x"), MalformedConnectionField},
	{"transfer-encoding", ResponseBlock, answer("transfer-encoding", "chunked"), MalformedConnectionField},
	{"transfer-encoding from the static table", ResponseBlock, answer("transfer-encoding", ""), MalformedConnectionField},
	{"upgrade", RequestBlock, get("upgrade", "h2c"), MalformedConnectionField},
	{"te other than trailers", RequestBlock, get("te", "gzip"), MalformedTE},
	{"te with more", RequestBlock, get("te", "trailers, gzip"), MalformedTE},
	{"te in upper case", RequestBlock, get("te", "Trailers"), MalformedTE},

	{"unknown pseudo-header field (8.3)", RequestBlock, get(":other", "x"), MalformedPseudoUnknown},
	{":protocol (RFC 8441)", RequestBlock, get(":protocol", "websocket"), MalformedPseudoUnknown},
	{"a colon alone", RequestBlock, get(":", "x"), MalformedPseudoUnknown},
	{":status in a request", RequestBlock, get(":status", "200"), MalformedPseudoMisplaced},
	{":path in a response", ResponseBlock, answer(":path", "/"), MalformedPseudoMisplaced},
	{":method in trailers", TrailerBlock, pairs(":method", "GET"), MalformedPseudoInTrailers},
	{":status in trailers", TrailerBlock, pairs("a", "b", ":status", "200"), MalformedPseudoInTrailers},
	{"pseudo-header field behind a regular one", RequestBlock, pairs(":method", "GET", ":scheme", "x", "a", "b", ":path", "/"), MalformedPseudoAfterRegular},
	{":status behind a regular one", ResponseBlock, pairs("a", "b", ":status", "200"), MalformedPseudoAfterRegular},
	{":path twice", RequestBlock, get(":path", "/"), MalformedPseudoDuplicate},
	{":authority twice", RequestBlock, get(":authority", "a", ":authority", "a"), MalformedPseudoDuplicate},
	{":status twice", ResponseBlock, answer(":status", "200"), MalformedPseudoDuplicate},

	{"no :method (8.3.1)", RequestBlock, pairs(":scheme", "x", ":path", "/"), MalformedMethodMissing},
	{"nothing", RequestBlock, nil, MalformedMethodMissing},
	{"empty :method", RequestBlock, pairs(":method", "", ":scheme", "x", ":path", "/"), MalformedMethod},
	{":method with a space", RequestBlock, pairs(":method", "GET /", ":scheme", "x", ":path", "/"), MalformedMethod},
	{"no :scheme", RequestBlock, pairs(":method", "GET", ":path", "/"), MalformedSchemeMissing},
	{"empty :scheme", RequestBlock, pairs(":method", "GET", ":scheme", "", ":path", "/"), MalformedSchemeEmpty},
	{"no :path", RequestBlock, pairs(":method", "GET", ":scheme", "x"), MalformedPathMissing},
	{"empty :path", RequestBlock, pairs(":method", "GET", ":scheme", "x", ":path", ""), MalformedPathEmpty},
	{":scheme of more than letters", RequestBlock, pairs(":method", "GET", ":scheme", "git+ssh", ":path", "/"), 0},
	{":scheme that begins with a digit (RFC 3986 3.1)", RequestBlock, pairs(":method", "GET", ":scheme", "4http", ":path", "/"), MalformedScheme},
	{":scheme with a colon", RequestBlock, pairs(":method", "GET", ":scheme", "http:", ":path", "/"), MalformedScheme},
	{":scheme with a space behind it", RequestBlock, pairs(":method", "GET", ":scheme", "http ", ":path", "/"), MalformedScheme},
	{":path with what RFC 3986 allows", RequestBlock, pairs(":method", "GET", ":scheme", "x", ":path", "/a-._~!$&'()*+,;=:@%20/?b/?"), 0},
	{":path as browsers write it", RequestBlock, pairs(":method", "GET", ":scheme", "x", ":path", "/a|b?filter[name]={x}"), 0},
	{":path with a space", RequestBlock, pairs(":method", "GET", ":scheme", "x", ":path", "/a HTTP/1.1"), MalformedPathChar},
	{":path with a space behind it", RequestBlock, pairs(":method", "GET", ":scheme", "x", ":path", "/a "), MalformedPathChar},
	{":path with a fragment", RequestBlock, pairs(":method", "GET", ":scheme", "x", ":path", "/a#b"), MalformedPathChar},
	{":path with a control character", RequestBlock, pairs(":method", "GET", ":scheme", "x", ":path", "/\x7f"), MalformedPathChar},
	{":path beyond ASCII", RequestBlock, pairs(":method", "GET", ":scheme", "x", ":path", "/\xc3\xbc"), MalformedPathChar},
	{":path without a slash", RequestBlock, pairs(":method", "GET", ":scheme", "x", ":path", "a"), MalformedPath},
	{":path with all of the address", RequestBlock, pairs(":method", "GET", ":scheme", "x", ":path", "http://a/b"), MalformedPath},
	{"* of OPTIONS", RequestBlock, pairs(":method", "OPTIONS", ":scheme", "x", ":path", "*"), 0},
	{"* of another method", RequestBlock, pairs(":path", "*", ":method", "GET", ":scheme", "x"), MalformedPath},
	{"* and more", RequestBlock, pairs(":method", "OPTIONS", ":scheme", "x", ":path", "*/"), MalformedPath},
	{":authority of a name", RequestBlock, get(":authority", "a_b-c.example"), 0},
	{":authority with a port", RequestBlock, get(":authority", "192.0.2.1:8080"), 0},
	{":authority with an empty port", RequestBlock, get(":authority", "a:"), 0},
	{":authority of IPv6", RequestBlock, get(":authority", "[2001:db8::1]"), 0},
	{":authority of IPv6 with a port", RequestBlock, get(":authority", "[fe80::1%25eth0]:80"), 0},
	{"empty :authority", RequestBlock, get(":authority", ""), 0},
	{":authority with a user (8.3.1)", RequestBlock, get(":authority", "me@example.com"), MalformedAuthority},
	{":authority with a path", RequestBlock, get(":authority", "a/b"), MalformedAuthority},
	{":authority of two", RequestBlock, get(":authority", "a, b"), MalformedAuthority},
	{":authority with a port that is none", RequestBlock, get(":authority", "a:http"), MalformedAuthority},
	{":authority with two ports", RequestBlock, get(":authority", "a:1:2"), MalformedAuthority},
	{":authority of IPv6 without brackets", RequestBlock, get(":authority", "::1"), MalformedAuthority},
	{":authority of half an IPv6 address", RequestBlock, get(":authority", "[::1"), MalformedAuthority},
	{":authority with something behind IPv6", RequestBlock, get(":authority", "[::1]a"), MalformedAuthority},
	{":authority with a bracket", RequestBlock, get(":authority", "a[b]"), MalformedAuthority},
	{":authority of CONNECT with a path", RequestBlock, pairs(":method", "CONNECT", ":authority", "a/b"), MalformedAuthority},
	{"CONNECT with :path (8.5)", RequestBlock, pairs(":method", "CONNECT", ":authority", "x", ":path", "/"), MalformedConnect},
	{"CONNECT with :scheme", RequestBlock, pairs(":method", "CONNECT", ":authority", "x", ":scheme", "x"), MalformedConnect},
	{"CONNECT without :authority", RequestBlock, pairs(":method", "CONNECT"), MalformedConnect},
	{"no :status (8.3.2)", ResponseBlock, pairs("a", "b"), MalformedStatusMissing},
	{"no response", ResponseBlock, nil, MalformedStatusMissing},
	{":status of two digits", ResponseBlock, pairs(":status", "20"), MalformedStatus},
	{":status of four digits", ResponseBlock, pairs(":status", "2000"), MalformedStatus},
	{":status below 100", ResponseBlock, pairs(":status", "099"), MalformedStatus},
	{":status with a space behind it", ResponseBlock, pairs(":status", "200 "), MalformedStatus},
	{":status with a letter", ResponseBlock, pairs(":status", "20x"), MalformedStatus},
	{"content-length", RequestBlock, get("content-length", "12"), 0},
	{"content-length beyond every bound", ResponseBlock, answer("content-length", strings.Repeat("9", 40)), 0},
	{"content-length of CONNECT", RequestBlock, pairs(":method", "CONNECT", ":authority", "x:1", "content-length", "0"), 0},
	{"content-length in trailers", TrailerBlock, pairs("content-length", "3"), 0},
	{"empty content-length (8.1.1)", RequestBlock, get("content-length", ""), MalformedLength},
	{"content-length with a sign", RequestBlock, get("content-length", "+1"), MalformedLength},
	{"content-length with a fraction", ResponseBlock, answer("content-length", "1.0"), MalformedLength},
	{"content-length as a list", ResponseBlock, answer("content-length", "1, 1"), MalformedLength},
	{"content-length twice", RequestBlock, get("content-length", "1", "a", "b", "content-length", "1"), MalformedLength},
	{"the first of two faults", RequestBlock, get("A", "x", "te", "gzip"), MalformedNameUppercase},
}

// R12, R13: the rules of RFC 9113, section 8, once for fields that are spelled
// out and once for the same fields as indices.
func TestTranscodeMessageRules(t *testing.T) {
	for _, tt := range messageRules {
		t.Run(tt.name, func(t *testing.T) {
			d, b := newDecoder(testWatch(), 4096, 16<<10), new(Block)
			for i, block := range encoderBlocks(tt.fields, tt.fields) {
				err := d.Transcode(b, block, tt.kind)
				if got, _ := errors.AsType[MalformedError](err); got != tt.want || got == 0 && err != nil {
					t.Errorf("block %d: %v; want %v", i+1, err, tt.want)
				}
				testkit.EqualList(t, list(readStateless(t, b.Enc)), list(tt.fields), "block %d", i+1)
			}
		})
	}
}

// Style: every refusal is counted under a token of its own.
func TestReasonTokensAreDistinct(t *testing.T) {
	seen := make(map[string]bool)
	for _, tokens := range [][]string{compressionTokens[1:], malformedTokens[1:]} {
		for i, token := range tokens {
			testkit.Want(t, token != "" && !seen[token], "token %d of its list is %q, empty or used twice", i+1, token)
			seen[token] = true
		}
	}
	testkit.Equal(t, MalformedTE.Error(), "h2: malformed header block: te", "MalformedTE reads")
	testkit.Equal(t, CompressionBadIndex.Error(), "h2: header block: hpack_bad_index", "CompressionBadIndex reads")
}

func TestWatched(t *testing.T) {
	fields := append(grpcRequest("5S"), pairs("x-forwarded-for", "a", "other", "b", "x-forwarded-for", "c")...)
	d, b := newDecoder(testWatch(), 4096, 16<<10), new(Block)
	for i, block := range encoderBlocks(fields, fields) {
		testkit.Must(t, d.Transcode(b, block, RequestBlock))
		for id, want := range map[int]string{
			watchMethod: "POST 1", watchScheme: "http 1", watchPath: "/helloworld.Greeter/SayHello 1",
			watchTimeout: "5S 1", watchForwarded: "c 2", watchStatus: " 0",
		} {
			w, ok := b.Watched(id)
			if got := fmt.Sprintf("%s %d", w.Value, w.Count); got != want || ok != (w.Count > 0) {
				t.Errorf("block %d, field %d: %q, %v; want %q", i+1, id, got, ok, want)
			}
		}
		w, _ := b.Watched(watchTimeout)
		if got := list(readStateless(t, b.Enc[w.Start:w.End])); !slices.Equal(got, []string{"grpc-timeout: 5S"}) {
			t.Errorf("block %d: %q stands at %d to %d", i+1, got, w.Start, w.End)
		}
	}
	b.Reset()
	if _, ok := b.Watched(watchPath); ok || len(b.Enc) != 0 {
		t.Error("Reset leaves something")
	}
}

func TestNewWatchListRefuses(t *testing.T) {
	for _, names := range [][]string{{"a", "b", "a"}, make([]string, maxWatched+1)} {
		func() {
			defer func() {
				testkit.Want(t, recover() != nil, "%q was taken", names)
			}()
			NewWatchList(names...)
		}()
	}
}
