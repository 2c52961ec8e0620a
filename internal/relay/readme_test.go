package relay

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The README lists what callers are told: whoever searches for a message finds
// it there, with its codes.
func TestAnswersAreInTheReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for why := range refusals {
		a := answerOf(why)
		row := fmt.Sprintf("| %s (%d) | `%s` |\n", a.code, a.status, a.message)
		if !strings.Contains(string(readme), row) {
			t.Errorf("README.md has no row that ends in %s", row)
		}
	}
}
