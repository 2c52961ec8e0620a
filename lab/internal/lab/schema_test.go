package lab_test

import (
	"bytes"
	"encoding"
	"encoding/json"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/goal"
	"github.com/cabrank/cabrank/lab/internal/lab"
	"github.com/cabrank/cabrank/lab/internal/report"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/traffic"
	"github.com/cabrank/cabrank/lab/test/made"
)

const (
	runSchema  = "../../../docs/schema/lab-run.schema.json"
	loadSchema = "../../../docs/schema/lab-load.schema.json"
)

// validate holds a file against a schema, or against a part of it ("#/$defs/record").
func validate(t *testing.T, schema, path string) {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	compiled, err := compiler.Compile(schema)
	testkit.Must(t, err)
	text := testkit.ReadFile(t, path)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	testkit.Must(t, err)
	err = compiled.Validate(value)
	testkit.Want(t, err == nil, "%s: %v", path, err)
}

// What is written is what docs/schema says.
func TestFilesFollowTheSchemas(t *testing.T) {
	dir := t.TempDir()
	r, err := made.Save(dir, made.Options{
		Arms: []string{"a", "b"}, Rates: []int{30, 60}, Rounds: 2, Seconds: 8, Effect: 0.9, Workers: 2, Pause: true, Noisy: 1, Silent: "a",
	})
	testkit.Must(t, err)
	r.Blocks[0].Events[0].Err = "no such process"
	testkit.Must(t, result.Save(dir, r))
	validate(t, runSchema, filepath.Join(dir, result.RunFile))
	for i := range r.Blocks {
		validate(t, loadSchema+"#/$defs/record", filepath.Join(dir, r.Blocks[i].Raw))
	}
	record, err := result.ReadRecord(dir, &r.Blocks[0])
	testkit.Must(t, err)
	record.Failures = []traffic.Failure{{Code: 14, Message: "gone", Calls: record.Calls.Failed.Count()}}
	thresholds, err := goal.Parse([]string{"p99<1s", "rate>=10"})
	testkit.Must(t, err)
	judgement := thresholds.Judge(record, 0.9)
	load := report.Load{Method: "a.B/C", Began: made.Began(), Record: record, Judgement: &judgement, Limited: "busy"}
	testkit.Must(t, lab.OfLoad(load).Save(dir))
	validate(t, loadSchema, filepath.Join(dir, lab.ResultFile))
}

// Every key is described, with its meaning, and no other one is.
func TestSchemasDescribeEveryKey(t *testing.T) {
	for path, of := range map[string]any{runSchema: result.Run{}, loadSchema: lab.Result{}} {
		text := testkit.ReadFile(t, path)
		var schema map[string]any
		testkit.Must(t, json.Unmarshal(text, &schema))
		d := described{T: t, defs: schema["$defs"].(map[string]any)}
		d.walk(filepath.Base(path), reflect.TypeOf(of), schema)
	}
}

// The figures that the schema names are those that there are.
func TestSchemaNamesAllFigures(t *testing.T) {
	text := testkit.ReadFile(t, runSchema)
	var names []string
	for _, f := range result.All() {
		names = append(names, f.Name)
	}
	want, err := json.Marshal(names)
	testkit.Must(t, err)
	var flat bytes.Buffer
	testkit.Must(t, json.Compact(&flat, text))
	testkit.Equal(t, bytes.Count(flat.Bytes(), append([]byte(`"enum":`), want...)), 3, "lists of all figures, as %s", want)
}

// described compares types with a schema.
type described struct {
	*testing.T

	defs map[string]any
}

func (d described) walk(where string, of reflect.Type, schema map[string]any) {
	if ref, is := schema["$ref"].(string); is {
		schema, _ = d.defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch {
	case of.Implements(reflect.TypeFor[json.Marshaler]()), reflect.PointerTo(of).Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return // it writes itself
	case of.Kind() == reflect.Slice:
		items, _ := schema["items"].(map[string]any)
		d.walk(where+"[]", of.Elem(), items)
		return
	case of.Kind() != reflect.Struct:
		return
	}
	properties, _ := schema["properties"].(map[string]any)
	left := map[string]bool{}
	for name := range properties {
		left[name] = true
	}
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous || name == "-" {
			continue
		}
		property, is := properties[name].(map[string]any)
		if about, _ := property["description"].(string); !is || about == "" {
			d.Errorf("%s.%s is not described", where, name)
			continue
		}
		delete(left, name)
		d.walk(where+"."+name, field.Type, property)
	}
	for name := range left {
		d.Errorf("%s.%s is described and not there", where, name)
	}
}
