package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"slices"
	"testing"
)

// npmFiles reads an npm package: the text of its files by name.
func npmFiles(t *testing.T, content []byte) map[string]string {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(content))
	must(t, err)
	found := map[string]string{}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if err == io.EOF { //nolint:errorlint // Next returns it as it is
			return found
		}
		must(t, err)
		text, err := io.ReadAll(archive)
		must(t, err)
		found[header.Name] = string(text)
		if want := header.Name == "package/bin/cabrank"; (header.Mode == 0o755) != want || !want && header.Mode != 0o644 {
			t.Errorf("%s has the mode %o", header.Name, header.Mode)
		}
	}
}

func manifest(t *testing.T, found map[string]string) (about packageJSON) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader([]byte(found["package/package.json"])))
	decoder.DisallowUnknownFields()
	must(t, decoder.Decode(&about))
	return about
}

// The package without a program names the four with one, each in this very version, and
// each of them is for its platform alone.
func TestNPM(t *testing.T) {
	made := madeTwice(t, npm)
	found := npmFiles(t, made["cabrank-1.2.3-rc.4.tgz"])
	main := manifest(t, found)
	for _, file := range []string{main.Main, main.Types, main.Bin["cabrank"], "README.md", "LICENSE", thirdParty} {
		check(t, found["package/"+file] != "", "there is no %s", file)
	}
	programs := madeTwice(t, forEach(npmProgram))
	for _, p := range smallRelease().Programs {
		found := npmFiles(t, programs["cabrank-"+p.NPMOS+"-"+p.NPMArch+"-1.2.3-rc.4.tgz"])
		about := manifest(t, found)
		check(t, main.Optional[about.Name] == about.Version && about.Version == "1.2.3-rc.4",
			"%s %s is not what the main package wants: %v", about.Name, about.Version, main.Optional)
		if !slices.Equal(about.OS, []string{p.NPMOS}) || !slices.Equal(about.CPU, []string{p.NPMArch}) || about.Name != npmName(p.platform) {
			t.Errorf("%s is for %v on %v", about.Name, about.OS, about.CPU)
		}
		same(t, found["package/bin/cabrank"], string(p.Content), "%s has the program", about.Name)
	}
	check(t, len(made) == 1 && len(programs) == len(main.Optional) && len(programs) == len(platforms()),
		"%d and %d packages for %v", len(made), len(programs), main.Optional)
}
