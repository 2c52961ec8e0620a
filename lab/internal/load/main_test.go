package load

import (
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// No test leaves a goroutine or a listener behind.
func TestMain(m *testing.M) { testkit.VerifyMain(m) }
