package sink

import (
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// No test leaves a goroutine behind.
func TestMain(m *testing.M) { testkit.VerifyMain(m) }
