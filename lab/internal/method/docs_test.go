package method_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/method"
)

// docs/lab-load.md shows templates that work, and every placeholder that there is.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../../docs/lab-load.md")
	testkit.Must(t, err)
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) < 6 {
		t.Errorf("%d examples", len(blocks))
	}
	cpu := fromFile(t, "../"+protos+"/cabrank/example/v1/work.proto", "cabrank.example.v1.Work/Cpu")
	chat := fromFile(t, "../"+protos+"/cabrank/example/v1/work.proto", "cabrank.example.v1.Work/Chat")
	for _, block := range blocks {
		m := cpu
		if strings.Contains(block[1], `"text"`) {
			m = chat
		}
		requests(t, m, block[1]).Messages(1)
	}
	for _, row := range regexp.MustCompile(`(?m)^\| .(\{\{.*?\}\}). \|`).FindAllStringSubmatch(string(page), -1) {
		requests(t, chat, `{"text": "`+row[1]+`"}`).Messages(1)
	}
	_, err = chat.Requests(method.Data{Text: []byte("{{}}")})
	_, list, _ := strings.Cut(err.Error(), "there are: ")
	for known := range strings.SplitSeq(list, ", ") {
		if first, _, _ := strings.Cut(known, " "); !strings.Contains(string(page), "{{"+first) {
			t.Errorf("docs/lab-load.md does not have %s", first)
		}
	}
	_, err = cpu.Requests(method.Data{Name: "--data", Text: []byte(`{"n": "x"}`)})
	if err == nil || !strings.Contains(string(page), "\n    "+err.Error()+"\n") {
		t.Errorf("docs/lab-load.md does not have: %v", err)
	}
}
