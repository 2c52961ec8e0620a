package method_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/method"
)

const protos = "../../../proto"

func TestFromFiles(t *testing.T) {
	full, err := filepath.Abs(protos + "/cabrank/example/v1/work.proto")
	testkit.Must(t, err)
	for name, files := range map[string]method.Files{
		"below a folder":       {Names: []string{"cabrank/example/v1/work.proto"}, Imports: []string{"testdata", protos}},
		"as a path":            {Names: []string{protos + "/cabrank/example/v1/work.proto"}, Imports: []string{protos}},
		"without import paths": {Names: []string{protos + "/cabrank/example/v1/work.proto"}},
		"absolute":             {Names: []string{full}},
		"absolute below":       {Names: []string{full}, Imports: []string{"testdata", protos}},
		"one of two":           {Names: []string{"testdata/kinds.proto", full}},
	} {
		m, err := method.FromFiles(t.Context(), files, "cabrank.example.v1.Work/Sum")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if m.Path != "/cabrank.example.v1.Work/Sum" || m.Kind() != "client stream" {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

func TestFromFilesRefuses(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) (path string) {
		path = filepath.Join(dir, name)
		testkit.Must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	broken := write("broken.proto", "syntax = \"proto3\";\nmessage A {\n  string name = ;\n}\n")
	lost := write("lost.proto", "syntax = \"proto3\";\nimport \"shop/item.proto\";\n")
	binary := write("binary.proto", "\x00\x01\n\xff")
	for name, tc := range map[string]struct {
		files  method.Files
		method string
		want   string
	}{
		"bad name":         {method.Files{Names: []string{broken}}, "B", `method "B": write pkg.Service/Method`},
		"not there":        {method.Files{Names: []string{"gone.proto"}, Imports: []string{"x", "y"}}, "a.B/C", "gone.proto: no such file, here or below x, y"},
		"a folder":         {method.Files{Names: []string{"testdata"}}, "a.B/C", "testdata: no such file, here or below ."},
		"outside":          {method.Files{Names: []string{broken}, Imports: []string{"testdata"}}, "a.B/C", broken + ": is in none of the import paths (testdata): add its folder"},
		"broken":           {method.Files{Names: []string{broken}}, "a.B/C", "broken.proto:3:17: syntax error: unexpected ';'"},
		"import not there": {method.Files{Names: []string{lost}}, "a.B/C", `lost.proto:2:8: could not resolve path "shop/item.proto": it is in none of the import paths (., ` + dir + "): add its folder"},
		"no text":          {method.Files{Names: []string{binary}}, "a.B/C", "binary.proto:1:1: "},
		"no service":       {method.Files{Names: []string{"testdata/kinds.proto"}}, "kinds.v1.Kind/Unary", "no service kinds.v1.Kind in testdata/kinds.proto; services there: kinds.v1.Kinds"},
		"service alone":    {method.Files{Names: []string{"testdata/kinds.proto"}}, "kinds.v1.Kinds", "kinds.v1.Kinds is a service: write kinds.v1.Kinds/METHOD; its methods: Unary, Upload, Download, "},
		"no method":        {method.Files{Names: []string{"testdata/kinds.proto"}}, "kinds.v1.Kinds/Uploda", "kinds.v1.Kinds has no method Uploda; its methods: Upload, "},
		"a message":        {method.Files{Names: []string{"testdata/kinds.proto"}}, "kinds.v1.Inner/X", "no service kinds.v1.Inner in "},
	} {
		_, err := method.FromFiles(t.Context(), tc.files, tc.method)
		wantLine(t, name, err, tc.want)
	}
}

// docs/lab-load.md shows templates that work, and every placeholder that there is.
func TestDocs(t *testing.T) {
	page, err := os.ReadFile("../../../docs/lab-load.md")
	testkit.Must(t, err)
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	testkit.Want(t, len(blocks) >= 6, "%d examples", len(blocks))
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
		first, _, _ := strings.Cut(known, " ")
		testkit.Want(t, strings.Contains(string(page), "{{"+first), "docs/lab-load.md does not have %s", first)
	}
	_, err = cpu.Requests(method.Data{Name: "--data", Text: []byte(`{"n": "x"}`)})
	testkit.Want(t, err != nil && strings.Contains(string(page), "\n    "+err.Error()+"\n"), "docs/lab-load.md does not have: %v", err)
}
