package handover

import (
	"os"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// successorVariable says what the test binary is when Upgrade has started it.
const successorVariable = "HANDOVER_TEST_SUCCESSOR"

func TestMain(m *testing.M) {
	if mode := os.Getenv(successorVariable); mode != "" {
		os.Exit(beSuccessor(mode)) //nolint:forbidigo // this process has no tests to run
	}
	testkit.VerifyMain(m)
}
