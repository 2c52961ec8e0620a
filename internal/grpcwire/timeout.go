package grpcwire

import (
	"errors"
	"math"
	"strconv"
	"time"
)

// ErrTimeoutSyntax is returned for a grpc-timeout that is no timeout. The
// caller refuses the call with InvalidArgument and opens no upstream stream.
var ErrTimeoutSyntax = errors.New("grpc-timeout: want 1 to 8 digits and a unit of H, M, S, m, u or n")

// maxTimeoutDigits is the most digits of a timeout.
const maxTimeoutDigits = 8

// timeoutNumbers is how many numbers these digits can say.
const timeoutNumbers = 1_0000_0000

// timeoutUnits lists the units of a timeout from the finest to the coarsest.
// A duration below limit can be said in the unit.
var timeoutUnits = [...]struct {
	letter byte
	length time.Duration
	limit  time.Duration
}{
	{'n', time.Nanosecond, timeoutNumbers * time.Nanosecond},
	{'u', time.Microsecond, timeoutNumbers * time.Microsecond},
	{'m', time.Millisecond, timeoutNumbers * time.Millisecond},
	{'S', time.Second, timeoutNumbers * time.Second},
	{'M', time.Minute, timeoutNumbers * time.Minute},
	{'H', time.Hour, math.MaxInt64}, // every duration is below 2562048 h
}

// ParseTimeout reads the value of a grpc-timeout header.
//
// Shape: 1–8 ASCII digits, then one unit letter of H M S m u n.
// Units: the result is a duration; values beyond the int64 range are clamped
// to the maximum, because a caller that asks for centuries means "no limit".
// Zero, which some clients send for a deadline that has passed, is zero.
// Errors: ErrTimeoutSyntax for anything else; the caller refuses the call with
// InvalidArgument and does not open an upstream stream.
// Source: gRPC over HTTP/2, Requests, "Timeout".
func ParseTimeout(value []byte) (time.Duration, error) {
	digits := len(value) - 1
	if digits < 1 || digits > maxTimeoutDigits {
		return 0, ErrTimeoutSyntax
	}
	unit := timeoutUnit(value[digits])
	if unit == 0 {
		return 0, ErrTimeoutSyntax
	}
	var n int64
	for _, c := range value[:digits] {
		if c < '0' || c > '9' {
			return 0, ErrTimeoutSyntax
		}
		n = 10*n + int64(c-'0')
	}
	// Eight digits of minutes are within int64, of hours not.
	if unit == time.Hour && n > int64(math.MaxInt64/time.Hour) {
		return math.MaxInt64, nil
	}
	return time.Duration(n) * unit, nil
}

// timeoutUnit returns the length of a unit, or zero if the letter is none.
func timeoutUnit(letter byte) time.Duration {
	for _, unit := range timeoutUnits {
		if unit.letter == letter {
			return unit.length
		}
	}
	return 0
}

// AppendTimeout appends d as the value of a grpc-timeout header.
//
// Shape: at most 8 digits and the finest unit with which they suffice.
// Units: the value is never longer than d, since nobody may work past the
// caller's deadline, and never zero, which the specification does not know: a
// d of zero or less becomes 1n, the shortest time there is.
// Source: gRPC over HTTP/2, Requests, "Timeout".
func AppendTimeout(dst []byte, d time.Duration) []byte {
	d = max(d, 1)
	finest := 0
	for finest < len(timeoutUnits)-1 && d >= timeoutUnits[finest].limit {
		finest++
	}
	unit := &timeoutUnits[finest]
	dst = strconv.AppendInt(dst, int64(d/unit.length), 10)
	return append(dst, unit.letter)
}
