package relay

import (
	"os"
	"strconv"
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
	for why := range endings {
		a := answerOf(why)
		row := "| " + a.code.String() + " (" + strconv.Itoa(a.status) + ") | `" + a.message + "` |\n"
		if !strings.Contains(string(readme), row) {
			t.Errorf("README.md has no row that ends in %s", row)
		}
	}
}
