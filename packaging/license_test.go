package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const mit = "Permission is hereby granted, free of charge, to any\nperson obtaining a copy"

// sources writes files below a new folder.
func sources(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return dir
}

// A text that several modules have is there once; what a module has from others is there
// by its folder; data of tests are not in the program.
func TestLicensesOfModules(t *testing.T) {
	var texts licenseTexts
	for _, m := range []module{
		{Path: "a.example/a", Version: "v1", Dir: sources(t, map[string]string{
			"LICENSE": mit + "\n", "license.go": "package a", "testdata/LICENSE": "of data", "z/x/COPYING": "of x",
		})},
		{Path: "b.example/b", Version: "v2", Dir: sources(t, map[string]string{
			"License.md": strings.ReplaceAll(mit, "\n", "\r\n"), "NOTICE": "of b", "licenses/text": "no license",
		})},
	} {
		name, err := texts.addModule(m)
		check(t, err == nil && name == "MIT", "%s: license %q, %v", m, name, err)
	}
	want := "The program cabrank has parts by others. Their licenses follow, each below the names of\nthe parts that it is for.\n"
	for _, part := range [][2]string{{"a.example/a v1\nb.example/b v2", mit}, {"a.example/a v1, z/x", "of x"}, {"b.example/b v2", "of b"}} {
		want += "\n" + strings.Repeat("=", 80) + "\n" + part[0] + "\n" + strings.Repeat("-", 80) + "\n\n" + part[1] + "\n"
	}
	if got := string(texts.bytes()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestModuleWithoutLicenseIsRefused(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"none":    {"main.go": "package main"},
		"unknown": {"LICENSE": "You may look, but not touch."},
		"a part":  {"part/LICENSE": mit},
	} {
		var texts licenseTexts
		got, err := texts.addModule(module{Path: "a", Version: "v1", Dir: sources(t, files)})
		check(t, err != nil, "%s: license %q and no error", name, got)
	}
}

// The licenses of Go and of this tree are recognized.
func TestSPDX(t *testing.T) {
	for want, text := range map[string]string{
		"MIT":          mit,
		"Apache-2.0":   "                                 Apache License\n                           Version 2.0, January 2004",
		"BSD-3-Clause": "Redistribution and use in source and binary forms, … may be used to endorse or\npromote products derived from this software",
		"BSD-2-Clause": "Redistribution and use in source and binary forms, with or without",
		"":             "of its own kind",
	} {
		same(t, spdx([]byte(text)), want, "%q", text)
	}
}
