package relay

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// docs/errors.md lists what callers are told: whoever searches for a message finds
// it there, with its codes.
func TestAnswersAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	for why := range endings {
		a := answerOf(why)
		row := "| " + a.code.String() + " (" + strconv.Itoa(a.status) + ") | `" + a.message + "` |\n"
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/errors.md has no row that ends in %s", row)
		}
	}
}
