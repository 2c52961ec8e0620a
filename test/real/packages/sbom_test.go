//go:build real || soak

package packages_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// The list of what is in the programs is as CycloneDX has it, by the schema that comes with
// its library, and has the hashes of the programs that are in the archives.
func TestMaterials(t *testing.T) {
	content := testkit.ReadFile(t, dist(t, "cabrank-[0-9]*.cdx.json"))
	list, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
	testkit.Must(t, err)
	testkit.Must(t, cycloneDX(t).Validate(list))
	for _, platform := range []string{"linux amd64", "linux arm64", "darwin amd64", "darwin arm64"} {
		system, arch, _ := strings.Cut(platform, " ")
		program := testkit.ReadFile(t, filepath.Join(unpacked(t, system, arch), "cabrank"))
		sum := fmt.Sprintf("%x", sha256.Sum256(program))
		testkit.Want(t, bytes.Contains(content, []byte(sum)), "the hash of the program for %s is not in it: %s", platform, sum)
	}
	for _, module := range []string{"pkg:golang/google.golang.org/protobuf@", "pkg:golang/std@1."} {
		testkit.Want(t, bytes.Contains(content, []byte(module)), "%s is not in it", module)
	}
}

// cycloneDX compiles the schema of version 1.6.
func cycloneDX(t *testing.T) *jsonschema.Schema {
	t.Helper()
	find := exec.Command("go", "-C", filepath.Join(harness.Root(t), "packaging"), "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go")
	folder, err := find.Output()
	testkit.Must(t, err)
	compiler := jsonschema.NewCompiler()
	for name, file := range map[string]string{
		"http://cyclonedx.org/schema/bom-1.6.schema.json":  "bom-1.6.schema.json",
		"http://cyclonedx.org/schema/spdx.schema.json":     "spdx.schema.json",
		"http://cyclonedx.org/schema/jsf-0.82.schema.json": "jsf-0.82.schemax.json",
	} {
		text := testkit.ReadFile(t, filepath.Join(strings.TrimSpace(string(folder)), "schema", file))
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		testkit.Must(t, err)
		testkit.Must(t, compiler.AddResource(name, value))
	}
	schema, err := compiler.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	testkit.Must(t, err)
	return schema
}
