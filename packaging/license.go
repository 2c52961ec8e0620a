package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// thirdParty is the name of the file with the licenses of what is in the program beside
// Cabrank: most of them ask that their text goes wherever the program goes.
const thirdParty = "THIRD-PARTY-LICENSES"

// licenseNames matches the files of a module that say under which terms it may be passed
// on, or what has to be said with it.
var licenseNames = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|patents)([.-].*)?$`)

// legal is what goes with the program into every package.
func (r *release) legal() []file {
	return []file{
		{Name: "LICENSE", Mode: 0o644, Content: r.License},
		{Name: thirdParty, Mode: 0o644, Content: r.ThirdParty},
	}
}

// readLicenses fills r.License and r.ThirdParty: each text once, below the names of all
// that it is for.
func (r *release) readLicenses(ctx context.Context) (err error) {
	if r.License, err = os.ReadFile(filepath.Join(r.Root, "LICENSE")); err != nil {
		return err
	}
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	content, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(goroot)), "LICENSE"))
	if err != nil {
		return fmt.Errorf("the license of Go: %w", err)
	}
	var texts licenseTexts
	texts.add("Go "+strings.TrimPrefix(r.Go, "go"), content)
	for i, m := range r.Modules {
		if r.Modules[i].License, err = texts.addModule(m); err != nil {
			return fmt.Errorf("license of %s: %w", m, err)
		}
	}
	r.ThirdParty = texts.bytes()
	return nil
}

// licenseText is a text and the names of what it is for.
type licenseText struct {
	text string
	of   []string
}

type licenseTexts []licenseText

// add notes a text. Two that differ in blanks alone are one.
func (all *licenseTexts) add(name string, content []byte) {
	text := strings.TrimSpace(strings.ReplaceAll(string(content), "\r\n", "\n"))
	i := slices.IndexFunc(*all, func(l licenseText) bool {
		return slices.Equal(strings.Fields(l.text), strings.Fields(text))
	})
	if i < 0 {
		*all = append(*all, licenseText{text, []string{name}})
		return
	}
	(*all)[i].of = append((*all)[i].of, name)
}

// addModule notes all texts of a module, also those of code that it has from others, and
// returns the name of the one of the module itself.
//
// Errors: a module without a license may not be passed on.
func (all *licenseTexts) addModule(m module) (license string, err error) {
	sources := os.DirFS(m.Dir)
	err = fs.WalkDir(sources, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == "testdata":
			return fs.SkipDir
		case entry.IsDir() || !licenseNames.MatchString(entry.Name()) || path.Ext(name) == ".go":
			return nil
		}
		content, err := fs.ReadFile(sources, name)
		if err != nil {
			return err
		}
		of := m.String()
		if folder := path.Dir(name); folder != "." {
			of += ", " + folder
		} else if license == "" {
			license = spdx(content)
		}
		all.add(of, content)
		return nil
	})
	if err == nil && license == "" {
		err = errors.New("there is none that is known")
	}
	return license, err
}

// spdx names the license of a text by its identifier, empty if it is none of those that
// modules of Go commonly have.
func spdx(content []byte) string {
	text := strings.Join(strings.Fields(string(content)), " ")
	for _, known := range []struct{ name, says string }{
		{"Apache-2.0", "Apache License Version 2.0"},
		{"MPL-2.0", "Mozilla Public License Version 2.0"},
		{"MIT", "Permission is hereby granted, free of charge, to any person obtaining a copy"},
		{"ISC", "Permission to use, copy, modify, and/or distribute this software for any purpose"},
		{"BSD-3-Clause", "may be used to endorse or promote products derived from"},
		{"BSD-2-Clause", "Redistribution and use in source and binary forms"},
	} {
		if strings.Contains(text, known.says) {
			return known.name
		}
	}
	return ""
}

// bytes is the file.
func (all licenseTexts) bytes() []byte {
	var out strings.Builder
	out.WriteString("The program cabrank has parts by others. Their licenses follow, each below the names of\nthe parts that it is for.\n")
	for _, l := range all {
		fmt.Fprintf(&out, "\n%s\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(l.of, "\n"), strings.Repeat("-", 80), l.text)
	}
	return []byte(out.String())
}
