package handover

import (
	"os"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// The units that people copy fit the code: the socket has the name of the
// traffic, and what an upgrade needs of a service manager is there.
func TestUnits(t *testing.T) {
	for file, lines := range map[string][]string{
		"../../deploy/systemd/cabrank.socket":  {"FileDescriptorName=" + Traffic},
		"../../deploy/systemd/cabrank.service": {"Type=notify", "NotifyAccess=main", "KillMode=mixed"},
	} {
		unit, err := os.ReadFile(file)
		testkit.Must(t, err)
		for _, line := range lines {
			if !strings.Contains(string(unit), "\n"+line+"\n") {
				t.Errorf("%s has no line %s", file, line)
			}
		}
	}
}
