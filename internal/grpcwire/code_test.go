package grpcwire

import (
	"strconv"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/cabrank/cabrank/internal/testkit"
)

// The names and numbers are those of grpc-go, which reads the names as JSON.
func TestCodesAreThoseOfGRPC(t *testing.T) {
	for c := range Code(NumCodes) {
		var theirs codes.Code
		err := theirs.UnmarshalJSON([]byte(strconv.Quote(c.String())))
		testkit.Want(t, err == nil && uint32(theirs) == uint32(c), "%d is %v: grpc-go has %d, %v", c, c, theirs, err)
	}
	testkit.Equal(t, Code(17).String(), "CODE(17)", "code 17")
}

func TestParseCode(t *testing.T) {
	for c := range Code(NumCodes) {
		value := strconv.Itoa(int(c))
		if got, ok := ParseCode([]byte(value)); !ok || got != c {
			t.Errorf("ParseCode(%q) = %v, %v; want %v", value, got, ok, c)
		}
	}
	for _, value := range []string{"", "17", "-1", "00", "01", "1 ", " 1", "x", "1x", "100", "OK", "\xff"} {
		if got, ok := ParseCode([]byte(value)); ok || got != Unknown {
			t.Errorf("ParseCode(%q) = %v, %v; want UNKNOWN, false", value, got, ok)
		}
	}
}

func TestCodeFromHTTP(t *testing.T) {
	want := map[int]Code{
		200: Unknown, 204: Unknown, 302: Unknown, 400: Internal, 401: Unauthenticated,
		403: PermissionDenied, 404: Unimplemented, 408: Unknown, 429: Unavailable,
		431: Unknown, 500: Unknown, 501: Unknown, 502: Unavailable, 503: Unavailable,
		504: Unavailable, 0: Unknown,
	}
	for status, code := range want {
		testkit.Equal(t, CodeFromHTTP(status), code, "CodeFromHTTP(%d)", status)
	}
}
