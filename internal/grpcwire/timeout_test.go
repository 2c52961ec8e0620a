package grpcwire

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

func TestParseTimeout(t *testing.T) {
	for _, tt := range []struct {
		value string
		want  time.Duration
	}{
		{"1n", 1},
		{"0n", 0},
		{"100m", 100 * time.Millisecond},
		{"00000005S", 5 * time.Second},
		{"20M", 20 * time.Minute},
		{"7u", 7 * time.Microsecond},
		{"99999999n", 99_999_999},
		{"2562047H", 2562047 * time.Hour},
		{"2562048H", math.MaxInt64},
		{"99999999H", math.MaxInt64},
		{"99999999M", 99999999 * time.Minute},
		{"0H", 0},
	} {
		got, err := ParseTimeout([]byte(tt.value))
		testkit.Want(t, err == nil && got == tt.want, "ParseTimeout(%q) = %v, %v; want %v", tt.value, got, err, tt.want)
	}
}

func TestParseTimeoutRefuses(t *testing.T) {
	for _, value := range []string{
		"", "n", "1", "1s", "1h", "1 S", " 1S", "1S ", "-1S", "+1S", "1.5S",
		"123456789n", "000000001n", "1SS", "0x1S", "1\x00", "S1",
	} {
		got, err := ParseTimeout([]byte(value))
		testkit.Want(t, errors.Is(err, ErrTimeoutSyntax), "ParseTimeout(%q) = %v, %v; want ErrTimeoutSyntax", value, got, err)
	}
}

func TestAppendTimeout(t *testing.T) {
	for _, tt := range []struct {
		d    time.Duration
		want string
	}{
		{math.MinInt64, "1n"},
		{-time.Second, "1n"},
		{0, "1n"},
		{1, "1n"},
		{99_999_999, "99999999n"},
		{100_000_000, "100000u"},
		{100_000_999, "100000u"},
		{time.Second, "1000000u"},
		{99_999_999*time.Microsecond + 999, "99999999u"},
		{100 * time.Second, "100000m"},
		{99_999_999 * time.Millisecond, "99999999m"},
		{100_000_000 * time.Millisecond, "100000S"},
		{99_999_999 * time.Second, "99999999S"},
		{100_000_000 * time.Second, "1666666M"},
		{99_999_999 * time.Minute, "99999999M"},
		{100_000_000 * time.Minute, "1666666H"},
		{math.MaxInt64, "2562047H"},
	} {
		testkit.Equal(t, string(AppendTimeout(nil, tt.d)), tt.want, "AppendTimeout(%v)", tt.d)
	}
}

// checkAppended holds what AppendTimeout promises for a positive d: a legal
// value, not longer than d, not zero, and in the finest unit that fits.
func checkAppended(t *testing.T, d time.Duration) {
	t.Helper()
	value := AppendTimeout(nil, d)
	got, err := ParseTimeout(value)
	testkit.Want(t, err == nil && got > 0 && got <= d, "AppendTimeout(%d) = %q, read as %d, %v", d, value, got, err)
	unit := timeoutUnit(value[len(value)-1])
	testkit.Want(t, d-got < unit, "AppendTimeout(%d) = %q loses more than a unit", d, value)
	for _, finer := range timeoutUnits {
		testkit.Want(t, finer.length >= unit || d/finer.length > 99_999_999,
			"AppendTimeout(%d) = %q, but %c has room", d, value, finer.letter)
	}
}

func FuzzParseTimeout(f *testing.F) {
	for _, value := range []string{"1n", "99999999H", "100m", "0S", "123456789n", "2562048H", "x"} {
		f.Add([]byte(value), int64(len(value))*1e9)
	}
	f.Add([]byte("5S"), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, value []byte, d int64) {
		if d > 0 {
			checkAppended(t, time.Duration(d))
		}
		got, err := ParseTimeout(value)
		if err != nil {
			testkit.Want(t, errors.Is(err, ErrTimeoutSyntax) && got == 0, "ParseTimeout(%q) = %v, %v", value, got, err)
			return
		}
		testkit.Want(t, got >= 0, "ParseTimeout(%q) = %v", value, got)
		if got > 0 {
			checkAppended(t, got)
		}
	})
}

func TestTimeoutAllocatesNothing(t *testing.T) {
	value, dst := []byte("4999000u"), make([]byte, 0, 16)
	allocs := testing.AllocsPerRun(100, func() {
		d, err := ParseTimeout(value)
		testkit.Must(t, err)
		dst = AppendTimeout(dst[:0], d-time.Millisecond)
	})
	testkit.Want(t, allocs == 0, "%v allocations", allocs)
}

func BenchmarkTimeout(b *testing.B) {
	value, dst := []byte("4999000u"), make([]byte, 0, 16)
	b.ReportAllocs()
	for b.Loop() {
		d, _ := ParseTimeout(value)
		dst = AppendTimeout(dst[:0], d-time.Millisecond)
	}
}
