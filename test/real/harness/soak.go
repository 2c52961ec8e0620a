package harness

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// SoakTime is how long the soak runs; SOAK_TIME changes it.
func SoakTime(t testing.TB) time.Duration {
	t.Helper()
	text := os.Getenv("SOAK_TIME")
	if text == "" {
		return 2 * time.Minute
	}
	d, err := time.ParseDuration(text)
	testkit.Need(t, err == nil, "SOAK_TIME: %v", err)
	return d
}

// RandomSeed is CHAOS_SEED, to repeat a run, or the given one.
func RandomSeed(t testing.TB, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv("CHAOS_SEED")
	if text == "" {
		return otherwise
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	testkit.Need(t, err == nil, "CHAOS_SEED: %v", err)
	return seed
}
