package main

import (
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// Each program is there with its hash, and depends on the modules that are in it.
func TestMaterials(t *testing.T) {
	r := small()
	r.Modules = []module{
		{Path: "a.example/A", Version: "v1.0.0+incompatible", Sum: "h1:" + strings.Repeat("A", 43) + "=", License: "MIT", In: []string{"linux-amd64"}},
	}
	all, err := materials(r)
	need(t, err == nil && len(all) == 1 && all[0].Name == "cabrank-1.2.3.cdx.json", "%d files, %v", len(all), err)
	var list cdx.BOM
	must(t, cdx.NewBOMDecoder(strings.NewReader(string(all[0].Content)), cdx.BOMFileFormatJSON).Decode(&list))
	check(t, list.Metadata.Timestamp == "2026-01-02T03:04:05Z" && list.SerialNumber == "",
		"made at %s, serial number %q", list.Metadata.Timestamp, list.SerialNumber)
	byRef := map[string]cdx.Component{}
	for _, c := range *list.Components {
		byRef[c.BOMRef] = c
	}
	const of = "pkg:golang/a.example/a@v1.0.0%2Bincompatible"
	m := byRef[of]
	check(t, m.Name == "a.example/A" && (*m.Hashes)[0].Value == strings.Repeat("0", 64) && (*m.Licenses)[0].License.ID == "MIT",
		"the module is %+v", m)
	same(t, (*byRef["cabrank-linux-arm64"].Hashes)[0].Value, "5781e1c62877110af9d32c19599c59efee8e87e81025b98fef03f8b74ed6595d",
		"the hash of a program")
	uses := map[string]string{}
	for _, d := range *list.Dependencies {
		uses[d.Ref] = strings.Join(*d.Dependencies, " ")
	}
	for ref, want := range map[string]string{
		"cabrank":             "cabrank-linux-amd64 cabrank-linux-arm64 cabrank-darwin-amd64 cabrank-darwin-arm64",
		"cabrank-linux-amd64": "pkg:golang/std@1.26.0 " + of,
		"cabrank-linux-arm64": "pkg:golang/std@1.26.0",
	} {
		check(t, uses[ref] == want, "%s depends on %q, want %q", ref, uses[ref], want)
	}
}

func TestModuleWithoutSumIsRefused(t *testing.T) {
	for _, sum := range []string{"", "h1:", "h1:AAAA", "h1:?"} {
		r := small()
		r.Modules = []module{{Path: "a", Version: "v1", Sum: sum}}
		_, err := materials(r)
		check(t, err != nil, "the sum %q is taken", sum)
	}
}
